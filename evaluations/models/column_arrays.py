"""Columns of the database as arrays, each read in one piece."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Case, IntegerField, QuerySet, Value, When

from evaluations.domain.packed_votes import PACKED_ORDERS
from evaluations.stats.coding import BoolArray, IntArray

ORDER_WIDTH: Final = len(PACKED_ORDERS)

RecordArray = npt.NDArray[np.void]


def build_code_case(column: str, words: Sequence[StrEnum], other: int | None = None) -> Case:
    """The position of the column's word in the list; ``other`` if it is none of them."""
    places = [When(**{column: word.value}, then=Value(place)) for place, word in enumerate(words)]
    return Case(*places, default=None if other is None else Value(other), output_field=IntegerField())


def group_rows(rows: RecordArray, *columns: str) -> Iterable[tuple[tuple[int, ...], RecordArray]]:
    """Groups of rows with equal values in these columns; the order within a group is kept."""
    order = np.lexsort([rows[column] for column in reversed(columns)])
    rows = rows[order]
    keys = np.stack([rows[column] for column in columns], axis=1)
    starts = np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1)) + 1
    for part in np.split(rows, starts):
        if len(part):
            yield tuple(int(part[column][0]) for column in columns), part


PIECE_ROWS: Final = 250_000


def read_column_arrays(rows: "QuerySet[Any, Any]", width: int) -> tuple[IntArray, ...]:
    """The rows of a values_list of ``width`` whole numbers, none of them null, as one array for each column.

    In which order they come is the database's choice, the same for all columns.
    """
    try:
        sql, params = rows.order_by().query.sql_with_params()
    except EmptyResultSet:
        return tuple(np.empty(0, dtype=np.int64) for _ in range(width))
    names = [f"c{place}" for place in range(width)]
    pieces = ", ".join(build_aggregate_sql(name) for name in names)
    with connection.cursor() as cursor:
        cursor.execute(f"WITH told ({', '.join(names)}) AS ({sql}) SELECT {pieces} FROM told", params)
        found = tuple(decode_column(piece) for piece in cursor.fetchone())
    if len({len(column) for column in found}) > 1:
        raise ValueError(f"A column held nulls: {[len(column) for column in found]} values")
    return found


def split_by_ids(rows: "QuerySet[Any, Any]", column: str, ids: IntArray) -> "Iterator[QuerySet[Any, Any]]":
    """The rows in pieces by a column of ids, so that only a few are in memory at a time.

    ``ids``: in order; rows with others are in the piece that they stand between.
    """
    edges = [None, *ids[PIECE_ROWS::PIECE_ROWS].tolist(), None]
    for low, high in pairwise(edges):
        piece = rows if low is None else rows.filter(**{f"{column}__gte": low})
        yield piece if high is None else piece.filter(**{f"{column}__lt": high})


def read_column_arrays_in_pieces(
    rows: "QuerySet[Any, Any]", width: int, column: str, ids: IntArray
) -> tuple[IntArray, ...]:
    """As `columns`, read piece by piece: a name and ids as `pieces` has them."""
    found = [read_column_arrays(piece, width) for piece in split_by_ids(rows, column, ids)]
    return found[0] if len(found) == 1 else tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


def read_column_by_word(rows: "QuerySet[Any, Any]") -> dict[str, IntArray]:
    """The second column of a values_list, whole numbers, by the word in the first."""
    try:
        sql, params = rows.order_by().query.sql_with_params()
    except EmptyResultSet:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH told (word, c) AS ({sql}) SELECT word, {build_aggregate_sql('c')} FROM told GROUP BY word", params
        )
        return {word: decode_column(piece) for word, piece in cursor.fetchall()}


def build_aggregate_sql(name: str) -> str:
    if connection.vendor == "postgresql":
        return f"string_agg(int8send({name}::bigint), ''::bytea)"
    return f"group_concat({name})"


def decode_column(piece: Any) -> IntArray:
    if piece is None:
        return np.empty(0, dtype=np.int64)
    if isinstance(piece, str):
        return np.fromstring(piece, dtype=np.int64, sep=",")
    return np.frombuffer(piece, dtype=">i8").astype(np.int64)


@dataclass(frozen=True)
class ComparisonIndex:
    """The comparisons of a report by ascending id, with the position of each."""

    ids: IntArray

    def of(self, comparisons: IntArray) -> tuple[IntArray, BoolArray | None]:
        """The place of each id, and which of them are among these; None where all are."""
        if len(comparisons) == len(self.ids) and np.array_equal(comparisons, self.ids):
            return np.arange(len(self.ids)), None
        place = np.minimum(np.searchsorted(self.ids, comparisons), max(len(self.ids) - 1, 0))
        known = self.ids[place] == comparisons if len(self.ids) else np.zeros(len(comparisons), dtype=bool)
        return place, None if known.all() else known


def keep_indexed(places: ComparisonIndex, comparison: IntArray, *others: IntArray) -> tuple[IntArray, ...]:
    """The rows about indexed comparisons, with positions instead of ids."""
    item, known = places.of(comparison)
    if known is None:
        return (item, *others)
    return (item[known], *(column[known] for column in others))
