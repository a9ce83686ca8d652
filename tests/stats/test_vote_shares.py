"""The raw votes on each pair of candidates."""

import numpy as np
import pytest

from evaluations.stats.coding import BOTH_BAD, MISSING, TIE, A, B
from evaluations.stats.matches import Matches
from evaluations.stats.vote_shares import count_votes_by_pair
from evaluations.stats.votes import Votes
from tests.stats.match_items import make_match_items


def make_votes(*votes: tuple[int, int]) -> Votes:
    """Comparison and choice of each vote."""
    item, choice = (np.array(column) for column in zip(*votes, strict=True))
    return Votes(item, np.arange(len(item)), np.zeros(len(item), dtype=np.int64), choice)


def test_every_vote_counts_once_whichever_side_its_candidate_is_on() -> None:
    """0 vs. 1: A on the first, A, tie and none on the second, where 0 is B: 1.5 of 3 votes. 0 vs. 2: both bad."""
    matches = Matches(make_match_items([0, 1, 0], [1, 0, 2]))
    votes = make_votes((0, A), (1, A), (1, TIE), (1, MISSING), (2, BOTH_BAD))
    first, second = count_votes_by_pair(votes, matches)
    assert (first.first, first.second) == ("candidate 0", "candidate 1")
    assert (first.first_votes, first.ties, first.second_votes) == (1, 1, 1)
    assert first.share.value == pytest.approx(0.5)
    assert first.share.n == 3
    assert (second.first_votes, second.ties, second.second_votes, second.share.value) == (0, 1, 0, 0.5)


def test_a_majority_of_two_to_one_is_two_thirds_of_the_votes() -> None:
    """Three reviewers on each of 50 comparisons, 2 to 1 for the first: every cluster has the share 2/3."""
    matches = Matches(make_match_items([0] * 50, [1] * 50))
    votes = make_votes(*((item, choice) for item in range(50) for choice in (A, A, B)))
    (pair,) = count_votes_by_pair(votes, matches)
    assert (pair.first_votes, pair.second_votes) == (100, 50)
    assert pair.share.value == pytest.approx(2 / 3)
    assert pair.share.ci95 is not None


def test_a_pair_without_votes_is_left_out() -> None:
    matches = Matches(make_match_items([0, 1], [1, 2]))
    assert [pair.second for pair in count_votes_by_pair(make_votes((0, B)), matches)] == ["candidate 1"]
