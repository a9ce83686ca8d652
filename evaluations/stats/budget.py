"""How many more reviews bring an interval to a width, and how many a judge's verdicts save."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, isfinite, sqrt
from typing import Final

from evaluations.stats.distributions import Z_975
from evaluations.stats.numbers import NO_INTERVAL

HALF_WIDTHS: Final = (0.10, 0.05, 0.03, 0.02, 0.01)
WORTH_SAYING: Final = 0.005  # a share of reviews that would be printed as 0 %

NO_ERROR: Final = "There is no interval of people alone to hold that with the judge against."


@dataclass(frozen=True)
class Effort:
    """What a number rests on so far: clusters, comparisons in them, and reviews of these."""

    clusters: int
    comparisons: int
    reviews: int


@dataclass(frozen=True)
class Material:
    """What is at hand and not reviewed: comparisons, and the clusters of which no comparison is reviewed."""

    clusters: int
    comparisons: int


@dataclass(frozen=True)
class Target:
    """``clusters``: as many in all. ``…_more``: beyond those so far; 0 where the width is reached.

    ``suffices``: whether the material at hand has them; where it has not, ``why`` says what is lacking.
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
    """``half_width``: z standard errors now; the interval itself may be skewed, or cut off at 0 and 1. Empty where

    ``why`` says why the spread is not known.
    """

    why: str | None
    reviews: int
    half_width: float | None
    targets: tuple[Target, ...]


@dataclass(frozen=True)
class Saving:
    """``share``: of the reviews that the same interval would take from people alone; below 0 where the judge harms."""

    share: float | None
    words: str


def label_budget(
    variance: float,
    unknown: str | None,
    effort: Effort,
    material: Material,
    half_widths: Sequence[float] = HALF_WIDTHS,
) -> LabelBudget:
    """``variance``: of the number over the clusters so far (`Spread.variance`), which shrinks as 1 ÷ clusters.

    ``unknown``: why that variance is not to be relied on (`too_few`, or why the number is undefined), else None.
    New clusters are taken to have as many comparisons and reviews as those so far. ``half_widths``: above 0.
    """
    if unknown is not None or not isfinite(variance) or variance <= 0:
        return LabelBudget(unknown or NO_INTERVAL, effort.reviews, None, ())
    targets = tuple(target(one, variance, effort, material) for one in half_widths)
    return LabelBudget(None, effort.reviews, Z_975 * sqrt(variance), targets)


def target(half_width: float, variance: float, effort: Effort, material: Material) -> Target:
    """z · √(variance · clusters ÷ clusters needed) = half width, solved for the clusters needed."""
    needed = max(ceil(Z_975**2 * variance * effort.clusters / half_width**2), 1)
    more = max(needed - effort.clusters, 0)
    comparisons, reviews = (ceil(more * one / effort.clusters) for one in (effort.comparisons, effort.reviews))
    lacking = what_is_lacking(more, comparisons, material)
    return Target(half_width, needed, more, comparisons, reviews, lacking is None, lacking)


def what_is_lacking(clusters: int, comparisons: int, material: Material) -> str | None:
    if clusters > material.clusters:
        return (
            f"It needs {clusters:,} clusters more; of {material.clusters:,} nothing is reviewed yet. More reviews of "
            "the others help less."
        )
    if comparisons > material.comparisons:
        return f"It needs {comparisons:,} comparisons more; {material.comparisons:,} are not reviewed yet."
    return None


def saved_by_ppi(width_ratio: float | None) -> Saving:
    """1 − (standard error with the judge ÷ of people alone)², for the error shrinks as 1 ÷ √reviews."""
    if width_ratio is None:
        return Saving(None, NO_ERROR)
    share = 1 - width_ratio**2
    if share < WORTH_SAYING:
        return Saving(share, "The judge's verdicts save no reviews here: people alone would know as much.")
    return Saving(
        share,
        f"The judge's verdicts save {share:.0%} of the reviews: 100 with them tell as much as "
        f"{100 / (1 - share):.0f} of people alone.",
    )
