"""Agreement of two raters on the same items: every coefficient with its interval, with ties and without."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final

import numpy as np

from evaluations.stats import coefficients
from evaluations.stats.coding import CHOICES, BoolArray
from evaluations.stats.coefficients import SIDES as SIDES
from evaluations.stats.coefficients import Tables
from evaluations.stats.contributions import Contributions, FloatArray
from evaluations.stats.intervals import CORRELATION, SHARE, Spread, too_few
from evaluations.stats.numbers import Number, undefined
from evaluations.stats.slopes import measured

NOTHING_SHARED: Final = "No comparison has a choice on both sides."
ALL_TIES: Final = "No comparison is left once ties are dropped."
CONSTANT: Final = "Both sides made the same one choice throughout: agreement by chance would be complete as well."
CONSTANT_RATER: Final = "A rater made the same one choice throughout, which tells no comparison from another."
NO_RATERS: Final = (
    "Pooled pairs of votes have no first and second rater: see Scott's pi here, and Cohen's kappa of each two people."
)
TWO_SIDES_KAPPA: Final = "Two sides have no order: it is Cohen's kappa."
TWO_SIDES_AC1: Final = "Two sides have no order: it is AC1."
MORE_THAN_TWO: Final = "It is defined for two choices: see it without ties."

CELLS: Final = len(CHOICES) ** 2
ALL: Final[BoolArray] = np.ones(CELLS, dtype=bool)
SAME: Final[BoolArray] = np.eye(len(CHOICES), dtype=bool).ravel()
SIDED: Final[BoolArray] = np.outer(np.arange(len(CHOICES)) < SIDES, np.arange(len(CHOICES)) < SIDES).ravel()
# Tie and both bad are one step of the order: where they meet, nobody disagrees about it.
SAME_IN_ORDER: Final[BoolArray] = (
    SAME | ~np.add.outer(np.arange(len(CHOICES)) < SIDES, np.arange(len(CHOICES)) < SIDES).ravel()
)


@dataclass(frozen=True)
class Agreement:
    """What two say on the same ``n`` items, of which they ``agree`` on so many. `coefficients` has the formulas."""

    agree: int
    n: int
    agreement: Number
    cohen_kappa: Number
    weighted_kappa: Number
    scott_pi: Number
    gwet_ac1: Number
    gwet_ac2: Number
    prevalence_index: Number
    bias_index: Number


@dataclass(frozen=True)
class Block:
    """With ties (S1) and without (S2); ``dropped`` is the share of items that S2 leaves out."""

    with_ties: Agreement
    without_ties: Agreement
    dropped: Number


@dataclass(frozen=True)
class MajorityBlock(Block):
    """Held against a majority; ``n_split`` counts the items on which no single choice led."""

    n_split: int


@dataclass(frozen=True)
class PooledBlock(Block):
    """Every pair of votes on the same item; ``self_pairs`` counts those of one person with itself."""

    self_pairs: int


@dataclass(frozen=True)
class Way:
    """With ties or without: the cells that count, what is made of them, and what is not to be had of them."""

    cells: BoolArray
    measures: tuple[str, ...]
    withheld: Mapping[str, str]


S1: Final = Way(
    ALL,
    ("agreement", "cohen_kappa", "weighted_kappa", "scott_pi", "gwet_ac1", "gwet_ac2"),
    {"prevalence_index": MORE_THAN_TWO, "bias_index": MORE_THAN_TWO},
)
S2: Final = Way(
    SIDED,
    ("agreement", "cohen_kappa", "scott_pi", "gwet_ac1", "prevalence_index", "bias_index"),
    {"weighted_kappa": TWO_SIDES_KAPPA, "gwet_ac2": TWO_SIDES_AC1},
)
COEFFICIENTS: Final = ("cohen_kappa", "weighted_kappa", "scott_pi", "gwet_ac1", "gwet_ac2")
NEED_RATERS: Final = ("cohen_kappa", "weighted_kappa", "bias_index")
IN_ORDER: Final = ("weighted_kappa", "gwet_ac2")

# The numbers of a block in one row: those of S1, the share dropped, those of S2.
DROPPED: Final = len(S1.measures)
ROW: Final = (*S1.measures, "dropped", *S2.measures)
BOUNDS: Final = tuple(SHARE if name in ("agreement", "dropped") else CORRELATION for name in ROW)
AMONG: Final = (ALL,) * (DROPPED + 1) + (SIDED,) * len(S2.measures)


def block(found: Contributions, q: int, *, empty: str = NOTHING_SHARED, raters_known: bool = True) -> Block:
    """``found``: a table of choices by choices, as `crossed` makes it. ``q``: how many choices the rubric offers."""
    row = measured(numbers_of_a_block(max(q, SIDES)), found.totals)
    values = row.values.tolist()
    table, n = Tables(found.totals.reshape(len(CHOICES), len(CHOICES))), int(found.totals.sum())
    if raters_known:
        no_s1, no_s2 = of_constant(table.in_order(), IN_ORDER) | of_constant(table), of_constant(table.sides)
    else:
        no_s1 = no_s2 = dict.fromkeys(NEED_RATERS, NO_RATERS)
    numbers = [
        *defined(S1, n, values[:DROPPED], no_s1, empty),
        Number(values[DROPPED], n) if n else undefined(empty),
        *defined(S2, int(found.totals[SIDED].sum()), values[DROPPED + 1 :], no_s2, ALL_TIES if n else empty),
    ]
    few = [*reasons(found, S1), too_few(found, SIDED, among=ALL), *reasons(found, S2)]
    within = Spread(found).hedged(numbers, row, BOUNDS, few, AMONG)
    with_ties, without_ties = agreement(found, S1, within[:DROPPED]), agreement(found, S2, within[DROPPED + 1 :])
    return Block(with_ties, without_ties, within[DROPPED])


def of_constant(table: Tables, measures: Sequence[str] = COEFFICIENTS) -> dict[str, str]:
    """The measures that one table has no number for, since a rater is constant: it tells no item from another.

    Where both are, and make the same choice, AC1 may say that the aspect is constant.
    """
    return dict.fromkeys(measures, CONSTANT_RATER) if table.has_constant and table.agree < table.n else {}


def numbers_of_a_block(q: int) -> Callable[[FloatArray], FloatArray]:
    """… × 16 cells → … × ROW, of q choices on offer."""

    def statistic(totals: FloatArray) -> FloatArray:
        table = Tables(totals.reshape(*totals.shape[:-1], len(CHOICES), len(CHOICES)))
        in_order, sides = table.in_order(), table.sides
        return side_by_side(
            coefficients.raw_agreement(table),
            coefficients.cohen_kappa(table),
            coefficients.weighted_kappa(in_order),
            coefficients.scott_pi(table),
            coefficients.gwet_ac1(table, q),
            coefficients.gwet_ac2(in_order, min(q, SIDES + 1)),
            1 - sides.n / table.n,
            coefficients.raw_agreement(sides),
            coefficients.cohen_kappa(sides),
            coefficients.scott_pi(sides),
            coefficients.gwet_ac1(sides, SIDES),
            coefficients.prevalence_index(sides),
            coefficients.bias_index(sides),
        )

    return statistic


def side_by_side(*numbers: FloatArray) -> FloatArray:
    """… each → … × numbers, number by number in memory."""
    return np.moveaxis(np.stack(numbers), 0, -1)


def defined(way: Way, n: int, values: Sequence[float], withheld: Mapping[str, str], empty: str) -> list[Number]:
    if not n:
        return [undefined(empty)] * len(values)
    return [
        Number(value, n) if name not in withheld and isfinite(value) else undefined(withheld.get(name, CONSTANT), n)
        for name, value in zip(way.measures, values, strict=True)
    ]


def reasons(found: Contributions, way: Way) -> list[str | None]:
    """Why there is too little for an interval, for each measure."""
    few = too_few(found, ~SAME, among=way.cells)
    in_order = few
    if few is None and found.totals[SAME_IN_ORDER & ~SAME].any():
        in_order = too_few(found, ~SAME_IN_ORDER, among=way.cells)
    return [in_order if name in IN_ORDER else few for name in way.measures]


def agreement(found: Contributions, way: Way, numbers: Sequence[Number]) -> Agreement:
    agree, n = int(found.totals[way.cells & SAME].sum()), numbers[0].n
    withheld = {name: undefined(why, n) if n else numbers[0] for name, why in way.withheld.items()}
    return Agreement(agree, n, **dict(zip(way.measures, numbers, strict=True)), **withheld)
