"""How many more reviews bring an interval to a given width."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, isfinite, sqrt
from typing import Final

import numpy as np

from evaluations.stats.agreement import Agreement
from evaluations.stats.agreement_coefficients import cohen_kappa, contingency_tables, raw_agreement
from evaluations.stats.cluster_totals import Contributions
from evaluations.stats.coding import MISSING, IntArray
from evaluations.stats.confidence_intervals import Spread
from evaluations.stats.estimates import NO_INTERVAL, Estimate
from evaluations.stats.items import Items
from evaluations.stats.significance import Z_975
from evaluations.stats.win_rates import WinRates

HALF_WIDTHS: Final = (0.10, 0.05, 0.03, 0.02, 0.01)
WORTH_SAYING: Final = 0.005  # a share of reviews that would be printed as 0 %
NO_ERROR: Final = "There is no reviewer-only CI to compare with."


@dataclass(frozen=True)
class ReviewEffort:
    """The clusters, comparisons and reviews behind a number."""

    clusters: int
    comparisons: int
    reviews: int


@dataclass(frozen=True)
class UnreviewedMaterial:
    """Comparisons that nobody has reviewed, and clusters of which no comparison is reviewed."""

    clusters: int
    comparisons: int


@dataclass(frozen=True)
class BudgetTarget:
    """The reviews that an interval of ``half_width`` needs.

    ``clusters``: in all. ``…_more``: beyond those reviewed so far; 0 where the width is reached. ``suffices``: whether
    the unreviewed material has them; where it has not, ``why`` says what is missing.
    """

    half_width: float
    clusters: int
    clusters_more: int
    comparisons_more: int
    reviews_more: int
    suffices: bool
    why: str | None


@dataclass(frozen=True)
class LabelBudget:
    """How many more reviews give an interval of each target width; no targets where ``why`` says that none is known.

    ``half_width``: z standard errors now; the interval itself may be skewed, or cut off at 0 and 1.
    """

    why: str | None
    reviews: int
    half_width: float | None
    targets: tuple[BudgetTarget, ...]


@dataclass(frozen=True)
class ReviewSaving:
    """The share of reviews that the judge saves; below 0 where the judge makes the interval wider."""

    share: float | None
    words: str


def label_budget(
    variance: float,
    unknown: str | None,
    effort: ReviewEffort,
    material: UnreviewedMaterial,
    half_widths: Sequence[float] = HALF_WIDTHS,
) -> LabelBudget:
    """``variance``: of the number over the clusters so far (`Spread.variance`), which shrinks as 1 ÷ clusters.

    ``unknown``: why that variance is unreliable (`why_interval_withheld`, or why the number is undefined), else None.
    New clusters are taken to have as many comparisons and reviews as those so far. ``half_widths``: above 0.
    """
    if unknown is not None or not isfinite(variance) or variance <= 0:
        return LabelBudget(unknown or NO_INTERVAL, effort.reviews, None, ())
    targets = tuple(budget_target(width, variance, effort, material) for width in half_widths)
    return LabelBudget(None, effort.reviews, Z_975 * sqrt(variance), targets)


def budget_target(
    half_width: float, variance: float, effort: ReviewEffort, material: UnreviewedMaterial
) -> BudgetTarget:
    """The target that solves z · √(variance · clusters ÷ clusters needed) = half width for the clusters needed."""
    needed = max(ceil(Z_975**2 * variance * effort.clusters / half_width**2), 1)
    more = max(needed - effort.clusters, 0)
    comparisons, reviews = (ceil(more * so_far / effort.clusters) for so_far in (effort.comparisons, effort.reviews))
    lacking = missing_material(more, comparisons, material)
    return BudgetTarget(half_width, needed, more, comparisons, reviews, lacking is None, lacking)


def missing_material(clusters: int, comparisons: int, material: UnreviewedMaterial) -> str | None:
    if clusters > material.clusters:
        return (
            f"Needs {clusters:,} more clusters; {material.clusters:,} have no reviews yet. More reviews of the others "
            "help less."
        )
    if comparisons > material.comparisons:
        return f"Needs {comparisons:,} more comparisons; {material.comparisons:,} are not reviewed yet."
    return None


def ppi_saving(width_ratio: float | None) -> ReviewSaving:
    """The saving 1 − ``width_ratio``², as standard errors shrink as 1 ÷ √reviews; the ratio: with judge ÷ without."""
    if width_ratio is None:
        return ReviewSaving(None, NO_ERROR)
    share = 1 - width_ratio**2
    if share < WORTH_SAYING:
        return ReviewSaving(share, "The judge's verdicts save no reviews here.")
    return ReviewSaving(
        share,
        f"The judge's verdicts save {share:.0%} of the reviews: 100 reviews with them are as precise as "
        f"{100 / (1 - share):.0f} without.",
    )


NO_CANDIDATE: Final = "There is no model whose win rate could be planned for."


@dataclass(frozen=True)
class EstimateVariance:
    """An estimate with its variance over clusters (`Spread.variance`)."""

    number: Estimate
    variance: float


@dataclass(frozen=True)
class LabelBudgets:
    """The budgets of one judge's numbers.

    ``win_rate``: of ``candidate``, the one that people have reviewed most; ``saving``: by PPI.
    """

    agreement: LabelBudget
    cohen_kappa: LabelBudget
    candidate: str | None
    win_rate: LabelBudget
    saving: ReviewSaving


def label_budgets(
    agreement: EstimateVariance,
    cohen_kappa: EstimateVariance,
    rates: WinRates,
    variances: Sequence[float],
    items: Items,
    people: IntArray,
    votes: int,
) -> LabelBudgets:
    """The label budgets of agreement, kappa and the win rate of the most reviewed candidate.

    ``variances``: of the win rate of each candidate from people alone, in the order of ``rates.candidates``.
    ``people``: their majority on each comparison, MISSING where nobody voted; ``votes``: how many they gave.
    """
    reviewed = people != MISSING
    effort = ReviewEffort(len(np.unique(items.cluster[reviewed])), int(reviewed.sum()), votes)
    untouched = int(items.cluster.max(initial=-1)) + 1 - effort.clusters
    material = UnreviewedMaterial(untouched, int((~reviewed).sum()))
    name, of_rate, saving = None, LabelBudget(NO_CANDIDATE, votes, None, ()), ppi_saving(None)
    if rates.candidates:
        candidates = zip(rates.candidates.items(), variances, strict=True)
        (name, rate), variance = max(candidates, key=lambda candidate: candidate[0][1].people.n)
        of_rate = budget_for_estimate(EstimateVariance(rate.people, variance), effort, material)
        saving = ppi_saving(rate.width_ratio)
    return LabelBudgets(
        agreement=budget_for_estimate(agreement, effort, material),
        cohen_kappa=budget_for_estimate(cohen_kappa, effort, material),
        candidate=name,
        win_rate=of_rate,
        saving=saving,
    )


def agreement_variances(now: Agreement, table: Contributions) -> tuple[EstimateVariance, EstimateVariance]:
    """Agreement and Cohen's kappa, with their variances by the table of choices by choices that they are made of."""
    spread = Spread(table)
    return (
        EstimateVariance(now.agreement, spread.variance(lambda totals: raw_agreement(contingency_tables(totals)))),
        EstimateVariance(now.cohen_kappa, spread.variance(lambda totals: cohen_kappa(contingency_tables(totals)))),
    )


def budget_for_estimate(estimate: EstimateVariance, effort: ReviewEffort, material: UnreviewedMaterial) -> LabelBudget:
    """The budget of an estimate, unknown where it has no interval."""
    return label_budget(estimate.variance, estimate.number.why or estimate.number.ci95_why, effort, material)
