from dataclasses import asdict, replace
from json import dumps

import numpy as np
import pytest
import statsmodels.api as sm

from evaluations.stats.coding import FLIP, MISSING, TIE, A, B, IntArray
from evaluations.stats.items import Items
from evaluations.stats.length_control import (
    NO_LENGTHS,
    ONE_LENGTH_A_PAIR,
    LengthControlled,
    LengthDifferences,
    control_for_length,
)
from evaluations.stats.matches import Matches
from evaluations.stats.outcomes import JudgedMatches, ReviewedMatches
from evaluations.stats.ranking import NOTHING_SAID
from evaluations.stats.win_rates import estimate_win_rates
from tests.stats.match_items import make_match_items, random_match_items

STRENGTHS = np.array([0.5, 0.0, -0.5])
WORDINESS = np.array([-200, 100, 500])  # the weakest writes most


def wordy(queries: int, seed: int, slope: float) -> tuple[Items, IntArray]:
    """Every two of three on every query; whoever writes more gains, by ``slope`` at many σ."""
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(3, 1)
    a, b, cluster = np.tile(first, queries), np.tile(second, queries), np.repeat(np.arange(queries), 3)
    length = (1_500 + WORDINESS + rng.normal(size=(queries, 3)) * 500).round().astype(np.int64)
    longer_by = length[cluster, a] - length[cluster, b]
    items = make_match_items(a, b, cluster, longer_by=longer_by)
    log_odds = STRENGTHS[a] - STRENGTHS[b] + slope * np.tanh(longer_by / np.sqrt(np.mean(longer_by**2)))
    return items, np.where(rng.random(len(a)) < 1 / (1 + np.exp(-log_odds)), A, B)


def by_judge(items: Items, choice: IntArray) -> LengthControlled:
    matches = Matches(items)
    return control_for_length(JudgedMatches(matches, choice), LengthDifferences(matches))


def plain(items: Items, choice: IntArray) -> dict[str, float | None]:
    matches = Matches(items)
    rates = estimate_win_rates(ReviewedMatches(matches, choice), JudgedMatches(matches, choice)).candidates
    return {name: rate.judge.value for name, rate in rates.items()}


def at_equal_length() -> dict[str, float]:
    """What each candidate of `wordy` wins against the other two at equal length."""
    p = 1 / (1 + np.exp(-(STRENGTHS[:, None] - STRENGTHS[None, :])))
    return {f"candidate {one}": (p[one].sum() - 0.5) / 2 for one in range(3)}


def test_a_wordy_candidate_is_put_back_in_its_place() -> None:
    items, choice = wordy(4_000, 1, slope=2.5)
    raw, found, truth = plain(items, choice), by_judge(items, choice), at_equal_length()
    # By what it is worth it wins 32 % of its comparisons, by what it writes more than half.
    assert truth["candidate 2"] == pytest.approx(0.3232, abs=1e-3)
    assert (raw["candidate 2"] or 0) > 0.5
    for name, rate in found.win_rates.items():
        assert rate.ci95 is not None
        assert rate.value == pytest.approx(truth[name], abs=0.02)
        assert rate.ci95[0] < truth[name] < rate.ci95[1]
    assert found.slope.value == pytest.approx(2.5, abs=0.2)


def test_where_length_does_not_matter_it_is_the_plain_win_rate() -> None:
    items, choice = wordy(4_000, 2, slope=0)
    raw, found = plain(items, choice), by_judge(items, choice)
    assert found.slope.value == pytest.approx(0, abs=0.1)
    for name, rate in found.win_rates.items():
        assert rate.value == pytest.approx(raw[name], abs=0.01)


def test_it_is_the_logistic_regression_of_statsmodels_on_every_comparison_by_itself() -> None:
    items, choice = wordy(1_500, 3, slope=1.2)
    found = by_judge(items, choice)
    n, longer_by = len(items), items.characters_a - items.characters_b
    scale = np.sqrt(np.mean(longer_by**2))
    design = np.zeros((n, 4))
    design[np.arange(n), items.candidate_a], design[np.arange(n), items.candidate_b] = 1, -1
    design[:, 3] = np.tanh(longer_by / scale)
    fit = sm.Logit((choice == A).astype(float), design[:, 1:]).fit(
        disp=0, cov_type="cluster", cov_kwds={"groups": items.cluster}
    )
    assert found.scale_characters == pytest.approx(scale)
    # Ours has its lengths in 64 bins, and a penalty that 4,500 comparisons hardly notice.
    assert found.slope.value == pytest.approx(fit.params[2], abs=3e-3)
    assert found.slope.ci95 is not None
    half = (found.slope.ci95[1] - found.slope.ci95[0]) / 2
    assert half == pytest.approx(1.9615 * fit.bse[2], rel=5e-3)
    strengths = np.array([0, *fit.params[:2]])
    p = 1 / (1 + np.exp(-(strengths[0] - strengths[1:])))
    rate = found.win_rates["candidate 0"]
    assert rate.value == pytest.approx(p.mean(), abs=1e-3)
    # By the chain rule, from the covariance of the two other strengths.
    moves = -p * (1 - p) / 2
    error = np.sqrt(moves @ fit.cov_params()[:2, :2] @ moves)
    assert rate.ci95 is not None
    assert (rate.ci95[1] - rate.ci95[0]) / 2 == pytest.approx(1.9615 * error, rel=0.01)


def test_a_judge_that_always_takes_the_longer_has_a_finite_slope() -> None:
    items, _ = wordy(400, 4, slope=0)
    longer_by = items.characters_a - items.characters_b
    found = by_judge(items, np.where(longer_by > 0, A, np.where(longer_by < 0, B, TIE)))
    assert found.why is None
    assert 20 < (found.slope.value or 0) < 1_000
    assert all(0.2 < (rate.value or 0) < 0.8 for rate in found.win_rates.values())
    assert found.slope.ci95 is None
    assert (found.slope.ci95_why or "").startswith("The shorter response wins in only 0 clusters")
    assert dumps(asdict(found), allow_nan=False)


def test_a_candidate_that_always_wins_has_a_rate_below_one() -> None:
    items, choice = wordy(200, 5, slope=0.5)
    has_first = (items.candidate_a == 0) | (items.candidate_b == 0)
    best = by_judge(items, np.where(has_first, np.where(items.candidate_a == 0, A, B), choice)).win_rates["candidate 0"]
    assert 0.98 < (best.value or 0) < 1
    assert (best.ci95_why or "").startswith("Too few clusters with a disagreement for a CI (0 < 10)")


def test_whoever_is_called_a_it_is_the_same() -> None:
    items, choice = wordy(300, 6, slope=1)
    turn = np.random.default_rng(6).random(len(items)) < 0.5
    turned = replace(
        items,
        candidate_a=np.where(turn, items.candidate_b, items.candidate_a),
        candidate_b=np.where(turn, items.candidate_a, items.candidate_b),
        characters_a=np.where(turn, items.characters_b, items.characters_a),
        characters_b=np.where(turn, items.characters_a, items.characters_b),
    )
    one, other = by_judge(items, choice), by_judge(turned, np.where(turn, FLIP[choice], choice))
    assert one.slope.value == pytest.approx(other.slope.value)
    assert one.win_rates["candidate 1"].value == pytest.approx(other.win_rates["candidate 1"].value)
    assert one.win_rates["candidate 1"].ci95 == pytest.approx(other.win_rates["candidate 1"].ci95)


def test_people_count_with_their_weights_and_a_common_factor_changes_nothing() -> None:
    items, choice = wordy(300, 7, slope=1)
    every_third = np.where(np.arange(len(items)) // 3 % 3 == 0, choice, MISSING)
    found = []
    for stratum in (np.zeros(len(items), dtype=np.int64), np.arange(len(items)) % 3):  # 100 of 300 in each
        matches = Matches(replace(items, stratum=stratum))
        found.append(control_for_length(ReviewedMatches(matches, every_third), LengthDifferences(matches)))
    assert found[0].slope.value == pytest.approx(found[1].slope.value)
    assert found[0].slope.ci95 == pytest.approx(found[1].slope.ci95)
    # Wins of A that stand for three each make whoever is A win more.
    heavy = Matches(replace(items, stratum=(choice == A).astype(np.int64)))
    people = np.where((choice == A) & (np.arange(len(items)) % 3 > 0), MISSING, choice)
    plain, more = (
        control_for_length(ReviewedMatches(one, people), LengthDifferences(one)).win_rates["candidate 0"].value or 0
        for one in (Matches(items), heavy)
    )
    assert more > plain + 0.1


def test_there_are_reasons_where_it_cannot_be() -> None:
    equal = make_match_items([0, 0, 1] * 20, [1, 2, 2] * 20)
    assert by_judge(equal, np.array([A, B, A] * 20)).why == NO_LENGTHS
    constant = make_match_items([0] * 60, [1] * 60, longer_by=[300] * 60)
    assert by_judge(constant, np.array([A, B, A] * 20)).why == ONE_LENGTH_A_PAIR
    # Lengths differ from pair to pair and never within one, so that what they add to strengths is anybody's guess.
    ring = make_match_items([0, 1, 0] * 20, [1, 2, 2] * 20, longer_by=[300, -100, 50] * 20)
    assert by_judge(ring, np.array([A, B, B, B, A, A] * 10)).why == ONE_LENGTH_A_PAIR
    apart = make_match_items([0, 1] * 30, [2, 3] * 30, longer_by=[300, -20] * 30)
    assert "connect candidate 0, candidate 2 with candidate 1, candidate 3" in (
        by_judge(apart, np.array([A, B, B] * 20)).why or ""
    )
    nothing = by_judge(constant, np.full(60, MISSING))
    assert (nothing.why, nothing.slope.why, nothing.win_rates) == (NOTHING_SAID, NOTHING_SAID, {})


def test_few_clusters_have_rates_without_intervals() -> None:
    items, choice = wordy(39, 8, slope=0.5)
    found = by_judge(items, choice)
    assert found.slope.ci95 is None
    assert (found.win_rates["candidate 0"].ci95_why or "") == "Too few clusters for a CI (39 < 40)."


def test_intervals_hold_the_planted_rates() -> None:
    truth, held = at_equal_length(), []
    for seed in range(150):
        found = by_judge(*wordy(70, seed + 50, slope=1.5))
        for name, rate in found.win_rates.items():
            assert rate.ci95 is not None
            held.append(rate.ci95[0] <= truth[name] <= rate.ci95[1])
    assert 0.92 <= np.mean(held) <= 0.98


def test_any_material_gives_plain_json() -> None:
    items, rng = random_match_items(5, 900, 5, 200), np.random.default_rng(5)
    matches = Matches(items)
    found = control_for_length(ReviewedMatches(matches, rng.integers(MISSING, 4, 900)), LengthDifferences(matches))
    assert len(found.win_rates) == 5
    assert dumps(asdict(found), allow_nan=False)


def test_of_too_many_candidates_there_is_no_length_control() -> None:
    rng = np.random.default_rng(4)
    places = np.arange(300)
    a, b = np.tile(places, 4), np.tile((places + 1) % 300, 4)
    found = by_judge(make_match_items(a, b, longer_by=rng.integers(-500, 500, 1_200)), rng.choice([A, B, TIE], 1_200))
    assert found.why == "Too many models for length control (300)."
