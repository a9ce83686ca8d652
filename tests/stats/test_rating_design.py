import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evaluations.stats.ranks import radix_order
from evaluations.stats.votes import group_positions, rating_design

keys = st.lists(st.integers(0, 200_000) | st.integers(0, 3), max_size=40)


@given(keys)
def test_whole_numbers_are_sorted_as_numpy_sorts_them(found: list[int]) -> None:
    key = np.array(found, dtype=np.int64)
    assert radix_order(key).tolist() == np.argsort(key, kind="stable").tolist()


@given(keys)
def test_groups_hold_every_place_once_in_order(found: list[int]) -> None:
    key = np.array(found, dtype=np.int64)
    grouped = {one: places.tolist() for one, places in group_positions(key)}
    assert grouped == {one: [place for place, other in enumerate(found) if other == one] for one in sorted(set(found))}


def test_who_met_whom_and_who_sat_where_is_found_from_items_and_raters_alone() -> None:
    # In the order cast: item 4 by 1, item 2 by 0, item 4 by 0, item 4 by 1 again.
    found = rating_design(np.array([4, 2, 4, 4]), np.array([1, 0, 0, 1]))
    assert (found.order.tolist(), found.items.tolist(), found.unit.tolist()) == ([1, 0, 2, 3], [2, 4], [0, 1, 1, 1])
    assert sorted(zip(*(side.tolist() for side in found.pairs), strict=True)) == [(1, 2), (1, 3), (2, 3)]
    seats = found.deduplicated
    assert (seats.item.tolist(), seats.rater.tolist(), found.deduplicated_index.tolist()) == (
        [2, 4, 4],
        [0, 0, 1],
        [0, 2, 1, 2],
    )
    assert {raters: (one.tolist(), other.tolist()) for raters, (one, other) in seats.shared_items.items()} == {
        (0, 1): ([1], [2])
    }
    assert {rater: entries.tolist() for rater, entries in seats.by_rater.items()} == {0: [0, 1], 1: [2]}
