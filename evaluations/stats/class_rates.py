"""How a judge's passes and failures agree with reviewers', by class: of many groups at once, or all together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.cluster_totals import Contributions
from evaluations.stats.coding import FloatArray, IntArray
from evaluations.stats.confidence_intervals import CORRELATION_BOUNDS, Spread, why_counts_withhold_interval
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.grouped_shares import GroupedEntries, group_entries, shares_by_group
from evaluations.stats.rank_correlation import CONSTANT

NO_CLASS: Final = "No response that the judge scored {} by reviewers."
NO_SHARED_PASS: Final = "No response has a result from both the judge and reviewers."
# The cells of reviewers' and the judge's result: 2 · reviewers pass + judge passes.
CELLS: Final = 4


@dataclass(frozen=True)
class PassConfusion:
    """Counts of responses with a result from reviewers and the judge."""

    both_pass: int
    judge_alone_passes: int
    reviewers_alone_pass: int
    neither_passes: int


@dataclass(frozen=True)
class ClassRates:
    """How a judge's results agree with reviewers', by class.

    ``true_positive_rate``: of the responses that pass by reviewers, the share that the judge passes.
    ``true_negative_rate``: of those that fail, the share that it fails. ``informedness``: their sum − 1, 0 for a judge
    that does not look at the response. ``accuracy``: the share with the same result.
    """

    confusion: PassConfusion
    true_positive_rate: Estimate
    true_negative_rate: Estimate
    accuracy: Estimate
    informedness: Estimate


def class_rates(judge: FloatArray, reference: FloatArray, cluster: IntArray) -> ClassRates:
    """All arrays have an entry for each response; NaN is no result."""
    return class_rates_by_group(judge, reference, cluster, np.zeros(len(judge), dtype=np.int64), 1)[0]


def class_rates_by_group(
    judge: FloatArray, reference: FloatArray, cluster: IntArray, group: IntArray, groups: int
) -> list[ClassRates]:
    """The rates of each group. ``group``: of each response, a number below ``groups``."""
    both = ~np.isnan(judge) & ~np.isnan(reference)
    judge_passes, passes = judge[both] == 1, reference[both] == 1
    entries = group_entries(group[both], groups, cluster[both])
    cell = 2 * passes + judge_passes
    totals = np.bincount(entries.group * CELLS + cell, minlength=groups * CELLS).reshape(groups, CELLS)
    equal, everything = passes == judge_passes, np.ones(len(cell), dtype=bool)
    shares = zip(
        shares_by_group(entries, judge_passes, passes, NO_CLASS.format("passes")),
        shares_by_group(entries, ~judge_passes, ~passes, NO_CLASS.format("fails")),
        shares_by_group(entries, equal, everything, NO_SHARED_PASS),
        informedness_by_group(entries, cell, totals, cluster[both]),
        strict=True,
    )
    return [
        ClassRates(PassConfusion(both_pass, judge_alone, reviewers_alone, neither), *rates)
        for (neither, judge_alone, reviewers_alone, both_pass), rates in zip(totals.tolist(), shares, strict=True)
    ]


def informedness_statistic(totals: FloatArray) -> FloatArray:
    """TPR + TNR − 1, from totals (…, 4) → (…)."""
    neither, judge_alone, reviewers_alone, both = (totals[..., cell] for cell in range(CELLS))
    return np.asarray(both / (both + reviewers_alone) + neither / (neither + judge_alone) - 1)


def informedness_by_group(
    entries: GroupedEntries, cell: IntArray, totals: IntArray, cluster: IntArray
) -> list[Estimate]:
    """``totals``: of each group and cell. ``cell`` and ``cluster``: of each entry."""
    equal, everything = np.isin(cell, (0, 3)), np.ones(len(cell), dtype=bool)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = informedness_statistic(totals.astype(np.float64)).tolist()
    counts = zip(
        *(entries.clusters(counted).tolist() for counted in (~equal, equal, everything)),
        entries.effective(everything).tolist(),
        strict=True,
    )
    by_group = np.argsort(entries.group, kind="stable")
    ends = np.cumsum(totals.sum(axis=1)).tolist()
    numbers = []
    for value, of_cells, end, (differing, agreeing, clusters, effective) in zip(
        values, totals.tolist(), ends, counts, strict=True
    ):
        n = sum(of_cells)
        if (why := why_no_informedness(of_cells)) is not None:
            numbers.append(undefined_estimate(why, n))
        elif why := why_counts_withhold_interval(effective, differing, agreeing, clusters=clusters):
            numbers.append(Estimate(value, n).without_interval(why))
        else:
            own = by_group[end - n : end]
            spread = Spread(Contributions(cluster[own], cell[own], CELLS))
            numbers.append(spread.interval(Estimate(value, n), informedness_statistic, CORRELATION_BOUNDS))
    return numbers


def why_no_informedness(of_cells: Sequence[int]) -> str | None:
    """Why it is undefined: a class is empty, or the judge gives every response the same result."""
    neither, judge_alone, reviewers_alone, both = of_cells
    if not sum(of_cells):
        return NO_SHARED_PASS
    if not both + reviewers_alone:
        return NO_CLASS.format("passes")
    if not neither + judge_alone:
        return NO_CLASS.format("fails")
    return None if both + judge_alone and neither + reviewers_alone else CONSTANT
