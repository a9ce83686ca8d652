import time

import numpy as np
import pytest
from evalica import Winner, bradley_terry
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from evaluations.stats.bradley_terry import (
    MAX_DENSE,
    WinTable,
    bradley_terry_scores,
    explain_missing_scores,
    has_finite_scores,
    newton_scores,
)
from evaluations.stats.coding import FloatArray, IntArray

NAMES = ("ann", "ben", "cem", "dan")


def table(candidates: int, *results: tuple[int, int, float, float]) -> WinTable:
    """Results as first, second, matches, wins of the first."""
    first, second, matches, wins = np.array(results, dtype=np.float64).reshape(-1, 4).T
    return WinTable(first.astype(np.int64), second.astype(np.int64), candidates, matches, wins)


def drawn(seed: int, candidates: int, resamples: tuple[int, ...] = ()) -> WinTable:
    """Every two meet up to 30 times, with ties."""
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(candidates, 1)
    matches = rng.integers(0, 30, (*resamples, len(first))).astype(np.float64)
    wins = rng.binomial((2 * matches).astype(np.int64), rng.uniform(0.1, 0.9, len(first))) / 2
    return WinTable(first, second, candidates, matches, wins)


def test_two_candidates_are_as_far_apart_as_the_log_odds_of_their_wins() -> None:
    # 28 wins, 4 ties and 8 losses: 30 of 40, log odds log 3, half of it each way.
    assert bradley_terry_scores(table(2, (0, 1, 40, 30))) == pytest.approx([np.log(3) / 2, -np.log(3) / 2])


def test_a_chain_of_three_adds_up() -> None:
    # 0 beats 1 in 3 of 4 and 1 beats 2 in 2 of 3; 0 and 2 never met: log 3 and log 2 apart.
    # They sum to 0: 0 stands at (2 log 3 + log 2)/3.
    found = bradley_terry_scores(table(3, (0, 1, 4, 3), (1, 2, 3, 2)))
    assert found[0] - found[1] == pytest.approx(np.log(3))
    assert found[1] - found[2] == pytest.approx(np.log(2))
    assert found[0] == pytest.approx((2 * np.log(3) + np.log(2)) / 3)


def test_zermelos_condition_holds_at_the_scores() -> None:
    # Everyone won as often as the scores lead one to expect (Zermelo 1929).
    made = drawn(4, 6)
    found = bradley_terry_scores(made)
    expected = made.matches / (1 + np.exp(found[made.second] - found[made.first]))
    for candidate in range(6):
        of_first, of_second = made.first == candidate, made.second == candidate
        won = made.wins[of_first].sum() + (made.matches - made.wins)[of_second].sum()
        assert won == pytest.approx(expected[of_first].sum() + (made.matches - expected)[of_second].sum())


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 6))
def test_it_is_the_logistic_regression_without_penalty(seed: int, candidates: int) -> None:
    made = drawn(seed, candidates)
    assume(bool(has_finite_scores(made)))
    design = np.zeros((len(made.first), candidates))
    design[np.arange(len(made.first)), made.first] = 1
    design[np.arange(len(made.first)), made.second] = -1
    rows, won = np.vstack([design, design]), np.repeat([1, 0], len(design))
    weight = np.concatenate([made.wins, made.matches - made.wins])
    # The last candidate is the reference there, and the mean is it here.
    plain = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    theirs = np.append(plain.fit(rows[:, :-1], won, weight).coef_[0], 0.0)
    assert bradley_terry_scores(made) == pytest.approx(theirs - theirs.mean(), abs=1e-5)


def played(made: WinTable) -> tuple[list[int], list[int], list[Winner]]:
    """One row for each win, tie and loss; a half left over is a tie."""
    xs: list[int] = []
    ys: list[int] = []
    winners: list[Winner] = []
    for first, second, matches, wins in zip(made.first, made.second, made.matches, made.wins, strict=True):
        ties = int(2 * wins) % 2
        results = [Winner.X] * int(wins) + [Winner.Draw] * ties + [Winner.Y] * int(matches - wins)
        xs += [int(first)] * len(results)
        ys += [int(second)] * len(results)
        winners += results
    return xs, ys, winners


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_is_what_evalica_says(seed: int) -> None:
    made = drawn(seed, 5)
    theirs = bradley_terry(*played(made), win_weight=1.0, tie_weight=0.5, tolerance=1e-12, limit=100_000).scores
    found = np.log(theirs.sort_index().to_numpy())
    assert bradley_terry_scores(made) == pytest.approx(found - found.mean(), abs=1e-4)


def test_many_tables_at_once_are_each_by_itself() -> None:
    made = drawn(9, 4, (50,))
    together = bradley_terry_scores(made, start=np.array([0.4, 0.1, -0.2, -0.3]))
    for each in range(50):
        alone = bradley_terry_scores(WinTable(made.first, made.second, 4, made.matches[each], made.wins[each]))
        assert together[each] == pytest.approx(alone, nan_ok=True, abs=1e-7)
    assert np.isfinite(together).any()
    assert np.isnan(together[~has_finite_scores(made)]).all()


def test_very_unequal_candidates_are_found_too() -> None:
    # One win in 10,000 against each neighbour: scores log 9,999 apart.
    found = bradley_terry_scores(table(4, (0, 1, 10_000, 9_999), (1, 2, 10_000, 9_999), (2, 3, 10_000, 9_999)))
    assert np.diff(found) == pytest.approx([-np.log(9_999)] * 3)


def test_who_always_won_has_no_score_and_is_named() -> None:
    made = table(3, (0, 1, 5, 5), (0, 2, 4, 4), (1, 2, 6, 3))
    assert np.isnan(bradley_terry_scores(made)).all()
    assert explain_missing_scores(made, NAMES[:3]) == (
        "Bradley–Terry undefined: ann won every comparison against ben, cem."
    )


def test_who_always_lost_is_named_too_and_one_tie_changes_it() -> None:
    made = table(3, (0, 1, 5, 5), (0, 2, 4, 4), (1, 2, 6, 3))
    turned = WinTable(made.first, made.second, 3, made.matches, made.matches - made.wins)
    assert "ben, cem won every comparison against ann" in (explain_missing_scores(turned, NAMES[:3]) or "")
    tied = WinTable(made.first, made.second, 3, made.matches, made.wins - np.array([0.5, 0, 0]))
    assert explain_missing_scores(tied, NAMES[:3]) is None
    assert np.isfinite(bradley_terry_scores(tied)).all()


def test_candidates_that_never_met_cannot_be_ranked_together() -> None:
    made = table(4, (0, 2, 5, 3), (1, 3, 5, 2))
    assert np.isnan(bradley_terry_scores(made)).all()
    assert (
        explain_missing_scores(made, NAMES) == "Bradley–Terry undefined: no comparisons connect ann, cem with ben, dan."
    )


def test_a_circle_of_wins_is_enough() -> None:
    assert explain_missing_scores(table(3, (0, 1, 2, 2), (1, 2, 2, 2), (0, 2, 2, 0)), NAMES[:3]) is None


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 6))
def test_a_reason_is_given_just_where_there_are_no_scores(seed: int, candidates: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(candidates, 1)
    matches: FloatArray = rng.integers(0, 3, len(first)).astype(np.float64)
    made = WinTable(first, second, candidates, matches, np.floor(matches * rng.random(len(first)) * 2) / 2)
    reason = explain_missing_scores(made, [str(one) for one in range(candidates)])
    assert (reason is None) == bool(np.isfinite(bradley_terry_scores(made)).all())


# ---- many candidates -------------------------------------------------------------------------


def sparse(first: IntArray, second: IntArray, candidates: int, seed: int = 1, each: int = 20) -> WinTable:
    """Pairs of candidates of random strength, some of them twice or turned round."""
    rng = np.random.default_rng(seed)
    low, high = np.minimum(first, second), np.maximum(first, second)
    key = np.unique((low * candidates + high)[low != high])
    low, high = key // candidates, key % candidates
    strength = rng.normal(0, 0.5, candidates)
    wins = 1 + rng.binomial(each - 2, 1 / (1 + np.exp(strength[high] - strength[low])))
    return WinTable(low, high, candidates, np.full(len(low), float(each)), wins.astype(np.float64))


PLACES = np.arange(10_000)
GRID = PLACES.reshape(100, 100)
DRAWN = np.random.default_rng(3).integers(10_000, size=(2, 40_000))
STRUCTURES = {
    "chain": (PLACES[:-1], PLACES[1:]),
    "star": (np.zeros(9_999, dtype=np.int64), PLACES[1:]),
    "ring of near neighbours": (np.tile(PLACES, 3), np.concatenate([(PLACES + one) % 10_000 for one in (1, 2, 3)])),
    "grid": (
        np.concatenate([GRID[:, :-1].ravel(), GRID[:-1].ravel()]),
        np.concatenate([GRID[:, 1:].ravel(), GRID[1:].ravel()]),
    ),
    "drawn at random": (np.concatenate([DRAWN[0], PLACES[:-1]]), np.concatenate([DRAWN[1], PLACES[1:]])),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_ten_thousand_candidates_are_ranked_within_two_seconds(name: str) -> None:
    made = sparse(*STRUCTURES[name], 10_000)
    started = time.process_time()
    assert explain_missing_scores(made, [str(one) for one in range(10_000)]) is None
    found = bradley_terry_scores(made)
    assert time.process_time() - started < 2
    # Everyone won as often as the scores lead one to expect (Zermelo 1929).
    surplus = made.wins - made.matches / (1 + np.exp(found[made.second] - found[made.first]))
    balance = np.bincount(made.first, surplus, 10_000) - np.bincount(made.second, surplus, 10_000)
    assert np.abs(balance).max() < 1e-6
    assert found.mean() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_sparse_table_has_the_scores_of_a_full_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = MAX_DENSE + 50
    places = np.arange(count)
    drawn_pairs = rng.integers(count, size=(2, 300))
    made = sparse(
        np.concatenate([places[:-1], drawn_pairs[0]]), np.concatenate([places[1:], drawn_pairs[1]]), count, seed
    )
    assert bradley_terry_scores(made) == pytest.approx(newton_scores(made, np.zeros(count)), abs=1e-6)


def test_of_many_who_have_no_scores_the_sentence_names_a_few() -> None:
    first, second = STRUCTURES["chain"]
    names = [f"c{one}" for one in PLACES]
    ladder = WinTable(first, second, 10_000, np.ones(9_999), np.ones(9_999))
    assert explain_missing_scores(ladder, names) == (
        "Bradley–Terry undefined: c0 won every comparison against c1, c2, c3, c4, c5 and 9,994 others."
    )
    apart = WinTable(first[::2], second[::2], 10_000, np.ones(5_000), np.full(5_000, 0.5))
    assert explain_missing_scores(apart, names) == (
        "Bradley–Terry undefined: no comparisons connect c0, c1 with c2, c3, c4, c5, c6 and 9,993 others."
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 6))
def test_nobody_outside_the_foremost_ever_beat_one_of_them(seed: int, candidates: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(candidates, 1)
    matches: FloatArray = rng.integers(0, 2, len(first)).astype(np.float64)
    made = WinTable(first, second, candidates, matches, np.where(rng.random(len(first)) < 0.5, matches, 0.0))
    said = explain_missing_scores(made, [f"<{one}>" for one in range(candidates)])
    assume(said is not None and " won every comparison against " in said)
    ahead = (said or "").split(" won every comparison against ")[0]
    for one, other, met, won in zip(first, second, matches, made.wins, strict=True):
        inside = [f"<{who}>" in ahead for who in (one, other)]
        if met and inside[0] != inside[1]:
            assert won == (met if inside[0] else 0)


def test_corrected_wins_that_no_scores_fit_have_none() -> None:
    """Corrected by a judge, a candidate can win more often than it was compared: the scores run apart for ever."""
    first, second = np.array([0, 0, 1]), np.array([1, 2, 2])
    matches, wins = np.full((2, 3), 2.0), np.array([[3.4, 1.0, 1.5], [1.0, 1.5, 0.5]])
    scores = bradley_terry_scores(WinTable(first, second, 3, matches, wins))
    assert np.isnan(scores[0]).all()
    alone = bradley_terry_scores(WinTable(first, second, 3, matches[1], wins[1]))
    assert np.isfinite(alone).all()
    assert scores[1] == pytest.approx(alone)
    assert np.isnan(bradley_terry_scores(WinTable(first, second, 3, matches[0], wins[0]))).all()
