"""Agreement of people with judges and with each other by day, week, month or year."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import IntArray
from evaluations.stats.estimates import Estimate
from evaluations.stats.grouped_shares import group_entries, shares_by_group
from evaluations.stats.judge_verdicts import Choices
from evaluations.stats.polls import PersonVotes, match_judge_choices

MAX_POINTS: Final = 60
FEW: Final = 30
FEW_VOTES: Final = f"Fewer than {FEW} votes: expect large random variation."
WEEK: Final = 7
MONDAY: Final = 3  # days from 1970-01-01, a Thursday, back to the beginning of its week
NO_OTHER_VOTES: Final = "No other reviewer voted on these comparisons."
NO_VERDICT: Final = "The judge has no verdict on these comparisons."


Numbering = Callable[[IntArray], IntArray]


@dataclass(frozen=True)
class TimelinePoint:
    """The votes of one period, from ``start`` to ``end``, both included.

    ``people``: the share of other people's votes that are the same. ``judges``: by name, how often the judge chose the
    same.
    """

    start: str
    end: str
    votes: int
    people: Estimate
    judges: dict[str, Estimate]
    caution: str | None


@dataclass(frozen=True)
class Timeline:
    """Periods with votes. ``bucket``: day, week (from Monday), month or year; None if nobody voted."""

    bucket: str | None
    points: tuple[TimelinePoint, ...]


@dataclass(frozen=True)
class Buckets:
    """Buckets of days. ``of``: the bucket of each entry. ``starts``: the first day of each, and of the one after."""

    name: str
    of: IntArray
    starts: IntArray


def agreement_timeline(person_votes: PersonVotes, day: IntArray, judges: Mapping[str, Choices]) -> Timeline:
    """Agreement of people with each other and with judges, by period. Intervals are Wilson's by cluster.

    ``day``: of each vote in the order cast, in days since 1970-01-01. ``judges``: by name, the choice on each item of
    the poll. The buckets are the shortest of which there are at most MAX_POINTS.
    """
    if not len(person_votes):
        return Timeline(None, ())
    buckets = choose_buckets(day[person_votes.vote_index])
    entries = group_entries(buckets.of, len(buckets.starts) - 1, person_votes.cluster)
    people = shares_by_group(entries, person_votes.share_of_same_votes, person_votes.others_voted, NO_OTHER_VOTES)
    of_judges = {
        name: shares_by_group(entries, *match_judge_choices(judge, person_votes), NO_VERDICT)
        for name, judge in judges.items()
    }
    votes = np.bincount(buckets.of, minlength=entries.groups).tolist()
    return Timeline(
        buckets.name,
        tuple(
            TimelinePoint(
                start=iso_date(buckets.starts[at]),
                end=iso_date(buckets.starts[at + 1] - 1),
                votes=votes[at],
                people=people[at],
                judges={name: numbers[at] for name, numbers in of_judges.items()},
                caution=FEW_VOTES if votes[at] < FEW else None,
            )
            for at in range(entries.groups)
            if votes[at]
        ),
    )


def iso_date(day: int) -> str:
    return str(np.datetime64(int(day), "D"))


def calendar_numbering(unit: str) -> tuple[Numbering, Numbering]:
    """Functions from days to months or years since 1970, and from these to their first day."""

    def of_days(day: IntArray) -> IntArray:
        return day.astype("datetime64[D]").astype(f"datetime64[{unit}]").astype(np.int64)

    def first_days(number: IntArray) -> IntArray:
        return number.astype(f"datetime64[{unit}]").astype("datetime64[D]").astype(np.int64)

    return of_days, first_days


BUCKETS: Final[tuple[tuple[str, Numbering, Numbering], ...]] = (
    ("day", lambda day: day, lambda day: day),
    ("week", lambda day: (day + MONDAY) // WEEK, lambda week: week * WEEK - MONDAY),
    ("month", *calendar_numbering("M")),
    ("year", *calendar_numbering("Y")),
)


def choose_buckets(day: IntArray) -> Buckets:
    """The shortest buckets that give few enough points from the first day to the last, else the longest."""
    candidates = (make_buckets(day, *bucket) for bucket in BUCKETS)
    return next(
        (buckets for buckets in candidates if len(buckets.starts) - 1 <= MAX_POINTS), make_buckets(day, *BUCKETS[-1])
    )


def make_buckets(day: IntArray, name: str, of_days: Numbering, first_days: Numbering) -> Buckets:
    bucket = of_days(day)
    first, last = int(bucket.min()), int(bucket.max())
    return Buckets(name, bucket - first, first_days(np.arange(first, last + 2)))
