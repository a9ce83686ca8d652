"""Database columns read as arrays, each in one piece, and rows of small columns in one array."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Case, IntegerField, QuerySet, Value, When

from evaluations.domain.choices import PACKED_ORDERS
from evaluations.stats.coding import IntArray

ROWS_PER_PIECE: Final = 250_000


def read_columns(rows: "QuerySet[Any, Any]", width: int) -> tuple[IntArray, ...]:
    """The rows of a values_list of ``width`` whole numbers, none of them null, as one array for each column.

    In which order they come is the database's choice, the same for all columns.
    """
    try:
        sql, params = rows.order_by().query.sql_with_params()
    except EmptyResultSet:
        return tuple(np.empty(0, dtype=np.int64) for _ in range(width))
    names = [f"c{place}" for place in range(width)]
    pieces = ", ".join(aggregate_column(name) for name in names)
    with connection.cursor() as cursor:
        cursor.execute(f"WITH source ({', '.join(names)}) AS ({sql}) SELECT {pieces} FROM source", params)
        columns = tuple(parse_column(piece) for piece in cursor.fetchone())
    if len({len(column) for column in columns}) > 1:
        raise ValueError(f"A column held nulls: {[len(column) for column in columns]} values")
    return columns


def split_into_pieces(rows: "QuerySet[Any, Any]", column: str, ids: IntArray) -> "Iterator[QuerySet[Any, Any]]":
    """Split rows into pieces by a column of ids, so that only a few texts are in memory at a time.

    ``ids``: in order; rows with others are in the piece that they stand between.
    """
    edges = [None, *ids[ROWS_PER_PIECE::ROWS_PER_PIECE].tolist(), None]
    for low, high in pairwise(edges):
        piece = rows if low is None else rows.filter(**{f"{column}__gte": low})
        yield piece if high is None else piece.filter(**{f"{column}__lt": high})


def read_columns_in_pieces(rows: "QuerySet[Any, Any]", width: int, column: str, ids: IntArray) -> tuple[IntArray, ...]:
    """As `read_columns`, piece by piece: a name and ids as `split_into_pieces` has them."""
    pieces = [read_columns(piece, width) for piece in split_into_pieces(rows, column, ids)]
    return pieces[0] if len(pieces) == 1 else tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True))


def read_column_by_word(rows: "QuerySet[Any, Any]") -> dict[str, IntArray]:
    """The second column of a values_list, whole numbers, by the word in the first."""
    try:
        sql, params = rows.order_by().query.sql_with_params()
    except EmptyResultSet:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH source (word, c) AS ({sql}) SELECT word, {aggregate_column('c')} FROM source GROUP BY word", params
        )
        return {word: parse_column(piece) for word, piece in cursor.fetchall()}


def aggregate_column(name: str) -> str:
    if connection.vendor == "postgresql":
        return f"string_agg(int8send({name}::bigint), ''::bytea)"
    return f"group_concat({name})"


def parse_column(piece: Any) -> IntArray:
    if piece is None:
        return np.empty(0, dtype=np.int64)
    if isinstance(piece, str):
        return np.fromstring(piece, dtype=np.int64, sep=",")
    return np.frombuffer(piece, dtype=">i8").astype(np.int64)


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
