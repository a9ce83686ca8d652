"""Parquet and Arrow files as records, read some rows at a time.

A Parquet column may store each of its texts once, in a *dictionary*, and refer to it from every row, so that some
kilobytes expand to as many gigabytes. The length of a dictionary is in the header of its page only, which no library
exposes: a structure in Thrift's compact protocol that begins with three numbers, the second of them the length.
Source: https://parquet.apache.org/docs/file-format/data-pages/ and parquet.thrift, PageHeader.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any, BinaryIO, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import BadRow
from evaluations.formats.decompression import BorrowedFile
from evaluations.formats.record_streams import (
    BLOCK_BYTES,
    MAX_RECORD_BYTES,
    MB,
    Record,
    RecordSource,
    file_from_pieces,
    read_pieces,
    record_too_long,
    refuse_many_columns,
)
from evaluations.formats.values import approximate_size

ColumnReader = Callable[[pa.Array], list[Any]]
PlainConverter = Callable[[Any], Any]


class NotText:
    """Bytes that are no text in UTF-8."""


NOT_TEXT: Final = NotText()


def make_column_reader(kind: pa.DataType, where: str) -> ColumnReader:
    """A reader for columns of this type; refused if rows cannot have its values."""
    if isinstance(kind, pa.BaseExtensionType):
        stored = make_column_reader(kind.storage_type, where)
        return lambda array: stored(array.storage)
    if pa.types.is_dictionary(kind):
        values = make_column_reader(kind.value_type, where)
        return lambda array: read_dictionary(array, values)
    plain, target = make_plain_converter(kind, where), to_microseconds(kind)

    def read(array: pa.Array) -> list[Any]:
        cells = (array if target == kind else array.cast(target, safe=False)).to_pylist()
        return cells if plain is None else [None if value is None else plain(value) for value in cells]

    return fall_back_to_bytes(read) if is_text_type(kind) else read


def read_dictionary(array: pa.Array, read: ColumnReader) -> list[Any]:
    """Values of a dictionary column; each distinct value is made once."""
    used = array.indices.dictionary_encode()
    values = read(array.dictionary.take(used.dictionary))
    return [None if index is None else values[index] for index in used.indices.to_pylist()]


def is_text_type(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def fall_back_to_bytes(read: ColumnReader) -> ColumnReader:
    """A reader that decodes each value if a text column contains bytes that are not UTF-8."""

    def either(array: pa.Array) -> list[Any]:
        try:
            return read(array)
        except UnicodeDecodeError:
            cells = array.cast(pa.large_binary()).to_pylist()
            return [None if value is None else text_or_bytes(value) for value in cells]

    return either


def text_or_bytes(value: bytes) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return NOT_TEXT


def to_microseconds(kind: pa.DataType) -> pa.DataType:
    """The type with nanoseconds replaced by microseconds, the resolution of Python's times."""
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if kind == pa.time64("ns"):
        return pa.time64("us")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(to_microseconds(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(to_microseconds(kind.value_type)))
    return kind


def make_plain_converter(kind: pa.DataType, where: str) -> PlainConverter | None:
    """A converter of values to plain JSON values; None where they are plain already."""
    is_ = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return make_plain_converter(kind.storage_type, where)
    if is_.is_struct(kind):
        return convert_struct({field.name: make_plain_converter(field.type, where) for field in kind})
    if is_.is_map(kind):
        return convert_map(make_plain_converter(kind.key_type, where), make_plain_converter(kind.item_type, where))
    if is_.is_list(kind) or is_.is_large_list(kind) or is_.is_fixed_size_list(kind):
        return convert_list(make_plain_converter(kind.value_type, where))
    if is_.is_decimal(kind):
        return str
    if is_.is_timestamp(kind) or is_.is_date(kind) or is_.is_time(kind):
        return lambda moment: moment.isoformat()
    if is_.is_binary(kind) or is_.is_large_binary(kind) or is_.is_fixed_size_binary(kind):
        return text_or_bytes
    if is_.is_null(kind) or is_.is_boolean(kind) or is_.is_integer(kind) or is_.is_floating(kind):
        return None
    if is_text_type(kind):
        return None
    raise InputRefused(f"{where} of the type {kind}, which is not supported. Remove it, or save it as text.")


def convert_struct(parts: dict[str, PlainConverter | None]) -> PlainConverter | None:
    changed = {key: plain for key, plain in parts.items() if plain}
    if not changed:
        return None

    def plain(value: dict[str, Any]) -> dict[str, Any]:
        return {key: changed[key](part) if key in changed and part is not None else part for key, part in value.items()}

    return plain


def convert_list(part: PlainConverter | None) -> PlainConverter | None:
    return part and (lambda value: [None if item is None else part(item) for item in value])


def convert_map(key: PlainConverter | None, part: PlainConverter | None) -> PlainConverter:
    def plain(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
        return {
            str(key(name) if key else name): part(value) if part and value is not None else value
            for name, value in pairs
        }

    return plain


HEADER_BYTES: Final = 32
NUMBER_FOLLOWS: Final = 0x15  # the next field, a 32-bit integer


def dictionary_bytes(file: BinaryIO, metadata: Any) -> dict[str, int]:
    """The bytes of the longest dictionary of each column."""
    longest: dict[str, int] = {}
    for column in column_chunks(metadata):
        if column.has_dictionary_page and column.dictionary_page_offset is not None:
            file.seek(column.dictionary_page_offset)
            length = page_length(file.read(HEADER_BYTES), column.total_uncompressed_size)
            longest[column.path_in_schema] = max(length, longest.get(column.path_in_schema, 0))
    return longest


def column_chunks(metadata: Any) -> Iterator[Any]:
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place in range(group.num_columns):
            yield group.column(place)


def page_length(header: bytes, otherwise: int) -> int:
    """The second number of a page header, the length of the page; ``otherwise`` where it cannot be read."""
    at = 0
    number = 0
    for _ in range(2):
        if at >= len(header) or header[at] != NUMBER_FOLLOWS:
            return otherwise
        at, number = read_varint(header, at + 1)
    return number


def read_varint(header: bytes, at: int) -> tuple[int, int]:
    """A variable-length number in zigzag, and where it ends."""
    value = shift = 0
    while at < len(header):
        value |= (header[at] & 0x7F) << shift
        at += 1
        if not header[at - 1] & 0x80:
            break
        shift += 7
    return at, (value >> 1) ^ -(value & 1)


ARROW_FILE: Final = b"ARROW1\x00\x00"
# Rows that are converted at once; fewer where rows are long, or where a dictionary value may repeat.
MAX_AT_ONCE: Final = 500
BATCH_BYTES: Final = 8 * MB
LONG_DICTIONARY_BYTES: Final = 2 * MB
REPEATED_BYTES: Final = 128 * MB
T = TypeVar("T")


def read_parquet(file: BinaryIO, name: str) -> RecordSource:
    """A Parquet file, which must be seekable: what it holds is written at its end."""

    def opened(dictionaries: list[str]) -> pq.ParquetFile:
        return pq.ParquetFile(
            BorrowedFile(file), pre_buffer=False, buffer_size=BLOCK_BYTES, read_dictionary=dictionaries
        )

    metadata = read_safely(lambda: opened([]).metadata, name, "Parquet")
    lengths = read_safely(lambda: dictionary_bytes(file, metadata), name, "Parquet")
    shared = [column for column, length in lengths.items() if length > LONG_DICTIONARY_BYTES and "." not in column]
    table = read_safely(lambda: opened(shared), name, "Parquet")
    readers = read_safely(lambda: make_column_readers(table.schema_arrow, name), name, "Parquet")
    rows = batch_row_count(metadata, sum(length for column, length in lengths.items() if column not in shared))
    batches = table.iter_batches(batch_size=rows, use_threads=False)
    return RecordSource(tuple(readers), records_of_batches(batches, readers, name, "Parquet"))


def batch_row_count(metadata: Any, repeated_bytes: int) -> int:
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    rows: int = sum(group.num_rows for group in groups) or 1
    row_bytes: int = sum(group.total_byte_size for group in groups) // rows
    most = min(MAX_AT_ONCE, BATCH_BYTES // max(row_bytes, 1), REPEATED_BYTES // max(repeated_bytes, 1))
    return max(1, most)


def read_arrow(file: BinaryIO, name: str) -> RecordSource:
    """An Arrow stream; a file of its format is the same stream between two marks."""
    head = file.read(len(ARROW_FILE))
    if head != ARROW_FILE:
        file = file_from_pieces(chain([head], read_pieces(file.read)))
    stream = read_safely(lambda: pa.ipc.open_stream(pa.PythonFile(BorrowedFile(file), mode="r")), name, "Arrow")
    readers = read_safely(lambda: make_column_readers(stream.schema, name), name, "Arrow")
    return RecordSource(tuple(readers), records_of_batches(validate_batches(stream), readers, name, "Arrow"))


def validate_batches(stream: Any) -> Iterator[pa.RecordBatch]:
    """The batches of a stream, validated first, because later operations trust their content; in small slices."""
    for batch in stream:
        batch.validate(full=True)
        for start in range(0, batch.num_rows, MAX_AT_ONCE):
            yield batch.slice(start, MAX_AT_ONCE)


def make_column_readers(schema: pa.Schema, name: str) -> dict[str, ColumnReader]:
    refuse_many_columns(tuple(schema.names), name)
    return {
        field.name: make_column_reader(field.type, f"{name} has the column “{field.name[:60]}”") for field in schema
    }


def records_of_batches(
    batches: Iterator[pa.RecordBatch], readers: dict[str, ColumnReader], name: str, kind: str
) -> Iterator[Record | BadRow]:
    index = 0
    columns = tuple(readers)
    while True:
        batch = read_safely(partial(next, batches, None), name, kind, f"after row {index:,}")
        if batch is None:
            return
        rows = read_safely(partial(batch_rows, batch, readers), name, kind, f"after row {index:,}")
        may_be_long = batch.nbytes > MAX_RECORD_BYTES
        for values in rows:
            if may_be_long and approximate_size(list(values)) > MAX_RECORD_BYTES:
                raise record_too_long(f"Row {index + 1:,} of {name}")
            if NOT_TEXT in values:
                where = columns[values.index(NOT_TEXT)]
                yield BadRow(index + 1, f"{where} has bytes that are not valid UTF-8")
            else:
                yield Record(index + 1, index, dict(zip(columns, values, strict=True)))
            index += 1


def batch_rows(batch: pa.RecordBatch, readers: dict[str, ColumnReader]) -> list[tuple[Any, ...]]:
    columns = [read(array) for read, array in zip(readers.values(), batch.columns, strict=True)]
    return list(zip(*columns, strict=True))


def read_safely(read: Callable[[], T], name: str, kind: str, where: str = "") -> T:
    """The result of reading; any fault of the file becomes one sentence."""
    try:
        return read()
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        place = f" {where}" if where else ""
        raise InputRefused(
            f"{name} cannot be read as {kind}: it is damaged or truncated{place} ({error_line(error)}). Save it again."
        ) from None


def error_line(error: BaseException) -> str:
    """The first line of a library's error message, shortened."""
    return (str(error).strip().split("\n")[0] or type(error).__name__)[:120].rstrip(".")
