import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.stats.bias import strata
from evaluations.stats.bias.strata import (
    DENSEST,
    MAX_STRATA,
    Name,
    largest_strata,
    make_strata,
    number_keys,
    single_stratum,
    strata_by_candidate_pair,
)
from evaluations.stats.coding import MISSING, IntArray
from evaluations.stats.items import Items

NONE = np.zeros(3, dtype=np.int64)
entries = st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 4), st.integers(-1, 2)), max_size=40)


def columns(rows: list[tuple[int, int, int]]) -> tuple[IntArray, IntArray, IntArray]:
    place, cluster, cell = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return place, cluster, cell


@given(entries)
def test_counts_and_moments_are_those_of_a_loop_over_clusters(rows: list[tuple[int, int, int]]) -> None:
    place, cluster, cell = columns(rows)
    made = largest_strata(place, cluster, [(name,) for name in "abcd"])
    found = made.counts(cell, 3)
    for stratum, (name,) in enumerate(made.names):
        of = [(g, c) for p, g, c in rows if p == "abcd".index(name) and c != MISSING]
        vectors = [np.bincount([c for g, c in of if g == one], minlength=3) for one in sorted({g for g, _ in of})]
        assert found.totals[stratum].tolist() == np.sum([NONE, *vectors], axis=0).tolist()
        assert found.moments[stratum].tolist() == np.sum([np.outer(v, v) for v in (NONE, *vectors)], axis=0).tolist()
        assert found.clusters[stratum] == len(vectors)
        assert found.clusters_with(np.array([False, True, True]))[stratum] == sum(v[1:].any() for v in vectors)


@given(entries, st.lists(st.integers(0, 10**6), max_size=60))
def test_votes_on_items_count_in_the_strata_and_clusters_of_their_items(
    rows: list[tuple[int, int, int]], drawn: list[int]
) -> None:
    place, cluster, cell = columns(rows)
    item = np.array([one % len(rows) for one in drawn] if rows else [], dtype=np.int64)
    names: list[Name] = [(name,) for name in "abcd"]
    at = largest_strata(place, cluster, names).for_entries(item).counts(cell[item], 3)
    # The same from the beginning, as if every vote were an item, in the order of the items' strata.
    order = [names.index(name) for name in largest_strata(place, cluster, names).names]
    rank = np.array([order.index(one) if one in order else MISSING for one in place[item].tolist()], dtype=np.int8)
    again = make_strata(rank, cluster[item], tuple(names[one] for one in order))
    expected = again.counts(cell[item], 3)
    assert at.totals.tolist() == expected.totals.tolist()
    assert at.moments.tolist() == expected.moments.tolist()
    assert at.clusters.tolist() == expected.clusters.tolist()


@pytest.mark.parametrize("alone", [True, False])
def test_few_entries_count_the_same_picked_first_or_not(alone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    cluster = np.arange(400) if alone else rng.integers(50, size=400)
    made = largest_strata(rng.integers(-1, 3, 400), cluster, [(name,) for name in "abc"])
    cell = np.where(rng.random(400) < 0.05, rng.integers(3, size=400), MISSING).astype(np.int8)
    picked = made.counts(cell, 3)
    monkeypatch.setattr(strata, "SPARSE", 1_000)
    whole = made.counts(cell, 3)
    assert picked.totals.sum() == np.count_nonzero((cell != MISSING) & (made.stratum != MISSING)) > 0
    assert picked.totals.tolist() == whole.totals.tolist()
    assert picked.moments.tolist() == whole.moments.tolist()


def test_the_largest_strata_come_first_and_the_rest_are_counted() -> None:
    places = MAX_STRATA + 3
    place = np.repeat(np.arange(places), np.arange(1, places + 1))
    made = largest_strata(place, np.arange(len(place)), [(str(one),) for one in range(places)])
    assert made.names[:2] == ((str(places - 1),), (str(places - 2),))
    assert (len(made), made.left_out) == (MAX_STRATA, 3)
    assert np.count_nonzero(made.group == MISSING) == 1 + 2 + 3


def test_a_category_that_nothing_is_in_is_no_stratum() -> None:
    made = largest_strata(np.array([MISSING, 1, 1]), np.array([0, 0, 1]), [("none",), ("two",)])
    assert (made.names, made.left_out) == ((("two",),), 0)


def test_pairs_are_named_by_their_candidates_a_first() -> None:
    names = ("alpha", "beta", "gamma")
    none = np.zeros(3, dtype=np.int64)
    a, b = np.array([0, 1, 0]), np.array([2, 2, 2])
    made = strata_by_candidate_pair(Items(none, none, (), a, b, names, ("",) * 3, none, none, none, none, none, none))
    assert made.names == (("alpha", "gamma"), ("beta", "gamma"))
    assert made.stratum.tolist() == [0, 1, 0]


def test_no_items_are_one_stratum_without_clusters() -> None:
    nothing = np.array([], dtype=np.int64)
    found = single_stratum(nothing).counts(nothing, 2)
    assert (found.totals.tolist(), found.clusters.tolist()) == ([[0, 0]], [0])


@pytest.mark.parametrize("limit", [10, DENSEST + 1])
def test_numbers_that_are_marked_and_numbers_that_are_sorted_are_the_same(limit: int) -> None:
    present, number = number_keys(np.array([7, 2, 7, 5]), limit)
    assert (present.tolist(), number.tolist()) == ([2, 5, 7], [2, 0, 2, 1])
