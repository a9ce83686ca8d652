from collections.abc import Callable, Sequence
from dataclasses import asdict
from json import dumps

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_1samp
from statsmodels.stats.multitest import multipletests

from evaluations.stats.alt_test import (
    DEFAULT,
    EPSILON,
    MIN_VALUES,
    Advantage,
    AdvantageDifferences,
    AltTest,
    advantage_of_choices,
    advantage_of_distances,
    advantage_of_scores,
    alt_test,
    one_sided_p,
)
from evaluations.stats.coding import BOTH_BAD, MISSING, TIE, A, B, FloatArray, IntArray
from evaluations.stats.score_reliability import PersonScores
from evaluations.stats.votes import Votes

Given = dict[str, dict[int, float]]
Score = Callable[[float, Sequence[float]], float]

# The pairs of MT-Bench (Zheng et al. 2023, CC BY 4.0) on which Calderon et al. (2025) tested judges: the question,
# then both turns by author_0, author_4, expert_24, Gemini Flash and Gemini Pro; a dot where someone did not vote.
MT_BENCH = """
100 .. AT AB BB BB|100 .. BB BB BB BB|100 .. TT AA BB BB|103 .. BB BB BB BB|103 .. TA TA BB BB|104 .. TA TA BB AA
104 TA AA .. AA AA|105 .. TT BB AA TT|105 TT TT .. AA AA|106 TT .. TT BB TT|107 TT .. TT AA AA|109 .. TT TT AA BB
109 .. BT BT BB BB|110 .. TA TT AA AA|112 .. TA TT TT TT|114 TT BB .. BB BB|115 BB .. BB BB BB|115 BB .. BB AA AA
117 BB BB .. AA AA|117 AA .. AA AA AA|118 BT BT .. AA AB|118 .. AA AT AA BA|123 .. TB TT BB TB|130 AA .. AA AA AA
131 AA .. AA AA AA|133 .. AA AA AA AA|133 TA AA .. AA AA|134 TB TB .. BB BB|135 .. BB BB BB BB|137 BB BB .. BB BB
138 BT BB .. BB BB|138 TT AA TB BB AA|138 .. AA AA AA AA|140 AA AA .. AA AA|141 AA .. AA AA AA|149 AA AA .. AA AA
150 BB BA AB BB BB|155 .. BA TA AA AA|156 BB .. TB BB AA|158 TB BB .. BB BB|159 BT .. BB BB BB|159 TB .. TT BB BB
160 TA TT .. BB BB|082 BA AA .. BA AA|082 .. AB TT BB BB|084 .. BB TB BB BB|085 TT .. TA BB AB|085 TT .. AA AA BB
086 BB .. BB BB BB|087 .. BT TA BB BB|091 AA AA .. AB AA|091 TA BA BA BB AA|092 AB AA .. AA AA|092 .. BA BA BB AA
092 BB .. TB BA BB|093 .. BT TB BB BB|095 .. AB AB BB BB|096 BT .. BB BB BB|097 BB .. BB BB BB|099 BT .. BT AA AA
"""
CODES = {"A": A, "B": B, "T": TIE, ".": MISSING}
NAMES = ["author_0", "author_4", "expert_24"]


def mt_bench(judge: int) -> tuple[IntArray, Votes, IntArray]:
    """The choices of a judge, of people, and the questions; both turns of a pair are items of their own."""
    pairs = [pair.split() for line in MT_BENCH.split("\n") for pair in line.split("|") if pair]
    rows = [(int(one[0]), [CODES[who[turn]] for who in one[1:]]) for one in pairs for turn in (0, 1)]
    said = np.array([choices for _, choices in rows])
    item, rater = np.nonzero(said[:, :3] != MISSING)
    votes = Votes(item, rater, np.zeros(len(item), dtype=np.int64), said[item, rater])
    return said[:, 3 + judge], votes, np.array([question for question, _ in rows])


def votes_of(people: Sequence[Sequence[int]]) -> Votes:
    """One row for each item, one choice for each person, MISSING where there is none."""
    table = np.array(people)
    item, rater = np.nonzero(table != MISSING)
    return Votes(item, rater, np.zeros(len(item), dtype=np.int64), table[item, rater])


def by_the_book(
    judge: dict[int, float], people: Given, score: Score, epsilon: float
) -> tuple[list[float], float, float]:
    """The procedure as the paper tells it, person by person and item by item: p values, ω and ρ."""
    p, advantages = [], []
    for left_out, own in people.items():
        ahead = []
        for item, said in own.items():
            others = [one[item] for name, one in people.items() if name != left_out and item in one]
            if others and item in judge:
                of_judge, of_human = score(judge[item], others), score(said, others)
                ahead.append((of_judge >= of_human, of_human >= of_judge))
        if len(ahead) >= 30:
            difference = [int(human) - int(machine) for machine, human in ahead]
            p.append(float(ttest_1samp(difference, epsilon, alternative="less").pvalue))
            advantages.append(float(np.mean([machine for machine, _ in ahead])))
    rejected = multipletests(p, alpha=0.05, method="fdr_by")[0]
    return p, float(rejected.mean()), float(np.mean(advantages))


def same(said: float, others: Sequence[float]) -> float:
    return sum(one == said for one in others) / len(others)


def negative_rmse(said: float, others: Sequence[float]) -> float:
    return -round(float(np.sqrt(np.mean([(said - one) ** 2 for one in others]))), 9)


@pytest.mark.parametrize(("judge", "rho"), [(0, 0.72), (1, 0.76)])
def test_the_published_numbers_of_mt_bench_come_out(judge: int, rho: float) -> None:
    # Printed by the authors: Gemini Flash ω 0.00, ρ 0.72, Gemini Pro ω 0.00, ρ 0.76, both at ε = 0.2.
    choice, votes, question = mt_bench(judge)
    found = alt_test(advantage_of_choices(choice, votes, question), NAMES)
    expert = found.by_skill["expert"].by_item
    assert found.rho.value == pytest.approx(rho, abs=0.005)
    assert (expert.omega.value, expert.passes) == (0, False)


def two_people_and_one(items: int, other: int, judged: int) -> AltTest:
    """Person 0 says A throughout, persons 1 and 2 say ``other``, the judge ``judged``; all items alone."""
    people = votes_of([[A, other, other]] * items)
    return alt_test(advantage_of_choices(np.full(items, judged), people, np.arange(items)), ["p", "q", "r"])


def test_what_never_varies_is_decided_without_a_t() -> None:
    # Judge B, people A B B. Of p the others are B B: the judge agrees with both, p with none: −1 each time, p = 0.
    # Of q the others are A B: the judge and q both agree with one: level, difference 0 < ε, p = 0. So of r.
    found = two_people_and_one(30, B, B)
    assert [one.rho_human for one in found.annotators] == [0, 1, 1]
    for skill in EPSILON:
        assert [one.p for one in found.by_skill[skill].by_item.tests] == [0, 0, 0]
        assert found.by_skill[skill].by_item.omega.value == 1
    # Judge tie: p and the judge agree with none: level. Of q one of A B: q is ahead throughout, difference 1, p = 1.
    found = two_people_and_one(30, B, TIE)
    assert [one.p for one in found.by_skill[DEFAULT].by_item.tests] == [0, 1, 1]
    assert found.by_skill[DEFAULT].by_item.omega.value == pytest.approx(1 / 3)
    assert not found.by_skill[DEFAULT].by_item.passes


def test_half_of_the_people_are_enough_to_pass() -> None:
    # The judge says both bad, with nobody. Of either who says A one other does too: ahead, p = 1. Of B and of tie
    # nobody does: level with the judge, p = 0.
    people = votes_of([[A, A, B, TIE]] * 30)
    found = alt_test(advantage_of_choices(np.full(30, BOTH_BAD), people, np.arange(30)), [*NAMES, "d"])
    tested = found.by_skill[DEFAULT].by_item
    assert [one.p for one in tested.tests] == [1, 1, 0, 0]
    assert (tested.omega.value, tested.passes) == (0.5, True)


def test_a_small_case_is_what_one_works_out_by_hand() -> None:
    # 40 items, people A A A. The judge says A on 36, B on 4. Where it says A all are level, else the person is ahead.
    # d is 1 on 4 of 40: mean .1, Σ(d − .1)² = 4 − 40 · .01 = 3.6, se = √(3.6/39/40) = .0480384.
    # ε = .2: t = −.1/.0480384 = −2.08167, P(T39 ≤ t) = .0220. ε = .1: t = 0, p = .5.
    judge = np.where(np.arange(40) < 36, A, B)
    found = alt_test(advantage_of_choices(judge, votes_of([[A, A, A]] * 40), np.arange(40)), NAMES)
    assert [(one.n, one.rho_judge, one.rho_human) for one in found.annotators] == [(40, 0.9, 1.0)] * 3
    assert found.rho.value == pytest.approx(0.9)
    assert [one.p for one in found.by_skill["expert"].by_item.tests] == pytest.approx([0.0220] * 3, abs=5e-5)
    assert [one.p for one in found.by_skill["crowd"].by_item.tests] == pytest.approx([0.5] * 3)
    # Three equal p are multiplied by 1 + 1/2 + 1/3: .0220 · 1.8333 = .0403 is still below .05.
    assert found.by_skill["expert"].by_item.omega.value == 1
    assert found.by_skill["crowd"].by_item.omega.value == 0


def test_a_judge_that_is_better_than_the_person_rejects_and_one_that_is_worse_does_not() -> None:
    # The direction of the hypothesis: people guess half of the time, a judge that never does must win over them.
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=200)
    guessing = np.where(rng.random((200, 4)) < 0.5, truth[:, None], rng.integers(2, size=(200, 4)))
    better, worse = truth, rng.integers(2, size=200)
    for choice, omega in ((better, 1.0), (worse, 0.0)):
        found = alt_test(advantage_of_choices(choice, votes_of(guessing.tolist()), np.arange(200)), [*NAMES, "d"])
        assert found.by_skill["crowd"].by_item.omega.value == omega


def test_a_smaller_epsilon_is_never_easier_so_the_default_is_the_strictest() -> None:
    choice, votes, question = mt_bench(1)
    found = alt_test(advantage_of_choices(choice, votes, question), NAMES)
    smallest = {test.name: test.p for test in found.by_skill["expert"].by_item.tests}
    for skill in ("skilled", "crowd"):
        for test in found.by_skill[skill].by_item.tests:
            assert (test.p or 0) > (smallest[test.name] or 0)
    assert EPSILON[found.default] == min(EPSILON.values())


def test_it_is_withheld_with_the_counts_where_too_few_people_share_thirty_items() -> None:
    people = [[A, A, A]] * 29 + [[A, A, MISSING]] * 5
    found = alt_test(advantage_of_choices(np.full(34, A), votes_of(people), np.arange(34)), NAMES)
    assert (found.by_skill, found.annotators, found.rho.value) == ({}, (), None)
    assert found.why == found.rho.why
    assert found.why is not None
    assert "Here 2 of 3 have as many (most so far: 34)." in found.why


def test_an_item_that_nobody_else_or_no_judge_has_counts_for_nothing() -> None:
    people = votes_of([[A, A], [A, MISSING], [A, B], [MISSING, B]])
    found = advantage_of_choices(np.array([A, A, MISSING, B]), people, np.array([7, 7, 8, 9]))
    assert (found.rater.tolist(), found.cluster.tolist()) == ([0, 1], [7, 7])


def test_a_person_with_too_few_items_is_not_tested_but_is_one_of_the_others() -> None:
    # d has only ten items; on these a, b and c have three others, elsewhere two.
    people = [[A, A, A, B]] * 10 + [[A, A, A, MISSING]] * 30
    found = alt_test(advantage_of_choices(np.full(40, A), votes_of(people), np.arange(40)), [*NAMES, "d"])
    assert [one.name for one in found.annotators] == NAMES
    assert [one.n for one in found.annotators] == [40, 40, 40]


def test_means_of_clusters_are_tested_beside_items_where_clusters_repeat() -> None:
    choice, votes, question = mt_bench(1)
    found = alt_test(advantage_of_choices(choice, votes, question), NAMES)
    people: Given = {name: {} for name in NAMES}
    for item, rater, said in zip(votes.item.tolist(), votes.rater.tolist(), votes.choice.tolist(), strict=True):
        people[NAMES[rater]][item] = said
    for place, (name, own) in enumerate(people.items()):
        means: dict[int, list[int]] = {}
        for item, said in own.items():
            others = [one[item] for who, one in people.items() if who != name and item in one]
            judged, human = same(int(choice[item]), others), same(said, others)
            means.setdefault(int(question[item]), []).append(int(human >= judged) - int(judged >= human))
        expected = ttest_1samp([np.mean(one) for one in means.values()], 0.2, alternative="less").pvalue
        clustered = found.by_skill["expert"].by_cluster
        assert clustered is not None
        assert clustered.tests[place].p == pytest.approx(expected)
        assert found.annotators[place].clusters == len(means)


def test_where_no_cluster_repeats_there_is_nothing_beside_and_where_there_are_few_no_t() -> None:
    people, judge = votes_of([[A, A, A]] * 40), np.where(np.arange(40) % 7 > 0, A, B)
    assert alt_test(advantage_of_choices(judge, people, np.arange(40)), NAMES).by_skill[DEFAULT].by_cluster is None
    few = (
        alt_test(advantage_of_choices(judge, people, np.arange(40) % (MIN_VALUES - 1)), NAMES)
        .by_skill[DEFAULT]
        .by_cluster
    )
    assert few is not None
    assert [(one.p, one.rejected) for one in few.tests] == [(None, False)] * 3


def test_rho_has_an_interval_by_cluster_only_where_that_holds_what_it_promises() -> None:
    rng = np.random.default_rng(5)
    judge = np.where(rng.random(120) < 0.7, A, B)
    people = votes_of([[A, A, A]] * 120)
    alone = alt_test(advantage_of_choices(judge, people, np.arange(120)), NAMES).rho
    assert alone.value is not None
    assert alone.ci95 is not None
    # All three people see the same judge: ρ is one share of 120, its standard error √(p(1 − p)/120).
    error = (alone.value * (1 - alone.value) / 120) ** 0.5
    assert alone.ci95[1] - alone.ci95[0] == pytest.approx(2 * 1.96 * error, rel=0.06)
    few = alt_test(advantage_of_choices(judge, people, np.arange(120) // 4), NAMES).rho
    assert few.ci95 is None
    assert few.ci95_why == "Too few clusters for a CI (30 < 40)."
    hardly = alt_test(advantage_of_choices(np.where(np.arange(120) < 9, B, A), people, np.arange(120)), NAMES).rho
    assert (hardly.ci95_why or "").startswith("Too few clusters with a disagreement for a CI (9 < 10)")
    behind = alt_test(advantage_of_choices(np.where(np.arange(120) < 9, A, B), people, np.arange(120)), NAMES).rho
    assert (behind.ci95_why or "").startswith("Too few clusters with an agreement for a CI (9 < 10)")


def test_scores_go_by_how_near_they_are_to_those_of_the_others() -> None:
    # Others 2 and 4: the judge's 3 is √1 away, the person's 5 is √((9 + 1)/2); then 4 against 2, both √2 away: level.
    item, rater = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 0, 1, 2])
    values = PersonScores(item, rater, np.array([5.0, 2.0, 4.0, 2.0, 2.0, 4.0]))
    found = advantage_of_scores(np.array([3.0, 4.0]), values, np.array([0, 1]))
    first = found.rater == 0
    assert found.judge[first].tolist() == [True, True]
    assert found.human[first].tolist() == [False, True]


def test_mean_distances_and_root_mean_squares_may_favour_different_sides() -> None:
    # Others 0, 0, 9. The judge's 1: mean distance 10/3, squares 66; the person's 3: 4, squares 54.
    values = PersonScores(np.zeros(4, dtype=np.int64), np.arange(4), np.array([3.0, 0.0, 0.0, 9.0]))
    judge, cluster = np.array([1.0]), np.array([0])
    distance, square = (one(judge, values, cluster) for one in (advantage_of_distances, advantage_of_scores))
    first = distance.rater == 0
    assert (distance.judge[first].tolist(), distance.human[first].tolist()) == ([True], [False])
    first = square.rater == 0
    assert (square.judge[first].tolist(), square.human[first].tolist()) == ([False], [True])


def test_distances_leave_out_the_person_and_what_the_judge_did_not_score() -> None:
    # Response 1: others of ann are 2 and 4: judge 3 is 1 away, ann's 5 is 2. Bob's others are 5, 4: judge 1.5, bob 2.5.
    # Cem's are 5, 2: judge 1.5, cem 1.5. Response 2 has no score of the judge, response 3 one reviewer.
    unit, rater = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 1, 2, 0, 1, 0])
    values = PersonScores(unit, rater, np.array([5.0, 2.0, 4.0, 1.0, 2.0, 3.0]))
    found = advantage_of_distances(np.array([3.0, np.nan, 1.0]), values, np.array([0, 1, 2]))
    assert found.rater.tolist() == [0, 1, 2]
    assert found.judge.tolist() == [True, True, True]
    assert found.human.tolist() == [False, False, True]


def test_rounding_makes_nobody_nearer() -> None:
    # .1 and .3 are equally far from .2, though not in the machine's numbers.
    values = PersonScores(np.array([0, 0]), np.array([0, 1]), np.array([0.1, 0.2]))
    found = advantage_of_scores(np.array([0.3]), values, np.array([0]))
    assert (found.judge[0], found.human[0]) == (True, True)


def test_a_judge_without_a_score_is_left_out() -> None:
    values = PersonScores(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.ones(4))
    assert len(advantage_of_scores(np.array([np.nan, 1.0]), values, np.array([0, 1])).rater) == 2


tables = st.integers(0, 2**32 - 1)


def random_material(seed: int, scale: int) -> tuple[IntArray, IntArray]:
    """A judge's and five people's answers on 60 items, a sixth of them missing."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(scale, size=60)
    said = np.where(rng.random((60, 6)) < 0.6, truth[:, None], rng.integers(scale, size=(60, 6)))
    said[rng.random((60, 6)) < 1 / 6] = MISSING
    return said[:, 0], said[:, 1:]


@given(tables, st.sampled_from(sorted(EPSILON)))
@settings(max_examples=25, deadline=None)
def test_choices_give_what_the_procedure_gives_item_by_item(seed: int, skill: str) -> None:
    judge, people = random_material(seed, 3)
    found = alt_test(advantage_of_choices(judge, votes_of(people.tolist()), np.arange(60)), list("abcde"))
    compare_with_the_book(found, judge, people, same, skill)


@given(tables, st.sampled_from(sorted(EPSILON)))
@settings(max_examples=25, deadline=None)
def test_scores_give_what_the_procedure_gives_item_by_item(seed: int, skill: str) -> None:
    judge, people = random_material(seed, 7)
    item, rater = np.nonzero(people != MISSING)
    values = PersonScores(item, rater, people[item, rater].astype(float))
    judged: FloatArray = np.where(judge == MISSING, np.nan, judge)
    found = alt_test(advantage_of_scores(judged, values, np.arange(60)), list("abcde"), "responses")
    compare_with_the_book(found, judge, people, negative_rmse, skill)


def compare_with_the_book(found: AltTest, judge: IntArray, people: IntArray, score: Score, skill: str) -> None:
    said = {item: float(one) for item, one in enumerate(judge.tolist()) if one != MISSING}
    given_by = {
        str(rater): {item: float(one) for item, one in enumerate(people[:, rater].tolist()) if one != MISSING}
        for rater in range(people.shape[1])
    }
    p, omega, rho = by_the_book(said, given_by, score, EPSILON[skill])
    tested = found.by_skill[skill].by_item
    assert [one.p for one in tested.tests] == pytest.approx(p)
    assert tested.omega.value == pytest.approx(omega)
    assert found.rho.value == pytest.approx(rho)


@given(st.lists(st.integers(-1, 1), min_size=MIN_VALUES, max_size=60), st.sampled_from([0.1, 0.15, 0.2]))
def test_p_equals_scipys_one_sided_t(values: list[int], epsilon: float) -> None:
    found = one_sided_p(epsilon, len(values), sum(values), sum(one * one for one in values))
    if len(set(values)) == 1:
        assert found == (0.0 if values[0] < epsilon else 1.0)
    else:
        expected = ttest_1samp(values, epsilon, alternative="less").pvalue
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_a_mean_that_is_epsilon_to_the_last_digit_is_not_below_it() -> None:
    # Every cluster's mean is one of five: .2 throughout, which is not below an ε of .2, though the sum may be.
    for clusters in range(MIN_VALUES, 40):
        fifths = of_constant(0.2, clusters)
        assert fifths.p_values(0.2).tolist() == [1.0]
        assert fifths.p_values(0.2000001).tolist() == [0.0]


def of_constant(value: float, clusters: int) -> AdvantageDifferences:
    one = np.zeros(clusters, dtype=np.int64)
    total, squares = (np.bincount(one, np.full(clusters, each)).astype(float) for each in (value, value * value))
    return AdvantageDifferences(np.array([clusters]), total, squares)


def test_the_result_is_plain_json() -> None:
    choice, votes, question = mt_bench(0)
    assert "NaN" not in dumps(asdict(alt_test(advantage_of_choices(choice, votes, question), NAMES)), allow_nan=False)


def test_nobody_at_all_is_too_few() -> None:
    nothing = np.empty(0, dtype=np.int64)
    found = alt_test(Advantage(nothing, nothing, nothing.astype(bool), nothing.astype(bool)), [])
    assert found.why is not None
    assert "Here 0 of 0 have as many" in found.why
