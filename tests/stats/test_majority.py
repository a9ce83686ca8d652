import numpy as np

from evaluations.domain.reports import SplitRule
from evaluations.stats.coding import BOTH_BAD, MISSING, TIE, A, B
from evaluations.stats.votes import majority_of_votes

# Four comparisons: A A B (A leads), B A (split), tie both_bad both_bad (both bad leads), nobody.
UNIT = np.array([0, 1, 2, 0, 1, 2, 0, 2])
CHOICE = np.array([A, B, TIE, A, A, BOTH_BAD, B, BOTH_BAD])


def test_the_choice_of_most_votes_leads_and_a_split_counts_as_a_tie() -> None:
    found = majority_of_votes(UNIT, CHOICE, 4)
    assert found.choice.tolist() == [A, TIE, BOTH_BAD, MISSING]
    assert found.split.tolist() == [False, True, False, False]


def test_a_split_can_be_left_out() -> None:
    found = majority_of_votes(UNIT, CHOICE, 4, SplitRule.DROP)
    assert found.choice.tolist() == [A, MISSING, BOTH_BAD, MISSING]
    assert found.split.sum() == 1


def test_a_split_can_go_to_the_leading_choice_that_was_made_first() -> None:
    assert majority_of_votes(UNIT, CHOICE, 4, SplitRule.FIRST).choice.tolist() == [A, B, BOTH_BAD, MISSING]


def test_a_first_vote_that_does_not_lead_does_not_decide() -> None:
    # tie, B, A, A, B: A and B lead with two each, B was first of them.
    found = majority_of_votes(np.zeros(5, dtype=np.int64), np.array([TIE, B, A, A, B]), 1, SplitRule.FIRST)
    assert found.choice.tolist() == [B]


def test_three_ways_are_a_split_too() -> None:
    assert majority_of_votes(np.zeros(3, dtype=np.int64), np.array([A, B, TIE]), 1).split.tolist() == [True]


def test_no_votes_are_no_majority() -> None:
    nothing = np.empty(0, dtype=np.int64)
    assert majority_of_votes(nothing, nothing, 2).choice.tolist() == [MISSING, MISSING]
    assert majority_of_votes(nothing, nothing, 0).choice.tolist() == []
