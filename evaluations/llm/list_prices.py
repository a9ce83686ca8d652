"""Prices from providers' price lists: a dated file with the source of each line."""

import csv
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from evaluations.domain.money import NANO_PER_USD

LIST_PRICE_FILE: Final = Path(__file__).with_name("list_prices.csv")
WILDCARD: Final = "*"
# Google's list of models adds it to their names; both forms are accepted.
MODEL_NAME_PREFIX: Final = "models/"
FULL_PERCENT: Final = 100  # percent
PRICE_NAMES: Final = ("tokens_in", "tokens_cached", "tokens_out")
PERCENT_NAMES: Final = ("written_percent", "long_in_percent", "long_out_percent")


@dataclass(frozen=True)
class ListPrice:
    """A line of the file; prices are in nano-USD for a million tokens.

    ``models``: exact names, or prefixes that end in an asterisk. ``written_percent``: the cost of tokens written to a
    prompt cache, in percent of other tokens in. ``batch_percent``: of the price through the Batch API; None if no
    discount is known. From ``long_from`` tokens in, all tokens of a request cost ``long_in_percent`` and
    ``long_out_percent`` of the price. ``most_tokens_out``: of one reply, reasoning included.
    """

    provider: str
    models: tuple[str, ...]
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    written_percent: int
    batch_percent: int | None
    long_from: int | None
    long_in_percent: int
    long_out_percent: int
    most_tokens_out: int | None
    source: str
    read_on: date

    def names(self, model: str) -> bool:
        return any(
            model.startswith(name.removesuffix(WILDCARD)) if name.endswith(WILDCARD) else model == name
            for name in self.models
        )

    def percents(self, tokens_in: int) -> tuple[int, int]:
        """The percentages of the prices of tokens in and out for a request of this length."""
        if self.long_from is None or tokens_in < self.long_from:
            return FULL_PERCENT, FULL_PERCENT
        return self.long_in_percent, self.long_out_percent


def find_list_price(base_url: str, model: str) -> ListPrice | None:
    """The line for this model at the provider with this address; None if the file has none."""
    provider, name = urlsplit(base_url).hostname or "", model.removeprefix(MODEL_NAME_PREFIX)
    return next((line for line in load_list_prices() if line.provider == provider and line.names(name)), None)


@cache
def load_list_prices() -> tuple[ListPrice, ...]:
    with LIST_PRICE_FILE.open(encoding="utf-8", newline="") as file:
        return tuple(parse_list_price(row) for row in csv.DictReader(file))


def parse_list_price(row: dict[str, str]) -> ListPrice:
    prices = {name: int(Decimal(row[name]) * NANO_PER_USD) for name in PRICE_NAMES}
    percents = {name: int(row[name] or FULL_PERCENT) for name in PERCENT_NAMES}
    return ListPrice(
        provider=row["provider"],
        models=tuple(row["models"].split()),
        batch_percent=int(row["batch_percent"]) if row["batch_percent"] else None,
        long_from=int(row["long_from"]) if row["long_from"] else None,
        most_tokens_out=int(row["most_tokens_out"]) if row["most_tokens_out"] else None,
        source=row["source"],
        read_on=date.fromisoformat(row["read_on"]),
        **prices,
        **percents,
    )
