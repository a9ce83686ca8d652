"""What a bias board asks of the comparisons, whoever judges them: worked out once for all judges and aspects."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.domain import Markup
from evaluations.stats.bias.sides import Sides, only_one
from evaluations.stats.bias.strata import Strata, by_category, by_pair, undivided
from evaluations.stats.coding import MISSING, A, B, IntArray
from evaluations.stats.contributions import FloatArray
from evaluations.stats.items import Items

ANY: Final = "any"
FINENESS: Final = 50  # log ratios of lengths are rounded to this part of 1: a percent of a length at most


@dataclass(frozen=True)
class Lengths:
    """``longer``: the side of the longer response, MISSING where both are equally long. ``log_ratios``: the different
    values of log((1 + characters of A) ÷ (1 + characters of B)), rounded; ``ratio``: each item's place among them.
    """

    longer: Sides
    ratio: IntArray
    log_ratios: FloatArray


@dataclass(frozen=True)
class Ground:
    """``marked_up``: by the kind of Markdown, the side that alone has it, or MISSING."""

    items: Items
    whole: Strata
    by_category: Strata
    by_pair: Strata
    lengths: Lengths
    marked_up: Mapping[str, Sides]


def ground_of(items: Items) -> Ground:
    return Ground(
        items=items,
        whole=undivided(items.cluster),
        by_category=by_category(items),
        by_pair=by_pair(items),
        lengths=lengths_of(items.characters_a, items.characters_b),
        marked_up=marked_up(items.markup_a, items.markup_b),
    )


def lengths_of(a: IntArray, b: IntArray) -> Lengths:
    longer = np.where(a == b, MISSING, np.where(a > b, A, B)).astype(np.int8)
    rounded = np.rint((np.log1p(a) - np.log1p(b)) * FINENESS).astype(np.int64)
    least = int(rounded.min(initial=0))
    log_ratios = np.arange(least, int(rounded.max(initial=0)) + 1) / FINENESS
    return Lengths(longer, rounded - least, log_ratios)


def marked_up(a: IntArray, b: IntArray) -> dict[str, Sides]:
    found = {ANY: only_one(a > 0, b > 0)}
    for kind in Markup:
        found[str(kind.name).lower()] = only_one(a & kind > 0, b & kind > 0)
    return found
