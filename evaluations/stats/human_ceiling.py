"""The human ceiling: judge and left-out person compared with the majority of the remaining people.

Each person is left out in turn. The judge and that person are both compared with the majority of the remaining people
on the same items, and the results are averaged over the people with equal weights. No other comparison is fair: the
majority of three that a judge faces elsewhere is steadier than the majority of the two others that a person faces.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.domain.packed_votes import PACKED_CHOICES
from evaluations.stats.agreement_coefficients import ContingencyTables, cohen_kappa_unless_constant, raw_agreement
from evaluations.stats.cluster_totals import ClusterSums, Contributions, number_clusters, sum_by_cluster
from evaluations.stats.coding import MISSING, B, BoolArray, FloatArray, IntArray
from evaluations.stats.confidence_intervals import (
    CORRELATION_BOUNDS,
    GRADIENT_STEP,
    SHARE_BOUNDS,
    Bounds,
    Spread,
    differentiate,
    ratio_statistic,
    why_interval_withheld,
)
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.majority import Majority
from evaluations.stats.polls import Poll
from evaluations.stats.votes import group_places

Measure = Callable[[ContingencyTables], FloatArray]
MEASURE_CELLS: Final = len(PACKED_CHOICES) ** 2


@dataclass(frozen=True)
class RaterAverage:
    """``values``: measures × sides, NaN where nobody has one.

    ``added``: behind its entries what each cluster adds to each value, around 0, measure by measure. It is
    linearised person by person, so that a mean over hundreds of people costs no more than one over two, and nobody
    who is absent from a resample makes it undefined.
    """

    values: FloatArray
    added: ClusterSums

    def at(self, totals: FloatArray) -> FloatArray:
        """The values where the clusters add up to these totals: … × cells → … × measures × sides.

        What is added is divided by how many entries there are, as in every other number: a resample that holds a large
        cluster twice is larger.
        """
        size = totals[..., :1] / self.added.totals[0]
        moved = np.divide(totals[..., 1:], size, out=np.full_like(totals[..., 1:], np.nan), where=size > 0)
        return np.asarray(self.values + moved.reshape(*totals.shape[:-1], *self.values.shape))


def average_over_raters(
    person: IntArray, sides: Sequence[IntArray], cluster: IntArray, measures: Sequence[Measure]
) -> RaterAverage:
    """One entry for each item of a person: its number from 0, cluster, and on each side its cell of the table."""
    people = int(person.max()) + 1
    keys = [person * MEASURE_CELLS + cell for cell in sides]
    tables = np.array([np.bincount(key, minlength=people * MEASURE_CELLS) for key in keys], dtype=np.float64)
    tables = tables.reshape(len(sides), people, MEASURE_CELLS)
    found = [measure_each_rater(tables, measure) for measure in measures]
    influences = [slope.ravel()[key] for _, slopes in found for slope, key in zip(slopes, keys, strict=True)]
    values = np.array([mean_over_raters(of_people) for of_people, _ in found])
    return RaterAverage(values, sum_by_cluster(number_clusters(cluster), *influences))


def measure_each_rater(tables: FloatArray, measure: Measure) -> tuple[FloatArray, FloatArray]:
    """The measure of each side and person, and its gradient by cell: sides × people (× cells)."""

    def numbers(flat: FloatArray) -> FloatArray:
        return measure(ContingencyTables(flat.reshape(*flat.shape[:-1], len(PACKED_CHOICES), len(PACKED_CHOICES))))

    with np.errstate(all="ignore"):
        found = numbers(tables)
        step = GRADIENT_STEP * tables.sum(axis=-1)[..., None, None]
        moves = step * np.eye(MEASURE_CELLS)
        raised, lowered = (numbers(tables[..., None, :] + move) for move in (moves, -moves))
        slopes = (raised - lowered) / (2 * step[..., 0])
    counted = has_measure(found)
    return found, np.where(counted[:, None], slopes, 0.0) / max(np.count_nonzero(counted), 1)


def has_measure(of_people: FloatArray) -> BoolArray:
    """Whether each person has the measure on every side, without which the sides would average different people."""
    return np.asarray(np.isfinite(of_people).all(axis=0))


def mean_over_raters(of_people: FloatArray) -> FloatArray:
    counted = has_measure(of_people)
    if not counted.any():
        return np.full(len(of_people), np.nan)
    return np.asarray(of_people[:, counted].mean(axis=1))


NO_OTHER_VOTES: Final = "No comparison that the judge has a verdict on has votes of two people."
NO_SIDES: Final = "No such comparison is left once ties are dropped."
CONSTANT: Final = "No person left out has a kappa beside the judge's: someone always makes the same one choice."
# Cells by who agrees with the majority of those that remain: nobody, the person, the judge, both.
PERSON: Final[BoolArray] = np.array([False, True, False, True])
JUDGE: Final[BoolArray] = np.array([False, False, True, True])
APART: Final[BoolArray] = PERSON != JUDGE
EITHER: Final[BoolArray] = np.ones(4, dtype=bool)
SHARES: Final[tuple[Bounds, ...]] = (SHARE_BOUNDS, SHARE_BOUNDS, (-1.0, 1.0))
NUMBERS: Final[tuple[Bounds, ...]] = (*SHARES, CORRELATION_BOUNDS, CORRELATION_BOUNDS, (-2.0, 2.0))


@dataclass(frozen=True)
class JudgeVersusPeople:
    """Agreement of judge and of people on the same items with the same majorities; ``difference``: judge − people."""

    judge: Estimate
    people: Estimate
    difference: Estimate


@dataclass(frozen=True)
class LeaveOneOutAgreement(JudgeVersusPeople):
    """Agreement where one person is left out; ``people`` is that person."""

    rater: str


@dataclass(frozen=True)
class CeilingLevel(JudgeVersusPeople):
    """Agreement and kappa averaged over the left-out people. ``n``: the votes compared with the others."""

    n: int
    cohen_kappa: JudgeVersusPeople
    left_out: tuple[LeaveOneOutAgreement, ...]


@dataclass(frozen=True)
class HumanCeiling:
    """With ties (S1), and without (S2) where judge, person and majority all choose a side.

    It is no block of agreement, so its keys are not those of one.
    """

    s1: CeilingLevel
    s2: CeilingLevel


@dataclass(frozen=True)
class LeaveOneOutVotes:
    """One entry for each vote left out that all three have a choice on: who, and their choices."""

    person: IntArray
    judge: IntArray
    own: IntArray
    others: IntArray
    cluster: IntArray

    def where(self, kept: BoolArray) -> "LeaveOneOutVotes":
        if kept.all():
            return self
        columns = (self.person, self.judge, self.own, self.others, self.cluster)
        return LeaveOneOutVotes(*(column[kept] for column in columns))

    @property
    def numbered(self) -> IntArray:
        """Who, as numbers from 0 among those that are here."""
        return np.asarray((np.cumsum(np.bincount(self.person) > 0) - 1)[self.person])

    @property
    def cells(self) -> tuple[IntArray, IntArray]:
        """The cell of the table of judge and majority, and of that of person and majority."""
        judge, own = (side.astype(np.int64) * len(PACKED_CHOICES) + self.others for side in (self.judge, self.own))
        return judge, own

    @property
    def ahead(self) -> IntArray:
        """1 where the judge alone agrees with the majority, −1 where the person alone does, else 0."""
        return np.asarray((self.judge == self.others).astype(np.int64) - (self.own == self.others))

    @property
    def agreeing(self) -> Contributions:
        """By who agrees with the majority, the cells above."""
        cell = 2 * (self.judge == self.others).astype(np.int64) + (self.own == self.others)
        return Contributions(self.cluster, cell, len(EITHER))


def human_ceiling(judge: IntArray, poll: Poll, others: Majority, names: Sequence[str]) -> HumanCeiling:
    """``judge``: its choice on each item of the poll; ``others``: the majority of the others for each of ``poll.each``.

    ``names``: what the rater numbers stand for. An item counts where two people or more voted on it.
    """
    company = leave_one_out_votes(judge, poll, others)
    sides = company.where((company.judge <= B) & (company.own <= B) & (company.others <= B))
    return HumanCeiling(
        ceiling_level(company, names, NO_OTHER_VOTES),
        ceiling_level(sides, names, NO_SIDES if len(company.own) else NO_OTHER_VOTES),
    )


def leave_one_out_votes(judge: IntArray, poll: Poll, others: Majority) -> LeaveOneOutVotes:
    each = poll.each
    company = LeaveOneOutVotes(each.turnout.rater, judge[each.turnout.unit], each.choice, others.choice, each.cluster)
    return company.where((company.judge != MISSING) & (company.own != MISSING) & (company.others != MISSING))


def ceiling_level(company: LeaveOneOutVotes, names: Sequence[str], empty: str) -> CeilingLevel:
    n = len(company.own)
    if not n:
        nothing = undefined_estimate(empty)
        return CeilingLevel(nothing, nothing, nothing, 0, JudgeVersusPeople(nothing, nothing, nothing), ())
    agreeing = company.agreeing
    shares, kappas = average_agreement_and_kappa(company, agreeing)
    people = tuple(
        leave_one_out_agreement(
            names[person], Contributions(agreeing.cluster[places], agreeing.cell[places], agreeing.cells)
        )
        for person, places in group_places(company.person)
    )
    return CeilingLevel(shares.judge, shares.people, shares.difference, n, kappas, people)


def average_agreement_and_kappa(
    company: LeaveOneOutVotes, agreeing: Contributions
) -> tuple[JudgeVersusPeople, JudgeVersusPeople]:
    """Agreement and kappa of judge and people with their differences, over the same draws of clusters."""
    found = average_over_raters(
        company.numbered, company.cells, company.cluster, (raw_agreement, cohen_kappa_unless_constant)
    )
    few = ceiling_interval_reasons(agreeing)
    row = differentiate(lambda totals: judge_people_difference_statistic(found.at(totals)), found.added.totals)
    within = Spread(found.added).hedged(
        ceiling_estimates(judge_people_difference_statistic(found.values), len(company.own)),
        row,
        NUMBERS,
        [*few, *[few[0] or few[1] or few[2]] * 3],
        [np.ones(found.added.cells, dtype=bool)] * len(NUMBERS),
    )
    return JudgeVersusPeople(*within[:3]), JudgeVersusPeople(*within[3:])


def leave_one_out_agreement(rater: str, agreeing: Contributions) -> LeaveOneOutAgreement:
    def statistic(totals: FloatArray) -> FloatArray:
        return judge_people_difference_statistic(
            ratio_statistic((JUDGE, EITHER), (PERSON, EITHER))(totals)[..., None, :]
        )

    row = differentiate(statistic, agreeing.totals)
    numbers = ceiling_estimates(row.values, len(agreeing.cell))
    within = Spread(agreeing).hedged(numbers, row, SHARES, ceiling_interval_reasons(agreeing), [EITHER] * len(SHARES))
    judge, person, difference = within
    return LeaveOneOutAgreement(judge, person, difference, rater)


def ceiling_interval_reasons(agreeing: Contributions) -> list[str | None]:
    """Reasons for missing intervals of the judge, of people, and of their difference."""
    return [
        why_interval_withheld(agreeing, ~JUDGE, among=EITHER),
        why_interval_withheld(agreeing, ~PERSON, among=EITHER),
        why_interval_withheld(agreeing, APART),
    ]


def judge_people_difference_statistic(two: FloatArray) -> FloatArray:
    """The judge's number, that of people and the difference, measure by measure: … × m × 2 → … × 3m."""
    three = np.concatenate([two, two[..., :1] - two[..., 1:]], axis=-1)
    return three.reshape(*three.shape[:-2], -1)


def ceiling_estimates(values: FloatArray, n: int) -> list[Estimate]:
    return [Estimate(value, n) if np.isfinite(value) else undefined_estimate(CONSTANT, n) for value in values.tolist()]
