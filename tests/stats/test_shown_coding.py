import numpy as np

from evaluations.stats.coding import AS_STORED, FOLDED, MISSING, SWAPPED, TIE, UNKNOWN, A, B
from evaluations.stats.shown_coding import find_common_order, recode_by_position, recode_votes_by_position
from evaluations.stats.votes import Votes

# Five comparisons: both as stored, both swapped, one each, unknown, folded.
ITEM = np.array([0, 0, 1, 1, 2, 2, 3, 4])
SHOWN = np.array([AS_STORED, AS_STORED, SWAPPED, SWAPPED, AS_STORED, SWAPPED, UNKNOWN, FOLDED])
RATER = np.array([0, 1, 0, 1, 0, 1, 0, 0])


def test_an_order_is_common_where_everybody_saw_the_same_known_one() -> None:
    assert find_common_order(ITEM, SHOWN, 6).tolist() == [AS_STORED, SWAPPED, MISSING, MISSING, MISSING, MISSING]


def test_swapped_a_is_what_stood_second() -> None:
    order = np.array([AS_STORED, SWAPPED, SWAPPED, MISSING, SWAPPED])
    assert recode_by_position(np.array([A, A, TIE, A, MISSING]), order).tolist() == [A, B, TIE, MISSING, MISSING]


def test_votes_without_a_common_order_are_left_out() -> None:
    votes = recode_votes_by_position(Votes(ITEM, RATER, SHOWN, np.array([A, B, A, TIE, A, A, A, A])), 6)
    assert votes.item.tolist() == [0, 0, 1, 1]
    assert votes.choice.tolist() == [A, B, B, TIE]
