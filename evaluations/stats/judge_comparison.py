"""Two judges compared with the same majority of people on the same items."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, isqrt, lgamma, log
from typing import Final

import numpy as np

from evaluations.stats.cluster_totals import Contributions
from evaluations.stats.coding import MISSING, BoolArray, FloatArray, IntArray
from evaluations.stats.confidence_intervals import CORRELATION_BOUNDS, Spread, estimate_share, why_interval_withheld
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.phrases import count_phrase
from evaluations.stats.significance import holm_adjust

FLIP_SEED: Final = 95
FLIPS: Final = 20_000
ONE_BY_ONE: Final = 500  # up to this many clusters, drawing each sign is quicker than drawing how many are flipped
SIGNS_AT_ONCE: Final = 8  # clusters, whose signs are the bits of one random byte
SIGNS: Final[IntArray] = 1 - 2 * (np.arange(2**SIGNS_AT_ONCE)[:, None] >> np.arange(SIGNS_AT_ONCE) & 1)


def mcnemar_p(only_first: int, only_second: int) -> float:
    """Exact two-sided p: under H0 each discordant item is the toss of a fair coin (McNemar 1947).

    Valid only where items are independent. It is 1 where both counts are equal.
    """
    fewer, n = min(only_first, only_second), only_first + only_second
    if 2 * fewer == n:
        return 1.0
    # P(X ≤ k) = P(X = k) · (1 + k/(n−k+1) + k(k−1)/((n−k+1)(n−k+2)) + …); the terms after 10 √n are negligible.
    at_fewer = exp(lgamma(n + 1) - lgamma(fewer + 1) - lgamma(n - fewer + 1) - n * log(2))
    down = np.arange(min(fewer, 10 * isqrt(n) + 10))
    below = np.cumprod((fewer - down) / (n - fewer + 1 + down)).sum()
    return min(1.0, 2 * at_fewer * (1 + float(below)))


def sign_flip_p(difference: IntArray) -> float:
    """Two-sided permutation p of a sum of differences, one whole number for each cluster.

    Under H0 both signs of a cluster's difference are equally likely. The signs are drawn FLIPS times: p = (b + 1) ÷
    (FLIPS + 1), where b of the sums are at least as far from 0 as the observed one (Phipson and Smyth 2010). Where many
    clusters have differences of the same size, only the number of positive ones is drawn.
    """
    rng = np.random.default_rng(FLIP_SEED)
    size = np.abs(difference)
    clusters = np.bincount(size)
    drawn = np.zeros(FLIPS, dtype=np.int64)
    for magnitude in np.flatnonzero(clusters[1:] > ONE_BY_ONE) + 1:
        drawn += magnitude * (2 * rng.binomial(clusters[magnitude], 0.5, FLIPS) - clusters[magnitude])
    drawn += sign_flip_sums(size[(size > 0) & (clusters[size] <= ONE_BY_ONE)], rng)
    as_far = int((np.abs(drawn) >= abs(int(difference.sum()))).sum())
    return (as_far + 1) / (FLIPS + 1)


def sign_flip_sums(size: IntArray, rng: np.random.Generator) -> IntArray:
    """FLIPS sums of these sizes with random signs."""
    drawn = np.zeros(FLIPS, dtype=np.int64)
    for first in range(0, len(size), SIGNS_AT_ONCE):
        few = size[first : first + SIGNS_AT_ONCE]
        sums = SIGNS[:, : len(few)] @ few
        drawn += sums[rng.integers(len(sums), size=FLIPS, dtype=np.uint8)]
    return drawn


# Outcomes of an item: both judges agree with the majority, only the first, only the second, neither.
BOTH, ONLY_FIRST, ONLY_SECOND, NEITHER = range(4)
OUTCOMES: Final = 4
ALL: Final[BoolArray] = np.ones(OUTCOMES, dtype=bool)
DISCORDANT: Final[BoolArray] = np.array([False, True, True, False])
FIRST_WRONG: Final[BoolArray] = np.array([False, False, True, True])
SECOND_WRONG: Final[BoolArray] = np.array([False, True, False, True])
NOTHING_SHARED: Final = "No comparison has verdicts of both judges and a reviewer majority."
EXACT_MCNEMAR_TEST: Final = "exact McNemar"
SIGN_FLIP_TEST: Final = f"sign-flip permutation by cluster, {FLIPS:,} flips"


@dataclass(frozen=True)
class JudgeComparison:
    """Two judges on the ``n`` items on which both have a verdict and people a single majority.

    ``difference``: agreement of the first less that of the second. ``only_…``: the items on which that one alone
    agrees with the majority. ``clusters_differing``: those in which one judge agrees more often than the other.
    ``p``: two-sided, of H0 that neither agrees more often, by ``test``; None for the reason ``why``.
    """

    n: int
    clusters: int
    first: Estimate
    second: Estimate
    difference: Estimate
    only_first: int
    only_second: int
    clusters_differing: int
    p: float | None
    test: str | None
    why: str | None = None


def compare_judges(first: IntArray, second: IntArray, reference: IntArray, cluster: IntArray) -> JudgeComparison:
    """The comparison of two judges; all arrays are by item, MISSING where there is no choice.

    ``reference``: the majority of people with splits dropped (`majority` with SplitRule.DROP). Ties are choices.
    """
    shared = (first != MISSING) & (second != MISSING) & (reference != MISSING)
    if not shared.any():
        nothing = undefined_estimate(NOTHING_SHARED)
        return JudgeComparison(0, 0, nothing, nothing, nothing, 0, 0, 0, None, None, NOTHING_SHARED)
    majority = reference[shared]
    outcome = 2 * (first[shared] != majority) + (second[shared] != majority)
    contributions = Contributions(cluster[shared], outcome, OUTCOMES)
    spread, counts = Spread(contributions), contributions.totals.astype(int).tolist()
    lead = lead_by_cluster(contributions)
    if len(lead) == sum(counts):  # clusters are single items
        p, test = mcnemar_p(counts[ONLY_FIRST], counts[ONLY_SECOND]), EXACT_MCNEMAR_TEST
    else:
        p, test = sign_flip_p(lead), SIGN_FLIP_TEST
    return JudgeComparison(
        n=len(outcome),
        clusters=contributions.clusters,
        first=estimate_share(spread, ~FIRST_WRONG, ALL, NOTHING_SHARED),
        second=estimate_share(spread, ~SECOND_WRONG, ALL, NOTHING_SHARED),
        difference=accuracy_difference_estimate(spread),
        only_first=counts[ONLY_FIRST],
        only_second=counts[ONLY_SECOND],
        clusters_differing=int(np.count_nonzero(lead)),
        p=p,
        test=test,
    )


def accuracy_difference(totals: FloatArray) -> FloatArray:
    return np.asarray((totals[..., ONLY_FIRST] - totals[..., ONLY_SECOND]) / totals.sum(axis=-1))


def accuracy_difference_estimate(spread: Spread) -> Estimate:
    """The difference of the two accuracies on the same items, so that shared variation cancels.

    Concordant items are not required: the difference varies in full where there are none.
    """
    totals = spread.contributions.totals
    number = Estimate(float(accuracy_difference(totals)), int(totals.sum()))
    if reason := why_interval_withheld(spread.contributions, DISCORDANT):
        return number.without_interval(reason)
    return spread.interval(number, accuracy_difference, CORRELATION_BOUNDS)


def lead_by_cluster(contributions: Contributions) -> IntArray:
    """For each cluster, items on which only the first judge is right minus those on which only the second is."""
    lead = (contributions.cell == ONLY_FIRST).astype(np.float64) - (contributions.cell == ONLY_SECOND)
    return np.bincount(contributions.cluster_number, lead, contributions.clusters).astype(np.int64)


ALPHA: Final = 0.05
LOOKS: Final = 3

NO_TEST_PART: Final = (
    "These p-values are exploratory, so no judge is called better. To test that, set “Split” to test and clear the "
    "other filters."
)


@dataclass(frozen=True)
class HeldOutLook:
    """One look at the test part. ``number``: from 1; ``of``: how many are allowed, fixed when the split was made."""

    number: int
    of: int = LOOKS

    @property
    def is_left(self) -> bool:
        return self.number <= self.of

    @property
    def level(self) -> float:
        """The level of one look, α ÷ looks, which keeps the error rate of all looks together at α (Bonferroni)."""
        return ALPHA / self.of


@dataclass(frozen=True)
class ComparedAspect:
    """Two judges compared on one aspect. ``p_adjusted``: by Holm over the aspects that have a p value.

    ``better``: the name of the better judge, decided by Holm over all judges and aspects of the report; or None.
    """

    comparison: JudgeComparison
    p_adjusted: float | None
    better: str | None


@dataclass(frozen=True)
class ComparedJudges:
    """Two judges on all aspects. ``level``: the level of the adjusted p values, None where ``exploratory``."""

    first: str
    second: str
    aspects: dict[str, ComparedAspect]
    exploratory: bool
    look: int | None
    looks: int | None
    level: float | None
    words: str


def compare_over_aspects(
    first: str,
    second: str,
    by_aspect: Mapping[str, JudgeComparison],
    look: HeldOutLook | None,
    family: Mapping[str, float | None] | None = None,
    size: int | None = None,
) -> ComparedJudges:
    """Two judges on all aspects. ``look``: which look at a test part this is, None where it is none.

    ``family``: p by aspect, adjusted over all ``size`` comparisons of judges and aspects in the report, by which a
    judge is called better; without it these two are all.
    """
    counts = look if look and look.is_left else None
    adjusted = holm_over_aspects(by_aspect)
    decisive = adjusted if family is None else family
    return ComparedJudges(
        first=first,
        second=second,
        aspects={
            aspect: ComparedAspect(
                comparison, adjusted[aspect], better_judge(comparison, decisive[aspect], counts, first, second)
            )
            for aspect, comparison in by_aspect.items()
        },
        exploratory=counts is None,
        look=look.number if look else None,
        looks=look.of if look else None,
        level=counts.level if counts else None,
        words=describe_look(look, sum(p is not None for p in adjusted.values()) if size is None else size),
    )


def holm_over_aspects(by_aspect: Mapping[str, JudgeComparison]) -> dict[str, float | None]:
    p_values = {aspect: comparison.p for aspect, comparison in by_aspect.items() if comparison.p is not None}
    adjusted = dict(zip(p_values, holm_adjust(np.array(list(p_values.values()))).tolist(), strict=True))
    return {aspect: adjusted.get(aspect) for aspect in by_aspect}


def better_judge(
    comparison: JudgeComparison, p: float | None, look: HeldOutLook | None, first: str, second: str
) -> str | None:
    if look is None or p is None or p > look.level or not comparison.difference.value:
        return None
    return first if comparison.difference.value > 0 else second


def describe_look(look: HeldOutLook | None, comparisons: int) -> str:
    if look is None:
        return NO_TEST_PART
    if not look.is_left:
        return (
            f"All {look.of} looks at the test part are used up, so no judge is called better: p-values are exploratory."
        )
    return (
        f"Look {look.number} of {look.of} at the test part. A judge is called better if p, Holm-adjusted over "
        f"{count_phrase(comparisons, 'comparison')} of judges and aspects, is at most {ALPHA:g} ÷ {look.of} = "
        f"{look.level:.4f}."
    )
