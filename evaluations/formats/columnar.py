"""Tables in columns – Parquet, and Arrow as a stream or a file – read some rows at a time."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any, BinaryIO, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from evaluations.domain import BadRow, InputRefused
from evaluations.formats.arrow_values import NOT_TEXT, Reader, reader_of
from evaluations.formats.lending import Lent
from evaluations.formats.parquet_pages import dictionary_bytes
from evaluations.formats.streams import (
    BLOCK_BYTES,
    MAX_RECORD_BYTES,
    MB,
    Record,
    Source,
    from_pieces,
    pieces_of,
    refuse_many_columns,
    too_long,
)
from evaluations.formats.values import size_of

ARROW_FILE: Final = b"ARROW1\x00\x00"
# So many rows are turned into values at once: fewer where they are long, or where one value may stand for many.
MOST_AT_ONCE: Final = 500
BATCH_BYTES: Final = 8 * MB
LONG_DICTIONARY_BYTES: Final = 2 * MB
REPEATED_BYTES: Final = 128 * MB

T = TypeVar("T")


def parquet_table(file: BinaryIO, name: str) -> Source:
    """A Parquet file, which must be seekable: what it holds is written at its end."""

    def opened(dictionaries: list[str]) -> pq.ParquetFile:
        return pq.ParquetFile(Lent(file), pre_buffer=False, buffer_size=BLOCK_BYTES, read_dictionary=dictionaries)

    metadata = safely(lambda: opened([]).metadata, name, "Parquet")
    lengths = safely(lambda: dictionary_bytes(file, metadata), name, "Parquet")
    shared = [column for column, length in lengths.items() if length > LONG_DICTIONARY_BYTES and "." not in column]
    table = safely(lambda: opened(shared), name, "Parquet")
    readers = safely(lambda: readers_of(table.schema_arrow, name), name, "Parquet")
    rows = rows_at_once(metadata, sum(length for column, length in lengths.items() if column not in shared))
    batches = table.iter_batches(batch_size=rows, use_threads=False)
    return Source(tuple(readers), records_of(batches, readers, name, "Parquet"))


def rows_at_once(metadata: Any, repeated_bytes: int) -> int:
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    rows: int = sum(group.num_rows for group in groups) or 1
    row_bytes: int = sum(group.total_byte_size for group in groups) // rows
    most = min(MOST_AT_ONCE, BATCH_BYTES // max(row_bytes, 1), REPEATED_BYTES // max(repeated_bytes, 1))
    return max(1, most)


def arrow_table(file: BinaryIO, name: str) -> Source:
    """An Arrow stream; a file of its format is the same stream between two marks."""
    head = file.read(len(ARROW_FILE))
    if head != ARROW_FILE:
        file = from_pieces(chain([head], pieces_of(file.read)))
    stream = safely(lambda: pa.ipc.open_stream(pa.PythonFile(Lent(file), mode="r")), name, "Arrow")
    readers = safely(lambda: readers_of(stream.schema, name), name, "Arrow")
    return Source(tuple(readers), records_of(validated(stream), readers, name, "Arrow"))


def validated(stream: Any) -> Iterator[pa.RecordBatch]:
    """What is written in such a stream is believed by all that is done with it later, so it is looked at first."""
    for batch in stream:
        batch.validate(full=True)
        for start in range(0, batch.num_rows, MOST_AT_ONCE):
            yield batch.slice(start, MOST_AT_ONCE)


def readers_of(schema: pa.Schema, name: str) -> dict[str, Reader]:
    refuse_many_columns(tuple(schema.names), name)
    return {field.name: reader_of(field.type, f"{name} has the column “{field.name[:60]}”") for field in schema}


def records_of(
    batches: Iterator[pa.RecordBatch], readers: dict[str, Reader], name: str, kind: str
) -> Iterator[Record | BadRow]:
    index = 0
    columns = tuple(readers)
    while True:
        batch = safely(partial(next, batches, None), name, kind, f"after row {index:,}")
        if batch is None:
            return
        rows = safely(partial(rows_of, batch, readers), name, kind, f"after row {index:,}")
        may_be_long = batch.nbytes > MAX_RECORD_BYTES
        for values in rows:
            if may_be_long and size_of(list(values)) > MAX_RECORD_BYTES:
                raise too_long(f"Row {index + 1:,} of {name}")
            if NOT_TEXT in values:
                where = columns[values.index(NOT_TEXT)]
                yield BadRow(index + 1, f"{where} holds bytes that are no text in UTF-8")
            else:
                yield Record(index + 1, index, dict(zip(columns, values, strict=True)))
            index += 1


def rows_of(batch: pa.RecordBatch, readers: dict[str, Reader]) -> list[tuple[Any, ...]]:
    columns = [read(array) for read, array in zip(readers.values(), batch.columns, strict=True)]
    return list(zip(*columns, strict=True))


def safely(read: Callable[[], T], name: str, kind: str, where: str = "") -> T:
    """What comes of reading; whatever may be wrong with the file, one sentence says so."""
    try:
        return read()
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        place = f" {where}" if where else ""
        raise InputRefused(
            f"{name} cannot be read as {kind}: it is damaged or cut off{place} ({short(error)}). Save it again."
        ) from None


def short(error: BaseException) -> str:
    """The first line of what a library says, which may be long."""
    return (str(error).strip().split("\n")[0] or type(error).__name__)[:120].rstrip(".")
