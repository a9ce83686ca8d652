"""The table at the head of a report: a row for each judge on each aspect, beside people on the same comparisons."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from evaluations.services.reporting.reporting import AspectReport, Block, Number, Report

LEVELS: Final = {"with": "s1", "without": "s2"}
# Where the common scale may begin; differences show best on the shortest one that holds everything.
LOWEST: Final = (0.5, 0.0, -0.5, -1.0)


@dataclass(frozen=True)
class Row:
    """``beside``: judge and people both against the people that remain when one is left out, with their difference."""

    key: str
    aspect: str
    judge: str | None
    label: str | None
    majority: Number | None
    gold: Number | None
    beside: Any
    people: Number
    failed: Any


@dataclass(frozen=True)
class Overview:
    """``low``: where the common scale of all intervals begins."""

    rows: tuple[Row, ...]
    low: float
    has_gold: bool
    has_ceiling: bool
    has_judges: bool
    has_failures: bool


def overview(report: Report, ties: str, measure: str, sort: str) -> Overview:
    rows = [row for key, aspect in report.aspects.items() for row in rows_of(key, aspect, ties, measure)]
    return Overview(
        rows=tuple(sorted(rows, key=lambda row: place(row, sort))),
        low=lowest(rows),
        has_gold=any(row.gold is not None for row in rows),
        has_ceiling=any(row.beside is not None for row in rows),
        has_judges=any(row.judge is not None for row in rows),
        has_failures=any(row.failed is not None and row.failed.incomplete for row in rows),
    )


def rows_of(key: str, aspect: AspectReport, ties: str, measure: str) -> Iterator[Row]:
    people = number_of(aspect.human_human.majority, ties, measure)
    for name, judge in aspect.answering.items():
        gold = number_of(judge.judge_gold, ties, measure)
        level = getattr(judge.ceiling, LEVELS[ties])
        beside = {"agreement": level, "cohen_kappa": level.cohen_kappa}.get(measure)
        yield Row(
            key=key,
            aspect=aspect.name,
            judge=name,
            label=judge.label,
            majority=number_of(judge.judge_human.majority, ties, measure),
            gold=gold if gold.n else None,
            beside=beside if level.n else None,
            people=people,
            failed=judge.failed,
        )
    if not aspect.answering:
        yield Row(key, aspect.name, None, None, None, None, None, people, None)


def number_of(block: Block, ties: str, measure: str) -> Number:
    number: Number = getattr(block.with_ties if ties == "with" else block.without_ties, measure)
    return number


def place(row: Row, sort: str) -> float:
    """Judge and people from most to least, the difference from where the judge stands furthest below people."""
    beside = row.beside
    number, sign = {
        "judge": (row.majority, -1),
        "people": (beside.people if beside else row.people, -1),
        "difference": (beside.difference if beside else None, 1),
    }.get(sort, (None, 1))
    if number is None or number.value is None:
        return inf
    return sign * float(number.value)


def lowest(rows: list[Row]) -> float:
    """Where the scale begins, so that nothing lies outside."""
    shown = [number for row in rows for number in drawn(row) if number is not None and number.value is not None]
    least = min((min(number.ci95 or (number.value,)) for number in shown if number.value is not None), default=0.0)
    return next((low for low in LOWEST if least >= low), LOWEST[-1])


def drawn(row: Row) -> tuple[Number | None, ...]:
    beside = (row.beside.judge, row.beside.people) if row.beside else ()
    return (row.majority, row.gold, row.people, *beside)
