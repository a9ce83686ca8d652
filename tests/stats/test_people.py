import numpy as np
import pytest

from evaluations.domain import SplitRule
from evaluations.stats.agreement import NO_RATERS
from evaluations.stats.coding import AS_STORED, TIE, A, B
from evaluations.stats.majority import majority
from evaluations.stats.people import HumanHuman, human_human
from evaluations.stats.several import krippendorff_alpha
from evaluations.stats.votes import Votes, one_vote_each, pairs_on_an_item

NAMES = ("ann", "ben", "cem")
ANN, BEN, CEM = range(3)


def votes(*rows: tuple[int, int, int]) -> Votes:
    item, rater, choice = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Votes(item, rater, np.full(len(item), AS_STORED), choice)


def people(given: Votes, items: int, rule: SplitRule = SplitRule.TIE) -> HumanHuman:
    return human_human(given, majority(given.item, given.choice, items, rule), NAMES, 3, rule)


# Three comparisons: A A A, A A B, B tie (of ann and cem).
THREE = votes((0, ANN, A), (0, BEN, A), (0, CEM, A), (1, ANN, A), (1, BEN, A), (1, CEM, B), (2, ANN, B), (2, CEM, TIE))


def test_pooled_votes_are_all_pairs_on_a_comparison() -> None:
    # 3 + 3 + 1 pairs; 3 + 1 + 0 agree.
    found = people(THREE, 3).votes
    assert (found.with_ties.agree, found.with_ties.n) == (4, 7)
    assert (found.with_ties.cohen_kappa.value, found.with_ties.cohen_kappa.why) == (None, NO_RATERS)
    assert found.self_pairs == 0


def test_scotts_pi_of_pooled_votes_is_that_of_the_table_both_ways_round() -> None:
    # Both ways round: AA 8, AB 2, BA 2, B tie 1, tie B 1 of 14. Margins A 10, B 3, tie 1:
    # pe = 110/196, po = 8/14: (112 − 110)/(196 − 110) = 1/43.
    assert people(THREE, 3).votes.with_ties.scott_pi.value == pytest.approx(1 / 43)


def test_each_person_is_held_against_the_majority_of_the_others() -> None:
    # 0: all three agree with the others. 1: ann and ben face a split (A B → tie), cem faces A.
    # 2: ann B faces tie, cem tie faces B.
    found = people(THREE, 3).majority
    assert (found.with_ties.agree, found.with_ties.n, found.n_split) == (3, 8, 2)


def test_a_split_of_the_others_can_be_left_out_or_go_to_the_first() -> None:
    assert people(THREE, 3, SplitRule.DROP).majority.with_ties.n == 6
    # ann faces ben's A before cem's B and agrees; ben faces ann's A and agrees.
    first = people(THREE, 3, SplitRule.FIRST).majority
    assert (first.with_ties.agree, first.with_ties.n) == (5, 8)


def test_each_two_people_have_their_own_kappa() -> None:
    # ann and cem share three: A A, A B, B tie. po = 1/3, pe = (2·1 + 1·1)/9 = 1/3, kappa 0.
    pairs = {(pair.rater_1, pair.rater_2): pair for pair in people(THREE, 3).pairs}
    assert list(pairs) == [("ann", "ben"), ("ann", "cem"), ("ben", "cem")]
    found = pairs["ann", "cem"]
    assert (found.with_ties.agree, found.with_ties.n, found.with_ties.cohen_kappa.value) == (1, 3, 0)
    assert pairs["ann", "ben"].with_ties.cohen_kappa.value is None


def test_the_majorities_of_people_are_counted_by_choice() -> None:
    found = people(THREE, 3).majority_choices
    assert (found.n, found.n_split) == (3, 1)
    assert found.choices == {"A": 2, "B": 0, "tie": 1, "both_bad": 0}


def test_two_votes_of_one_person_count_in_pooled_votes_and_alpha_but_once_in_pairs() -> None:
    # ann A B, ben A: pairs A B (ann with herself), A A, B A.
    twice = votes((0, ANN, A), (0, BEN, A), (0, ANN, B))
    found = people(twice, 1)
    assert (found.votes.with_ties.agree, found.votes.with_ties.n, found.votes.self_pairs) == (1, 3, 1)
    assert found.multi.krippendorff_alpha.value == krippendorff_alpha(np.array([[2, 1]])).value
    # On her own ann is split, which is a tie; ben faces both of her votes, a split.
    (pair,) = found.pairs
    assert (pair.with_ties.agree, pair.with_ties.n) == (0, 1)
    assert one_vote_each(twice).choice.tolist() == [TIE, A]
    assert (found.majority.with_ties.n, found.majority.n_split) == (2, 1)


def test_one_person_alone_has_no_agreement_and_every_number_says_why() -> None:
    found = people(votes((0, ANN, A), (1, ANN, B)), 2)
    assert found.votes.with_ties.agreement.why == "No comparison has two votes of people."
    assert found.majority.with_ties.agreement.why == "No comparison has votes of two people."
    assert found.pairs == ()
    assert found.multi.krippendorff_alpha.value is None


def test_nobody_at_all_is_no_error() -> None:
    assert people(votes(), 0).votes.with_ties.n == 0


def test_pairs_are_every_two_entries_of_an_item_earlier_first() -> None:
    one, other = pairs_on_an_item(np.array([7, 3, 7, 7, 3]))
    assert sorted(zip(one.tolist(), other.tolist(), strict=True)) == [(0, 2), (0, 3), (1, 4), (2, 3)]
