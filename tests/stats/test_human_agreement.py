from dataclasses import replace

import numpy as np
import pytest

from evaluations.domain.reports import SplitRule
from evaluations.stats.agreement import NO_RATERS
from evaluations.stats.coding import AS_STORED, MISSING, TIE, A, B
from evaluations.stats.human_agreement import PAIRS_OF_MANY, HumanHuman, human_agreement
from evaluations.stats.polls import Poll, make_poll
from evaluations.stats.votes import Votes, one_vote_per_person, vote_pairs, with_shared_design

NAMES = ("ann", "ben", "cem")
ANN, BEN, CEM = range(3)


def votes(*rows: tuple[int, int, int]) -> Votes:
    item, rater, choice = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Votes(item, rater, np.full(len(item), AS_STORED), choice)


def people(given: Votes, items: int, rule: SplitRule = SplitRule.TIE) -> HumanHuman:
    found = make_poll(given, np.arange(items))
    return human_agreement(found, found.majority(rule), found.majority_of_the_others(rule), NAMES, 3)


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
    # Coincidences A A 2, A B 4 over 3 − 1: A A 1, A B 1, B A 1. alpha = 1 − (3 − 1) · 2/(9 − 4 − 1) = 0.
    assert found.multi.krippendorff_alpha.value == pytest.approx(0)
    # On her own ann is split, which is a tie; ben faces both of her votes, a split.
    (pair,) = found.pairs
    assert (pair.with_ties.agree, pair.with_ties.n) == (0, 1)
    assert one_vote_per_person(twice).choice.tolist() == [TIE, A]
    assert (found.majority.with_ties.n, found.majority.n_split) == (2, 1)


def test_one_person_alone_has_no_agreement_and_every_number_says_why() -> None:
    found = people(votes((0, ANN, A), (1, ANN, B)), 2)
    assert found.votes.with_ties.agreement.why == "No comparison has two reviewer votes."
    assert found.majority.with_ties.agreement.why == "No comparison has votes of two reviewers."
    assert found.pairs == ()
    assert found.multi.krippendorff_alpha.value is None


def test_nobody_at_all_is_no_error() -> None:
    assert people(votes(), 0).votes.with_ties.n == 0


def test_pairs_are_every_two_entries_of_an_item_earlier_first() -> None:
    one, other = vote_pairs(np.array([7, 3, 7, 7, 3]))
    assert sorted(zip(one.tolist(), other.tolist(), strict=True)) == [(0, 2), (0, 3), (1, 4), (2, 3)]


@pytest.mark.parametrize("rule", SplitRule)
@pytest.mark.parametrize(("people", "twice"), [(7, True), (7, False), (60, False)])
def test_what_others_say_on_an_aspect_is_found_whatever_is_missing_and_whoever_votes_twice(
    rule: SplitRule, people: int, twice: bool
) -> None:
    # Votes on 60 items in any order, some of one person twice, a tenth without a choice; by hand.
    rng = np.random.default_rng(8)
    places = rng.choice(60 * people, 40 * people, replace=twice)
    item, rater = np.divmod(places, people)
    choice = np.where(rng.random(len(item)) < 0.1, MISSING, rng.integers(3, size=len(item)))
    found = make_poll(Votes(item, rater, item * 0, choice), np.arange(60))
    others, most = found.majority_of_the_others(rule), found.majority(rule)
    for place, one in enumerate(found.items):
        cast = [int(code) for code in choice[item == one] if code != MISSING]
        assert (int(most.choice[place]), bool(most.split[place])) == majority_of(cast, rule)
    for place, (one, who) in enumerate(zip(found.per_rater.design.item, found.per_rater.design.rater, strict=True)):
        cast = [int(code) for code in choice[(item == one) & (rater != who)] if code != MISSING]
        assert (int(others.choice[place]), bool(others.split[place])) == majority_of(cast, rule)


def majority_of(cast: list[int], rule: SplitRule) -> tuple[int, bool]:
    """Of votes in the order cast."""
    if not cast:
        return MISSING, False
    most = max(cast.count(code) for code in cast)
    leading = [code for code in dict.fromkeys(cast) if cast.count(code) == most]
    if len(leading) == 1:
        return leading[0], False
    return {SplitRule.TIE: TIE, SplitRule.DROP: MISSING, SplitRule.FIRST: leading[0]}[rule], True


def test_the_same_turnout_serves_every_aspect() -> None:
    choice = np.where(np.arange(len(THREE.item)) == 2, MISSING, THREE.choice)
    shy = with_shared_design(replace(THREE, choice=choice), [THREE])
    assert shy.design is THREE.design
    # Without cem's vote on the first comparison: 1 + 3 + 1 pairs, of which 1 + 1 agree.
    assert (people(shy, 3).votes.with_ties.agree, people(shy, 3).votes.with_ties.n) == (2, 5)
    assert people(shy, 3) == people(shy.where(shy.choice != MISSING), 3)
    assert len(shy) == len(THREE) - 1


def test_aspects_share_a_turnout_where_the_same_people_voted_on_the_same_items() -> None:
    again = votes(*zip(THREE.item.tolist(), THREE.rater.tolist(), THREE.choice.tolist()[::-1], strict=True))
    assert with_shared_design(again, [THREE.where(THREE.item > 0), THREE]).design is THREE.design
    fewer = THREE.where(THREE.item > 0)
    assert with_shared_design(fewer, [THREE]) is fewer


def test_clusters_are_of_items_in_whatever_order_votes_came() -> None:
    given = votes((2, ANN, A), (0, BEN, A), (2, BEN, B), (0, ANN, A))
    found: Poll = make_poll(given, np.array([7, 5, 3]))
    assert found.design.item.tolist() == [0, 0, 2, 2]
    assert found.cluster.tolist() == [1, 1, 0, 0]
    assert found.cluster_of_items.tolist() == [1, 0]


def test_of_many_reviewers_the_pairs_that_share_most_are_given_and_the_others_counted() -> None:
    # 32 people; person k votes on items 0 … k, so that two share one more than the lower of their numbers.
    item = np.concatenate([np.arange(1 + person) for person in range(32)])
    rater = np.repeat(np.arange(32), np.arange(1, 33))
    said = Votes(item, rater, np.zeros_like(item), (item + rater) % 2)
    names = [f"person {one:02}" for one in range(32)]
    found = make_poll(said, np.arange(32))
    most, others = found.majority(SplitRule.TIE), found.majority_of_the_others(SplitRule.TIE)
    few = human_agreement(found, most, others, names, 2)
    assert len(few.pairs) == PAIRS_OF_MANY == 20
    assert few.pairs_left_out == 32 * 31 // 2 - 20
    assert [pair.with_ties.n for pair in few.pairs] == [31, 30, 30, 29, 29, 29, *[28] * 4, *[27] * 5, *[26] * 5]
    assert (few.pairs[0].rater_1, few.pairs[0].rater_2) == ("person 30", "person 31")
    whole = human_agreement(found, most, others, names, 2, all_pairs=True)
    assert (len(whole.pairs), whole.pairs_left_out) == (32 * 31 // 2, 0)
    by_names = {(pair.rater_1, pair.rater_2): pair for pair in whole.pairs}
    assert all(by_names[pair.rater_1, pair.rater_2] == pair for pair in few.pairs)
    thirty = make_poll(said.where(rater >= 2), np.arange(32))
    of_thirty = human_agreement(
        thirty, thirty.majority(SplitRule.TIE), thirty.majority_of_the_others(SplitRule.TIE), names, 2
    )
    assert (len(of_thirty.pairs), of_thirty.pairs_left_out) == (30 * 29 // 2, 0)
