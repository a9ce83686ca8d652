"""The alternative annotator test: may a judge stand in for one of the people (Calderon, Reichart and Dror 2025)?

Each person is left out in turn, and the judge and that person are both held against those that remain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Final

import numpy as np

from evaluations.stats.advantage import Advantage
from evaluations.stats.coding import IntArray
from evaluations.stats.contributions import Contributions, FloatArray
from evaluations.stats.intervals import SHARE, Spread, too_few
from evaluations.stats.left_out import Differences, by_cluster, by_item
from evaluations.stats.multiplicity import benjamini_yekutieli
from evaluations.stats.numbers import Number, undefined

# What a person costs beyond a judge, as the advantage that a judge may lack: the paper's rule of thumb.
EPSILON: Final = {"expert": 0.2, "skilled": 0.15, "crowd": 0.1}
DEFAULT: Final = "crowd"  # the strictest: nobody has said how skilled the people are, and who passes here passes all
FALSE_DISCOVERIES: Final = 0.05
PASSES_FROM: Final = 0.5
LEAST_ITEMS: Final = 30
LEAST_PEOPLE: Final = 3

OF_THESE_PEOPLE: Final = "It counts the people tested here and speaks of no others."


@dataclass(frozen=True)
class Annotator:
    """One person left out. ``rho_…``: the share of the ``n`` items on which that side has the advantage."""

    name: str
    n: int
    clusters: int
    rho_judge: float
    rho_human: float


@dataclass(frozen=True)
class AnnotatorTest:
    """H0: ρ of the judge ≤ ρ of this person − ε. ``p`` is before, ``rejected`` after the correction for all people.

    ``p`` is None where there are too few values for a t; nothing is rejected then.
    """

    name: str
    p: float | None
    rejected: bool


@dataclass(frozen=True)
class Winning:
    """``omega``: the share of the people of whom H0 was rejected. The judge passes from a half on."""

    tests: tuple[AnnotatorTest, ...]
    omega: Number
    passes: bool


@dataclass(frozen=True)
class AtEpsilon:
    """``by_item`` is the test of the paper; ``by_cluster`` that over means of clusters, where clusters repeat."""

    epsilon: float
    by_item: Winning
    by_cluster: Winning | None


@dataclass(frozen=True)
class AltTest:
    """``rho``: the judge's advantage, averaged over people. Without enough people ``why`` says so."""

    why: str | None
    annotators: tuple[Annotator, ...]
    rho: Number
    default: str
    by_skill: dict[str, AtEpsilon]


def alt_test(found: Advantage, names: Sequence[str], items: str = "comparisons") -> AltTest:
    """``found``: from `advantage.of_choices` or `of_values`. ``names``: of the raters, by number.

    Undefined below LEAST_PEOPLE people with LEAST_ITEMS items each that the judge and another person share.
    """
    n = np.bincount(found.rater, minlength=len(names))
    (people,) = np.nonzero(n >= LEAST_ITEMS)
    if len(people) < LEAST_PEOPLE:
        why = unmet(n, items)
        return AltTest(why, (), undefined(why, int(n.sum())), DEFAULT, {})
    tested = only(found, people, len(names))
    items_of, clusters_of = by_item(tested, len(people)), by_cluster(tested, len(people))
    kept = [names[one] for one in people.tolist()]
    repeats = bool((clusters_of.n < items_of.n).any())
    return AltTest(
        why=None,
        annotators=described(tested, kept, items_of.n, clusters_of.n),
        rho=mean_advantage(tested, len(people)),
        default=DEFAULT,
        by_skill={
            skill: AtEpsilon(
                epsilon, winning(kept, items_of, epsilon), winning(kept, clusters_of, epsilon) if repeats else None
            )
            for skill, epsilon in EPSILON.items()
        },
    )


def unmet(n: IntArray, items: str) -> str:
    """Which condition is not met, with the counts."""
    enough, most = int((n >= LEAST_ITEMS).sum()), int(n.max(initial=0))
    return (
        f"It needs {LEAST_PEOPLE} people with {LEAST_ITEMS} {items} or more each that the judge and another person "
        f"have too. Here {enough} of {np.count_nonzero(n)} have as many; the most that one person has are {most:,}."
    )


def only(found: Advantage, people: IntArray, raters: int) -> Advantage:
    """Of these people, who are numbered anew in this order."""
    place = np.full(raters, -1)
    place[people] = np.arange(len(people))
    person = place[found.rater]
    kept = person >= 0
    return Advantage(person[kept], found.cluster[kept], found.judge[kept], found.human[kept])


def described(found: Advantage, names: Sequence[str], n: IntArray, clusters: IntArray) -> tuple[Annotator, ...]:
    judge = (np.bincount(found.rater, found.judge, len(n)) / n).tolist()
    human = (np.bincount(found.rater, found.human, len(n)) / n).tolist()
    return tuple(Annotator(*one) for one in zip(names, n.tolist(), clusters.tolist(), judge, human, strict=True))


def mean_advantage(found: Advantage, people: int) -> Number:
    """ρ, with its interval by cluster: people are given, items are drawn."""
    cells = Contributions(found.cluster, found.rater * 2 + found.judge, people * 2)
    number = Number(float(mean_share(cells.totals)), len(found.rater))
    behind = np.arange(people * 2) % 2 == 0
    reason = too_few(cells, behind, among=np.ones_like(behind))
    return number.without_interval(reason) if reason else Spread(cells).interval(number, mean_share, SHARE)


def mean_share(totals: FloatArray) -> FloatArray:
    """Over people the mean of won ÷ (lost + won): (…, people × 2) → (…)."""
    lost, won = totals[..., 0::2], totals[..., 1::2]
    return np.asarray((won / (lost + won)).mean(axis=-1))


def winning(names: Sequence[str], differences: Differences, epsilon: float) -> Winning:
    p = differences.p_values(epsilon)
    rejected = benjamini_yekutieli(np.nan_to_num(p, nan=1.0)) <= FALSE_DISCOVERIES
    found = zip(names, p.tolist(), rejected.tolist(), strict=True)
    tests = tuple(AnnotatorTest(name, None if isnan(one) else one, won) for name, one, won in found)
    omega = Number(float(rejected.mean()), len(tests)).without_interval(OF_THESE_PEOPLE)
    return Winning(tests, omega, bool(rejected.mean() >= PASSES_FROM))
