"""The mean over people of numbers that each of them has on a table of their own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.cluster_sums import ClusterSums, cluster_sums, numbered
from evaluations.stats.coding import CHOICES, BoolArray, IntArray
from evaluations.stats.coefficients import Tables
from evaluations.stats.contributions import FloatArray
from evaluations.stats.slopes import STEP

Measure = Callable[[Tables], FloatArray]

CELLS: Final = len(CHOICES) ** 2


@dataclass(frozen=True)
class Averaged:
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


def averaged(person: IntArray, sides: Sequence[IntArray], cluster: IntArray, measures: Sequence[Measure]) -> Averaged:
    """One entry for each item of a person: its number from 0, cluster, and on each side its cell of the table."""
    people = int(person.max()) + 1
    keys = [person * CELLS + cell for cell in sides]
    tables = np.array([np.bincount(key, minlength=people * CELLS) for key in keys], dtype=np.float64)
    tables = tables.reshape(len(sides), people, CELLS)
    found = [of_each(tables, measure) for measure in measures]
    influences = [slope.ravel()[key] for _, slopes in found for slope, key in zip(slopes, keys, strict=True)]
    values = np.array([means(of_people) for of_people, _ in found])
    return Averaged(values, cluster_sums(numbered(cluster), *influences))


def of_each(tables: FloatArray, measure: Measure) -> tuple[FloatArray, FloatArray]:
    """Of each side and person the number, and how much each cell moves the mean: sides × people (× cells)."""

    def numbers(flat: FloatArray) -> FloatArray:
        return measure(Tables(flat.reshape(*flat.shape[:-1], len(CHOICES), len(CHOICES))))

    with np.errstate(all="ignore"):
        found = numbers(tables)
        step = STEP * tables.sum(axis=-1)[..., None, None]
        moves = step * np.eye(CELLS)
        raised, lowered = (numbers(tables[..., None, :] + move) for move in (moves, -moves))
        slopes = (raised - lowered) / (2 * step[..., 0])
    counted = have(found)
    return found, np.where(counted[:, None], slopes, 0.0) / max(np.count_nonzero(counted), 1)


def have(of_people: FloatArray) -> BoolArray:
    """The people who have the number on every side: whoever lacks one would be compared with others."""
    return np.asarray(np.isfinite(of_people).all(axis=0))


def means(of_people: FloatArray) -> FloatArray:
    counted = have(of_people)
    if not counted.any():
        return np.full(len(of_people), np.nan)
    return np.asarray(of_people[:, counted].mean(axis=1))
