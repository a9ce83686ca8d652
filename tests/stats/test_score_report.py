import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from evaluations.stats.aspect_report import VoteCounts
from evaluations.stats.coding import FloatArray, IntArray
from evaluations.stats.corrected_means import mean_score_estimate
from evaluations.stats.rank_correlation import CONSTANT
from evaluations.stats.score_agreement import NOTHING_SHARED
from evaluations.stats.score_reliability import TWO_PEOPLE, PersonScores
from evaluations.stats.score_report import AspectScores, ScoreReport, score_report

GAP = np.nan
NOBODY = PersonScores(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))
NAMES = ("ann", "bob", "cem")
# Three people and a judge on six responses.
PEOPLE = np.array([[1, 2, 4, 5, GAP, GAP], [2, 2, 5, 3, 1, GAP], [1, 3, 5, GAP, 2, GAP]])
JUDGE = np.array([2, 2, 5, 4, GAP, 3])
OTHER = np.array([1, GAP, 3, 4, GAP, 3])


def scored(table: FloatArray) -> PersonScores:
    rater, unit = np.nonzero(~np.isnan(table))
    shuffled = np.random.default_rng(1).permutation(len(unit))
    return PersonScores(unit[shuffled], rater[shuffled], table[rater, unit][shuffled])


def report_of(
    people: PersonScores,
    names: Sequence[str],
    judges: Mapping[str, FloatArray],
    cluster: IntArray,
    late: PersonScores = NOBODY,
) -> ScoreReport:
    counts = VoteCounts(len(people.value), 0, len(late.value), 0, 0)
    of_two = np.arange(len(cluster)) % 2
    return score_report(
        AspectScores("Quality", people, late, counts, tuple(names), judges, cluster, of_two, ("alpha", "beta"))
    )


def small() -> ScoreReport:
    return report_of(scored(PEOPLE), NAMES, {"judge": JUDGE, "other": OTHER}, np.arange(6))


def test_a_judge_is_held_against_the_mean_of_people_and_against_each() -> None:
    # Means of people: 4/3, 7/3, 14/3, 4; of the judge 2, 2, 5, 4: differences 2/3, −1/3, 1/3, 0.
    found = small().judges["judge"]
    assert found.people.n == 4
    assert found.people.mean_difference.value == pytest.approx(1 / 6)
    assert found.people.mean_absolute_difference.value == pytest.approx(1 / 3)
    assert {name: one.n for name, one in found.each.items()} == {"ann": 4, "bob": 4, "cem": 3}
    assert found.each["cem"].pearson.value == pytest.approx(pearsonr([2, 2, 5], [1, 3, 5]).statistic)


def test_people_and_judges_are_held_against_each_other_in_pairs() -> None:
    found = small()
    pairs = {(pair.rater_1, pair.rater_2): pair for pair in found.human_human.pairs}
    assert {names: pair.n for names, pair in pairs.items()} == {
        ("ann", "bob"): 4,
        ("ann", "cem"): 3,
        ("bob", "cem"): 4,
    }
    assert pairs["bob", "cem"].spearman.value == pytest.approx(spearmanr([2, 2, 5, 1], [1, 3, 5, 2]).statistic)
    assert pairs["ann", "bob"].mean_difference.value == 0
    (judges,) = found.judge_judge
    assert (judges.rater_1, judges.rater_2, judges.n) == ("judge", "other", 4)
    assert judges.mean_difference.value == pytest.approx(0.75)


def test_each_person_is_held_against_the_mean_of_the_others() -> None:
    # Response 1: 1 2 1 against 1.5 1 1.5; 2: 2 2 3 against 2.5 2.5 2; 3: 4 5 5 against 5 4.5 4.5; 4: 5 3 against 3 5;
    # 5: 1 2 against 2 1. Absolute differences: 2, 2, 2, 4, 2 of 13.
    found = small().human_human.others
    assert found.n == 13
    assert found.mean_absolute_difference.value == pytest.approx(12 / 13)


def test_all_people_together_are_counted_where_two_and_where_all_scored() -> None:
    found = small().human_human.multi
    assert (found.units, found.complete) == (5, 3)
    assert found.krippendorff_alpha_interval.n == 5
    assert found.icc_agreement.n == 3


def test_without_a_response_that_all_scored_there_is_no_icc_but_an_alpha() -> None:
    pool = PEOPLE.copy()
    pool[0, :3] = GAP
    found = report_of(scored(pool), NAMES, {}, np.arange(6)).human_human.multi
    assert found.icc_agreement.why == (
        "Needs two responses scored by all 3 reviewers. Alpha uses every response scored by two."
    )
    assert found.krippendorff_alpha_ordinal.value is not None


def test_scores_of_one_person_twice_count_once_with_their_mean() -> None:
    twice = PersonScores(np.array([0, 1, 2, 0]), np.array([0, 0, 0, 0]), np.array([1.0, 2.0, 3.0, 5.0]))
    found = report_of(twice, ["ann"], {"judge": np.array([3.0, 1.0, 1.0])}, np.arange(3))
    assert found.judges["judge"].each["ann"].n == 3
    assert found.judges["judge"].each["ann"].mean_difference.value == pytest.approx(-1)
    assert found.human_human.multi.icc_agreement.why == TWO_PEOPLE
    assert found.human_human.pairs == ()


def test_a_judge_that_always_gives_the_same_score_has_no_coefficient() -> None:
    # Its ICC and alpha would be below 0, with intervals that exclude 0, and it knows nothing of the responses.
    people = np.tile(np.array([[1.0, 2.0, 3.0, 4.0, 5.0]]), (3, 24))
    found = report_of(scored(people), NAMES, {"judge": np.full(120, 5.0)}, np.arange(120)).judges["judge"].people
    for number in (
        found.pearson,
        found.spearman,
        found.kendall_tau_b,
        found.icc_agreement,
        found.icc_consistency,
        found.krippendorff_alpha,
    ):
        assert (number.value, number.why, number.ci95) == (None, CONSTANT, None)
    assert found.mean_difference.ci95 is not None


def test_a_mean_of_scores_that_do_not_vary_has_no_interval_and_a_giant_cluster_widens_it() -> None:
    alone = np.arange(60)
    assert mean_score_estimate(np.full(60, 3.1), alone).ci95 is None
    value = np.tile([1.0, 3.0], 30)
    even = mean_score_estimate(value, alone)
    # 2 ± t(59) √(60/59 · 60) ÷ 60
    assert even.ci95 == pytest.approx((2 - 2.001 * 0.1302, 2 + 2.001 * 0.1302), abs=1e-3)
    # Half of 60 are one cluster: (60)² ÷ (30² + 30) = 3.9 effective ones, t(2) = 4.303.
    giant = mean_score_estimate(value, np.where(alone < 30, 0, alone))
    assert giant.ci95 is not None
    squares = 30.0 * 30 / 31  # without each of 31 clusters: that of 30 adds 0, each other 1 of the 59 that are left
    assert giant.ci95[1] - 2 == pytest.approx(4.303 * squares**0.5 / 59, abs=1e-3)


def test_of_two_people_one_who_always_gives_the_same_score_leaves_no_coefficient() -> None:
    people = np.array([np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 24), np.full(120, 4.0)])
    multi = report_of(scored(people), NAMES, {}, np.arange(120)).human_human.multi
    for number in (
        multi.krippendorff_alpha_interval,
        multi.krippendorff_alpha_ordinal,
        multi.icc_agreement,
        multi.icc_consistency,
    ):
        assert (number.value, number.why) == (None, CONSTANT)
    third = np.vstack([people, people[0]])
    assert report_of(scored(third), NAMES, {}, np.arange(120)).human_human.multi.icc_agreement.value is not None


def test_a_judge_that_scored_what_nobody_else_did_has_nothing_to_be_held_against() -> None:
    found = report_of(scored(PEOPLE), NAMES, {"judge": np.array([GAP] * 5 + [1.0])}, np.arange(6))
    assert found.judges["judge"].people.pearson.why == NOTHING_SHARED


def test_without_any_scores_every_number_says_why() -> None:
    nobody = PersonScores(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))
    found = report_of(nobody, NAMES, {"judge": JUDGE}, np.arange(6))
    assert found.human_human.multi.krippendorff_alpha_interval.why == "No response has two scores."
    assert found.human_human.others.pearson.why == NOTHING_SHARED
    assert found.judges["judge"].each == {}


def test_the_report_is_plain_json() -> None:
    found = json.loads(json.dumps(asdict(small()), allow_nan=False))
    assert found["judges"]["judge"]["people"]["kendall_tau_b"]["value"] == pytest.approx(
        kendalltau(JUDGE[:4], np.nanmean(PEOPLE[:, :4], axis=0)).statistic
    )


@pytest.mark.data
def test_people_of_squality_agree_on_ratings_and_ranks_as_the_packages_say(acceptance_data: Path) -> None:
    # Each of 300 summaries was rated 0-100 and ranked 1-3 by three of four people; alpha by the krippendorff package.
    lines = (acceptance_data / "squality_human_eval" / "all-responses.jsonl").read_text().splitlines()
    reviews = [
        ((passage["passage-id"], question, system), review)
        for passage in map(json.loads, lines)
        for question, systems in passage["questions"].items()
        for system, told in systems.items()
        for review in told["reviews"]
    ]
    units = sorted({unit for unit, _ in reviews})
    people = sorted({review["worker_id"] for _, review in reviews})
    place = {unit: at for at, unit in enumerate(units)}
    cluster = np.unique([f"{passage} {question}" for passage, question, _ in units], return_inverse=True)[1]
    expected = {
        ("overall-rank", "interval"): 0.7969,
        ("overall-rank", "ordinal"): 0.7969,
        ("correctness-rating", "interval"): 0.4587,
        ("correctness-rating", "ordinal"): 0.5344,
    }
    for key, level in expected:
        scores = PersonScores(
            np.array([place[unit] for unit, _ in reviews]),
            np.array([people.index(review["worker_id"]) for _, review in reviews]),
            np.array([float(review[key]) for _, review in reviews]),
        )
        found = report_of(scores, people, {}, cluster).human_human
        alpha = getattr(found.multi, f"krippendorff_alpha_{level}")
        assert (found.multi.units, found.multi.complete) == (300, 0)
        assert round(alpha.value, 4) == expected[key, level]
        assert alpha.ci95 is not None
        assert len(found.pairs) == len(list(combinations(people, 2)))


def test_scores_of_reviews_that_saw_the_judge_first_are_held_against_judges_alone() -> None:
    late = scored(PEOPLE[1:])
    found = report_of(scored(PEOPLE[:1]), NAMES, {"judge": JUDGE}, np.arange(6), late)
    assert found.human_scores == VoteCounts(4, 0, 9, 0, 0)
    assert found.human_human.others.n == 0
    assert found.judges["judge"].people.n == 4
    # Means of the two: 1.5, 2.5, 5, 3, 1.5; the judge has 2, 2, 5, 4 of the first four.
    apart = found.saw_judge_first
    assert (apart.scores, apart.judges["judge"].n) == (9, 4)
    assert apart.judges["judge"].mean_difference.value == pytest.approx((0.5 - 0.5 + 0 + 1) / 4)


def test_sums_of_decimals_do_not_break_ties() -> None:
    """Tenths, of which .1 + .2 is not .3, are ranked like the whole numbers that they are tenths of."""
    whole = np.random.default_rng(3).integers(1, 6, (3, 120)).astype(np.float64)
    of_whole, of_tenths = (
        report_of(scored(table), NAMES, {"judge": table[0]}, np.arange(120)) for table in (whole, whole / 10)
    )
    for one, other in (
        (of_whole.human_human.others, of_tenths.human_human.others),
        (of_whole.judges["judge"].people, of_tenths.judges["judge"].people),
    ):
        assert (one.spearman.value, one.kendall_tau_b.value) == pytest.approx(
            (other.spearman.value, other.kendall_tau_b.value), abs=1e-12
        )


def test_of_many_people_who_score_the_pairs_that_share_most_are_given() -> None:
    table = np.full((31, 31), GAP)
    for person in range(31):
        table[person, : person + 1] = (np.arange(person + 1) * (person + 3)) % 5
    names = [f"person {one}" for one in range(31)]
    found = report_of(scored(table), names, {}, np.arange(31)).human_human
    assert (len(found.pairs), found.pairs_left_out) == (20, 31 * 30 // 2 - 20)
    assert (found.pairs[0].rater_1, found.pairs[0].rater_2, found.pairs[0].n) == ("person 29", "person 30", 30)
