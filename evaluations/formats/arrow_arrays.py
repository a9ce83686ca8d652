"""Arrow arrays made of the values of many rows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

TEXT: Final = pa.string()
TURN: Final = pa.struct({"role": TEXT, "content": TEXT})
TURNS: Final = pa.list_(TURN)
# Columns with minimum and maximum of each row group in the footer of a Parquet file. Those of long texts would be most
# of the footer, which the writer keeps in memory and every reader must read first.
RANGED: Final = ("query_id", "cluster", "category", "candidate_a", "candidate_b", "split")


def open_parquet_writer(sink: Any, schema: pa.Schema) -> pq.ParquetWriter:
    """``sink``: a path or a file of pyarrow."""
    ranged = [name for name in RANGED if name in schema.names]
    return pq.ParquetWriter(sink, schema, compression="zstd", write_statistics=ranged)


def text_array(values: Iterable[str | None]) -> pa.Array:
    return pa.array(values, TEXT)


def list_array(rows: Sequence[Sequence[Any]], column: Callable[[list[Any]], pa.Array]) -> pa.Array:
    """An array of lists. ``column`` converts the values of all lists at once."""
    offsets = pa.array([0, *accumulate(map(len, rows))], pa.int32())
    return pa.ListArray.from_arrays(offsets, column(list(chain.from_iterable(rows))))


def struct_array(kind: pa.StructType, columns: Mapping[str, pa.Array]) -> pa.Array:
    return pa.StructArray.from_arrays([columns[field.name] for field in kind], fields=list(kind))


def conversation_array(rows: Sequence[Sequence[Mapping[str, Any]]]) -> pa.Array:
    """An array of conversations, each a list of turns with role and content."""
    return list_array(rows, turn_array)


def turn_array(turns: Sequence[Mapping[str, Any]]) -> pa.Array:
    return struct_array(TURN, {name: text_array([turn[name] for turn in turns]) for name in ("role", "content")})


def shared_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An array of values of which many are the same object; each is converted once."""
    found = {id(value): value for value in values}
    place = {number: index for index, number in enumerate(found)}
    made = pa.array(found.values(), kind)
    return made.take(pa.array([place[id(value)] for value in values], pa.int32()))
