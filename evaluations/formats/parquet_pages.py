"""How much a Parquet file says that one value may hold, before any of it is read.

A column may keep each of its texts once, in a *dictionary*, and name it as often as it stands in a row: some kilobytes
can so become as many gigabytes. How long a dictionary is stands in the head of its page only, which no library tells:
a structure in Thrift's compact protocol that begins with three numbers, the second of them the length.
Source: https://parquet.apache.org/docs/file-format/data-pages/ and parquet.thrift, PageHeader.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO, Final

HEADER_BYTES: Final = 32
NUMBER_FOLLOWS: Final = 0x15  # the next field, a 32-bit integer


def dictionary_bytes(file: BinaryIO, metadata: Any) -> dict[str, int]:
    """How long the longest dictionary of each column is."""
    longest: dict[str, int] = {}
    for column in parts_of(metadata):
        if column.has_dictionary_page and column.dictionary_page_offset is not None:
            file.seek(column.dictionary_page_offset)
            length = length_in(file.read(HEADER_BYTES), column.total_uncompressed_size)
            longest[column.path_in_schema] = max(length, longest.get(column.path_in_schema, 0))
    return longest


def parts_of(metadata: Any) -> Iterator[Any]:
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place in range(group.num_columns):
            yield group.column(place)


def length_in(header: bytes, otherwise: int) -> int:
    """The second number of a page's head, the length of what it holds; 0 < length <= 2**31."""
    at = 0
    number = 0
    for _ in range(2):
        if at >= len(header) or header[at] != NUMBER_FOLLOWS:
            return otherwise
        at, number = number_at(header, at + 1)
    return number


def number_at(header: bytes, at: int) -> tuple[int, int]:
    """A variable-length number in zigzag, and where it ends."""
    value = shift = 0
    while at < len(header):
        value |= (header[at] & 0x7F) << shift
        at += 1
        if not header[at - 1] & 0x80:
            break
        shift += 7
    return at, (value >> 1) ^ -(value & 1)
