"""Intervals from what each entry adds to a number: for those that are no plain function of a few totals.

An entry's influence is the derivative of the number by that entry's weight (Hampel 1974; the infinitesimal
jackknife of Jaeckel 1972). Influences sum to 0, and clusters enter whole.
"""

from dataclasses import dataclass
from math import atanh, sqrt, tanh

import numpy as np

from evaluations.stats.cluster_sums import Clusters
from evaluations.stats.contributions import FloatArray
from evaluations.stats.distributions import t_975
from evaluations.stats.numbers import NO_INTERVAL, Number


@dataclass(frozen=True)
class Influence:
    """What each entry adds, and the clusters of the entries."""

    of: FloatArray
    clusters: Clusters

    @property
    def standard_error(self) -> float:
        """√(Σ_g (Σ_{i in g} of_i)² · G ÷ (G − 1)) over two clusters g or more."""
        by_cluster = self.clusters.total(self.of)
        count = self.clusters.count
        return sqrt(float((by_cluster**2).sum()) * count / (count - 1))


def on_fisher_scale(number: Number, influence: Influence) -> Number:
    """The interval of a correlation, even in atanh of it (Fisher 1921) and so never beyond ±1."""
    clusters = influence.clusters.count
    if number.value is None or clusters < 2:
        return number
    error = influence.standard_error
    if abs(number.value) >= 1 or not np.isfinite(error):
        return number.without_interval(NO_INTERVAL)
    margin = t_975(clusters - 1) * error / (1 - number.value**2)
    low, high = tanh(atanh(number.value) - margin), tanh(atanh(number.value) + margin)
    return number.within(low, high, f"linearised on Fisher's scale over {clusters:,} clusters")
