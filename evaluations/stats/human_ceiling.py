"""The human ceiling: judge and left-out person compared with the majority of the remaining people.

Each person is left out in turn. The judge and that person are both compared with the majority of the remaining people
on the same items, and the results are averaged over the people with equal weights. No other comparison is fair: the
majority of three that a judge faces elsewhere is steadier than the majority of the two others that a person faces.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.agreement_coefficients import (
    ContingencyTables,
    cohen_kappa_unless_constant,
    contingency_tables,
    raw_agreement,
)
from evaluations.stats.cluster_totals import ClusterSums, Contributions, number_clusters, sum_by_cluster
from evaluations.stats.coding import CHOICES, MISSING, B, BoolArray, FloatArray, IntArray
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
from evaluations.stats.estimates import Estimate, JudgeVersusPeople, undefined_estimate
from evaluations.stats.polls import Poll
from evaluations.stats.votes import Majority, group_positions

Measure = Callable[[ContingencyTables], FloatArray]
MEASURE_CELLS: Final = CHOICES**2


@dataclass(frozen=True)
class RaterAverage:
    """Measures averaged over raters. ``values``: measures × sides, NaN where no rater has the measure.

    ``influence``: by cluster, the number of entries and then the influence of the cluster on each value, measure by
    measure. It is linearised rater by rater, so that a mean over hundreds of raters costs no more than one over two,
    and a rater who is absent from a resample does not make it undefined.
    """

    values: FloatArray
    influence: ClusterSums

    def values_at(self, totals: FloatArray) -> FloatArray:
        """The values where the clusters add up to these totals: … × cells → … × measures × sides.

        Influences are divided by the number of entries, because a resample that has a large cluster twice is larger.
        """
        size = totals[..., :1] / self.influence.totals[0]
        moved = np.divide(totals[..., 1:], size, out=np.full_like(totals[..., 1:], np.nan), where=size > 0)
        return np.asarray(self.values + moved.reshape(*totals.shape[:-1], *self.values.shape))


def average_over_raters(
    person: IntArray, sides: Sequence[IntArray], cluster: IntArray, measures: Sequence[Measure]
) -> RaterAverage:
    """Measures of tables averaged over people, with one entry for each person and item in every array.

    ``person``: numbers from 0. ``sides``: for each side, the cell of its 4 × 4 table. ``cluster``: of each entry.
    """
    people = int(person.max()) + 1
    keys = [person * MEASURE_CELLS + cell for cell in sides]
    tables = np.array([np.bincount(key, minlength=people * MEASURE_CELLS) for key in keys], dtype=np.float64)
    tables = tables.reshape(len(sides), people, MEASURE_CELLS)
    averages = [measure_each_rater(tables, measure) for measure in measures]
    influences = [slope.ravel()[key] for _, slopes in averages for slope, key in zip(slopes, keys, strict=True)]
    values = np.array([mean_over_raters(of_people) for of_people, _ in averages])
    return RaterAverage(values, sum_by_cluster(number_clusters(cluster), *influences))


def measure_each_rater(tables: FloatArray, measure: Measure) -> tuple[FloatArray, FloatArray]:
    """The measure of each side and person, sides × people, and its gradient by cell, sides × people × cells."""

    def numbers(flat: FloatArray) -> FloatArray:
        return measure(contingency_tables(flat))

    with np.errstate(all="ignore"):
        values = numbers(tables)
        step = GRADIENT_STEP * tables.sum(axis=-1)[..., None, None]
        moves = step * np.eye(MEASURE_CELLS)
        raised, lowered = (numbers(tables[..., None, :] + move) for move in (moves, -moves))
        slopes = (raised - lowered) / (2 * step[..., 0])
    counted = has_measure(values)
    return values, np.where(counted[:, None], slopes, 0.0) / max(np.count_nonzero(counted), 1)


def has_measure(of_people: FloatArray) -> BoolArray:
    """Whether each person has the measure on every side, so that all sides average the same people."""
    return np.asarray(np.isfinite(of_people).all(axis=0))


def mean_over_raters(of_people: FloatArray) -> FloatArray:
    counted = has_measure(of_people)
    if not counted.any():
        return np.full(len(of_people), np.nan)
    return np.asarray(of_people[:, counted].mean(axis=1))


NO_OTHER_VOTES: Final = "No comparison with a verdict of the judge has votes of two reviewers."
NO_SIDES: Final = "No such comparison is left without ties."
CONSTANT: Final = "No reviewer has a kappa to compare with the judge's: one side always makes the same choice."
# Cells by who agrees with the majority of the remaining people: nobody, the person, the judge, both.
PERSON: Final[BoolArray] = np.array([False, True, False, True])
JUDGE: Final[BoolArray] = np.array([False, False, True, True])
DISAGREEING_CELLS: Final[BoolArray] = PERSON != JUDGE
ANY_CELL: Final[BoolArray] = np.ones(4, dtype=bool)
SHARES: Final[tuple[Bounds, ...]] = (SHARE_BOUNDS, SHARE_BOUNDS, (-1.0, 1.0))
NUMBERS: Final[tuple[Bounds, ...]] = (*SHARES, CORRELATION_BOUNDS, CORRELATION_BOUNDS, (-2.0, 2.0))


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
    """The ceiling with ties (S1), and without (S2), where judge, person and majority all choose a side."""

    s1: CeilingLevel
    s2: CeilingLevel


@dataclass(frozen=True)
class LeaveOneOutVotes:
    """Left-out votes where judge, person and the majority of the others all have a choice. ``person``: the rater."""

    person: IntArray
    judge_choice: IntArray
    person_choice: IntArray
    others_choice: IntArray
    cluster: IntArray

    def where(self, selected: BoolArray) -> "LeaveOneOutVotes":
        if selected.all():
            return self
        columns = (self.person, self.judge_choice, self.person_choice, self.others_choice, self.cluster)
        return LeaveOneOutVotes(*(column[selected] for column in columns))

    @property
    def person_number(self) -> IntArray:
        """The person of each entry, renumbered from 0 without gaps."""
        return np.asarray((np.cumsum(np.bincount(self.person) > 0) - 1)[self.person])

    @property
    def cells(self) -> tuple[IntArray, IntArray]:
        """The cell of each entry in the 4 × 4 table of judge and majority, and in that of person and majority."""
        judge, own = (
            side.astype(np.int64) * CHOICES + self.others_choice for side in (self.judge_choice, self.person_choice)
        )
        return judge, own

    @property
    def judge_lead(self) -> IntArray:
        """1 where the judge alone agrees with the majority, −1 where the person alone does, else 0."""
        return np.asarray(
            (self.judge_choice == self.others_choice).astype(np.int64) - (self.person_choice == self.others_choice)
        )

    @property
    def agreement(self) -> Contributions:
        """Counts by cluster of who agrees with the majority: nobody, the person, the judge, both."""
        cell = 2 * (self.judge_choice == self.others_choice).astype(np.int64) + (
            self.person_choice == self.others_choice
        )
        return Contributions(self.cluster, cell, len(ANY_CELL))


def human_ceiling(judge: IntArray, poll: Poll, others: Majority, names: Sequence[str]) -> HumanCeiling:
    """The human ceiling of one judge, over the items on which two people or more voted.

    ``judge``: its choice on each item of the poll. ``others``: the majority of the others, for each entry of
    ``poll.per_rater``. ``names``: the person of each rater number.
    """
    votes = leave_one_out_votes(judge, poll, others)
    sides = votes.where((votes.judge_choice <= B) & (votes.person_choice <= B) & (votes.others_choice <= B))
    return HumanCeiling(
        ceiling_level(votes, names, NO_OTHER_VOTES),
        ceiling_level(sides, names, NO_SIDES if len(votes.person_choice) else NO_OTHER_VOTES),
    )


def leave_one_out_votes(judge: IntArray, poll: Poll, others: Majority) -> LeaveOneOutVotes:
    each = poll.per_rater
    votes = LeaveOneOutVotes(each.design.rater, judge[each.design.unit], each.choice, others.choice, each.cluster)
    return votes.where(
        (votes.judge_choice != MISSING) & (votes.person_choice != MISSING) & (votes.others_choice != MISSING)
    )


def ceiling_level(votes: LeaveOneOutVotes, names: Sequence[str], empty: str) -> CeilingLevel:
    n = len(votes.person_choice)
    if not n:
        nothing = undefined_estimate(empty)
        return CeilingLevel(nothing, nothing, nothing, 0, JudgeVersusPeople(nothing, nothing, nothing), ())
    agreeing = votes.agreement
    shares, kappas = average_agreement_and_kappa(votes, agreeing)
    people = tuple(
        leave_one_out_agreement(names[person], Contributions(agreeing.cluster[at], agreeing.cell[at], agreeing.cells))
        for person, at in group_positions(votes.person)
    )
    return CeilingLevel(shares.judge, shares.people, shares.difference, n, kappas, people)


def average_agreement_and_kappa(
    votes: LeaveOneOutVotes, agreeing: Contributions
) -> tuple[JudgeVersusPeople, JudgeVersusPeople]:
    """Agreement and kappa of judge and people with their differences, over the same resamples of clusters."""
    averages = average_over_raters(
        votes.person_number, votes.cells, votes.cluster, (raw_agreement, cohen_kappa_unless_constant)
    )
    reasons = ceiling_interval_reasons(agreeing)
    measured = differentiate(
        lambda totals: judge_people_difference_statistic(averages.values_at(totals)), averages.influence.totals
    )
    estimates = Spread(averages.influence).intervals_or_wilson(
        ceiling_estimates(judge_people_difference_statistic(averages.values), len(votes.person_choice)),
        measured,
        NUMBERS,
        [*reasons, *[reasons[0] or reasons[1] or reasons[2]] * 3],
        [np.ones(averages.influence.cells, dtype=bool)] * len(NUMBERS),
    )
    return JudgeVersusPeople(*estimates[:3]), JudgeVersusPeople(*estimates[3:])


def leave_one_out_agreement(rater: str, agreeing: Contributions) -> LeaveOneOutAgreement:
    def statistic(totals: FloatArray) -> FloatArray:
        return judge_people_difference_statistic(
            ratio_statistic((JUDGE, ANY_CELL), (PERSON, ANY_CELL))(totals)[..., None, :]
        )

    measured = differentiate(statistic, agreeing.totals)
    numbers = ceiling_estimates(measured.values, len(agreeing.cell))
    estimates = Spread(agreeing).intervals_or_wilson(
        numbers, measured, SHARES, ceiling_interval_reasons(agreeing), [ANY_CELL] * len(SHARES)
    )
    judge, person, difference = estimates
    return LeaveOneOutAgreement(judge, person, difference, rater)


def ceiling_interval_reasons(agreeing: Contributions) -> list[str | None]:
    """Reasons for missing intervals of the judge, of people, and of their difference."""
    return [
        why_interval_withheld(agreeing, ~JUDGE, among=ANY_CELL),
        why_interval_withheld(agreeing, ~PERSON, among=ANY_CELL),
        why_interval_withheld(agreeing, DISAGREEING_CELLS),
    ]


def judge_people_difference_statistic(two: FloatArray) -> FloatArray:
    """The judge's number, people's number and their difference, measure by measure: … × m × 2 → … × 3m."""
    three = np.concatenate([two, two[..., :1] - two[..., 1:]], axis=-1)
    return three.reshape(*three.shape[:-2], -1)


def ceiling_estimates(values: FloatArray, n: int) -> list[Estimate]:
    return [Estimate(value, n) if np.isfinite(value) else undefined_estimate(CONSTANT, n) for value in values.tolist()]
