"""Simultaneous intervals of the differences between judges and reviewers over a whole report.

Among twelve judges that are no worse than reviewers one or another seems worse if each is looked at alone. These
intervals hold together: in 95 % of samples all of them contain the truth (Hothorn, Bretz and Westfall 2008), and a
report makes a false claim in at most 5 %.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt
from typing import Final, TypeVar

import numpy as np

from evaluations.stats.cluster_totals import effective_cluster_count
from evaluations.stats.coding import FloatArray, IntArray, join_numbers
from evaluations.stats.confidence_intervals import (
    BOOTSTRAP_UP_TO,
    MIN_DISAGREEING,
    RESAMPLES,
    SEED,
    resample_totals,
    why_counts_withhold_interval,
)
from evaluations.stats.estimates import NO_INTERVAL
from evaluations.stats.significance import holm_adjust, t_quantile, t_upper_tail

LEVEL: Final = 0.05
AT_ONCE: Final = 65_536  # clusters whose influences are in memory at the same time
NOISE: Final = 1e-12  # of a mean of −1, 0 and 1: the rounding error where all clusters have equal influence
MIN_TESTED: Final = 10  # effective clusters; below, not even a t test is reliable
NO_COMPANY: Final = "No comparison has the judge's verdict and votes of two reviewers."
Key = TypeVar("Key", bound=Hashable)


class Claim(StrEnum):
    """The claim that may be made about a judge compared with reviewers."""

    BELOW = "below"
    ABOVE = "above"
    NONE = "not shown"


@dataclass(frozen=True)
class MeanDifference:
    """A mean of differences, −1, 0 or 1, one for each entry: ``influence``, what each cluster adds to it, around 0.

    ``cluster``: the clusters that add to it, by their number in the evaluation, ascending. ``size``: their share of
    all entries. ``differing``: how many of them hold an entry that is not 0.
    """

    value: float
    cluster: IntArray
    influence: FloatArray
    size: FloatArray
    differing: int

    @property
    def effective(self) -> float:
        """The effective number of clusters, (Σn)² ÷ Σn² of their sizes."""
        return effective_cluster_count(self.size)

    @property
    def standard_error(self) -> float:
        """√(Σ added² · G ÷ (G − 1)) over clusters (Binder 1983); 0 where nothing but rounding varies."""
        count = len(self.cluster)
        error = sqrt(float((self.influence**2).sum()) * count / (count - 1)) if count > 1 else 0.0
        return error if error > NOISE else 0.0

    @property
    def degrees(self) -> float:
        return max(self.effective - 1, 1.0)


@dataclass(frozen=True)
class SimultaneousDifference:
    """A difference, judge − reviewers, with its simultaneous interval over ``family`` differences.

    ``ci95``: None for the reason ``why`` where the bootstrap does not apply. ``p``: adjusted, of a difference that has
    none.
    """

    difference: float | None
    ci95: tuple[float, float] | None
    p: float | None
    claim: Claim
    family: int
    rule: str | None
    why: str | None


def average_difference_over_raters(person: IntArray, difference: IntArray, cluster: IntArray) -> MeanDifference | None:
    """The unweighted mean over people of their mean difference; None without entries.

    One entry for each item of a person: who, the difference, and the cluster by its number in the evaluation.
    """
    if not len(person):
        return None
    n = np.bincount(person)
    counted = n > 0
    mean = np.bincount(person, difference) / np.maximum(n, 1)
    added = (difference - mean[person]) / (n[person] * np.count_nonzero(counted))
    size = np.bincount(cluster)
    present = np.flatnonzero(size)
    return MeanDifference(
        value=float(mean[counted].mean()),
        cluster=present,
        influence=np.bincount(cluster, added)[present].astype(np.float64, copy=False),
        size=size[present] / len(cluster),
        differing=int(np.count_nonzero(np.bincount(cluster[difference != 0], minlength=1))),
    )


def simultaneous_intervals(differences: Mapping[Key, MeanDifference | None]) -> dict[Key, SimultaneousDifference]:
    """One for each of the family, whose chance of any false claim is LEVEL.

    Where the bootstrap applies by max-|t|, elsewhere by Holm on the t of clusters; each has of LEVEL the share of
    differences that are tested so.
    """
    family = len(differences)
    drawn = {
        key: difference
        for key, difference in differences.items()
        if difference is not None and not why_claim_withheld(difference)
    }
    tested = {
        key: difference
        for key, difference in differences.items()
        if difference is not None
        and key not in drawn
        and difference.effective >= MIN_TESTED
        and difference.differing >= MIN_DISAGREEING
    }
    intervals = {key: without_claim(difference, family) for key, difference in differences.items()}
    share = LEVEL / max(len(drawn) + len(tested), 1)
    intervals |= max_t_intervals(drawn, share * len(drawn), family)
    return intervals | holm_intervals(tested, share * len(tested), family)


def why_claim_withheld(difference: MeanDifference) -> str | None:
    if not difference.standard_error:
        return NO_INTERVAL
    return why_counts_withhold_interval(difference.effective, difference.differing, clusters=len(difference.cluster))


def without_claim(difference: MeanDifference | None, family: int) -> SimultaneousDifference:
    why = NO_COMPANY if difference is None else why_claim_withheld(difference)
    return SimultaneousDifference(
        None if difference is None else difference.value, None, None, Claim.NONE, family, None, why
    )


def max_t_intervals(
    differences: Mapping[Key, MeanDifference], level: float, family: int
) -> dict[Key, SimultaneousDifference]:
    """Value ± c · standard error, c the quantile of the largest |t| over all draws, and never below that of one t."""
    if not differences:
        return {}
    members = list(differences.values())
    of_one = t_quantile(1 - level / 2, min(member.degrees for member in members))
    critical = max(float(np.quantile(bootstrap_max_t(members), 1 - level)), of_one)
    intervals = {}
    for key, difference in differences.items():
        margin = critical * difference.standard_error
        ci95 = max(difference.value - margin, -1.0), min(difference.value + margin, 1.0)
        rule = f"max-|t| bootstrap of clusters over {family:,} differences, {RESAMPLES:,} draws"
        intervals[key] = SimultaneousDifference(
            difference.value, ci95, None, claim_from_interval(*ci95), family, rule, None
        )
    return intervals


def claim_from_interval(low: float, high: float) -> Claim:
    if high < 0:
        return Claim.BELOW
    return Claim.ABOVE if low > 0 else Claim.NONE


def bootstrap_max_t(differences: Sequence[MeanDifference]) -> FloatArray:
    """RESAMPLES draws of the largest |t| of all differences, with the same clusters drawn for all."""
    return np.asarray(np.abs(draw_t(differences)).max(axis=1))


def draw_t(differences: Sequence[MeanDifference]) -> FloatArray:
    """Draws of t of each difference with the same clusters for all: RESAMPLES × differences."""
    clusters = join_numbers([difference.cluster for difference in differences])
    if len(clusters) > BOOTSTRAP_UP_TO:
        return draw_normal_t(differences)
    added, size = np.zeros((2, len(clusters), len(differences)))
    for column, difference in enumerate(differences):
        positions = np.searchsorted(clusters, difference.cluster)
        added[positions, column], size[positions, column] = difference.influence, difference.size
    return studentise_resamples(added, size)


def studentise_resamples(added: FloatArray, size: FloatArray) -> FloatArray:
    """t of each difference in each resample of clusters: RESAMPLES × differences.

    Its own standard error is in each, for mean and error go together where what clusters add is skewed: a judge that
    agrees with one of two who differ gains ½, one that differs from two who agree loses 1. ``added`` and ``size``, of
    the cluster among all: clusters × differences.
    """
    count = added.shape[1]
    values = [added, size, added**2, added * size, size**2]
    sums = resample_totals(np.concatenate(values, axis=1))
    moved, weight, squares, products, sizes = (sums[:, k * count : (k + 1) * count] for k in range(len(values)))
    clusters = np.count_nonzero(size, axis=0)
    with np.errstate(all="ignore"):
        mean = moved / weight
        variance = (squares - 2 * mean * products + mean**2 * sizes) * (clusters / (clusters - 1))
        studentised = moved / np.sqrt(variance)
    return np.where(np.isfinite(studentised), studentised, 0.0)


def draw_normal_t(differences: Sequence[MeanDifference]) -> FloatArray:
    """Draws of t for many clusters, whose sums are normal with the covariance of the clusters."""
    covariance = cluster_covariances(differences)
    scale = np.sqrt(np.diag(covariance))
    spread, directions = np.linalg.eigh(covariance / np.outer(scale, scale))
    root = directions * np.sqrt(np.maximum(spread, 0.0))
    return np.asarray(np.random.default_rng(SEED).normal(size=(RESAMPLES, len(differences))) @ root.T)


def cluster_covariances(differences: Sequence[MeanDifference]) -> FloatArray:
    """Σ over clusters of what they add to two differences, for every two: a cluster that adds to one alone adds 0."""
    clusters = max(int(difference.cluster[-1]) for difference in differences) + 1
    covariances = np.zeros((len(differences), len(differences)))
    for first in range(0, clusters, AT_ONCE):
        part = np.zeros((len(differences), min(AT_ONCE, clusters - first)))
        for row, difference in zip(part, differences, strict=True):
            inside = slice(*np.searchsorted(difference.cluster, [first, first + AT_ONCE]))
            row[difference.cluster[inside] - first] = difference.influence[inside]
        covariances += part @ part.T
    return covariances


def holm_intervals(
    differences: Mapping[Key, MeanDifference], level: float, family: int
) -> dict[Key, SimultaneousDifference]:
    """Claims by t tests of clusters, p adjusted by Holm and scaled so that it compares with LEVEL, not ``level``."""
    testable = {key: difference for key, difference in differences.items() if difference.standard_error}
    if not testable:
        return {}
    p = [difference_p_value(difference) for difference in testable.values()]
    adjusted = np.minimum(holm_adjust(np.array(p)) * (LEVEL / level), 1.0).tolist()
    intervals = {}
    for (key, difference), p_adjusted in zip(testable.items(), adjusted, strict=True):
        claim = (Claim.BELOW if difference.value < 0 else Claim.ABOVE) if p_adjusted <= LEVEL else Claim.NONE
        rule = f"cluster t, Holm over {len(testable):,} of {family:,} differences"
        intervals[key] = SimultaneousDifference(
            difference.value, None, p_adjusted, claim, family, rule, why_claim_withheld(difference)
        )
    return intervals


def difference_p_value(difference: MeanDifference) -> float:
    """Two-sided p by t over clusters, or by the share of resamples with a larger |t| if that is larger (skewness)."""
    t = abs(difference.value) / difference.standard_error
    drawn = np.abs(studentise_resamples(difference.influence[:, None], difference.size[:, None]))
    as_large = (int(np.count_nonzero(drawn >= t)) + 1) / (RESAMPLES + 1)
    return max(2 * t_upper_tail(t, difference.degrees), as_large)
