"""Logistic regression with Firth's penalty.

The penalty keeps coefficients finite where a covariate separates wins from losses perfectly (Firth 1993). Equal rows of
the design are merged first, so that the cost is that of the distinct rows. A tie is half a win; a trial may have any
weight.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import FloatArray, IntArray

MAX_STEPS: Final = 100
MAX_HALVINGS: Final = 20
MAX_STEP: Final = 5.0  # beyond the largest coefficient: a flat start must not leap to where the information is 0
PRECISE: Final = 1e-9


@dataclass(frozen=True)
class LogisticFit:
    """``coefficients``: k, in log odds. ``covariance``: k × k, the inverse of Fisher's information at them.

    ``converged`` is False where the design does not settle the coefficients, or none was found: then neither holds.
    """

    coefficients: FloatArray
    covariance: FloatArray
    converged: bool


def firth_logistic(design: FloatArray, wins: FloatArray, trials: FloatArray) -> LogisticFit:
    """Maximises Σ wᵢηᵢ − nᵢ log(1 + exp ηᵢ) + ½ log |I(β)|, η = Xβ, I = Xᵀ diag(n p (1 − p)) X (Firth 1993).

    ``design``: rows × k. ``wins`` and ``trials``: one for each row, 0 ≤ wins ≤ trials, whole or not.
    """
    k = design.shape[1]
    present = trials > 0
    design, wins, trials = design[present], wins[present], trials[present]
    coefficients = np.zeros(k)
    if np.linalg.matrix_rank(design) < k:
        return LogisticFit(coefficients, np.full((k, k), np.nan), converged=False)
    for _ in range(MAX_STEPS):
        covariance: FloatArray = np.asarray(np.linalg.inv(fisher_information(design, trials, coefficients)))
        step = covariance @ penalised_score(design, wins, trials, coefficients, covariance)
        length, so_far = float(np.abs(step).max()), float(np.abs(coefficients).max())
        if length < PRECISE * (1 + so_far):
            return LogisticFit(coefficients, covariance, converged=True)
        step *= min(1.0, (MAX_STEP + so_far) / length)
        coefficients = coefficients + halve_step(design, wins, trials, coefficients, step)
    return LogisticFit(coefficients, covariance, converged=False)


def logistic_probabilities(design: FloatArray, coefficients: FloatArray) -> FloatArray:
    """The chance of a win in each row: 1 ÷ (1 + exp −η), in the form that does not overflow."""
    return np.asarray((1 + np.tanh(design @ coefficients / 2)) / 2)


def fisher_information(design: FloatArray, trials: FloatArray, coefficients: FloatArray) -> FloatArray:
    p = logistic_probabilities(design, coefficients)
    return np.asarray(design.T @ (design * (trials * p * (1 - p))[:, None]))


def penalised_score(
    design: FloatArray, wins: FloatArray, trials: FloatArray, coefficients: FloatArray, covariance: FloatArray
) -> FloatArray:
    """Xᵀ(w − n p + h (½ − p)), h the diagonal of the hat matrix, summed over a row's trials."""
    p = logistic_probabilities(design, coefficients)
    hat = trials * p * (1 - p) * ((design @ covariance) * design).sum(axis=1)
    return np.asarray(design.T @ (wins - trials * p + hat * (0.5 - p)))


def penalised_likelihood(design: FloatArray, wins: FloatArray, trials: FloatArray, coefficients: FloatArray) -> float:
    """The logarithm of Firth's penalised likelihood."""
    log_odds = design @ coefficients
    _, determinant = np.linalg.slogdet(fisher_information(design, trials, coefficients))
    return float(wins @ log_odds - trials @ np.logaddexp(0, log_odds) + determinant / 2)


def halve_step(
    design: FloatArray, wins: FloatArray, trials: FloatArray, coefficients: FloatArray, step: FloatArray
) -> FloatArray:
    """The step, halved until it does not lead down."""
    likelihood = penalised_likelihood(design, wins, trials, coefficients)
    slack = PRECISE * (1 + abs(likelihood))
    for _ in range(MAX_HALVINGS):
        if penalised_likelihood(design, wins, trials, coefficients + step) >= likelihood - slack:
            break
        step = step / 2
    return step


def cluster_scores(
    fit: LogisticFit, design: FloatArray, row: IntArray, wins: FloatArray, cluster: IntArray
) -> FloatArray:
    """Each cluster's share of the score, Σ x (w − p): clusters × k.

    Of each comparison: ``row``, its row of the design, ``wins``, 0, ½ or 1, and ``cluster``.
    """
    residual = wins - logistic_probabilities(design, fit.coefficients)[row]
    return np.stack([np.bincount(cluster, residual * column[row]) for column in design.T], axis=1)


def robust_covariance(fit: LogisticFit, scores: FloatArray) -> FloatArray:
    """I⁻¹ (Σ s_g s_gᵀ) I⁻¹ · G ÷ (G − 1), the scores centred: what the coefficients do when clusters are drawn anew.

    ``scores``: one row for each cluster that has a comparison, two or more (Liang and Zeger 1986).
    """
    clusters = len(scores)
    # The penalty makes the plain scores sum to a little more or less than nothing.
    centred = scores - scores.mean(axis=0)
    return np.asarray(fit.covariance @ (centred.T @ centred) @ fit.covariance * clusters / (clusters - 1))
