"""Agreement of people with judges and with each other over time, by the day on which people voted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import IntArray
from evaluations.stats.consolidation import Choices
from evaluations.stats.grouped_shares import grouped, shares
from evaluations.stats.numbers import Number
from evaluations.stats.opinions import Opinions, held

MOST_POINTS: Final = 60
FEW: Final = 30
FEW_VOTES: Final = f"Fewer than {FEW} votes: chance alone moves such a share a long way."
WEEK: Final = 7
MONDAY: Final = 3  # days from 1970-01-01, a Thursday, back to the beginning of its week

NO_COMPANY: Final = "Nobody else voted on these comparisons."
NO_VERDICT: Final = "The judge has no verdict on these comparisons."


Numbering = Callable[[IntArray], IntArray]


@dataclass(frozen=True)
class TimelinePoint:
    """Votes from ``start`` to ``end``, both included. ``people``: the share of other votes that are the same.

    ``judges``: by name, how often the judge chose the same.
    """

    start: str
    end: str
    votes: int
    people: Number
    judges: dict[str, Number]
    caution: str | None


@dataclass(frozen=True)
class Timeline:
    """``bucket``: day, week (from Monday), month or year; None where nobody voted. No point where no votes are."""

    bucket: str | None
    points: tuple[TimelinePoint, ...]


@dataclass(frozen=True)
class Buckets:
    """``of``: of each entry. ``starts``: the first day of each bucket, and that after the last one."""

    name: str
    of: IntArray
    starts: IntArray


def timeline(found: Opinions, day: IntArray, judges: Mapping[str, Choices]) -> Timeline:
    """``day``: of each vote as it came, in days since 1970-01-01. ``judges``: their choices on each item of the poll.

    The buckets are the shortest of which there are up to 60. Intervals are Wilson's by cluster.
    """
    if not len(found):
        return Timeline(None, ())
    buckets = bucketed(day[found.cast])
    entries = grouped(buckets.of, len(buckets.starts) - 1, found.cluster)
    people = shares(entries, found.alike, found.others_voted, NO_COMPANY)
    of_judges = {name: shares(entries, *held(judge, found), NO_VERDICT) for name, judge in judges.items()}
    votes = np.bincount(buckets.of, minlength=entries.groups).tolist()
    return Timeline(
        buckets.name,
        tuple(
            TimelinePoint(
                start=date_of(buckets.starts[at]),
                end=date_of(buckets.starts[at + 1] - 1),
                votes=votes[at],
                people=people[at],
                judges={name: numbers[at] for name, numbers in of_judges.items()},
                caution=FEW_VOTES if votes[at] < FEW else None,
            )
            for at in range(entries.groups)
            if votes[at]
        ),
    )


def date_of(day: int) -> str:
    return str(np.datetime64(int(day), "D"))


def days(day: IntArray) -> IntArray:
    return day


def weeks(day: IntArray) -> IntArray:
    return (day + MONDAY) // WEEK


def first_of_weeks(week: IntArray) -> IntArray:
    return week * WEEK - MONDAY


def in_calendar(unit: str) -> tuple[Numbering, Numbering]:
    """Of days their month or year since 1970, and of these their first day."""

    def of_days(day: IntArray) -> IntArray:
        return day.astype("datetime64[D]").astype(f"datetime64[{unit}]").astype(np.int64)

    def first_days(number: IntArray) -> IntArray:
        return number.astype(f"datetime64[{unit}]").astype("datetime64[D]").astype(np.int64)

    return of_days, first_days


BUCKETS: Final[tuple[tuple[str, Numbering, Numbering], ...]] = (
    ("day", days, days),
    ("week", weeks, first_of_weeks),
    ("month", *in_calendar("M")),
    ("year", *in_calendar("Y")),
)


def bucketed(day: IntArray) -> Buckets:
    """By the shortest of them of which there are few enough from the first day to the last, else by the longest."""
    found = (buckets_of(day, *one) for one in BUCKETS)
    return next((one for one in found if len(one.starts) - 1 <= MOST_POINTS), buckets_of(day, *BUCKETS[-1]))


def buckets_of(day: IntArray, name: str, of_days: Numbering, first_days: Numbering) -> Buckets:
    bucket = of_days(day)
    first, last = int(bucket.min()), int(bucket.max())
    return Buckets(name, bucket - first, first_days(np.arange(first, last + 2)))
