import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.stats.agreement_timeline import (
    FEW_VOTES,
    MAX_POINTS,
    NO_OTHER_VOTES,
    NO_VERDICT,
    Timeline,
    agreement_timeline,
    choose_buckets,
)
from evaluations.stats.coding import MISSING, TIE, A, B, IntArray
from evaluations.stats.polls import PersonVotes, make_poll, person_votes
from evaluations.stats.votes import Votes

some_votes = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 3), st.integers(0, 200)),
    min_size=1,
    max_size=40,
    unique_by=lambda vote: vote[:2],
)


def cast(votes: Sequence[tuple[int, int, int]], cluster: IntArray) -> PersonVotes:
    """From the item, person and choice of each vote."""
    item, rater, choice = (np.array(column) for column in zip(*votes, strict=True))
    return person_votes(make_poll(Votes(item, rater, np.zeros_like(item), choice.astype(np.int8)), cluster))


def days(*of: date) -> IntArray:
    return np.array([(day - date(1970, 1, 1)).days for day in of])


def told(day: IntArray) -> Timeline:
    """Of one vote on an item of its own for each day."""
    items = np.arange(len(day))
    return agreement_timeline(cast([(item, 0, A) for item in items.tolist()], items), day, {})


def test_a_small_case_is_what_one_works_out_by_hand() -> None:
    # Item 0: ann A, bob A, cem B; item 1: ann tie, bob A; item 2: ann B. The judge: A, tie, none.
    # First day: ann's on 0 is one of two alike, bob's the same, ann's on 1 not: (1/2 + 1/2 + 0)/3. The judge is with
    # all three. Second day: cem's and bob's are like nobody's, ann's on 2 has no company; the judge is with neither.
    votes = [(0, 0, A), (0, 1, A), (1, 0, TIE), (0, 2, B), (1, 1, A), (2, 0, B)]
    day = days(*[date(2026, 3, 1)] * 3, *[date(2026, 3, 2)] * 3)
    judge = np.array([A, TIE, MISSING], dtype=np.int8)
    found = agreement_timeline(cast(votes, np.arange(3)), day, {"judge": judge})
    assert found.bucket == "day"
    first, second = found.points
    assert (first.start, first.end, first.votes, first.caution) == ("2026-03-01", "2026-03-01", 3, FEW_VOTES)
    assert [first.people.value, first.people.n] == pytest.approx([1 / 3, 3])
    assert (first.judges["judge"].value, first.judges["judge"].n) == (1.0, 3)
    assert (second.people.value, second.people.n, second.votes) == (0.0, 2, 3)
    assert (second.judges["judge"].value, second.judges["judge"].n) == (0.0, 2)


@given(some_votes)
def test_every_point_counts_the_votes_of_its_days(votes: list[tuple[int, int, int, int]]) -> None:
    judge = np.array([A, B, TIE, MISSING, A, B], dtype=np.int8)
    opined = cast([vote[:3] for vote in votes], np.arange(6))
    found = agreement_timeline(opined, np.array([vote[3] for vote in votes]), {"judge": judge[opined.poll.items]})
    assert sum(point.votes for point in found.points) == len(votes)
    assert len(found.points) <= MAX_POINTS
    for point in found.points:
        first, last = days(date.fromisoformat(point.start), date.fromisoformat(point.end)).tolist()
        inside = [vote for vote in votes if first <= vote[3] <= last]
        assert point.votes == len(inside)
        alike = []
        for item, rater, choice, _ in inside:
            others = [other[2] for other in votes if other[0] == item and other[1] != rater]
            if others:
                alike.append(sum(other == choice for other in others) / len(others))
        assert (point.people.n, point.people.why) == (len(alike), None if alike else NO_OTHER_VOTES)
        assert point.people.value == (pytest.approx(np.mean(alike)) if alike else None)
        judged = [choice == judge[item] for item, _, choice, _ in inside if judge[item] != MISSING]
        assert (point.judges["judge"].n, point.judges["judge"].why) == (len(judged), None if judged else NO_VERDICT)
        assert point.judges["judge"].value == (pytest.approx(np.mean(judged)) if judged else None)


@pytest.mark.parametrize(
    ("span", "bucket"), [(0, "day"), (59, "day"), (60, "week"), (413, "week"), (420, "month"), (5 * 366, "year")]
)
def test_the_bucket_is_the_shortest_of_which_there_are_few(span: int, bucket: str) -> None:
    first = days(date(2024, 1, 1)).item()  # a Monday
    assert choose_buckets(np.array([first, first + span])).name == bucket


def test_weeks_begin_on_monday_and_months_end_where_they_end() -> None:
    weeks = told(days(date(2026, 11, 22), date(2026, 11, 23), date(2027, 3, 1)))  # a Sunday and two Mondays
    assert [(point.start, point.end) for point in weeks.points] == [
        ("2026-11-16", "2026-11-22"),
        ("2026-11-23", "2026-11-29"),
        ("2027-03-01", "2027-03-07"),
    ]
    months = told(days(date(2024, 2, 29), date(2025, 12, 31), date(2026, 1, 1)))
    assert [(point.start, point.end) for point in months.points] == [
        ("2024-02-01", "2024-02-29"),
        ("2025-12-01", "2025-12-31"),
        ("2026-01-01", "2026-01-31"),
    ]
    years = told(days(date(2010, 7, 1), date(2026, 7, 1)))
    assert [(point.start, point.end) for point in years.points] == [
        ("2010-01-01", "2010-12-31"),
        ("2026-01-01", "2026-12-31"),
    ]


def test_votes_of_a_cluster_count_together() -> None:
    # Forty votes a day, on which the judge is with the people of every other cluster of four.
    item = np.arange(80)
    cluster = item // 4
    judge = np.where(cluster % 2 == 0, A, B).astype(np.int8)
    votes = [(one, 0, A) for one in item.tolist()]
    (point, _) = agreement_timeline(cast(votes, cluster), 100 + item // 40, {"judge": judge}).points
    assert point.caution is None
    # Variance over 10 clusters: 10 · 2² / 40² · 10/9 beside .25/40 of single votes: 4.44.
    assert point.judges["judge"].ci95_rule == "Wilson, 40 ÷ design effect 4.44 over 10 clusters"


def test_who_voted_twice_counts_once_on_the_day_of_the_first_vote() -> None:
    votes = [(0, 0, A), (0, 1, A), (0, 0, A)]
    found = agreement_timeline(cast(votes, np.arange(1)), np.array([3, 4, 9]), {})
    assert [(point.votes, point.people.value) for point in found.points] == [(1, 1.0), (1, 1.0)]


def test_nothing_said_on_this_aspect_makes_no_point() -> None:
    votes = [(0, 0, A), (1, 0, MISSING)]
    found = agreement_timeline(cast(votes, np.arange(2)), np.array([3, 900]), {})
    assert (found.bucket, [point.votes for point in found.points]) == ("day", [1])
    silent = cast([(0, 0, MISSING)], np.arange(1))
    assert agreement_timeline(silent, np.array([3]), {}) == Timeline(None, ())


def test_it_is_plain_json() -> None:
    assert json.loads(json.dumps(asdict(told(days(date(2026, 1, 1)))), allow_nan=False))["bucket"] == "day"
