"""Structured rows of small columns packed into one number."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt
from django.db.models import Case, IntegerField, Value, When

from evaluations.domain.choices import PACKED_ORDERS

# Each part has this many values.
MARKS_WIDTH: Final = 72  # what a vote knew and its arm, three of each, how it was picked, four, and whether it is final
ORDER_WIDTH: Final = len(PACKED_ORDERS)

StructuredRows = npt.NDArray[np.void]


def encode_word(column: str, words: Sequence[StrEnum], other: int | None = None) -> Case:
    """The place of the column's word in the list; ``other`` where it is none of them."""
    places = [When(**{column: word.value}, then=Value(place)) for place, word in enumerate(words)]
    return Case(*places, default=None if other is None else Value(other), output_field=IntegerField())


def group_rows(rows: StructuredRows, *columns: str) -> Iterable[tuple[tuple[int, ...], StructuredRows]]:
    """The rows by the values of these columns; within a group they keep their order."""
    order = np.lexsort([rows[column] for column in reversed(columns)])
    rows = rows[order]
    keys = np.stack([rows[column] for column in columns], axis=1)
    starts = np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1)) + 1
    for part in np.split(rows, starts):
        if len(part):
            yield tuple(int(part[column][0]) for column in columns), part
