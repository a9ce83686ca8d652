"""Columns of the database as arrays, each in one piece.

A row that becomes Python objects on its way takes a microsecond or more; a column that the database hands over as
one text or one run of bytes takes a fifth of that, so a million ballots are read in half a second.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

from evaluations.stats.coding import IntArray

PIECE: Final = 250_000


def columns(rows: "QuerySet[Any, Any]", width: int) -> tuple[IntArray, ...]:
    """The rows of a values_list of ``width`` whole numbers, none of them null, as one array for each column.

    In which order they come is the database's choice, the same for all columns.
    """
    try:
        sql, params = rows.order_by().query.sql_with_params()
    except EmptyResultSet:
        return tuple(np.empty(0, dtype=np.int64) for _ in range(width))
    names = [f"c{place}" for place in range(width)]
    pieces = ", ".join(in_one_piece(name) for name in names)
    with connection.cursor() as cursor:
        cursor.execute(f"WITH told ({', '.join(names)}) AS ({sql}) SELECT {pieces} FROM told", params)
        found = tuple(as_array(piece) for piece in cursor.fetchone())
    if len({len(column) for column in found}) > 1:
        raise ValueError(f"A column held nulls: {[len(column) for column in found]} values")
    return found


def pieces(rows: "QuerySet[Any, Any]", column: str, ids: IntArray) -> "Iterator[QuerySet[Any, Any]]":
    """The same rows in pieces, so that the text of few at a time is in memory, by a column that holds such ids.

    ``ids``: in order; rows with others are in the piece that they stand between.
    """
    edges = [None, *ids[PIECE::PIECE].tolist(), None]
    for low, high in pairwise(edges):
        piece = rows if low is None else rows.filter(**{f"{column}__gte": low})
        yield piece if high is None else piece.filter(**{f"{column}__lt": high})


def columns_in_pieces(rows: "QuerySet[Any, Any]", width: int, column: str, ids: IntArray) -> tuple[IntArray, ...]:
    """As `columns`, read piece by piece: a name and ids as `pieces` has them."""
    found = [columns(piece, width) for piece in pieces(rows, column, ids)]
    return found[0] if len(found) == 1 else tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


def column_by_word(rows: "QuerySet[Any, Any]") -> dict[str, IntArray]:
    """The second column of a values_list, whole numbers, by the word in the first."""
    try:
        sql, params = rows.order_by().query.sql_with_params()
    except EmptyResultSet:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH told (word, c) AS ({sql}) SELECT word, {in_one_piece('c')} FROM told GROUP BY word", params
        )
        return {word: as_array(piece) for word, piece in cursor.fetchall()}


def in_one_piece(name: str) -> str:
    if connection.vendor == "postgresql":
        return f"string_agg(int8send({name}::bigint), ''::bytea)"
    return f"group_concat({name})"


def as_array(piece: Any) -> IntArray:
    if piece is None:
        return np.empty(0, dtype=np.int64)
    if isinstance(piece, str):
        return np.fromstring(piece, dtype=np.int64, sep=",")
    return np.frombuffer(piece, dtype=">i8").astype(np.int64)
