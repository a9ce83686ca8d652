"""Statistics of each reviewer: agreement with judges and with the other reviewers, time, kappa."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.domain.reports import SplitRule
from evaluations.stats.agreement import CONSTANT, CONSTANT_RATER
from evaluations.stats.agreement_coefficients import ContingencyTables
from evaluations.stats.agreement_timeline import FEW, FEW_VOTES, NO_OTHER_VOTES, NO_VERDICT
from evaluations.stats.coding import CHOICES, MISSING, TIE, FloatArray, IntArray
from evaluations.stats.confidence_intervals import CORRELATION_BOUNDS, why_counts_withhold_interval
from evaluations.stats.estimates import NO_INTERVAL, Estimate, undefined_estimate
from evaluations.stats.grouped_shares import GroupedEntries, group_entries, shares_by_group
from evaluations.stats.judge_verdicts import Choices
from evaluations.stats.polls import PersonVotes, match_judge_choices
from evaluations.stats.ranks import radix_order
from evaluations.stats.significance import t_975

NO_VOTES: Final = "This reviewer has no votes."


@dataclass(frozen=True)
class ReviewerStatistics:
    """Statistics of one reviewer. ``votes``: comparisons voted on. ``judges``: agreement, by the judge's name.

    ``others`` and ``cohen_kappa``: with the majority of the other people on the same comparison. ``tie_rate``: the
    share of votes that choose no side, both bad among them. ``median_active_seconds``: of the reviews whose time is
    known.
    """

    rater: str
    votes: int
    judges: dict[str, Estimate]
    others: Estimate
    cohen_kappa: Estimate
    tie_rate: Estimate
    median_active_seconds: float | None
    caution: str | None


def reviewer_statistics(
    people: PersonVotes,
    names: Sequence[str],
    judges: Mapping[str, Choices],
    rule: SplitRule = SplitRule.TIE,
    active_ms: IntArray | None = None,
) -> tuple[ReviewerStatistics, ...]:
    """The statistics of everyone who voted. ``names``: the person of each rater number.

    ``judges``: their choices on each item of the poll. ``active_ms``: of each vote as it came, 0 where unknown.
    """
    entries = group_entries(people.rater, len(names), people.cluster)
    others = people.majority_of_the_others(rule)
    everything = np.ones(len(people), dtype=bool)
    with_others = shares_by_group(entries, people.choice == others, others != MISSING, NO_OTHER_VOTES)
    kappas = cohen_kappas_with_others(entries, people.choice, others)
    ties = shares_by_group(entries, people.choice >= TIE, everything, NO_VOTES)
    of_judges = {
        name: shares_by_group(entries, *match_judge_choices(judge, people), NO_VERDICT)
        for name, judge in judges.items()
    }
    medians = [None] * len(names) if active_ms is None else median_active_seconds(active_ms[people.vote_index], entries)
    return tuple(
        ReviewerStatistics(
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


def median_active_seconds(active_ms: IntArray, entries: GroupedEntries) -> list[float | None]:
    medians: list[float | None] = [None] * entries.groups
    is_known = active_ms > 0
    group, value = entries.group[is_known], active_ms[is_known]
    order = radix_order(group)
    ends = np.cumsum(np.bincount(group, minlength=entries.groups))
    for at, own in enumerate(np.split(value[order], ends[:-1])):
        if len(own):
            medians[at] = float(np.median(own)) / 1000
    return medians


def cohen_kappas_with_others(entries: GroupedEntries, own: IntArray, others: IntArray) -> list[Estimate]:
    """Cohen's kappa of each person with the majority of the others (1960), with intervals by cluster.

    Undefined where nobody else voted, and where either made one choice throughout. Linearised, t with clusters − 1
    degrees of freedom; withheld below 40 clusters, or below 10 that hold a disagreement.
    """
    counted = others != MISSING
    clusters, differing = entries.clusters(counted), entries.clusters(counted & (own != others))
    size = CHOICES
    flat = (entries.group * size + own) * size + others
    tables = np.bincount(flat[counted], minlength=entries.groups * size**2).reshape(entries.groups, size, size)
    kappa, slope = kappa_with_gradient(tables.astype(np.float64))
    constant = ContingencyTables(tables.astype(np.float64)).has_constant.tolist()
    influence = np.where(counted, slope.ravel()[np.where(counted, flat, 0)], 0.0)
    errors = np.sqrt(entries.variance(influence, clusters))
    n = tables.sum(axis=(1, 2)).tolist()
    effective = entries.effective(counted).tolist()
    columns = kappa.tolist(), constant, n, clusters.tolist(), effective, differing.tolist(), errors.tolist()
    return [kappa_estimate(*row) for row in zip(*columns, strict=True)]


def kappa_with_gradient(tables: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Kappa of each table, … × k × k: (N · agreeing − E) ÷ (N² − E), E = Σ row · column, with its gradient."""
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


def kappa_estimate(
    kappa: float, constant: bool, n: int, clusters: int, effective: float, differing: int, error: float
) -> Estimate:
    if not n:
        return undefined_estimate(NO_OTHER_VOTES)
    if not np.isfinite(kappa):
        return undefined_estimate(CONSTANT, n)
    if constant:
        return undefined_estimate(CONSTANT_RATER, n)
    number = Estimate(kappa, n)
    if (few := why_counts_withhold_interval(effective, differing, clusters=clusters)) is not None:
        return number.without_interval(few)
    if not error:
        return number.without_interval(NO_INTERVAL)
    rule = f"linearised over {clusters:,} clusters"
    return number.with_margin(t_975(clusters - 1) * error, CORRELATION_BOUNDS, rule)
