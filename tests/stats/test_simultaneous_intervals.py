import math

import numpy as np
import pytest

from benchmarks.false_claims import CASES, Preferences, Reviews, shares
from evaluations.domain.reports import SplitRule
from evaluations.stats.coding import IntArray
from evaluations.stats.confidence_intervals import BOOTSTRAP_UP_TO
from evaluations.stats.human_ceiling import human_ceiling, leave_one_out_votes
from evaluations.stats.polls import make_poll
from evaluations.stats.significance import holm_adjust
from evaluations.stats.simultaneous_intervals import (
    NO_COMPANY,
    Claim,
    MeanDifference,
    average_difference_over_raters,
    bootstrap_max_t,
    cluster_covariances,
    draw_normal_t,
    simultaneous_intervals,
)
from evaluations.stats.votes import Votes

RNG = np.random.default_rng(4)


def entries(clusters: int, each: int, lead: float, seed: int = 1) -> tuple[IntArray, IntArray, IntArray]:
    """Two people on every item; the judge alone is right by ``lead`` more often than the person alone."""
    rng = np.random.default_rng(seed)
    n = clusters * each * 2
    difference = rng.choice([-1, 0, 1], n, p=[0.2 - lead / 2, 0.6, 0.2 + lead / 2])
    return np.tile([0, 1], n // 2), difference, np.repeat(np.arange(clusters) * 3, 2 * each)


def differing(clusters: int, each: int, lead: float, seed: int = 1) -> MeanDifference:
    found = average_difference_over_raters(*entries(clusters, each, lead, seed))
    assert found is not None
    return found


def test_the_difference_is_that_of_the_ceiling_with_its_error() -> None:
    items, people = 240, 3
    truth = RNG.integers(3, size=items)
    said = np.where(RNG.random((people, items)) < 0.7, truth, RNG.integers(3, size=(people, items)))
    judge = np.where(RNG.random(items) < 0.6, truth, RNG.integers(3, size=items))
    item, rater = np.tile(np.arange(items), people), np.repeat(np.arange(people), items)
    kept = RNG.random(items * people) < 0.8
    votes = make_poll(Votes(item[kept], rater[kept], item[kept] * 0, said.ravel()[kept]), np.arange(items) // 2)
    others = votes.majority_of_the_others(SplitRule.TIE)
    level = human_ceiling(judge[votes.items], votes, others, ["ann", "ben", "cem"]).s1
    company = leave_one_out_votes(judge[votes.items], votes, others)
    found = average_difference_over_raters(company.person, company.judge_lead, company.cluster)
    assert found is not None
    assert found.value == pytest.approx(level.difference.value)
    assert level.difference.ci95 is not None
    width = level.difference.ci95[1] - level.difference.ci95[0]
    assert found.standard_error == pytest.approx(width / 2 / 1.98, rel=0.06)


def test_what_clusters_add_is_the_jackknife_of_the_mean_over_people() -> None:
    person, difference, cluster = entries(60, 2, 0.1)
    person = np.where(cluster % 2, person, 0)  # the second person has votes on every other cluster
    found = average_difference_over_raters(person, difference, cluster)
    assert found is not None

    def mean(kept: IntArray) -> float:
        return float(np.mean([difference[kept & (person == one)].mean() for one in (0, 1)]))

    everything = np.ones(len(person), dtype=bool)
    assert found.value == pytest.approx(mean(everything))
    assert found.influence.sum() == pytest.approx(0, abs=1e-12)
    left = np.array([mean(cluster != one) for one in found.cluster])
    jackknife = math.sqrt(((left - left.mean()) ** 2).sum() * 59 / 60)
    assert found.standard_error == pytest.approx(jackknife, rel=0.05)
    assert found.effective == pytest.approx(60)


@pytest.mark.parametrize("items", range(55, 70))
def test_clusters_that_differ_by_the_same_are_no_evidence_however_they_are_rounded(items: int) -> None:
    """Two people always disagree and the judge always agrees with one of them: each cluster adds one half."""
    judge = np.random.default_rng(items).random(items) < 0.4
    person, cluster = np.repeat([0, 1], items), np.tile(np.arange(items), 2)
    found = average_difference_over_raters(person, np.concatenate([judge, ~judge]).astype(np.int64), cluster)
    assert found is not None
    assert found.value == pytest.approx(0.5)
    assert found.standard_error == 0
    (shown,) = simultaneous_intervals({"one": found}).values()
    assert (shown.ci95, shown.p, shown.claim, shown.rule) == (None, None, Claim.NONE, None)


def slow_critical(differences: list[MeanDifference], seed: int, draws: int = 3_000) -> float:
    """The quantile of the largest |t| of a multinomial bootstrap, cluster by cluster and draw by draw."""
    rng = np.random.default_rng(seed)
    clusters = sorted({cluster for one in differences for cluster in one.cluster.tolist()})
    largest = []
    for _ in range(draws):
        times = dict(
            zip(clusters, rng.multinomial(len(clusters), np.full(len(clusters), 1 / len(clusters))), strict=True)
        )
        found = []
        for one in differences:
            drawn = np.array([times[cluster] for cluster in one.cluster.tolist()])
            weight = (drawn * one.size).sum()
            mean = (drawn * one.influence).sum() / weight
            residual = (one.influence - mean * one.size) / weight
            error = math.sqrt((drawn * residual**2).sum() * len(drawn) / (len(drawn) - 1))
            found.append(abs(mean) / error)
        largest.append(max(found))
    return float(np.quantile(largest, 0.95))


def test_the_intervals_are_those_of_a_slow_bootstrap_of_the_largest_t() -> None:
    made = [differing(80, 1 + one % 3, 0.1, seed=one) for one in range(4)]
    found = simultaneous_intervals(dict(enumerate(made)))
    critical = slow_critical(made, 5)
    for one, shown in zip(made, found.values(), strict=True):
        assert shown.ci95 is not None
        half = (shown.ci95[1] - shown.ci95[0]) / 2
        assert half == pytest.approx(critical * one.standard_error, rel=0.05)
        assert (shown.ci95[0] + shown.ci95[1]) / 2 == pytest.approx(one.value)


def test_one_difference_alone_has_about_its_own_interval_and_alike_ones_no_wider_ones() -> None:
    one = differing(400, 2, 0.0)
    alone, same = simultaneous_intervals({"a": one})["a"], simultaneous_intervals({"a": one, "b": one})["a"]
    assert alone.ci95 is not None
    assert (alone.ci95[1] - alone.ci95[0]) / 2 == pytest.approx(1.97 * one.standard_error, rel=0.05)
    assert same.ci95 == pytest.approx(alone.ci95)
    others = {number: differing(400, 2, 0.0, seed=number) for number in range(12)}
    wider = simultaneous_intervals(others)[0]
    # Of twelve that have nothing to do with each other: about the quantile of .95^(1/12), 2.86.
    assert wider.ci95 is not None
    assert (wider.ci95[1] - wider.ci95[0]) / 2 == pytest.approx(2.87 * others[0].standard_error, rel=0.05)


def test_many_clusters_are_drawn_from_their_covariance_with_the_same_result() -> None:
    made = [differing(1_500, 1, 0.1, seed=number) for number in range(3)]
    largest = np.abs(draw_normal_t(made)).max(axis=1)
    assert np.quantile(largest, 0.95) == pytest.approx(np.quantile(bootstrap_max_t(made), 0.95), rel=0.05)
    table = np.zeros((3, 4_500))
    for row, one in zip(table, made, strict=True):
        row[one.cluster] = one.influence
    assert cluster_covariances(made) == pytest.approx(table @ table.T)
    many = differing(BOOTSTRAP_UP_TO + 1, 1, -0.1)
    assert simultaneous_intervals({"judge": many})["judge"].claim is Claim.BELOW


def test_few_clusters_are_tested_by_holm_and_have_no_interval() -> None:
    made = {"a": differing(24, 4, -0.35), "b": differing(24, 4, 0.0, seed=3), "c": differing(24, 4, 0.35, seed=4)}
    found = simultaneous_intervals(made)
    assert [one.claim for one in found.values()] == [Claim.BELOW, Claim.NONE, Claim.ABOVE]
    for one in found.values():
        assert (one.ci95, one.why) == (None, "Too few clusters for a CI (24 < 40).")
        assert one.p is not None
    p = [one.p or 0.0 for one in found.values()]
    assert holm_adjust(np.array(p)).argmax() == 1


def test_each_way_of_testing_has_its_share_of_the_level() -> None:
    few = differing(24, 4, -0.35)
    alone, beside = (
        simultaneous_intervals({"few": few})["few"],
        simultaneous_intervals({"few": few, "many": differing(400, 1, 0.0)})["few"],
    )
    assert alone.p is not None
    assert beside.p == pytest.approx(2 * alone.p)
    assert beside.family == 2


def test_what_is_hardly_known_is_not_tested() -> None:
    found = simultaneous_intervals({"few": differing(8, 9, -0.4), "none": None, "alike": differing(60, 1, 0.0)})
    assert (found["few"].rule, found["few"].claim) == (None, Claim.NONE)
    assert found["few"].difference == pytest.approx(-0.4, abs=0.2)
    assert (found["none"].difference, found["none"].why) == (None, NO_COMPANY)
    constant = average_difference_over_raters(np.zeros(60, dtype=np.int64), np.zeros(60, dtype=np.int64), np.arange(60))
    assert simultaneous_intervals({"judge": constant})["judge"].claim is Claim.NONE
    assert simultaneous_intervals({}) == {}


# ---- false claims, and true ones: a small run of benchmarks/false_claims.py --------------------


@pytest.mark.parametrize("name", ["1 aspect", "6 aspects", "12 aspects"])
def test_a_judge_like_reviewers_is_hardly_ever_called_below_or_above_them(name: str) -> None:
    population = CASES[name]
    assert isinstance(population, Reviews)
    # Where 5 % are false, 400 reports have up to 8.4 % in 999 of 1,000 runs; one by one they have 28 % of six aspects.
    assert shares(population, 400)["any claim"] <= 0.084


def test_a_judge_that_is_15_points_worse_is_called_below() -> None:
    population = CASES["15 points worse, 6 aspects"]
    assert isinstance(population, Reviews)
    found = shares(population, 60)
    assert (found["below"], found["above"]) == (1.0, 0.0)


@pytest.mark.parametrize(
    "name", ["own family better, judge knows more", "own family worse, judge knows less", "own family alike"]
)
def test_a_judge_without_a_leaning_is_hardly_ever_said_to_prefer_its_own_family(name: str) -> None:
    population = CASES[name]
    assert isinstance(population, Preferences)
    found = shares(population, 300)
    assert found["any claim"] <= 0.09
