"""The table at the head of a report, with one row for each judge on each aspect."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from evaluations.stats.agreement import AgreementBlock
from evaluations.stats.aspect_report import AspectReport
from evaluations.stats.estimates import Estimate

CEILING_LEVELS: Final = {"with": "s1", "without": "s2"}
# Where the common scale may begin; differences show best on the shortest one that holds everything.
SCALE_STARTS: Final = (0.5, 0.0, -0.5, -1.0)


@dataclass(frozen=True)
class OverviewRow:
    """``beside``: judge and people, each with the remaining people when one is left out, and their difference."""

    key: str
    aspect: str
    judge: str | None
    label: str | None
    majority: Estimate | None
    gold: Estimate | None
    beside: Any
    people: Estimate
    failed: Any


# Sorted from the least to the most; all others begin with the most.
ASCENDING: Final = frozenset({"aspect", "difference"})


@dataclass(frozen=True)
class OverviewTable:
    """``low``: where the common scale of all intervals begins."""

    rows: tuple[OverviewRow, ...]
    is_ascending: bool
    low: float
    has_gold: bool
    has_ceiling: bool
    has_judges: bool
    has_failures: bool


def build_overview_table(aspects: Mapping[str, AspectReport], ties: str, measure: str, sort: str) -> OverviewTable:
    rows = [row for key, aspect in aspects.items() for row in build_overview_rows(key, aspect, ties, measure)]
    return OverviewTable(
        rows=tuple(sorted(rows, key=lambda row: get_sort_key(row, sort))),
        is_ascending=sort in ASCENDING,
        low=find_scale_start(rows),
        has_gold=any(row.gold is not None for row in rows),
        has_ceiling=any(row.beside is not None for row in rows),
        has_judges=any(row.judge is not None for row in rows),
        has_failures=any(row.failed is not None and row.failed.incomplete for row in rows),
    )


def build_overview_rows(key: str, aspect: AspectReport, ties: str, measure: str) -> Iterator[OverviewRow]:
    people = select_number(aspect.human_human.majority, ties, measure)
    for name, judge in aspect.answering.items():
        gold = select_number(judge.judge_gold, ties, measure)
        level = getattr(judge.ceiling, CEILING_LEVELS[ties])
        beside = {"agreement": level, "cohen_kappa": level.cohen_kappa}.get(measure)
        yield OverviewRow(
            key=key,
            aspect=aspect.name,
            judge=name,
            label=judge.label,
            majority=select_number(judge.judge_human.majority, ties, measure),
            gold=gold if gold.n else None,
            beside=beside if level.n else None,
            people=people,
            failed=judge.failed,
        )
    if not aspect.answering:
        yield OverviewRow(key, aspect.name, None, None, None, None, None, people, None)


def select_number(block: AgreementBlock, ties: str, measure: str) -> Estimate:
    number: Estimate = getattr(block.with_ties if ties == "with" else block.without_ties, measure)
    return number


def get_sort_key(row: OverviewRow, sort: str) -> float:
    """The sort key of a row: judge or people in descending order, differences in ascending order."""
    beside = row.beside
    number, sign = {
        "judge": (row.majority, -1),
        "people": (beside.people if beside else row.people, -1),
        "difference": (beside.difference if beside else None, 1),
    }.get(sort, (None, 1))
    if number is None or number.value is None:
        return inf
    return sign * float(number.value)


def find_scale_start(rows: list[OverviewRow]) -> float:
    """Where the scale begins, so that nothing lies outside."""
    shown = [
        number for row in rows for number in list_drawn_numbers(row) if number is not None and number.value is not None
    ]
    lowest = min((min(number.ci95 or (number.value,)) for number in shown if number.value is not None), default=0.0)
    return next((low for low in SCALE_STARTS if lowest >= low), SCALE_STARTS[-1])


def list_drawn_numbers(row: OverviewRow) -> tuple[Estimate | None, ...]:
    beside = (row.beside.judge, row.beside.people) if row.beside else ()
    return (row.majority, row.gold, row.people, *beside)
