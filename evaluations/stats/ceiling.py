"""How close a judge comes to people, beside how close people come to each other: the ceiling.

Each person is left out in turn. The judge and that person are both held against the majority of the people that
remain, on the same items; what comes out is averaged over the people, each weighing the same. Nothing else may be
compared: the majority of three that a judge is held against elsewhere is steadier than that of the two others whom
a person is held against.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.averaging import averaged
from evaluations.stats.coding import CHOICES, MISSING, B, BoolArray, IntArray
from evaluations.stats.coefficients import kappa_of_varying, raw_agreement
from evaluations.stats.contributions import Contributions, FloatArray
from evaluations.stats.intervals import (
    CORRELATION,
    SHARE,
    Bounds,
    Spread,
    too_few,
)
from evaluations.stats.majority import Majority
from evaluations.stats.numbers import Number, undefined
from evaluations.stats.polls import Poll
from evaluations.stats.shares import ratios
from evaluations.stats.slopes import measured
from evaluations.stats.turnout import groups

NO_COMPANY: Final = "No comparison that the judge has a verdict on has votes of two people."
NO_SIDES: Final = "No such comparison is left once ties are dropped."
CONSTANT: Final = "No person left out has a kappa beside the judge's: someone always makes the same one choice."

# Cells by who agrees with the majority of those that remain: nobody, the person, the judge, both.
PERSON: Final[BoolArray] = np.array([False, True, False, True])
JUDGE: Final[BoolArray] = np.array([False, False, True, True])
APART: Final[BoolArray] = PERSON != JUDGE
EITHER: Final[BoolArray] = np.ones(4, dtype=bool)

SHARES: Final[tuple[Bounds, ...]] = (SHARE, SHARE, (-1.0, 1.0))
NUMBERS: Final[tuple[Bounds, ...]] = (*SHARES, CORRELATION, CORRELATION, (-2.0, 2.0))


@dataclass(frozen=True)
class Beside:
    """Judge and people on the same items against the same majorities. ``difference``: judge − people."""

    judge: Number
    people: Number
    difference: Number


@dataclass(frozen=True)
class LeftOut(Beside):
    """Agreement where one person is left out; ``people`` is that person."""

    rater: str


@dataclass(frozen=True)
class Level(Beside):
    """Agreement, and kappa, averaged over the people left out. ``n``: their votes that are held against others."""

    n: int
    cohen_kappa: Beside
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True)
class Ceiling:
    """With ties (S1), and without (S2) where judge, person and majority all choose a side.

    It is no block of agreement, so its keys are not those of one.
    """

    s1: Level
    s2: Level


@dataclass(frozen=True)
class Company:
    """One entry for each vote left out that all three have a choice on: who, and their choices."""

    person: IntArray
    judge: IntArray
    own: IntArray
    others: IntArray
    cluster: IntArray

    def where(self, kept: BoolArray) -> "Company":
        if kept.all():
            return self
        columns = (self.person, self.judge, self.own, self.others, self.cluster)
        return Company(*(column[kept] for column in columns))

    @property
    def numbered(self) -> IntArray:
        """Who, as numbers from 0 among those that are here."""
        return np.asarray((np.cumsum(np.bincount(self.person) > 0) - 1)[self.person])

    @property
    def cells(self) -> tuple[IntArray, IntArray]:
        """The cell of the table of judge and majority, and of that of person and majority."""
        judge, own = (side.astype(np.int64) * len(CHOICES) + self.others for side in (self.judge, self.own))
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


def ceiling(judge: IntArray, poll: Poll, others: Majority, names: Sequence[str]) -> Ceiling:
    """``judge``: its choice on each item of the poll; ``others``: the majority of the others for each of ``poll.each``.

    ``names``: what the rater numbers stand for. An item counts where two people or more voted on it.
    """
    company = company_of(judge, poll, others)
    sides = company.where((company.judge <= B) & (company.own <= B) & (company.others <= B))
    return Ceiling(level(company, names, NO_COMPANY), level(sides, names, NO_SIDES if len(company.own) else NO_COMPANY))


def company_of(judge: IntArray, poll: Poll, others: Majority) -> Company:
    each = poll.each
    company = Company(each.turnout.rater, judge[each.turnout.unit], each.choice, others.choice, each.cluster)
    return company.where((company.judge != MISSING) & (company.own != MISSING) & (company.others != MISSING))


def level(company: Company, names: Sequence[str], empty: str) -> Level:
    n = len(company.own)
    if not n:
        nothing = undefined(empty)
        return Level(nothing, nothing, nothing, 0, Beside(nothing, nothing, nothing), ())
    agreeing = company.agreeing
    shares, kappas = averages(company, agreeing)
    people = tuple(
        left_out(names[person], Contributions(agreeing.cluster[places], agreeing.cell[places], agreeing.cells))
        for person, places in groups(company.person)
    )
    return Level(shares.judge, shares.people, shares.difference, n, kappas, people)


def averages(company: Company, agreeing: Contributions) -> tuple[Beside, Beside]:
    """Agreement and kappa of judge and people with their differences, over the same draws of clusters."""
    found = averaged(company.numbered, company.cells, company.cluster, (raw_agreement, kappa_of_varying))
    few = reasons(agreeing)
    row = measured(lambda totals: beside(found.at(totals)), found.added.totals)
    within = Spread(found.added).hedged(
        numbers_of(beside(found.values), len(company.own)),
        row,
        NUMBERS,
        [*few, *[few[0] or few[1] or few[2]] * 3],
        [np.ones(found.added.cells, dtype=bool)] * len(NUMBERS),
    )
    return Beside(*within[:3]), Beside(*within[3:])


def left_out(rater: str, agreeing: Contributions) -> LeftOut:
    def statistic(totals: FloatArray) -> FloatArray:
        return beside(ratios((JUDGE, EITHER), (PERSON, EITHER))(totals)[..., None, :])

    row = measured(statistic, agreeing.totals)
    numbers = numbers_of(row.values, len(agreeing.cell))
    within = Spread(agreeing).hedged(numbers, row, SHARES, reasons(agreeing), [EITHER] * len(SHARES))
    judge, person, difference = within
    return LeftOut(judge, person, difference, rater)


def reasons(agreeing: Contributions) -> list[str | None]:
    """Why there is too little for the judge's number, for that of people, and for the difference."""
    return [
        too_few(agreeing, ~JUDGE, among=EITHER),
        too_few(agreeing, ~PERSON, among=EITHER),
        too_few(agreeing, APART),
    ]


def beside(two: FloatArray) -> FloatArray:
    """The judge's number, that of people and the difference, measure by measure: … × m × 2 → … × 3m."""
    three = np.concatenate([two, two[..., :1] - two[..., 1:]], axis=-1)
    return three.reshape(*three.shape[:-2], -1)


def numbers_of(values: FloatArray, n: int) -> list[Number]:
    return [Number(value, n) if np.isfinite(value) else undefined(CONSTANT, n) for value in values.tolist()]
