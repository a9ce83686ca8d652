"""Agreement of two raters on the same items, with ties and without, each coefficient with its interval."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final

import numpy as np

from evaluations.stats.agreement_coefficients import (
    SIDES,
    ContingencyTables,
    bias_index,
    cohen_kappa,
    contingency_tables,
    gwet_ac1,
    gwet_ac2,
    prevalence_index,
    raw_agreement,
    scott_pi,
    weighted_kappa,
)
from evaluations.stats.cluster_totals import Contributions
from evaluations.stats.coding import CHOICES, BoolArray, FloatArray
from evaluations.stats.confidence_intervals import (
    CORRELATION_BOUNDS,
    SHARE_BOUNDS,
    Spread,
    differentiate,
    why_interval_withheld,
)
from evaluations.stats.estimates import Estimate, undefined_estimate

NOTHING_SHARED: Final = "No comparison has a choice on both sides."
ALL_TIES: Final = "No comparison is left without ties."
CONSTANT: Final = "Both sides always made the same choice, so chance agreement is also 100%."
CONSTANT_RATER: Final = "A rater always made the same choice, so the coefficient is undefined."
NO_RATERS: Final = (
    "Pooled pairs of votes have no first and second rater. See Scott's pi, and Cohen's kappa of each pair of reviewers."
)
TWO_SIDES_KAPPA: Final = "Two unordered categories: same as Cohen's kappa."
TWO_SIDES_AC1: Final = "Two unordered categories: same as AC1."
MORE_THAN_TWO: Final = "Defined for two choices only. See it without ties."
CELLS: Final = CHOICES**2
ALL: Final[BoolArray] = np.ones(CELLS, dtype=bool)
SAME: Final[BoolArray] = np.eye(CHOICES, dtype=bool).ravel()
IS_SIDE: Final[BoolArray] = np.arange(CHOICES) < SIDES
SIDED: Final[BoolArray] = np.outer(IS_SIDE, IS_SIDE).ravel()
# Tie and both bad are one step of the order A – tie – B, so that a tie against both bad is no disagreement there.
SAME_IN_ORDER: Final[BoolArray] = SAME | ~np.add.outer(IS_SIDE, IS_SIDE).ravel()


@dataclass(frozen=True)
class Agreement:
    """Agreement of two raters on ``n`` items, on ``agree`` of which they made the same choice."""

    agree: int
    n: int
    agreement: Estimate
    cohen_kappa: Estimate
    weighted_kappa: Estimate
    scott_pi: Estimate
    gwet_ac1: Estimate
    gwet_ac2: Estimate
    prevalence_index: Estimate
    bias_index: Estimate


@dataclass(frozen=True)
class AgreementBlock:
    """Agreement with ties (S1) and without (S2); ``dropped`` is the share of items that S2 leaves out."""

    with_ties: Agreement
    without_ties: Agreement
    dropped: Estimate


@dataclass(frozen=True)
class MajorityBlock(AgreementBlock):
    """Agreement with a majority; ``n_split`` counts the items without a single leading choice."""

    n_split: int


@dataclass(frozen=True)
class PooledBlock(AgreementBlock):
    """Agreement of all pairs of votes on an item; ``self_pairs`` counts those of one person with itself."""

    self_pairs: int


@dataclass(frozen=True)
class TieTreatment:
    """The cells that count with or without ties, their measures, and the reasons for missing measures."""

    cells: BoolArray
    measures: tuple[str, ...]
    withheld: Mapping[str, str]


S1: Final = TieTreatment(
    ALL,
    ("agreement", "cohen_kappa", "weighted_kappa", "scott_pi", "gwet_ac1", "gwet_ac2"),
    {"prevalence_index": MORE_THAN_TWO, "bias_index": MORE_THAN_TWO},
)
S2: Final = TieTreatment(
    SIDED,
    ("agreement", "cohen_kappa", "scott_pi", "gwet_ac1", "prevalence_index", "bias_index"),
    {"weighted_kappa": TWO_SIDES_KAPPA, "gwet_ac2": TWO_SIDES_AC1},
)
COEFFICIENTS: Final = ("cohen_kappa", "weighted_kappa", "scott_pi", "gwet_ac1", "gwet_ac2")
NEED_RATERS: Final = ("cohen_kappa", "weighted_kappa", "bias_index")
IN_ORDER: Final = ("weighted_kappa", "gwet_ac2")
# All estimates of a block in one row: those of S1, the share dropped, those of S2.
DROPPED: Final = len(S1.measures)
ROW: Final = (*S1.measures, "dropped", *S2.measures)
BOUNDS: Final = tuple(SHARE_BOUNDS if name in ("agreement", "dropped") else CORRELATION_BOUNDS for name in ROW)
AMONG: Final = (ALL,) * (DROPPED + 1) + (SIDED,) * len(S2.measures)


def agreement_block(
    contributions: Contributions, q: int, *, empty: str = NOTHING_SHARED, raters_known: bool = True
) -> AgreementBlock:
    """All measures of agreement of a 4 × 4 table of choices by cluster, with ties (S1) and without (S2).

    ``contributions``: the table, from `cross_tabulate_by_cluster`. ``q``: how many choices the rubric offers.
    ``empty``: the reason where the table is empty. ``raters_known``: whether rows and columns are two raters.
    """
    measured = differentiate(block_statistic(max(q, SIDES)), contributions.totals)
    values = measured.values.tolist()
    table, n = contingency_tables(contributions.totals), int(contributions.totals.sum())
    if raters_known:
        no_s1 = reasons_for_constant_rater(table.in_order(), IN_ORDER) | reasons_for_constant_rater(table)
        no_s2 = reasons_for_constant_rater(table.sides)
    else:
        no_s1 = no_s2 = dict.fromkeys(NEED_RATERS, NO_RATERS)
    numbers = [
        *estimates_or_reasons(S1, n, values[:DROPPED], no_s1, empty),
        Estimate(values[DROPPED], n) if n else undefined_estimate(empty),
        *estimates_or_reasons(
            S2, int(contributions.totals[SIDED].sum()), values[DROPPED + 1 :], no_s2, ALL_TIES if n else empty
        ),
    ]
    reasons = [
        *block_interval_reasons(contributions, S1),
        why_interval_withheld(contributions, SIDED, among=ALL),
        *block_interval_reasons(contributions, S2),
    ]
    estimates = Spread(contributions).intervals_or_wilson(numbers, measured, BOUNDS, reasons, AMONG)
    with_ties = make_agreement(contributions, S1, estimates[:DROPPED])
    return AgreementBlock(with_ties, make_agreement(contributions, S2, estimates[DROPPED + 1 :]), estimates[DROPPED])


def reasons_for_constant_rater(table: ContingencyTables, measures: Sequence[str] = COEFFICIENTS) -> dict[str, str]:
    """Reasons for the measures that are undefined because a rater always makes the same choice.

    Where both raters always make the same choice, none is named here: AC1 is then undefined for the whole aspect.
    """
    return dict.fromkeys(measures, CONSTANT_RATER) if table.has_constant and table.agree < table.n else {}


def block_statistic(q: int) -> Callable[[FloatArray], FloatArray]:
    """A statistic (… × 16 cells) → (… × ROW) for a rubric with q choices."""

    def statistic(totals: FloatArray) -> FloatArray:
        table = contingency_tables(totals)
        in_order, sides = table.in_order(), table.sides
        return stack_measures(
            raw_agreement(table),
            cohen_kappa(table),
            weighted_kappa(in_order),
            scott_pi(table),
            gwet_ac1(table, q),
            gwet_ac2(in_order, min(q, SIDES + 1)),
            1 - sides.n / table.n,
            raw_agreement(sides),
            cohen_kappa(sides),
            scott_pi(sides),
            gwet_ac1(sides, SIDES),
            prevalence_index(sides),
            bias_index(sides),
        )

    return statistic


def stack_measures(*numbers: FloatArray) -> FloatArray:
    """Arrays of one shape stacked on a new last axis, each measure contiguous in memory."""
    return np.moveaxis(np.stack(numbers), 0, -1)


def estimates_or_reasons(
    treatment: TieTreatment, n: int, values: Sequence[float], withheld: Mapping[str, str], empty: str
) -> list[Estimate]:
    if not n:
        return [undefined_estimate(empty)] * len(values)
    return [
        Estimate(value, n)
        if name not in withheld and isfinite(value)
        else undefined_estimate(withheld.get(name, CONSTANT), n)
        for name, value in zip(treatment.measures, values, strict=True)
    ]


def block_interval_reasons(contributions: Contributions, treatment: TieTreatment) -> list[str | None]:
    """For each measure, why it has no interval, or None."""
    why = why_interval_withheld(contributions, ~SAME, among=treatment.cells)
    in_order = why
    if why is None and contributions.totals[SAME_IN_ORDER & ~SAME].any():
        in_order = why_interval_withheld(contributions, ~SAME_IN_ORDER, among=treatment.cells)
    return [in_order if name in IN_ORDER else why for name in treatment.measures]


def make_agreement(contributions: Contributions, treatment: TieTreatment, estimates: Sequence[Estimate]) -> Agreement:
    agree, n = int(contributions.totals[treatment.cells & SAME].sum()), estimates[0].n
    withheld = {name: undefined_estimate(why, n) if n else estimates[0] for name, why in treatment.withheld.items()}
    return Agreement(agree, n, **dict(zip(treatment.measures, estimates, strict=True)), **withheld)
