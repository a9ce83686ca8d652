"""Each person beside the judges and beside the other people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.domain import SplitRule
from evaluations.stats.agreement import CONSTANT, CONSTANT_RATER
from evaluations.stats.coding import CHOICES, MISSING, TIE, IntArray
from evaluations.stats.coefficients import Tables
from evaluations.stats.consolidation import Choices
from evaluations.stats.contributions import FloatArray
from evaluations.stats.distributions import t_975
from evaluations.stats.grouped_shares import Grouped, grouped, shares
from evaluations.stats.intervals import CORRELATION, too_few_of
from evaluations.stats.numbers import NO_INTERVAL, Number, undefined
from evaluations.stats.opinions import Opinions, held
from evaluations.stats.ranks import stable_order
from evaluations.stats.timeline import FEW, FEW_VOTES, NO_COMPANY, NO_VERDICT

NO_VOTES: Final = "This person has no votes."


@dataclass(frozen=True)
class Reviewer:
    """One person. ``votes``: the comparisons voted on. ``judges``: agreement by the judge's name.

    ``others`` and ``cohen_kappa``: with the majority of the other people on the same comparison. ``tie_rate``: the
    share of votes that choose no side, both bad among them. ``median_active_seconds``: of the reviews whose time is
    known.
    """

    rater: str
    votes: int
    judges: dict[str, Number]
    others: Number
    cohen_kappa: Number
    tie_rate: Number
    median_active_seconds: float | None
    caution: str | None


def reviewers(
    found: Opinions,
    names: Sequence[str],
    judges: Mapping[str, Choices],
    rule: SplitRule = SplitRule.TIE,
    active_ms: IntArray | None = None,
) -> tuple[Reviewer, ...]:
    """Everyone who voted, in the order of ``names``: what the rater numbers stand for.

    ``judges``: their choices on each item of the poll. ``active_ms``: of each vote as it came, 0 where unknown.
    """
    entries = grouped(found.rater, len(names), found.cluster)
    others = found.majority_of_the_others(rule)
    everything = np.ones(len(found), dtype=bool)
    with_others = shares(entries, found.choice == others, others != MISSING, NO_COMPANY)
    kappas = cohen_kappas(entries, found.choice, others)
    ties = shares(entries, found.choice >= TIE, everything, NO_VOTES)
    of_judges = {name: shares(entries, *held(judge, found), NO_VERDICT) for name, judge in judges.items()}
    medians = [None] * len(names) if active_ms is None else median_seconds(active_ms[found.cast], entries)
    return tuple(
        Reviewer(
            rater=name,
            votes=ties[at].n,
            judges={judge: numbers[at] for judge, numbers in of_judges.items()},
            others=with_others[at],
            cohen_kappa=kappas[at],
            tie_rate=ties[at],
            median_active_seconds=medians[at],
            caution=FEW_VOTES if ties[at].n < FEW else None,
        )
        for at, name in enumerate(names)
        if ties[at].n
    )


def median_seconds(active_ms: IntArray, entries: Grouped) -> list[float | None]:
    found: list[float | None] = [None] * entries.groups
    known = active_ms > 0
    group, value = entries.group[known], active_ms[known]
    order = stable_order(group)
    ends = np.cumsum(np.bincount(group, minlength=entries.groups))
    for at, own in enumerate(np.split(value[order], ends[:-1])):
        if len(own):
            found[at] = float(np.median(own)) / 1000
    return found


# ---- kappa of each person --------------------------------------------------------------------


def cohen_kappas(entries: Grouped, own: IntArray, others: IntArray) -> list[Number]:
    """Of each person with the majority of the others (Cohen 1960), with intervals by cluster.

    Undefined where nobody else voted, and where either made one choice throughout. Linearised, t with clusters − 1
    degrees of freedom; withheld below 40 clusters, or below 10 that hold a disagreement.
    """
    counted = others != MISSING
    clusters, differing = entries.clusters(counted), entries.clusters(counted & (own != others))
    size = len(CHOICES)
    flat = (entries.group * size + own) * size + others
    tables = np.bincount(flat[counted], minlength=entries.groups * size**2).reshape(entries.groups, size, size)
    kappa, slope = kappa_and_slope(tables.astype(np.float64))
    constant = Tables(tables.astype(np.float64)).has_constant.tolist()
    influence = np.where(counted, slope.ravel()[np.where(counted, flat, 0)], 0.0)
    errors = np.sqrt(entries.variance(influence, clusters))
    n = tables.sum(axis=(1, 2)).tolist()
    effective = entries.effective(counted).tolist()
    columns = kappa.tolist(), constant, n, clusters.tolist(), effective, differing.tolist(), errors.tolist()
    return [kappa_of(*one) for one in zip(*columns, strict=True)]


def kappa_and_slope(tables: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of each table, … × k × k: (N · agreeing − E) ÷ (N² − E), E = Σ row · column, and its derivative by cells."""
    n = tables.sum(axis=(-2, -1), keepdims=True)
    agreeing = np.trace(tables, axis1=-2, axis2=-1)[..., None, None]
    rows, columns = tables.sum(axis=-1, keepdims=True), tables.sum(axis=-2, keepdims=True)
    by_chance = (rows * np.swapaxes(columns, -1, -2)).sum(axis=(-2, -1), keepdims=True)
    # One more of cell (i, j) adds 1 to N, to the agreeing if i = j, and column i and row j to E.
    on_chance = np.swapaxes(columns, -1, -2) + np.swapaxes(rows, -1, -2)
    above, below = n * agreeing - by_chance, n**2 - by_chance
    with np.errstate(all="ignore"):
        on_above = agreeing + n * np.eye(tables.shape[-1]) - on_chance
        slope = (on_above - above / below * (2 * n - on_chance)) / below
        return (above / below)[..., 0, 0], slope


def kappa_of(
    kappa: float, constant: bool, n: int, clusters: int, effective: float, differing: int, error: float
) -> Number:
    if not n:
        return undefined(NO_COMPANY)
    if not np.isfinite(kappa):
        return undefined(CONSTANT, n)
    if constant:
        return undefined(CONSTANT_RATER, n)
    number = Number(kappa, n)
    if (few := too_few_of(effective, differing, clusters=clusters)) is not None:
        return number.without_interval(few)
    if not error:
        return number.without_interval(NO_INTERVAL)
    margin = t_975(clusters - 1) * error
    low, high = max(kappa - margin, CORRELATION[0]), min(kappa + margin, CORRELATION[1])
    return number.within(low, high, f"linearised over {clusters:,} clusters")
