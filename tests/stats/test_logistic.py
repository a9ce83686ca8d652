import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from evaluations.stats.coding import FloatArray
from evaluations.stats.logistic import cluster_scores, firth_logistic, penalised_likelihood, robust_covariance


def rows(seed: int, count: int, k: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    return np.column_stack([np.ones(count), *rng.normal(size=(k - 1, count))])


def test_a_lone_intercept_is_the_log_odds_with_half_a_win_and_half_a_loss_added() -> None:
    # Firth (1993) §3: for one binomial the penalty adds ½ to wins and to losses: log((7 + ½)/(3 + ½)).
    fit = firth_logistic(np.ones((1, 1)), np.array([7.0]), np.array([10.0]))
    assert fit.coefficients[0] == pytest.approx(np.log(7.5 / 3.5))
    p = 7.5 / 11
    assert fit.covariance[0, 0] == pytest.approx(1 / (10 * p * (1 - p)))


def test_a_fourfold_table_that_separates_gives_the_log_odds_ratio_with_half_added_to_each_cell() -> None:
    # 0 wins of 5 and 4 of 4: each group by itself is a lone intercept, so the difference is
    # log(4.5/0.5) − log(0.5/5.5) = log(9 · 11).
    fit = firth_logistic(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([0.0, 4.0]), np.array([5.0, 4.0]))
    assert fit.converged
    assert fit.coefficients == pytest.approx([np.log(0.5 / 5.5), np.log(99)])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(8, 40))
def test_it_is_where_the_penalised_likelihood_is_greatest(seed: int, k: int, count: int) -> None:
    design, rng = rows(seed, count, k), np.random.default_rng(seed + 1)
    trials = rng.integers(1, 9, count).astype(float)
    wins = np.floor(trials * rng.random(count) * 2) / 2
    fit = firth_logistic(design, wins, trials)
    found = minimize(lambda b: -penalised_likelihood_by_hand(design, wins, trials, b), np.zeros(k), tol=1e-10)
    assert fit.converged
    assert fit.coefficients == pytest.approx(found.x, abs=2e-4)
    assert penalised_likelihood(design, wins, trials, fit.coefficients) >= -found.fun - 1e-8


def penalised_likelihood_by_hand(design: FloatArray, wins: FloatArray, trials: FloatArray, beta: FloatArray) -> float:
    """Straight from the paper's words, one row at a time."""
    likelihood, information = 0.0, np.zeros((len(beta), len(beta)))
    for x, w, n in zip(design, wins, trials, strict=True):
        p = 1 / (1 + np.exp(-x @ beta))
        likelihood += w * np.log(p) + (n - w) * np.log1p(-p)
        information += n * p * (1 - p) * np.outer(x, x)
    return float(likelihood + np.log(np.linalg.det(information)) / 2)


def test_with_much_data_the_penalty_is_forgotten_and_it_is_the_plain_logistic_regression() -> None:
    rng = np.random.default_rng(3)
    design = rows(3, 40_000, 3)
    wins = (rng.random(40_000) < 1 / (1 + np.exp(-design @ [0.3, -0.8, 0.5]))).astype(float)
    fit = firth_logistic(design, wins, np.ones(40_000))
    plain = sm.Logit(wins, design).fit(disp=0)
    assert fit.coefficients == pytest.approx(plain.params, abs=2e-4)
    assert np.sqrt(np.diag(fit.covariance)) == pytest.approx(plain.bse, rel=1e-3)
    other = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10).fit(design, wins)
    assert fit.coefficients == pytest.approx(other.coef_[0], abs=2e-4)


def test_perfect_separation_has_a_finite_slope_that_grows_with_the_data() -> None:
    def slope(count: int) -> float:
        x = np.linspace(-1, 1, count)
        fit = firth_logistic(np.column_stack([np.ones(count), x]), (x > 0).astype(float), np.ones(count))
        assert fit.converged
        return float(fit.coefficients[1])

    assert 2 < slope(10) < slope(100) < slope(1000) < np.inf


def test_equal_rows_put_together_give_the_same_as_one_by_one() -> None:
    design = np.array([[1.0, -0.5], [1.0, 0.2], [1.0, 0.9]])
    wins, trials = np.array([2.0, 4.5, 9.0]), np.array([7.0, 8.0, 10.0])
    together = firth_logistic(design, wins, trials)
    each = np.repeat([0, 1, 2], [7, 8, 10])
    single = np.concatenate([[1] * 2 + [0] * 5, [1] * 4 + [0.5] + [0] * 3, [1] * 9 + [0]]).astype(float)
    apart = firth_logistic(design[each], single, np.ones(25))
    assert together.coefficients == pytest.approx(apart.coefficients, abs=1e-8)
    assert together.covariance == pytest.approx(apart.covariance)


def test_a_row_without_trials_says_nothing() -> None:
    design = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 7.0]])
    with_it = firth_logistic(design, np.array([2.0, 3.0, 0.0]), np.array([5.0, 4.0, 0.0]))
    without = firth_logistic(design[:2], np.array([2.0, 3.0]), np.array([5.0, 4.0]))
    assert with_it.coefficients == pytest.approx(without.coefficients)


@pytest.mark.parametrize("x", [[1.0, 1.0, 1.0], [np.pi, np.pi, np.pi]])
def test_a_design_that_does_not_settle_the_coefficients_has_no_fit(x: list[float]) -> None:
    fit = firth_logistic(np.column_stack([np.ones(3), x]), np.array([1.0, 0.0, 1.0]), np.ones(3))
    assert not fit.converged


def test_a_cluster_drawn_twice_over_doubles_the_robust_variance_and_not_the_plain_one() -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(size=400)
    design = np.column_stack([np.ones(400), x])
    wins = (rng.random(400) < 1 / (1 + np.exp(-x))).astype(float)
    twice = np.tile(np.arange(400), 2)
    fit = firth_logistic(design, wins * 2, np.full(400, 2.0))
    once = robust_covariance(fit, cluster_scores(fit, design, twice, wins[twice], twice))
    apart = robust_covariance(fit, cluster_scores(fit, design, twice, wins[twice], np.arange(800)))
    assert once == pytest.approx(2 * apart, rel=0.01)


def test_the_robust_covariance_is_that_of_statsmodels() -> None:
    rng = np.random.default_rng(5)
    cluster = np.repeat(np.arange(500), 8)
    x = rng.normal(size=500)[cluster] + rng.normal(size=4000)
    wins = (rng.random(4000) < 1 / (1 + np.exp(-(0.4 * x + rng.normal(size=500)[cluster])))).astype(float)
    design = np.column_stack([np.ones(4000), x])
    fit = firth_logistic(design, wins, np.ones(4000))
    ours = robust_covariance(fit, cluster_scores(fit, design, np.arange(4000), wins, cluster))
    theirs = sm.Logit(wins, design).fit(disp=0, cov_type="cluster", cov_kwds={"groups": cluster})
    # statsmodels multiplies by (N − 1)/(N − k) as well.
    assert ours == pytest.approx(theirs.cov_params() * (4000 - 2) / (4000 - 1), rel=2e-3)
