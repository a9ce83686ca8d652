"""Whether two sides put the same responses in the same order: Spearman's ρ and Kendall's τ-b."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Final

import numpy as np

from evaluations.stats.cluster_sums import Clusters
from evaluations.stats.concordance import concordance
from evaluations.stats.contributions import Contributions, FloatArray
from evaluations.stats.influence import Influence, on_fisher_scale
from evaluations.stats.intervals import BOOTSTRAP_UP_TO, Spread, Statistic
from evaluations.stats.numbers import Number, undefined
from evaluations.stats.ranks import Ranked

DRAWN_CELLS: Final = 121  # of a table of the distinct values, 11 × 11; with more its resamples take too long

CONSTANT: Final = "A side gives every response the same score, which tells no response from another."


@dataclass(frozen=True)
class Orders:
    """Two sides of the same entries as ranks."""

    x: Ranked
    y: Ranked
    clusters: Clusters

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.x.count), len(self.y.count)

    @cached_property
    def table(self) -> Spread | None:
        """How totals of the table of distinct values vary, where it is small enough to be resampled."""
        rows, columns = self.shape
        if rows * columns > DRAWN_CELLS or self.clusters.count > BOOTSTRAP_UP_TO:
            return None
        return Spread(Contributions(self.clusters.of, self.x.code * columns + self.y.code, rows * columns))

    def with_interval(
        self, value: float, of_table: Callable[[FloatArray], FloatArray], influence: Callable[[], FloatArray]
    ) -> Number:
        number = Number(value, len(self.x.code))
        if self.table is not None:
            return self.table.interval(number, self.of_totals(of_table))
        return on_fisher_scale(number, Influence(influence(), self.clusters))

    def of_totals(self, of_table: Callable[[FloatArray], FloatArray]) -> Statistic:
        return lambda totals: of_table(totals.reshape(*totals.shape[:-1], *self.shape))


def spearman(orders: Orders) -> Number:
    """Pearson's correlation of mid-ranks (Spearman 1904). Undefined where a side is constant.

    By bootstrap of clusters where the table of values is small and the clusters few, else linearised.
    """
    if orders.x.is_constant or orders.y.is_constant:
        return undefined(CONSTANT, len(orders.x.code))
    x, y = orders.x.standing, orders.y.standing
    product, of_x, of_y = float((x * y).sum()), float((x * x).sum()), float((y * y).sum())
    scale = sqrt(of_x * of_y)
    value = product / scale

    def influence() -> FloatArray:
        # An entry counts at its own place and moves the ranks of those above it on either side.
        moved = x * y + orders.x.above(y) + orders.y.above(x)
        spread_x, spread_y = x * x + 2 * orders.x.above(x), y * y + 2 * orders.y.above(y)
        return moved / scale - value / 2 * (spread_x / of_x + spread_y / of_y)

    return orders.with_interval(value, spearman_of_tables, influence)


def kendall_tau_b(orders: Orders) -> Number:
    """(concordant − discordant) ÷ √(pairs not tied on x · pairs not tied on y) (Kendall 1945).

    Undefined where a side is constant. Intervals as Spearman's.
    """
    n = len(orders.x.code)
    if orders.x.is_constant or orders.y.is_constant:
        return undefined(CONSTANT, n)
    concordant = concordance(orders.x, orders.y)
    untied_x, untied_y = (n - side.count[side.code] for side in (orders.x, orders.y))
    of_x, of_y = float(untied_x.sum()), float(untied_y.sum())
    scale = sqrt(of_x * of_y)
    value = float(concordant.sum()) / scale

    def influence() -> FloatArray:
        # Each pair has two members: the derivative by one of them is twice its part of the sum.
        return 2 * concordant / scale - value * (untied_x / of_x + untied_y / of_y)

    return orders.with_interval(value, tau_b_of_tables, influence)


# ---- of tables: (…, rows, columns) → (…) ---------------------------------------------------


def spearman_of_tables(table: FloatArray) -> FloatArray:
    x, y = standing_of(table.sum(axis=-1)), standing_of(table.sum(axis=-2))
    product = np.einsum("...ij,...i,...j", table, x, y)
    of_x, of_y = (table.sum(axis=-1) * x * x).sum(axis=-1), (table.sum(axis=-2) * y * y).sum(axis=-1)
    return np.asarray(product / np.sqrt(of_x * of_y))


def standing_of(margin: FloatArray) -> FloatArray:
    return np.asarray(np.cumsum(margin, axis=-1) - margin / 2 - margin.sum(axis=-1, keepdims=True) / 2)


def tau_b_of_tables(table: FloatArray) -> FloatArray:
    n = table.sum(axis=(-1, -2))
    pairs_in_order = 2 * (table * lower_concordant(table)).sum(axis=(-1, -2))
    tied = [(table.sum(axis=side) ** 2).sum(axis=-1) for side in (-1, -2)]
    return np.asarray(pairs_in_order / np.sqrt((n**2 - tied[0]) * (n**2 - tied[1])))


def lower_concordant(table: FloatArray) -> FloatArray:
    """Per cell the entries of lower rows: those in lower columns less those in higher."""
    lower = np.cumsum(table, axis=-2) - table
    left = np.cumsum(lower, axis=-1) - lower
    right = lower.sum(axis=-1, keepdims=True) - left - lower
    return np.asarray(left - right)
