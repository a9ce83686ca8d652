"""Columns of Arrow as lists of plain values: what JSON could hold, and nothing else."""

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from evaluations.domain import InputRefused

Reader = Callable[[pa.Array], list[Any]]
Plain = Callable[[Any], Any]


class NotText:
    """Bytes that are no text in UTF-8."""


NOT_TEXT: Final = NotText()


def reader_of(kind: pa.DataType, where: str) -> Reader:
    """How to read a column of this type; refused where its values have no place in a row."""
    if isinstance(kind, pa.BaseExtensionType):
        stored = reader_of(kind.storage_type, where)
        return lambda array: stored(array.storage)
    if pa.types.is_dictionary(kind):
        values = reader_of(kind.value_type, where)
        return lambda array: from_dictionary(array, values)
    plain, target = plain_of(kind, where), in_microseconds(kind)

    def read(array: pa.Array) -> list[Any]:
        given = (array if target == kind else array.cast(target, safe=False)).to_pylist()
        return given if plain is None else [None if value is None else plain(value) for value in given]

    return or_as_bytes(read) if is_text(kind) else read


def from_dictionary(array: pa.Array, read: Reader) -> list[Any]:
    """Each value is made once, however often it stands in the column."""
    used = array.indices.dictionary_encode()
    values = read(array.dictionary.take(used.dictionary))
    return [None if index is None else values[index] for index in used.indices.to_pylist()]


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def or_as_bytes(read: Reader) -> Reader:
    """A file may call text what is none: then each value is looked at by itself."""

    def either(array: pa.Array) -> list[Any]:
        try:
            return read(array)
        except UnicodeDecodeError:
            given = array.cast(pa.large_binary()).to_pylist()
            return [None if value is None else text_of(value) for value in given]

    return either


def text_of(value: bytes) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return NOT_TEXT


def in_microseconds(kind: pa.DataType) -> pa.DataType:
    """Python's times end at microseconds."""
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if kind == pa.time64("ns"):
        return pa.time64("us")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(in_microseconds(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(in_microseconds(kind.value_type)))
    return kind


def plain_of(kind: pa.DataType, where: str) -> Plain | None:
    """What makes a value plain; None where it is so already."""
    is_ = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return plain_of(kind.storage_type, where)
    if is_.is_struct(kind):
        return plain_struct({field.name: plain_of(field.type, where) for field in kind})
    if is_.is_map(kind):
        return plain_map(plain_of(kind.key_type, where), plain_of(kind.item_type, where))
    if is_.is_list(kind) or is_.is_large_list(kind) or is_.is_fixed_size_list(kind):
        return plain_list(plain_of(kind.value_type, where))
    if is_.is_decimal(kind):
        return str
    if is_.is_timestamp(kind) or is_.is_date(kind) or is_.is_time(kind):
        return lambda moment: moment.isoformat()
    if is_.is_binary(kind) or is_.is_large_binary(kind) or is_.is_fixed_size_binary(kind):
        return text_of
    if is_.is_null(kind) or is_.is_boolean(kind) or is_.is_integer(kind) or is_.is_floating(kind):
        return None
    if is_text(kind):
        return None
    raise InputRefused(f"{where} of the type {kind}, which no row can hold: leave it out, or save it as text.")


def plain_struct(parts: dict[str, Plain | None]) -> Plain | None:
    changed = {key: plain for key, plain in parts.items() if plain}
    if not changed:
        return None

    def plain(value: dict[str, Any]) -> dict[str, Any]:
        return {key: changed[key](part) if key in changed and part is not None else part for key, part in value.items()}

    return plain


def plain_list(part: Plain | None) -> Plain | None:
    return part and (lambda value: [None if one is None else part(one) for one in value])


def plain_map(key: Plain | None, part: Plain | None) -> Plain:
    def plain(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
        return {
            str(key(name) if key else name): part(value) if part and value is not None else value
            for name, value in pairs
        }

    return plain
