"""Which differences between a judge and reviewers are shown at once over every aspect and judge of a report.

Of twelve judges that are no worse than reviewers one or another seems to be, where each is looked at alone. The
intervals here hold together: in 95 % of samples all of them hold the truth (Hothorn, Bretz and Westfall 2008), and a
report makes any false claim in 5 %.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt
from typing import Final, TypeVar

import numpy as np

from evaluations.stats import bootstrap
from evaluations.stats.bootstrap import RESAMPLES, SEED
from evaluations.stats.coding import IntArray
from evaluations.stats.contributions import FloatArray, effective_number
from evaluations.stats.distributions import t_quantile, t_upper_tail
from evaluations.stats.intervals import BOOTSTRAP_UP_TO, LEAST_DISAGREEING, too_few_of
from evaluations.stats.multiplicity import holm
from evaluations.stats.numbers import NO_INTERVAL

LEVEL: Final = 0.05
AT_ONCE: Final = 65_536  # clusters whose additions stand in memory side by side
NOISE: Final = 1e-12  # of a mean of −1, 0 and 1: what clusters that add alike leave behind
LEAST_TESTED: Final = 10  # effective clusters: below, not even a t knows how they vary

NO_COMPANY: Final = "No comparison has the judge's verdict and votes of two reviewers."

Key = TypeVar("Key", bound=Hashable)


class Claim(StrEnum):
    """What is shown of a judge beside reviewers."""

    BELOW = "below"
    ABOVE = "above"
    NONE = "not shown"


@dataclass(frozen=True)
class Difference:
    """A mean of differences, −1, 0 or 1, one for each entry: ``added``, what each cluster adds to it, around 0.

    ``cluster``: the clusters that add to it, by their number in the evaluation, ascending. ``size``: their share of
    all entries. ``differing``: how many of them hold an entry that is not 0.
    """

    value: float
    cluster: IntArray
    added: FloatArray
    size: FloatArray
    differing: int

    @property
    def effective(self) -> float:
        """How many clusters of one size tell as much."""
        return effective_number(self.size)

    @property
    def standard_error(self) -> float:
        """√(Σ added² · G ÷ (G − 1)) over clusters (Binder 1983); 0 where nothing but rounding varies."""
        count = len(self.cluster)
        error = sqrt(float((self.added**2).sum()) * count / (count - 1)) if count > 1 else 0.0
        return error if error > NOISE else 0.0

    @property
    def degrees(self) -> float:
        return max(self.effective - 1, 1.0)


@dataclass(frozen=True)
class Simultaneous:
    """A difference, judge − reviewers, as it is shown over the whole family of ``family`` differences.

    ``ci95``: None where ``why`` says that the bootstrap does not apply. ``p``: adjusted, of a difference that has none.
    """

    difference: float | None
    ci95: tuple[float, float] | None
    p: float | None
    claim: Claim
    family: int
    rule: str | None
    why: str | None


def mean_difference(person: IntArray, difference: IntArray, cluster: IntArray) -> Difference | None:
    """The mean over people of their mean difference, each weighing the same; None without entries.

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
    return Difference(
        value=float(mean[counted].mean()),
        cluster=present,
        added=np.bincount(cluster, added)[present].astype(np.float64, copy=False),
        size=size[present] / len(cluster),
        differing=int(np.count_nonzero(np.bincount(cluster[difference != 0], minlength=1))),
    )


def simultaneous(differences: Mapping[Key, Difference | None]) -> dict[Key, Simultaneous]:
    """One for each of the family, whose chance of any false claim is LEVEL.

    Where the bootstrap applies by max-|t|, elsewhere by Holm on the t of clusters; each has of LEVEL the share of
    differences that are tested so.
    """
    family = len(differences)
    drawn = {key: one for key, one in differences.items() if one is not None and not withheld(one)}
    tested = {
        key: one
        for key, one in differences.items()
        if one is not None and key not in drawn and one.effective >= LEAST_TESTED and one.differing >= LEAST_DISAGREEING
    }
    found = {key: nothing(one, family) for key, one in differences.items()}
    share = LEVEL / max(len(drawn) + len(tested), 1)
    found |= by_bootstrap(drawn, share * len(drawn), family)
    return found | by_holm(tested, share * len(tested), family)


def withheld(one: Difference) -> str | None:
    if not one.standard_error:
        return NO_INTERVAL
    return too_few_of(one.effective, one.differing, clusters=len(one.cluster))


def nothing(one: Difference | None, family: int) -> Simultaneous:
    why = NO_COMPANY if one is None else withheld(one)
    return Simultaneous(None if one is None else one.value, None, None, Claim.NONE, family, None, why)


# ---- max-|t| ---------------------------------------------------------------------------------


def by_bootstrap(differences: Mapping[Key, Difference], level: float, family: int) -> dict[Key, Simultaneous]:
    """Value ± c · standard error, c the quantile of the largest |t| over all draws, and never below that of one t."""
    if not differences:
        return {}
    members = list(differences.values())
    of_one = t_quantile(1 - level / 2, min(one.degrees for one in members))
    critical = max(float(np.quantile(largest_t(members), 1 - level)), of_one)
    found = {}
    for key, one in differences.items():
        margin = critical * one.standard_error
        ci95 = max(one.value - margin, -1.0), min(one.value + margin, 1.0)
        rule = f"max-|t| bootstrap of clusters over {family:,} differences, {RESAMPLES:,} draws"
        found[key] = Simultaneous(one.value, ci95, None, claim_of(*ci95), family, rule, None)
    return found


def claim_of(low: float, high: float) -> Claim:
    if high < 0:
        return Claim.BELOW
    return Claim.ABOVE if low > 0 else Claim.NONE


def largest_t(differences: Sequence[Difference]) -> FloatArray:
    """RESAMPLES draws of the largest |t| of all differences around those at hand, clusters drawn alike for all."""
    clusters = np.unique(np.concatenate([one.cluster for one in differences]))
    if len(clusters) > BOOTSTRAP_UP_TO:
        return largest_normal(differences)
    added, size = np.zeros((2, len(clusters), len(differences)))
    for column, one in enumerate(differences):
        places = np.searchsorted(clusters, one.cluster)
        added[places, column], size[places, column] = one.added, one.size
    return np.asarray(np.abs(studentised(added, size)).max(axis=1))


def studentised(added: FloatArray, size: FloatArray) -> FloatArray:
    """t of each difference in each resample of clusters: RESAMPLES × differences.

    Its own standard error is in each, for mean and error go together where what clusters add is skewed: a judge that
    agrees with one of two who differ gains ½, one that differs from two who agree loses 1. ``added`` and ``size``, of
    the cluster among all: clusters × differences.
    """
    count = added.shape[1]
    values = [added, size, added**2, added * size, size**2]
    sums = bootstrap.resampled(np.concatenate(values, axis=1))
    moved, weight, squares, products, sizes = (sums[:, k * count : (k + 1) * count] for k in range(len(values)))
    clusters = np.count_nonzero(size, axis=0)
    with np.errstate(all="ignore"):
        mean = moved / weight
        variance = (squares - 2 * mean * products + mean**2 * sizes) * (clusters / (clusters - 1))
        found = moved / np.sqrt(variance)
    return np.where(np.isfinite(found), found, 0.0)


def largest_normal(differences: Sequence[Difference]) -> FloatArray:
    """The same of many clusters, whose sums are normal with the covariance that the clusters have."""
    covariance = products(differences)
    scale = np.sqrt(np.diag(covariance))
    spread, directions = np.linalg.eigh(covariance / np.outer(scale, scale))
    root = directions * np.sqrt(np.maximum(spread, 0.0))
    drawn = np.random.default_rng(SEED).normal(size=(RESAMPLES, len(differences))) @ root.T
    return np.asarray(np.abs(drawn).max(axis=1))


def products(differences: Sequence[Difference]) -> FloatArray:
    """Σ over clusters of what they add to two differences, for every two: a cluster that adds to one alone adds 0."""
    clusters = max(int(one.cluster[-1]) for one in differences) + 1
    found = np.zeros((len(differences), len(differences)))
    for first in range(0, clusters, AT_ONCE):
        part = np.zeros((len(differences), min(AT_ONCE, clusters - first)))
        for row, one in zip(part, differences, strict=True):
            inside = slice(*np.searchsorted(one.cluster, [first, first + AT_ONCE]))
            row[one.cluster[inside] - first] = one.added[inside]
        found += part @ part.T
    return found


# ---- where the bootstrap does not apply -------------------------------------------------------


def by_holm(differences: Mapping[Key, Difference], level: float, family: int) -> dict[Key, Simultaneous]:
    """p adjusted by Holm, times what LEVEL is of its share."""
    testable = {key: one for key, one in differences.items() if one.standard_error}
    if not testable:
        return {}
    p = [p_value(one) for one in testable.values()]
    adjusted = np.minimum(holm(np.array(p)) * (LEVEL / level), 1.0).tolist()
    found = {}
    for (key, one), p_adjusted in zip(testable.items(), adjusted, strict=True):
        claim = (Claim.BELOW if one.value < 0 else Claim.ABOVE) if p_adjusted <= LEVEL else Claim.NONE
        rule = f"cluster t, Holm over {len(testable):,} of {family:,} differences"
        found[key] = Simultaneous(one.value, None, p_adjusted, claim, family, rule, withheld(one))
    return found


def p_value(one: Difference) -> float:
    """Two-sided, by the t of clusters; where what they add is skewed, by as many draws as have a larger |t|."""
    t = abs(one.value) / one.standard_error
    drawn = np.abs(studentised(one.added[:, None], one.size[:, None]))
    as_large = (int(np.count_nonzero(drawn >= t)) + 1) / (RESAMPLES + 1)
    return max(2 * t_upper_tail(t, one.degrees), as_large)
