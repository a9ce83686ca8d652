"""Rankings of candidates by Bradley–Terry: from people, from a judge alone, and from the judge corrected by people."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Final

import numpy as np

from evaluations.stats.bootstrap import RESAMPLES, SEED, accelerations
from evaluations.stats.bradley_terry import MOST_DENSE, Table, chances, curvature, incidence, obstacle, scores
from evaluations.stats.coding import IntArray
from evaluations.stats.contributions import FloatArray
from evaluations.stats.distributions import Z_975
from evaluations.stats.evidence import Evidence
from evaluations.stats.intervals import BOOTSTRAP_UP_TO, Spread, too_few_of
from evaluations.stats.numbers import Number, settled
from evaluations.stats.outcomes import Judgement, Reviewed

NOTHING_SAID: Final = "There is no choice on any comparison to rank by."
MOST_DRAWN: Final = 60  # candidates whose scores are found anew in every resample
TOO_MANY: Final = "Too many models for a CI ({:,} > {:,})."
NOT_FOUND: Final = "No scores were found that fit these comparisons."


@dataclass(frozen=True)
class Standing:
    """``score``: log odds, 0 the mean of all. ``win_probability``: against a candidate whose score is 0.

    ``ranks``: from the best to the worst of the ranks in which 95 % of the draws end.
    """

    rank: int
    ranks: tuple[int, int] | None
    score: Number
    win_probability: Number


@dataclass(frozen=True)
class Ranking:
    """``standings``: by candidate, the best first; empty where there are no scores, and ``why`` says why.

    ``judge_weight``: λ, where people correct the judge.
    """

    standings: dict[str, Standing]
    why: str | None
    comparisons: int
    clusters: int
    judge_weight: float | None = None


def ranking_of_people(reviewed: Reviewed) -> Ranking:
    return ranked(reviewed.evidence)


def ranking_of_judge(judgement: Judgement) -> Ranking:
    return ranked(judgement.evidence)


@dataclass(frozen=True)
class Fitted:
    """``at``: a score for each candidate, NaN where ``why`` says that there is none."""

    evidence: Evidence
    table: Table
    at: FloatArray
    why: str | None


def fitted(evidence: Evidence) -> Fitted:
    table = evidence.table(evidence.totals)
    if not evidence.comparisons:
        return Fitted(evidence, table, np.full(len(evidence.names), np.nan), NOTHING_SAID)
    at = scores(table)
    return Fitted(evidence, table, at, obstacle(table, evidence.names) or (NOT_FOUND if np.isnan(at).any() else None))


def ranked(evidence: Evidence) -> Ranking:
    """With intervals by a bootstrap of clusters, above BOOTSTRAP_UP_TO of them or many candidates by linearisation.

    A candidate with too few clusters that hold anything but its commonest outcome has none.
    """
    fit, comparisons, clusters = fitted(evidence), evidence.comparisons, evidence.clusters
    if fit.why:
        return Ranking({}, fit.why, comparisons, clusters)
    numbers = numbers_of(evidence, fit.at)
    reasons = too_few_of_each(evidence)
    if None not in reasons:
        return Ranking(standings(evidence.names, withheld(numbers, reasons), None), None, comparisons, clusters)
    is_drawn = clusters <= BOOTSTRAP_UP_TO and len(numbers) <= MOST_DRAWN
    within, draws = (drawn if is_drawn else linearised)(fit, numbers)
    return Ranking(standings(evidence.names, withheld(within, reasons), draws), None, comparisons, clusters)


def too_few_of_each(evidence: Evidence) -> list[str | None]:
    """Why each candidate has no interval, where it has none."""
    if (count := len(evidence.names)) > MOST_DENSE:
        return [TOO_MANY.format(count, MOST_DENSE)] * count
    effective, clusters = evidence.effective_clusters, evidence.clusters
    return [too_few_of(effective, varied, clusters=clusters) for varied in evidence.varied.tolist()]


def withheld(numbers: Sequence[Number], reasons: Sequence[str | None]) -> list[Number]:
    """Where there is a reason, with that in the place of the interval."""
    pairs = zip(numbers, reasons, strict=True)
    return [number if reason is None else number.without_interval(reason) for number, reason in pairs]


def numbers_of(evidence: Evidence, at: FloatArray) -> list[Number]:
    """Each candidate's score, on as many comparisons as it is in."""
    return [Number(float(score), int(n)) for score, n in zip(at, evidence.met, strict=True)]


def drawn(fit: Fitted, numbers: Sequence[Number]) -> tuple[list[Number], FloatArray]:
    """The scores with intervals from resampled clusters, and all resampled scores that there are."""
    spread = Spread(fit.evidence.contributions)
    found = scores(fit.evidence.table(spread.draws), fit.at)
    ordered = np.sort(found.T, axis=1)  # NaN comes last
    moves = incidence(fit.table) @ np.linalg.inv(curvature(fit.table, fit.at))
    influences = spread.influences(np.vstack([-chances(fit.table, fit.at)[:, None] * moves, moves]))
    parts = zip(numbers, fit.at.tolist(), ordered, accelerations(influences).tolist(), strict=True)
    within = [spread.within(number, held, row, skewness) for number, held, row, skewness in parts]
    return within, found[np.isfinite(found).all(axis=1)]


def linearised(fit: Fitted, numbers: Sequence[Number]) -> tuple[list[Number], FloatArray]:
    """The scores with intervals from their cluster-robust covariance, and draws from a normal with that covariance."""
    products, clusters = fit.evidence.residuals(fit.at).products[:-1, :-1], fit.evidence.clusters
    covariance = sandwich(fit.table, fit.at, products, clusters)
    return around(numbers, covariance, Z_975, f"linearised over {clusters:,} clusters"), normal_draws(
        fit.at, covariance
    )


def sandwich(table: Table, at: FloatArray, products: FloatArray, clusters: int) -> FloatArray:
    """J⁻¹ (Σ s_g s_gᵀ) J⁻¹ · G ÷ (G − 1), with J the curvature (Liang and Zeger 1986)."""
    bread = np.linalg.inv(curvature(table, at))
    return np.asarray(bread @ products @ bread * clusters / (clusters - 1))


def around(numbers: Sequence[Number], covariance: FloatArray, quantile: float, rule: str) -> list[Number]:
    margins = quantile * np.sqrt(np.diag(covariance))
    found = []
    for number, margin in zip(numbers, margins, strict=True):
        assert number.value is not None
        found.append(number.within(number.value - float(margin), number.value + float(margin), rule))
    return found


def normal_draws(at: FloatArray, covariance: FloatArray) -> FloatArray:
    """RESAMPLES × candidates."""
    return np.random.default_rng(SEED).multivariate_normal(at, covariance, RESAMPLES, method="eigh")


def standings(names: Sequence[str], numbers: Sequence[Number], draws: FloatArray | None) -> dict[str, Standing]:
    """``draws``: scores as they might have been, draws × candidates, or None where nothing can be said of it."""
    at = np.array([number.value for number in numbers])
    ranks = ranks_of(at)
    ranges = [None] * len(names) if draws is None else ranges_of(draws, numbers)
    return {
        names[each]: Standing(int(ranks[each]), ranges[each], numbers[each], against_average(numbers[each]))
        for each in np.argsort(-at, kind="stable")
    }


def ranks_of(at: FloatArray) -> IntArray:
    """One more than how many are better: (…, candidates). What the last digits alone tell apart is equal."""
    at = settled(at)
    if at.shape[-1] <= MOST_DRAWN:
        return np.asarray(1 + (at[..., None, :] > at[..., :, None]).sum(axis=-1))
    rows = at.reshape(-1, at.shape[-1])
    better = [at.shape[-1] - np.searchsorted(np.sort(row), row, side="right") for row in rows]
    return 1 + np.array(better, dtype=np.int64).reshape(at.shape)


def ranges_of(draws: FloatArray, numbers: Sequence[Number]) -> list[tuple[int, int] | None]:
    """Where the score has no interval, the rank has no range."""
    if not len(draws):
        return [None] * len(numbers)
    ranks = np.sort(ranks_of(draws), axis=0)
    low, high = ranks[int(0.025 * len(ranks))], ranks[len(ranks) - 1 - int(0.025 * len(ranks))]
    return [
        (int(best), int(worst)) if number.ci95 else None for number, best, worst in zip(numbers, low, high, strict=True)
    ]


def against_average(score: Number) -> Number:
    """1 ÷ (1 + exp −score), and the same of its interval."""
    assert score.value is not None
    number = Number(chance(score.value), score.n, ci95_why=score.ci95_why)
    if score.ci95 is None or score.ci95_rule is None:
        return number
    return number.within(chance(score.ci95[0]), chance(score.ci95[1]), score.ci95_rule)


def chance(log_odds: float) -> float:
    return 1 / (1 + exp(-log_odds))
