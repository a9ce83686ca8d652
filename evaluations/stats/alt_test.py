"""The alternative annotator test (Calderon, Reichart and Dror 2025).

Each person is left out in turn, and the judge and that person are both compared with the remaining people. S measures
how well a choice or a score agrees with those of the others on the same item. A side whose S is not below the other's
has the advantage, so that both have it where they are equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt
from typing import Final

import numpy as np

from evaluations.stats.cluster_totals import Contributions
from evaluations.stats.coding import MISSING, BoolArray, FloatArray, IntArray, count_choices_by_unit
from evaluations.stats.confidence_intervals import SHARE_BOUNDS, Spread, why_interval_withheld
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.score_reliability import PersonScores
from evaluations.stats.significance import benjamini_yekutieli_adjust, t_upper_tail
from evaluations.stats.votes import Votes, vote_pairs

ADVANTAGE_DIGITS: Final = 9  # 0.3 − 0.2 is not to be further away than 0.1


@dataclass(frozen=True)
class Advantage:
    """Whether judge and person have the advantage, for each vote on an item that the judge and another person rated."""

    rater: IntArray
    cluster: IntArray
    judge: BoolArray
    human: BoolArray


def advantage_of_choices(choice: IntArray, each: Votes, cluster: IntArray) -> Advantage:
    """Advantages on choices: S is the share of the others that chose the same, every choice being a category.

    ``choice``: the judge's on each item, MISSING where it has none. ``each``: one vote of each person on an item.
    ``cluster``: of each item.
    """
    counts = count_choices_by_unit(each.item, each.choice, len(choice))
    voters = np.bincount(each.item, minlength=len(choice))
    counted = (choice[each.item] != MISSING) & (voters[each.item] > 1)
    item, own = each.item[counted], each.choice[counted]
    judged = choice[item]
    # Of the others as many chose as the person did as of all, less the person.
    with_human = counts[item, own] - 1
    with_judge = counts[item, judged] - (judged == own)
    return Advantage(each.rater[counted], cluster[item], with_judge >= with_human, with_human >= with_judge)


def advantage_of_scores(value: FloatArray, people: PersonScores, cluster: IntArray) -> Advantage:
    """Advantages on scores: S is −RMSE, the root of the mean squared distance from the values of the others.

    ``value``: the judge's on each item, NaN where it has none. The squared distances of two from the same others differ
    by (h − j)(h + j − 2m), m the mean of the others; no root is needed to see which is smaller.
    """
    items = len(value)
    voters = np.bincount(people.unit, minlength=items)
    totals = np.bincount(people.unit, people.value, items)
    counted = ~np.isnan(value[people.unit]) & (voters[people.unit] > 1)
    item, own = people.unit[counted], people.value[counted]
    judged, others = value[item], (totals[item] - own) / (voters[item] - 1)
    further = np.round((own - judged) * (own + judged - 2 * others), ADVANTAGE_DIGITS)
    return Advantage(people.rater[counted], cluster[item], further >= 0, further <= 0)


def advantage_of_distances(value: FloatArray, people: PersonScores, cluster: IntArray) -> Advantage:
    """Advantages on scores: S is −|difference|, the mean absolute distance from the values of the others.

    Arguments are those of `advantage_of_scores`. −|difference| from the mean of the others would order any two values
    as −RMSE does, and make the same test.
    """
    items, (unit, own) = len(value), (people.unit, people.value)
    voters = np.bincount(unit, minlength=items)
    of_judge = np.abs(value[unit] - own)
    earlier, later = vote_pairs(unit)
    apart = np.abs(own[earlier] - own[later])
    of_human = np.bincount(earlier, apart, len(own)) + np.bincount(later, apart, len(own))
    counted = ~np.isnan(value[unit]) & (voters[unit] > 1)
    others_of_judge = np.bincount(unit, np.nan_to_num(of_judge), items)[unit] - np.nan_to_num(of_judge)
    further = np.round(of_human - others_of_judge, ADVANTAGE_DIGITS)[counted]
    return Advantage(people.rater[counted], cluster[unit[counted]], further >= 0, further <= 0)


MIN_VALUES: Final = 10  # below, a t of means of clusters assumes a normal distribution that nobody has checked
NO_VARIANCE: Final = 1e-12  # as a share of the sum of squares: what rounding leaves of none
DIFFERENCE_DIGITS: Final = 9


@dataclass(frozen=True)
class AdvantageDifferences:
    """For each person, the count, sum and sum of squares of human minus judge advantage."""

    n: IntArray
    total: FloatArray
    squares: FloatArray

    def p_values(self, epsilon: float) -> FloatArray:
        """One-sided p values of H0: the mean is ε or more. NaN below MIN_VALUES."""
        sums = zip(self.n.tolist(), self.total.tolist(), self.squares.tolist(), strict=True)
        return np.array([one_sided_p(epsilon, *sums_of_person) for sums_of_person in sums])


def one_sided_p(epsilon: float, n: int, total: float, squares: float) -> float:
    """P(T ≤ t), t = (mean − ε) ÷ standard error; without variance 0 where the mean is below ε, else 1."""
    if n < MIN_VALUES:
        return nan
    mean, around = total / n, squares - total * total / n
    if around <= NO_VARIANCE * squares:
        return 0.0 if round(mean, DIFFERENCE_DIGITS) < epsilon else 1.0
    return t_upper_tail((epsilon - mean) / sqrt(around / (n - 1) / n), n - 1)


def differences_by_cluster(advantage: Advantage, people: int) -> AdvantageDifferences:
    """Differences of the means of each cluster in which a person has items."""
    clusters = int(advantage.cluster.max(initial=0)) + 1
    # Each cell of person and cluster is sorted along with its difference, as 0, 1 or 2: quicker than sorting positions.
    keys = (advantage.rater * clusters + advantage.cluster) * 3 + 1 + advantage.human - advantage.judge
    cell, difference = np.divmod(np.sort(keys), 3)
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    means = np.add.reduceat(difference - 1.0, starts) / np.diff(starts, append=len(cell))
    return differences_from_values(cell[starts] // clusters, means, people)


def differences_from_values(person: IntArray, value: FloatArray, people: int) -> AdvantageDifferences:
    return AdvantageDifferences(
        n=np.bincount(person, minlength=people),
        total=np.bincount(person, value, people).astype(np.float64),
        squares=np.bincount(person, value * value, people).astype(np.float64),
    )


# By the skill of the annotators, the advantage that a cheaper judge may lack: the paper's rule of thumb.
EPSILON: Final = {"expert": 0.2, "skilled": 0.15, "crowd": 0.1}
DEFAULT: Final = "crowd"  # the strictest: the skill of the people is not known, and a judge that passes it passes all
FALSE_DISCOVERIES: Final = 0.05
PASSES_FROM: Final = 0.5
MIN_ITEMS: Final = 30
MIN_PEOPLE: Final = 3
OF_THESE_PEOPLE: Final = "It applies to these reviewers only and does not generalize to others."


@dataclass(frozen=True)
class Annotator:
    """A left-out person. ``rho_…``: the share of the ``n`` items on which that side has the advantage."""

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
class WinningRate:
    """``omega``: the share of the people for whom H0 was rejected. The judge passes from one half on."""

    tests: tuple[AnnotatorTest, ...]
    omega: Estimate
    passes: bool


@dataclass(frozen=True)
class AltTestAtEpsilon:
    """``by_item`` is the test of the paper; ``by_cluster`` that over means of clusters, where clusters repeat."""

    epsilon: float
    by_item: WinningRate
    by_cluster: WinningRate | None


@dataclass(frozen=True)
class AltTest:
    """``rho``: the judge's advantage, averaged over people. ``why``: the reason where there are too few people.

    ``caution``: why it must not be read, although it was computed.
    """

    why: str | None
    annotators: tuple[Annotator, ...]
    rho: Estimate
    default: str
    by_skill: dict[str, AltTestAtEpsilon]
    caution: str | None = None


def alt_test(advantage: Advantage, names: Sequence[str], items: str = "comparisons") -> AltTest:
    """The alternative annotator test of one judge, at each ε.

    ``advantage``: from `advantage_of_choices` or `advantage_of_scores`. ``names``: the person of each rater number.
    ``items``: what items are called in sentences. Undefined below MIN_PEOPLE people with MIN_ITEMS items each that
    the judge and another person share.
    """
    n = np.bincount(advantage.rater, minlength=len(names))
    (people,) = np.nonzero(n >= MIN_ITEMS)
    if len(people) < MIN_PEOPLE:
        why = unmet_condition(n, items)
        return AltTest(why, (), undefined_estimate(why, int(n.sum())), DEFAULT, {})
    tested = only_people(advantage, people, len(names))
    items_of = differences_from_values(tested.rater, tested.human.astype(np.float64) - tested.judge, len(people))
    clusters_of = differences_by_cluster(tested, len(people))
    tested_names = [names[position] for position in people.tolist()]
    repeats = bool((clusters_of.n < items_of.n).any())
    return AltTest(
        why=None,
        annotators=describe_annotators(tested, tested_names, items_of.n, clusters_of.n),
        rho=mean_advantage(tested, len(people)),
        default=DEFAULT,
        by_skill={
            skill: AltTestAtEpsilon(
                epsilon,
                winning_rate(tested_names, items_of, epsilon),
                winning_rate(tested_names, clusters_of, epsilon) if repeats else None,
            )
            for skill, epsilon in EPSILON.items()
        },
    )


def unmet_condition(n: IntArray, items: str) -> str:
    enough, most = int((n >= MIN_ITEMS).sum()), int(n.max(initial=0))
    return (
        f"Not enough data: needs {MIN_PEOPLE} reviewers with ≥ {MIN_ITEMS} {items} each that the judge and another "
        f"reviewer share. Here {enough} of {np.count_nonzero(n)} have as many (most so far: {most:,})."
    )


def only_people(advantage: Advantage, people: IntArray, raters: int) -> Advantage:
    """The advantages of these people, who are renumbered from 0 in this order."""
    position = np.full(raters, -1)
    position[people] = np.arange(len(people))
    person = position[advantage.rater]
    kept = person >= 0
    return Advantage(person[kept], advantage.cluster[kept], advantage.judge[kept], advantage.human[kept])


def describe_annotators(
    advantage: Advantage, names: Sequence[str], n: IntArray, clusters: IntArray
) -> tuple[Annotator, ...]:
    judge = (np.bincount(advantage.rater, advantage.judge, len(n)) / n).tolist()
    human = (np.bincount(advantage.rater, advantage.human, len(n)) / n).tolist()
    return tuple(Annotator(*fields) for fields in zip(names, n.tolist(), clusters.tolist(), judge, human, strict=True))


def mean_advantage(advantage: Advantage, people: int) -> Estimate:
    """The mean advantage ρ with its interval by cluster, for these people and randomly drawn items."""
    cells = Contributions(advantage.cluster, advantage.rater * 2 + advantage.judge, people * 2)
    number = Estimate(float(mean_advantage_statistic(cells.totals)), len(advantage.rater))
    behind = np.arange(people * 2) % 2 == 0
    if reason := why_interval_withheld(cells, behind, among=np.ones_like(behind)):
        return number.without_interval(reason)
    return Spread(cells).interval(number, mean_advantage_statistic, SHARE_BOUNDS)


def mean_advantage_statistic(totals: FloatArray) -> FloatArray:
    """The mean over people of won ÷ (lost + won), from totals (…, people × 2) → (…)."""
    lost, won = totals[..., 0::2], totals[..., 1::2]
    return np.asarray((won / (lost + won)).mean(axis=-1))


def winning_rate(names: Sequence[str], differences: AdvantageDifferences, epsilon: float) -> WinningRate:
    p = differences.p_values(epsilon)
    rejected = benjamini_yekutieli_adjust(np.nan_to_num(p, nan=1.0)) <= FALSE_DISCOVERIES
    results = zip(names, p.tolist(), rejected.tolist(), strict=True)
    tests = tuple(AnnotatorTest(name, None if isnan(p_value) else p_value, won) for name, p_value, won in results)
    omega = Estimate(float(rejected.mean()), len(tests)).without_interval(OF_THESE_PEOPLE)
    return WinningRate(tests, omega, bool(rejected.mean() >= PASSES_FROM))
