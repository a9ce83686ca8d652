import json
from dataclasses import asdict

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from evaluations.stats.coding import AS_STORED, MISSING, SWAPPED, TIE, A, B, FloatArray, IntArray
from evaluations.stats.confidence_calibration import (
    BINS,
    EMPTY_BIN,
    NO_WEIGHTS,
    NOTHING_SHARED,
    TOO_FEW,
    ConfidenceCalibration,
    confidence_calibration,
    mean_weights,
)


def planted(n: int, seed: int, bent: float = 0.0) -> tuple[FloatArray, IntArray]:
    """Weights, and people who choose A with probability weight + bent · (½ − weight): calibrated where bent is 0."""
    rng = np.random.default_rng(seed)
    weight = rng.beta(0.6, 0.6, n)
    return weight, np.where(rng.random(n) < weight + bent * (0.5 - weight), A, B)


def of_singles(weight: FloatArray, people: IntArray) -> ConfidenceCalibration:
    return confidence_calibration(weight, people, np.arange(len(weight)))


def test_a_small_case_is_what_one_works_out_by_hand() -> None:
    # Bin .2 to .3: weights .2 .28, people ½ 0: means .24 and .25. Bin .9 to 1: weights .9 1, people 1 1: .95 and 1.
    # Error (.01 · 2 + .05 · 2)/4 = .03. Brier (.09 + .0784 + .01 + 0)/4 = .0446. Reliability (.0001 + .0025)/2 = .0013.
    # People 1 1 ½ 0: mean .625, uncertainty (2 · .140625 + .015625 + .390625)/4 = .171875.
    found = of_singles(np.array([0.2, 0.9, 1.0, 0.28]), np.array([TIE, A, A, B]))
    assert found.calibration_error.value == pytest.approx(0.03)
    assert found.brier_score.value == pytest.approx(0.0446)
    assert found.reliability == pytest.approx(0.0013)
    assert found.uncertainty == pytest.approx(0.171875)
    assert found.resolution == pytest.approx(0.0013 + 0.171875 - 0.0446)
    low, high = found.bins[2], found.bins[9]
    assert [low.low, low.high, low.n, high.n] == pytest.approx([0.2, 0.3, 2, 2])
    assert [low.mean_weight, low.chosen_by_people.value] == pytest.approx([0.24, 0.25])
    assert (found.bins[5].mean_weight, found.bins[5].chosen_by_people.why) == (None, EMPTY_BIN)
    assert (found.calibration_error.ci95_why, found.by_chance) == (TOO_FEW, None)


def test_error_and_score_equal_those_made_of_scikit_learn() -> None:
    weight, people = planted(3_000, 1, 0.3)
    found = of_singles(weight, people)
    of_people, of_judge = calibration_curve(people == A, weight, n_bins=BINS)
    counts = np.histogram(weight, BINS, (0, 1))[0]
    assert found.calibration_error.value == pytest.approx(float((counts * np.abs(of_people - of_judge)).sum()) / 3_000)
    assert found.brier_score.value == pytest.approx(brier_score_loss(people == A, weight))


def test_where_a_bin_holds_one_weight_the_resolution_is_murphys() -> None:
    weight, people = planted(2_000, 2)
    weight = np.floor(weight * BINS) / BINS + 0.05
    found = of_singles(weight, people)
    means = np.array([one.chosen_by_people.value for one in found.bins])
    counts = np.array([one.n for one in found.bins])
    assert found.resolution == pytest.approx(float((counts * (means - (people == A).mean()) ** 2).sum()) / 2_000)


@pytest.mark.parametrize("bent", [0.0, 0.5])
def test_intervals_of_the_calibration_error_cover_what_they_promise(bent: float) -> None:
    # The error of very many comparisons is the truth.
    truth = of_singles(*planted(1_000_000, 0, bent)).calibration_error.value or 0.0
    held, errors, by_chance = 0, [], []
    for seed in range(300):
        found = of_singles(*planted(200, seed, bent))
        assert found.calibration_error.ci95 is not None
        assert found.calibration_error.value is not None
        assert found.by_chance is not None
        low, high = found.calibration_error.ci95
        held += low <= truth <= high
        errors.append(found.calibration_error.value)
        by_chance.append(found.by_chance)
    assert held >= 0.92 * 300
    if not bent:
        assert np.mean(by_chance) == pytest.approx(np.mean(errors), rel=0.1)


def test_comparisons_of_a_cluster_count_together() -> None:
    weight, people = planted(100, 3)
    once = of_singles(weight, people)
    again = confidence_calibration(np.repeat(weight, 9), np.repeat(people, 9), np.repeat(np.arange(100), 9))
    assert again.calibration_error.value == pytest.approx(once.calibration_error.value)
    assert again.calibration_error.ci95 == pytest.approx(once.calibration_error.ci95)
    assert again.by_chance == pytest.approx(once.by_chance)


def test_without_weights_or_people_there_is_a_reason() -> None:
    nothing = np.full(3, np.nan)
    assert of_singles(nothing, np.array([A, B, TIE])).brier_score.why == NO_WEIGHTS
    found = of_singles(np.array([0.5, np.nan, np.nan]), np.array([MISSING, A, B]))
    assert (found.calibration_error.why, found.n, found.bins) == (NOTHING_SHARED, 0, ())


def test_a_weight_is_the_mean_of_orders_and_each_order_that_of_its_samples() -> None:
    # Item 0: .9 and .7 as stored, .4 swapped: (.8 + .4)/2. Item 1: one order. Item 2: one verdict without a weight.
    # Item 3: the judge has no verdict of both orders. Item 4: never asked.
    item = np.array([0, 0, 0, 1, 2, 2, 3])
    shown = np.array([AS_STORED, AS_STORED, SWAPPED, AS_STORED, AS_STORED, SWAPPED, AS_STORED])
    weighted = np.array([0.9, 0.7, 0.4, 0.3, 0.8, np.nan, 0.6])
    found = mean_weights(item, shown, weighted, np.array([A, B, A, MISSING, MISSING], dtype=np.int8))
    assert found == pytest.approx([0.6, 0.3, np.nan, np.nan, np.nan], nan_ok=True)


def test_it_is_plain_json() -> None:
    assert json.loads(json.dumps(asdict(of_singles(*planted(60, 5))), allow_nan=False))["n"] == 60


def test_what_is_off_by_as_much_everywhere_has_no_noise_however_large_its_clusters_are() -> None:
    # People always choose A on weights of .75: whichever clusters are drawn, the mean in the bin is off by .25.
    cluster = np.repeat(np.arange(60), np.arange(1, 61))
    found = confidence_calibration(np.full(len(cluster), 0.75), np.full(len(cluster), A), cluster)
    assert found.calibration_error.ci95 == pytest.approx((0.25, 0.25))
    assert found.by_chance == pytest.approx(0)
