"""Rows of the database as arrays, several small columns as one number: that halves the time a row takes on its way."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from django.db.models import Case, IntegerField, QuerySet, Value, When

from evaluations.stats.coding import CHOICES, ORDERS, IntArray
from evaluations.stats.consolidation import STATES

# Each part has this many values. A call that was answered has the state after all those without an answer.
MARKS_WIDTH: Final = 27  # what a vote knew, its arm, how it was picked: three of each
MARK_WIDTH: Final = 2
CHOICE_WIDTH: Final = len(CHOICES)
ORDER_WIDTH: Final = len(ORDERS)
STATE_WIDTH: Final = len(STATES) + 1

Rows = npt.NDArray[np.void]
ROW: Final = np.dtype([("rater", np.int64), ("comparison", np.int64), ("aspect", np.int64), ("packed", np.int64)])


def code(column: str, words: Sequence[StrEnum], other: int | None = None) -> Case:
    """The place of the column's word in the list; ``other`` where it is none of them."""
    places = [When(**{column: word.value}, then=Value(place)) for place, word in enumerate(words)]
    return Case(*places, default=None if other is None else Value(other), output_field=IntegerField())


def read(rows: QuerySet[Any], ids: IntArray) -> Rows:
    """The rows as one array, comparisons by place. What was stored after the ids were read is left out."""
    found = np.fromiter(rows.iterator(chunk_size=10_000), dtype=ROW)
    place = np.searchsorted(ids, found["comparison"])
    known = place < len(ids)
    known[known] = ids[place[known]] == found["comparison"][known]
    found["comparison"] = place
    return found[known]


def groups(rows: Rows, *columns: str) -> Iterable[tuple[tuple[int, ...], Rows]]:
    """The rows by the values of these columns; within a group they keep their order."""
    order = np.lexsort([rows[column] for column in reversed(columns)])
    rows = rows[order]
    keys = np.stack([rows[column] for column in columns], axis=1)
    starts = np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1)) + 1
    for part in np.split(rows, starts):
        if len(part):
            yield tuple(int(part[column][0]) for column in columns), part


def split_states(rows: Rows) -> tuple[Rows, int]:
    """The calls without an answer, and how many others there are: those that were answered after a repair."""
    answered = rows["packed"] % STATE_WIDTH == len(STATES)
    return rows[~answered], int(answered.sum())
