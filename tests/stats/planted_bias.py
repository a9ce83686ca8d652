"""Raters with planted biases, and the bias board that they should give."""

from dataclasses import dataclass

import numpy as np

from evaluations.domain.texts import Markup
from evaluations.stats.bias.board import BiasBoard, bias_board
from evaluations.stats.bias.paired_sides import human_sides
from evaluations.stats.bias.traits import comparison_traits
from evaluations.stats.coding import MISSING, TIE, A, B, FloatArray, IntArray, Sides
from evaluations.stats.items import Items
from evaluations.stats.votes import Votes, majority_of_votes

TRUTH = np.array([0.4, 0.4, 0.2])  # A better, B better, a tie


@dataclass(frozen=True)
class PlantedBias:
    """``confusion[t, c]``: P(choice c | truth t) of what is chosen for the answers' sake. With chance ``length`` the
    longer response is taken instead, and then with chance ``place``, in each order anew, whatever is shown first.
    """

    confusion: FloatArray
    length: float = 0.0
    place: float = 0.0

    @property
    def takes_side(self) -> FloatArray:
        """P(a side | truth), before the place has its say."""
        side: FloatArray = self.length + (1 - self.length) * self.confusion[:, :TIE].sum(axis=1)
        return side

    @property
    def takes_longer(self) -> FloatArray:
        """P(the longer side | truth): which side is longer has nothing to do with the truth."""
        longer: FloatArray = self.length + (1 - self.length) * self.confusion[:, :TIE].sum(axis=1) / 2
        return longer

    def view(self, truth: IntArray, longer: Sides, rng: np.random.Generator) -> Sides:
        """What is chosen where places play no part."""
        drawn = (rng.random(len(truth))[:, None] > self.confusion.cumsum(axis=1)[truth]).sum(axis=1)
        return np.where(rng.random(len(truth)) < self.length, longer, drawn).astype(np.int8)


@dataclass(frozen=True)
class PlantedStudy:
    """Items with their longer side, and to which of two kinds of cluster each belongs: biases may differ by it."""

    items: Items
    longer: Sides
    truth: IntArray
    kind: IntArray


def plant_study(clusters: int, each: int, rng: np.random.Generator) -> PlantedStudy:
    n = clusters * each
    longer = rng.integers(2, size=n).astype(np.int8)
    more, less = rng.integers(500, 1_000, n), rng.integers(100, 500, n)
    marked = np.where(rng.random(n) < 0.5, Markup.LIST.value, 0)  # half of the longer responses alone have a list
    items = Items(
        cluster=np.repeat(np.arange(clusters), each),
        category=np.repeat(rng.integers(3, size=clusters), each),
        categories=("code", "essay", "maths"),
        candidate_a=np.zeros(n, dtype=np.int64),
        candidate_b=np.ones(n, dtype=np.int64),
        candidates=("alpha", "beta"),
        families=("Swan", "Goose"),
        characters_a=np.where(longer == A, more, less),
        characters_b=np.where(longer == B, more, less),
        markup_a=np.where(longer == A, marked, 0),
        markup_b=np.where(longer == B, marked, 0),
        query=np.arange(n),
        stratum=np.zeros(n, dtype=np.int64),
    )
    return PlantedStudy(items, longer, rng.choice(3, size=n, p=TRUTH), np.repeat(rng.integers(2, size=clusters), each))


def judge_both_orders(
    made: PlantedStudy, biases: tuple[PlantedBias, PlantedBias], rng: np.random.Generator
) -> tuple[Sides, Sides]:
    """A judge's choice in either order, with one bias for each kind of cluster."""
    views = [bias.view(made.truth, made.longer, rng) for bias in biases]
    view = np.where(made.kind == 0, *views)
    place = np.array([bias.place for bias in biases])[made.kind]
    drawn = rng.random((2, len(view))) < place
    return np.where(drawn[0], A, view).astype(np.int8), np.where(drawn[1], B, view).astype(np.int8)


def plant_votes(made: PlantedStudy, bias: PlantedBias, people: int, rng: np.random.Generator) -> Votes:
    n = len(made.items)
    choices = [bias.view(made.truth, made.longer, rng) for _ in range(people)]
    rater = np.repeat(np.arange(people), n)
    return Votes(np.tile(np.arange(n), people), rater, np.zeros(n * people, dtype=np.int64), np.concatenate(choices))


def bias_board_of(
    made: PlantedStudy, as_stored: Sides, swapped: Sides, votes: Votes, family: str = "swan"
) -> BiasBoard:
    choice = np.where(as_stored == swapped, as_stored, np.where(swapped == MISSING, MISSING, TIE)).astype(np.int8)
    ground = comparison_traits(made.items)
    most = majority_of_votes(votes.item, votes.choice.astype(np.int64), len(made.items)).choice
    return bias_board(ground, human_sides(ground, most, votes), choice, as_stored, swapped, family)


@dataclass(frozen=True)
class ExpectedBoard:
    """What a board must find, worked out from the chances alone.

    The judge's view V is a side with chance s. Each order shows it with chance 1 − π, else the first shown. Both show
    the same: (1 − π)² by V alone, π(1 − π)s/2 where the first order was overruled and V is A, and again where the
    second was and V is B. A flip: π² by place alone, and π(1 − π)s/2 twice where V is the other side. One verdict is a
    side with chance (1 − π)s.
    """

    consistency: float
    flip: float
    first_shown: float
    ties: float
    people_ties: float
    longer: float
    people_longer: float
    longer_on_the_same: float


def expected_board(biases: tuple[PlantedBias, PlantedBias], people: PlantedBias) -> ExpectedBoard:
    place = np.array([bias.place for bias in biases])[:, None]
    s, longer = (np.array([getattr(bias, what) for bias in biases]) for what in ("takes_side", "takes_longer"))
    kept = 1 - place

    def mean(of: FloatArray) -> float:
        return float((of @ TRUTH).mean())

    both = kept * s * people.takes_side
    return ExpectedBoard(
        consistency=mean(kept**2 + place * kept * s),
        flip=mean(place**2 + place * kept * s),
        first_shown=mean(place + kept * s / 2) / mean(place + kept * s),
        ties=1 - mean(kept * s),
        people_ties=1 - float(people.takes_side @ TRUTH),
        longer=mean(kept * longer) / mean(kept * s),
        people_longer=mean(kept * s * people.takes_longer) / mean(both),
        longer_on_the_same=mean(kept * longer * people.takes_side) / mean(both),
    )
