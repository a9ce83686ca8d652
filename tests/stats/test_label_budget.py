from dataclasses import asdict
from json import dumps

import numpy as np
import pytest
from scipy.stats import norm

from evaluations.stats.cluster_totals import Contributions
from evaluations.stats.coding import FloatArray
from evaluations.stats.confidence_intervals import Spread, Statistic, why_interval_withheld
from evaluations.stats.estimates import NO_INTERVAL
from evaluations.stats.label_budget import NO_ERROR, ReviewEffort, UnreviewedMaterial, label_budget, ppi_saving

PLENTY = UnreviewedMaterial(clusters=10**9, comparisons=10**9)


def test_a_width_that_is_half_as_wide_takes_four_times_the_clusters() -> None:
    # 100 clusters of 1.5 comparisons and 3 reviews; variance .0025: ± 1.96 · .05 = .098 now.
    # ± .05 takes 3.8415 · .0025 · 100/.0025 = 384.15 → 385 clusters: 285 more, 427.5 → 428 comparisons, 855 reviews.
    found = label_budget(0.0025, None, ReviewEffort(100, 150, 300), PLENTY, (0.10, 0.05))
    assert found.half_width == pytest.approx(0.0979982)
    reached, halved = found.targets
    assert (reached.clusters_more, reached.comparisons_more, reached.reviews_more, reached.suffices) == (0, 0, 0, True)
    assert (halved.clusters, halved.clusters_more, halved.comparisons_more, halved.reviews_more) == (385, 285, 428, 855)
    assert halved.suffices


def test_the_widths_that_nobody_chose_are_the_usual_ones() -> None:
    found = label_budget(0.0025, None, ReviewEffort(100, 100, 100), PLENTY)
    assert [one.half_width for one in found.targets] == [0.10, 0.05, 0.03, 0.02, 0.01]


def test_what_the_material_lacks_is_said() -> None:
    effort = ReviewEffort(100, 300, 600)
    few, little = (
        label_budget(0.0025, None, effort, material, (0.05,)).targets[0]
        for material in (UnreviewedMaterial(284, 5_000), UnreviewedMaterial(5_000, 854))
    )
    assert (few.suffices, little.suffices) == (False, False)
    assert few.why == ("Needs 285 more clusters; 284 have no reviews yet. More reviews of the others help less.")
    assert little.why == "Needs 855 more comparisons; 854 are not reviewed yet."
    assert label_budget(0.0025, None, effort, UnreviewedMaterial(285, 855), (0.05,)).targets[0].suffices


def test_a_spread_that_is_not_known_plans_nothing_and_says_why() -> None:
    cells = Contributions(np.arange(20), np.arange(20) % 2, 2)
    reason = why_interval_withheld(cells, np.array([True, False]))
    found = label_budget(0.01, reason, ReviewEffort(20, 20, 40), PLENTY)
    assert (found.targets, found.half_width, found.reviews) == ((), None, 40)
    assert found.why == "Too few clusters for a CI (20 < 40)."


@pytest.mark.parametrize("variance", [0.0, float("nan"), float("inf")])
def test_what_does_not_vary_cannot_be_planned(variance: float) -> None:
    assert label_budget(variance, None, ReviewEffort(100, 100, 100), PLENTY).why == NO_INTERVAL


def agreement(totals: FloatArray) -> FloatArray:
    return np.asarray((totals[..., 0] + totals[..., 3]) / totals.sum(axis=-1))


def kappa(totals: FloatArray) -> FloatArray:
    n = totals.sum(axis=-1)
    first, second = (totals[..., 0] + totals[..., 1]) / n, (totals[..., 0] + totals[..., 2]) / n
    chance = first * second + (1 - first) * (1 - second)
    return np.asarray((agreement(totals) - chance) / (1 - chance))


def reviewed(clusters: int, rng: np.random.Generator) -> Contributions:
    """A judge and people on one to five comparisons of each query; they agree on easy queries far more often."""
    cluster = np.repeat(np.arange(clusters), rng.integers(1, 6, size=clusters))
    easy = rng.beta(2, 1, size=clusters)[cluster]
    people = rng.integers(2, size=len(cluster))
    judge = np.where(rng.random(len(cluster)) < easy, people, rng.integers(2, size=len(cluster)))
    return Contributions(cluster, people * 2 + judge, 4)


@pytest.mark.parametrize("statistic", [agreement, kappa])
def test_the_reviews_that_are_planned_bring_the_interval_to_the_width(statistic: Statistic) -> None:
    # Forty studies of 250 queries plan for ± .02; of each, four are carried out at the size that it names.
    rng = np.random.default_rng(8)
    reached, found = [], []
    for _ in range(40):
        pilot = reviewed(250, rng)
        effort = ReviewEffort(250, len(pilot.cell), 2 * len(pilot.cell))
        (plan,) = label_budget(Spread(pilot).variance(statistic), None, effort, PLENTY, (0.02,)).targets
        assert plan.reviews_more == pytest.approx(6 * plan.clusters_more, rel=0.15)
        for _ in range(4):
            carried_out = reviewed(plan.clusters, rng)
            reached.append(norm.ppf(0.975) * Spread(carried_out).variance(statistic) ** 0.5)
            found.append(float(statistic(carried_out.totals)))
    assert np.mean(reached) == pytest.approx(0.02, rel=0.03)
    assert np.mean(np.abs(np.array(reached) / 0.02 - 1) < 0.15) > 0.9
    # Not only what the interval says: the numbers themselves stay as near together as it promises.
    assert norm.ppf(0.975) * np.std(found, ddof=1) == pytest.approx(0.02, rel=0.15)


def test_what_ppi_saves_is_said_as_it_is() -> None:
    # .98² = .9604: 4 % of the reviews; 100/.9604 = 104.
    saved = ppi_saving(0.98)
    assert saved.share == pytest.approx(0.0396)
    assert saved.words == (
        "The judge's verdicts save 4% of the reviews: 100 reviews with them are as precise as 104 without."
    )


def test_a_judge_that_saves_nothing_is_said_to_save_nothing() -> None:
    for ratio in (1.0, 0.998, 1.02):
        assert ppi_saving(ratio).words.startswith("The judge's verdicts save no reviews")
    assert (ppi_saving(1.02).share or 0) < 0


def test_without_an_error_to_compare_nothing_is_claimed() -> None:
    assert (ppi_saving(None).share, ppi_saving(None).words) == (None, NO_ERROR)


def test_the_result_is_plain_json() -> None:
    assert dumps(asdict(label_budget(0.0025, None, ReviewEffort(100, 150, 300), PLENTY)), allow_nan=False)
