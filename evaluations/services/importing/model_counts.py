"""Which models the rows of a file are about: counted while it is checked, for the first line of its preview."""

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from evaluations.domain import BadRow, ComparisonRow, ResponseRow, Row, ScoreRow, VerdictRow
from evaluations.formats.reading import Entry, NamedBy
from evaluations.services.importing.knowing import Outcome, Skipped

LISTED: Final = 100  # models; all are counted
IN_A_SENTENCE: Final = 5
KINDS: Final = ("comparisons", "responses", "verdicts", "scores")


@dataclass
class ModelCounts:
    """``rows``: by name and kind how many good rows. ``overruled``: of all rows, the column's names that go unused."""

    named_by: NamedBy
    rows: Counter[tuple[str, str]] = field(default_factory=Counter)
    overruled: Counter[str] = field(default_factory=Counter)

    def count(self, items: Sequence[Entry | BadRow], outcomes: Sequence[Outcome]) -> None:
        rows = self.rows
        for item, outcome in zip(items, outcomes, strict=True):
            if isinstance(item, BadRow):
                continue
            is_good = not isinstance(outcome, (BadRow, Skipped))
            for row in item.rows:
                for named in names_in(row) if is_good else ():
                    rows[named] += 1
                if isinstance(row, (ResponseRow, ScoreRow)) and row.overruled:
                    self.overruled[row.overruled] += 1

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.rows}

    def listed(self) -> list[dict[str, Any]]:
        """Those with most rows first, as an import's summary keeps them."""
        total: Counter[str] = Counter()
        for (name, _), number in self.rows.items():
            total[name] += number
        most = sorted(total, key=lambda name: (-total[name], name))[:LISTED]
        return [
            {"name": name, **{kind: self.rows[name, kind] for kind in KINDS if self.rows[name, kind]}} for name in most
        ]

    def named_as(self, asked: str) -> NamedBy:
        """What names the models, after all rows: a name for the whole file is none of rows that name their own."""
        is_unused = self.named_by == NamedBy.FORM and self.rows and asked not in self.names
        return NamedBy.COLUMN if is_unused else self.named_by

    def warnings(self, asked: str, known: Collection[str] = ()) -> Iterator[str]:
        """``asked``: the name that was given for the whole file. ``known``: models that are here already."""
        if self.overruled:
            most = [f"“{name}” ({rows(number)})" for name, number in self.overruled.most_common(IN_A_SENTENCE)]
            more = len(self.overruled) - len(most)
            names = ", ".join([*most, *([f"{more:,} more"] if more else [])])
            yield f"The model is “{asked}”, as given for the whole file. The file's own column names {names}: not used."
        if asked and self.rows and asked not in self.names:
            yield f"The name “{asked}” is not used: the rows of this file name their own models."
        alike: dict[str, set[str]] = {}
        for name in {*self.names, *known}:
            alike.setdefault(looks_of(name), set()).add(name)
        doubtful = [sorted(some) for some in alike.values() if len(some) > 1 and not self.names.isdisjoint(some)]
        for some in sorted(doubtful)[:IN_A_SENTENCE]:
            listed = " and ".join(f"“{name}”" for name in some[:IN_A_SENTENCE])
            yield f"{listed} look alike but are different models. If they are the same model, use one name."


def looks_of(name: str) -> str:
    """A name without what is hardly seen of it: case, blank space, width, accents written apart, invisible signs."""
    text = unicodedata.normalize("NFKC", name).casefold()
    return "".join(one for one in text if not one.isspace() and unicodedata.category(one) != "Cf")


def names_in(row: Row) -> list[tuple[str, str]]:
    if isinstance(row, ComparisonRow):
        return [(row.candidate_a, "comparisons"), (row.candidate_b, "comparisons")]
    if isinstance(row, ResponseRow):
        return [(row.candidate, "responses")]
    if isinstance(row, ScoreRow):
        return [(row.candidate, "scores")]
    if isinstance(row, VerdictRow) and row.candidate_a and row.candidate_b:
        return [(row.candidate_a, "verdicts"), (row.candidate_b, "verdicts")]
    return []


def rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"
