"""Which models the rows of a file are about: counted while it is checked, for the first line of its preview."""

from collections import Counter
from collections.abc import Iterator, Sequence
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

    def warnings(self, asked: str) -> Iterator[str]:
        """``asked``: the name that was given for the whole file."""
        if self.overruled:
            most = [f"“{name}” ({rows(number)})" for name, number in self.overruled.most_common(IN_A_SENTENCE)]
            more = len(self.overruled) - len(most)
            names = ", ".join([*most, *([f"{more:,} more"] if more else [])])
            yield f"The model is “{asked}”, as given for the whole file. The file's own column names {names}: not used."
        if asked and self.rows and asked not in self.names:
            yield f"The name “{asked}” is not used: the rows of this file name their own models."


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
