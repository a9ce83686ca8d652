"""Means of scores and pass rates, corrected by reviewers, against hand-worked numbers and the jackknife of clusters."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

from benchmarks.corrected_scores import LENIENCE, find_truth, simulate
from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.confidence_intervals import SHARE_BOUNDS, UNBOUNDED
from evaluations.stats.corrected_means import (
    HARDLY_CORRECTED,
    NOT_JUDGED,
    NOT_REVIEWED,
    NOT_SHARED,
    CandidateMeans,
    CorrectedMean,
    JudgeDifference,
    ResponseValues,
    candidate_means,
)
from evaluations.stats.mean_influences import (
    candidate_influences,
    cluster_influences,
    mean_sums,
    response_cells,
)
from evaluations.stats.significance import t_975

GAP = np.nan
seeds = st.integers(0, 2**32 - 1)


def means_of(
    people: FloatArray, judge: FloatArray, cluster: IntArray, candidate: IntArray | None = None, **options: object
) -> CandidateMeans:
    of = np.zeros(len(people), dtype=np.int64) if candidate is None else candidate
    names = [f"model {number}" for number in range(int(of.max()) + 1)]
    return candidate_means(ResponseValues(people, {"judge": judge}, of, cluster, names, **options))  # type: ignore[arg-type]


def random_study(seed: int, responses: int = 240) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    """Reviewers' values of a third, a judge's of all, uneven clusters that both candidates share, and candidates."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, 80, responses)
    candidate = rng.integers(0, 2, responses)
    quality = rng.normal(size=80)[cluster] + rng.normal(size=responses) + 0.3 * candidate
    people = np.where(rng.random(80)[cluster] < 0.7, np.rint(quality + 3), GAP)
    return people, np.rint(quality + 3.5 + 0.5 * rng.normal(size=responses)), cluster, candidate


def test_a_corrected_mean_is_worked_by_hand() -> None:
    # Reviewers 3, 1, 4 on the first three of six responses; the judge 4, 2, 4 there and 5, 3, 4 elsewhere.
    # Ȳ = 8/3, F̄ = 10/3, F̂ = 11/3. What they are more than without each response, G − 1 times of G as variances:
    # y = (Y − Ȳ)/2 · √(2/3) = (1, −5, 4)/6 · √(2/3), a = (F − F̄)/2 · √(2/3) = (1, −2, 1)/3 · √(2/3),
    # b = (F − F̂)/5 · √(5/6) = (1, −5, 1, 4, −2, 1)/15 · √(5/6), d = a − b.
    # Σyy = 7/9, Σyd = 15/18 · 2/3 − 30/90 · √5/3 = (5 − √5)/9, Σdd = 4/9 − 2 · 12/45 · √5/3 + 8/45: λ = 1.37 → 1.
    people, judge = np.array([3, 1, 4, GAP, GAP, GAP]), np.array([4.0, 2, 4, 5, 3, 4])
    found = means_of(people, judge, np.arange(6)).candidates["model 0"]
    corrected = found.corrected["judge"]
    assert (found.people.value, found.people.n) == pytest.approx((8 / 3, 3))
    assert (found.judges["judge"].value, found.judges["judge"].n) == pytest.approx((22 / 6, 6))
    assert corrected.judge_weight == 1
    assert corrected.corrected.value == pytest.approx(22 / 6 + 8 / 3 - 10 / 3)
    assert (corrected.corrected.n, corrected.scored, corrected.coverage) == (3, 6, 1)
    sums = mean_sums(cluster_influences(people, judge, np.arange(6)))
    yy, yd, dd = 7 / 9, (5 - 5**0.5) / 9, (28 - 8 * 5**0.5) / 45
    assert (sums.yy, sums.yd, sums.dd) == pytest.approx((yy, yd, dd))
    # λ costs one of the degrees of freedom of 3 clusters: times 2/1.
    assert sums.variance == pytest.approx((yy - 2 * yd + dd) * 2)


def test_a_corrected_mean_of_a_stratified_sample_is_worked_by_hand() -> None:
    # Two of the four responses of the first stratum are reviewed, both of the second: weights 2, 2, 1, 1.
    # Ȳ = (2 · 4 + 2 · 2 + 1 + 1)/6 = 14/6, F̄ = (2 · 5 + 2 · 3 + 1 + 2)/6 = 19/6, F̂ = 17/6.
    # y = w (Y − Ȳ)/(6 − w) · √(3/4), a = w (F − F̄)/(6 − w) · √(3/4), b = (F − F̂)/5 · √(5/6), as below.
    people, judge = np.array([4, 2, GAP, GAP, 1, 1]), np.array([5.0, 3, 4, 2, 1, 2])
    stratum = np.array([0, 0, 0, 0, 1, 1])
    found = means_of(people, judge, np.arange(6), stratum=stratum).candidates["model 0"]
    assert (found.people.value, found.people.n) == pytest.approx((14 / 6, 4))
    assert found.judges["judge"].value == pytest.approx(17 / 6)
    corrected = found.corrected["judge"]
    assert (corrected.corrected.value, corrected.judge_weight) == pytest.approx((14 / 6 + 17 / 6 - 19 / 6, 1))
    cells = response_cells(np.zeros(6, dtype=np.int64), np.arange(6), 1)
    sums = mean_sums(candidate_influences(cells, people, judge, stratum=stratum))
    y = np.array([25, -5, 0, 0, -8, -8]) / 30 * 0.75**0.5
    a = np.array([55, -5, 0, 0, -26, -14]) / 60 * 0.75**0.5
    b = np.array([13, 1, 7, -5, -11, -5]) / 30 * (5 / 6) ** 0.5
    assert (sums.yy, sums.yd, sums.dd) == pytest.approx((y @ y, y @ (a - b), (a - b) @ (a - b)))
    assert sums.effective == pytest.approx(36 / (4 + 4 + 1 + 1))
    assert sums.variance == pytest.approx((y - a + b) @ (y - a + b) * 2.6 / 1.6)


def test_the_weights_are_those_of_the_responses_that_the_judge_scored() -> None:
    # Of the first stratum two of three that the judge scored are reviewed: weights 1.5, 1.5, 1, 1 for the correction.
    # Means 2.2 = (6 + 3 + 1 + 1)/5 by reviewers, 2.8 = (6 + 4.5 + 1 + 2.5)/5 by the judge; alone, 2.33 as above.
    people, judge = np.array([4, 2, GAP, GAP, 1, 1]), np.array([4.0, 3, 4, GAP, 1, 2.5])
    stratum = np.array([0, 0, 0, 0, 1, 1])
    cells = response_cells(np.zeros(6, dtype=np.int64), np.arange(6), 1)
    means = candidate_influences(cells, people, judge, stratum=stratum).means[:, 0]
    assert means == pytest.approx([2.2, 14.5 / 5, 14 / 5])
    assert means_of(people, judge, np.arange(6), stratum=stratum).candidates["model 0"].people.value == pytest.approx(
        14 / 6
    )


def test_responses_with_scores_of_which_none_counts_are_excluded() -> None:
    people, judge = np.array([4, 2, GAP, GAP, 1, 1]), np.array([5.0, 3, 4, 2, 1, 2])
    picked = np.array([1, 2, 2])
    assert means_of(people, judge, np.arange(6), picked_by_hand=picked).candidates["model 0"].excluded == 1
    assert means_of(people, judge, np.arange(6)).candidates["model 0"].excluded == 0


def loop_over_clusters(
    people: FloatArray,
    judge: FloatArray,
    cluster: IntArray,
    signs: FloatArray,
    candidate: IntArray,
    chance: FloatArray,
) -> tuple[float, float, float]:
    """λ, the corrected difference and its variance by the jackknife. ``signs``: of each candidate."""

    def three_means(number: int, kept: BoolArray) -> FloatArray:
        own = kept & (candidate == number)
        reviewed = own & ~np.isnan(people)
        weight = 1 / chance[reviewed]
        return np.array(
            [
                *(np.average(value[reviewed], weights=weight) for value in (people, judge)),
                judge[own].mean(),
            ]
        )

    means, y, d = np.zeros(3), defaultdict[int, float](float), defaultdict[int, float](float)
    everything = np.ones(len(people), dtype=bool)
    for number, sign in enumerate(signs):
        own = candidate == number
        whole = three_means(number, everything)
        means += sign * whole
        clusters, reviewed = np.unique(cluster[own]), np.unique(cluster[own & ~np.isnan(people)])
        factors = [(1 - 1 / len(count)) ** 0.5 for count in (reviewed, reviewed, clusters)]
        for one in clusters.tolist():
            more = sign * (whole - three_means(number, cluster != one)) * factors
            y[one] += more[0]
            d[one] += more[1] - more[2]
    yd, dd = sum(y[g] * d[g] for g in d), sum(d[g] ** 2 for g in d)
    weight = min(max(yd / dd, 0.0), 1.0)
    return weight, means[0] + weight * (means[2] - means[1]), sum((y[g] - weight * d[g]) ** 2 for g in d)


@pytest.mark.parametrize("strata", [1, 3])
@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_means_and_their_difference_are_those_of_a_loop_over_clusters(strata: int, seed: int) -> None:
    people, judge, cluster, candidate = random_study(seed)
    stratum = np.random.default_rng(seed).integers(0, strata, 80)[cluster]
    reviewed = ~np.isnan(people)
    chance = np.array([reviewed[stratum == one].mean() for one in stratum]) if strata > 1 else np.ones(len(people))
    found = means_of(people, judge, cluster, candidate, stratum=stratum)
    cases: list[tuple[CorrectedMean | JudgeDifference, list[float]]] = [
        (found.candidates["model 0"].corrected["judge"], [1.0, 0.0]),
        (found.candidates["model 1"].corrected["judge"], [0.0, 1.0]),
        (found.differences[0].judges["judge"], [1.0, -1.0]),
    ]
    for number, signs in cases:
        own = candidate == signs.index(1.0) if 0.0 in signs else np.ones(len(people), dtype=bool)
        of = np.zeros(int(own.sum()), dtype=np.int64) if 0.0 in signs else candidate
        weight, value, variance = loop_over_clusters(
            *(people[own], judge[own], cluster[own]), np.array([1.0] if 0.0 in signs else signs), of, chance[own]
        )
        assert (number.judge_weight, number.corrected.value) == pytest.approx((weight, value), abs=1e-8)
        assert number.corrected.ci95 is not None
        assert number.corrected.ci95_rule is not None
        half = (number.corrected.ci95[1] - number.corrected.ci95[0]) / 2
        counted = own & reviewed
        sizes = np.bincount(cluster[counted], 1 / chance[counted])
        effective = sizes.sum() ** 2 / (sizes**2).sum()
        degrees = int(effective + 1e-9) - 1
        if weight:
            variance, degrees = variance * (effective - 1) / (effective - 2), degrees - 1
        assert half == pytest.approx(t_975(degrees) * variance**0.5, rel=1e-6)


def test_lone_responses_have_the_interval_of_ppi_py() -> None:
    rng = np.random.default_rng(3)
    quality = rng.normal(size=20_000)
    people, judge = quality + 0.5 * rng.normal(size=20_000), quality + 0.4 + 0.6 * rng.normal(size=20_000)
    reviewed = np.arange(20_000) < 600
    found = means_of(np.where(reviewed, people, GAP), judge, np.arange(20_000)).candidates["model 0"]
    weight, corrected = found.corrected["judge"].judge_weight, found.corrected["judge"].corrected
    assert weight is not None
    assert corrected.ci95 is not None
    # Their judge speaks of the others only, ours of all: λ of all is λ · 19,400/20,000 of the others.
    parts, theirs = (people[reviewed], judge[reviewed], judge[~reviewed]), weight * 19_400 / 20_000
    assert corrected.value == pytest.approx(ppi_mean_pointestimate(*parts, lam=theirs)[0], abs=1e-8)
    low, high = (float(bound[0]) for bound in ppi_mean_ci(*parts, alpha=0.05, lam=theirs))
    # They divide by n in place of n − 2, and take the normal quantile in place of t: 1.9639/1.9600 · √(600/598).
    assert (corrected.ci95[1] - corrected.ci95[0]) / (high - low) == pytest.approx(1.0037, abs=1e-3)


def test_no_other_weight_of_the_judge_has_a_smaller_variance() -> None:
    people, judge, cluster, _ = random_study(8)
    sums = mean_sums(cluster_influences(people, judge, cluster))
    variances = [sums.yy - 2 * weight * sums.yd + weight**2 * sums.dd for weight in np.linspace(0, 1, 201)]
    least = sums.yy - 2 * sums.judge_weight * sums.yd + sums.judge_weight**2 * sums.dd
    assert least <= min(variances) + 1e-15


def test_a_judge_without_information_leaves_reviewers_alone() -> None:
    people, _, cluster, candidate = random_study(4)
    found = means_of(people, np.full(len(people), 5.0), cluster, candidate)
    for candidate_mean in found.candidates.values():
        corrected = candidate_mean.corrected["judge"]
        assert corrected.judge_weight == 0
        assert corrected.corrected.value == candidate_mean.people.value
        assert corrected.corrected.ci95 == candidate_mean.people.ci95
    assert found.differences[0].judges["judge"].corrected.value == found.differences[0].people.value
    # Its own difference is 0 throughout: there is no interval that could exclude 0.
    assert found.differences[0].judges["judge"].judge.ci95 is None


def test_where_everything_is_reviewed_the_judge_adds_nothing() -> None:
    people, judge, cluster, _ = random_study(5)
    everyone = np.nan_to_num(people, nan=3.0)
    found = means_of(everyone, judge, cluster).candidates["model 0"].corrected["judge"]
    assert (found.judge_weight, found.width_ratio) == (0, 1)
    # Also where some of them are split, and have no value.
    split = np.arange(len(people)) % 5 == 0
    values = means_of(np.where(split, GAP, everyone), judge, cluster, split=split).candidates["model 0"]
    assert values.corrected["judge"].judge_weight == 0
    assert values.corrected["judge"].corrected.value == values.people.value


def test_splits_that_the_judge_scores_lower_do_not_bias_the_correction() -> None:
    # The judge scores 1 where reviewers agree on 1, else 0; a fifth is split. Without the split ones in F̄ it would be
    # λ (.4 − .5) too low.
    kind = np.arange(1_000) % 5  # 0 split, 1 and 2 pass, 3 and 4 fail
    judge = np.isin(kind, (1, 2)).astype(float)
    reviewed = np.arange(1_000) < 200
    people = np.where(reviewed & (kind > 0), judge, GAP)
    found = means_of(people, judge, np.arange(1_000), bounds=SHARE_BOUNDS, split=reviewed & (kind == 0))
    assert found.candidates["model 0"].corrected["judge"].corrected.value == pytest.approx(0.5)


def test_a_judge_that_scored_too_little_of_a_model_does_not_correct_its_mean() -> None:
    people, judge, cluster, candidate = random_study(6)
    own = np.flatnonzero(candidate == 1)
    judge[own[: len(own) // 10]] = GAP
    found = means_of(people, judge, cluster, candidate)
    other, short = (found.candidates[f"model {number}"] for number in range(2))
    assert other.corrected["judge"].corrected.value is not None
    number = short.corrected["judge"]
    assert number.corrected.why == (
        f"The judge scored {len(own) - len(own) // 10} of {len(own)} responses. A correction needs 95% of them."
    )
    assert number.judge_weight is None
    assert short.judges["judge"].n == number.scored == len(own) - len(own) // 10
    assert number.coverage == pytest.approx(number.scored / len(own))
    assert found.differences[0].judges["judge"].corrected.why == number.corrected.why
    assert found.differences[0].judges["judge"].judge.value is not None


def test_each_missing_side_is_named() -> None:
    both, cluster = np.array([1.0, 2.0, 3.0]), np.arange(3)
    nothing = np.full(3, GAP)
    assert means_of(nothing, both, cluster).candidates["model 0"].corrected["judge"].corrected.why == NOT_REVIEWED
    assert means_of(both, nothing, cluster).candidates["model 0"].corrected["judge"].corrected.why == NOT_JUDGED
    one = np.append(np.full(1, GAP), np.ones(59))
    apart = means_of(np.where(np.isnan(one), 2.0, GAP), one, np.arange(60)).candidates["model 0"]
    assert apart.corrected["judge"].corrected.why == NOT_SHARED


def test_where_judge_and_reviewers_hardly_differ_there_is_no_corrected_interval() -> None:
    rng = np.random.default_rng(7)
    judge = rng.integers(1, 6, 400).astype(float)
    people = np.where(np.arange(400) < 100, judge, GAP)
    people[:9] += 1
    found = means_of(people, judge, np.arange(400)).candidates["model 0"].corrected["judge"].corrected
    assert found.ci95_why == HARDLY_CORRECTED.format(9, 10)


def test_above_thirty_models_the_first_is_compared_with_each_of_the_others() -> None:
    rng = np.random.default_rng(9)
    for models, pairs in ((30, 435), (31, 30)):
        candidate = np.tile(np.arange(models), 20)
        values = rng.normal(size=len(candidate))
        found = means_of(values, values, np.repeat(np.arange(20), models), candidate)
        assert len(found.differences) == pairs
    assert {one.first for one in found.differences} == {"model 0"}


def test_each_of_many_models_has_the_numbers_that_it_has_alone() -> None:
    """Model 0 and another, without the other 38; some have no response, or none with a score from reviewers."""
    rng = np.random.default_rng(10)
    candidate, cluster = rng.choice(np.delete(np.arange(40), [7, 31]), 2_000), rng.integers(0, 90, 2_000)
    judge = rng.integers(1, 6, 2_000).astype(float)
    people = np.where((rng.random(2_000) < 0.5) & (candidate != 5), judge + rng.integers(-1, 2, 2_000), GAP)
    together = means_of(people, judge, cluster, candidate)
    assert "model 7" not in together.candidates
    for other in (1, 5, 39):
        own = np.isin(candidate, [0, other])
        alone = means_of(people[own], judge[own], cluster[own], candidate[own])
        assert alone.candidates == {name: together.candidates[name] for name in ("model 0", f"model {other}")}
        assert alone.differences[0] == next(one for one in together.differences if one.second == f"model {other}")


def test_a_difference_of_two_models_on_the_same_prompts_is_paired() -> None:
    # Both vary widely by prompt, and the second is 1 higher on every second prompt: half a point, hardly uncertain.
    prompt = np.arange(100)
    first = 10.0 * (prompt % 10)
    people = np.concatenate([first, first + prompt % 2])
    found = means_of(people, people, np.tile(prompt, 2), np.repeat([0, 1], 100)).differences[0].people
    assert found.value == pytest.approx(-0.5)
    assert found.ci95 is not None
    # √(Σ (± .5)² ÷ 100² · 100/99) = .0503, t(99) = 1.984
    assert found.ci95 == pytest.approx((-0.5 - 1.984 * 0.0503, -0.5 + 1.984 * 0.0503), abs=1e-3)


@pytest.mark.parametrize("judge", list(LENIENCE))
def test_in_a_small_simulation_intervals_cover_and_only_the_judge_alone_is_biased(judge: str) -> None:
    tally = simulate(judge, 100, "1", 120, find_truth(100_000))
    for name in ("score, corrected", "score difference, corrected", "pass, corrected", "pass difference, corrected"):
        found = tally[name]
        assert found.given > 0.9 * found.asked
        assert 0.89 < found.held / found.given <= 1
        assert abs(found.error / found.valued) < 0.04
    if judge == "biased":
        assert tally["score, judge"].error / tally["score, judge"].valued > 0.5
        assert tally["pass, Rogan–Gladen"].held / tally["pass, Rogan–Gladen"].given > 0.89
    if judge in ("useless", "constant"):
        assert tally["pass, Rogan–Gladen"].given < 0.06 * tally["pass, Rogan–Gladen"].asked


def test_in_a_small_simulation_of_unequal_strata_intervals_cover_and_nothing_is_biased() -> None:
    tally = simulate("biased", 150, "1", 120, find_truth(100_000, strata=True), strata=True)
    for name in ("score, corrected", "score difference, corrected", "pass, corrected", "pass, Rogan–Gladen"):
        found = tally[name]
        assert found.given > 0.9 * found.asked
        assert 0.89 < found.held / found.given <= 1
        assert abs(found.error / found.valued) < 0.04


def test_bounds_apply_to_shares_alone() -> None:
    people, judge = np.array([0.0, 0, 0, GAP]), np.array([1.0, 1, 1, 0])
    for bounds, lowest in ((SHARE_BOUNDS, 0.0), (UNBOUNDED, -1.0)):
        found = means_of(people, judge, np.arange(4), bounds=bounds).candidates["model 0"].corrected["judge"]
        assert found.corrected.value is not None
        assert found.corrected.value >= lowest
