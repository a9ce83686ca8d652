"""The human ceiling of scores: by hand, and its errors by the jackknife of clusters."""

import numpy as np
import pytest

from evaluations.stats.coding import FloatArray, IntArray
from evaluations.stats.score_ceiling import NO_OTHER_SCORES, TOO_SHORT, ScoreCeiling, score_ceiling
from evaluations.stats.score_reliability import PersonScores

GAP = np.nan
NAMES = ("ann", "bob", "cem")


def ceiling_of(judge: FloatArray, people: FloatArray, cluster: IntArray | None = None) -> ScoreCeiling:
    """``people``: persons × responses, with gaps."""
    rater, unit = np.nonzero(~np.isnan(people))
    of = np.arange(len(judge)) if cluster is None else cluster
    return score_ceiling(judge, PersonScores(unit, rater, people[rater, unit]), NAMES, of)


def test_distances_are_worked_by_hand() -> None:
    # Response 1: ann 1, bob 3, judge 2; response 2: ann 4, bob 4, cem 1, judge 4; response 3 has one reviewer only.
    # Left out on 1: ann 1 vs. 3, judge 1 away, ann 2; bob the same. On 2: ann and bob vs. 2.5, 1.5 both; cem vs. 4:
    # judge 0, cem 3. Ann: judge (1 + 1.5)/2, ann (2 + 1.5)/2; bob the same; cem: 0 and 3.
    found = ceiling_of(np.array([2.0, 4, 5]), np.array([[1, 4, GAP], [3, 4, GAP], [GAP, 1, 5]]))
    absolute = found.mean_absolute_difference
    assert found.n == 5
    assert absolute.judge.value == pytest.approx((1.25 + 1.25 + 0) / 3)
    assert absolute.people.value == pytest.approx((1.75 + 1.75 + 3) / 3)
    assert absolute.difference.value == pytest.approx((1.25 + 1.25) / 3 - 6.5 / 3)
    square = found.root_mean_square_difference
    assert square.judge.value == pytest.approx((2 * np.sqrt((1 + 2.25) / 2) + 0) / 3)
    assert square.people.value == pytest.approx((2 * np.sqrt((4 + 2.25) / 2) + 3) / 3)
    assert [(one.rater, one.judge.value, one.people.value) for one in found.left_out] == [
        ("ann", 1.25, 1.75),
        ("bob", 1.25, 1.75),
        ("cem", 0, 3),
    ]
    assert found.pearson.judge.why == TOO_SHORT.format(10)


def population(seed: int, responses: int = 300) -> tuple[FloatArray, FloatArray, IntArray]:
    rng = np.random.default_rng(seed)
    cluster = np.sort(rng.integers(0, 120, responses))
    quality = rng.normal(size=120)[cluster] + rng.normal(size=responses)
    people = quality + 0.7 * rng.normal(size=(3, responses))
    people[rng.random((3, responses)) < 0.25] = GAP
    return quality + 0.5 + 0.7 * rng.normal(size=responses), people, cluster


def test_correlations_are_averaged_over_reviewers() -> None:
    judge, people, cluster = population(1)
    found = ceiling_of(judge, people, cluster)
    expected = []
    for own in range(3):
        others = np.ma.masked_invalid(np.delete(people, own, axis=0)).mean(axis=0).filled(GAP)
        kept = ~np.isnan(people[own]) & ~np.isnan(others)
        sides = (judge[kept], people[own][kept])
        expected.append([np.corrcoef(side, others[kept])[0, 1] for side in sides])
    assert (found.pearson.judge.value, found.pearson.people.value) == pytest.approx(np.mean(expected, axis=0))


def test_intervals_are_as_wide_as_the_jackknife_of_clusters_makes_them() -> None:
    judge, people, cluster = population(2)
    found = ceiling_of(judge, people, cluster)
    clusters = np.unique(cluster)

    def values(kept: np.ndarray) -> list[float]:
        part = ceiling_of(judge[kept], people[:, kept], cluster[kept])
        measures = (part.mean_absolute_difference, part.root_mean_square_difference, part.pearson)
        return [number.value or 0.0 for one in measures for number in (one.judge, one.people, one.difference)]

    without = np.array([values(cluster != one) for one in clusters])
    errors = np.sqrt(((without - without.mean(axis=0)) ** 2).sum(axis=0) * (len(clusters) - 1) / len(clusters))
    measures = (found.mean_absolute_difference, found.root_mean_square_difference, found.pearson)
    numbers = [number for one in measures for number in (one.judge, one.people, one.difference)]
    for number, error in zip(numbers, errors, strict=True):
        assert number.ci95 is not None
        assert (number.ci95[1] - number.ci95[0]) / (2 * 1.99 * error) == pytest.approx(1, abs=0.12)


def test_a_judge_who_is_one_of_the_reviewers_differs_in_nothing() -> None:
    _, people, _ = population(3)
    people = np.rint(np.nan_to_num(people[:2], nan=0.0))
    found = ceiling_of(people[0], people)
    # Left out, ann is the judge herself; for bob the judge is ann, who is the others: 0 away.
    assert found.left_out[0].difference.value == 0
    assert found.left_out[1].judge.value == 0


def test_a_constant_judge_has_no_correlation_and_so_no_difference_of_one() -> None:
    _, people, cluster = population(4)
    found = ceiling_of(np.full(300, 3.0), people, cluster).pearson
    assert (found.judge.value, found.people.value, found.difference.value) == (None, None, None)
    assert found.difference.ci95 is None
    assert found.judge.why == TOO_SHORT.format(10)


def test_below_forty_clusters_only_mean_absolute_differences_have_an_interval() -> None:
    judge, _, _ = population(5, 120)
    people = judge + np.random.default_rng(5).normal(size=(3, 120))
    found = ceiling_of(judge, people, np.arange(120) // 4)
    assert found.mean_absolute_difference.difference.ci95_rule == "t over 30 clusters"
    assert found.root_mean_square_difference.judge.ci95_why == "Too few clusters for a CI (30 < 40)."
    assert found.pearson.difference.ci95_why == "Too few clusters for a CI (30 < 40)."


def test_without_a_second_reviewer_there_is_none() -> None:
    found = ceiling_of(np.arange(5.0), np.array([[1.0, 2, 3, 4, 5]]))
    assert (found.n, found.left_out) == (0, ())
    assert found.pearson.difference.why == NO_OTHER_SCORES
