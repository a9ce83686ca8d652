"""Tables as text: separated by commas, semicolons or tabs, the names of the columns in the first line."""

import csv
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO, Final

from evaluations.domain import BadRow, InputRefused
from evaluations.formats.streams import (
    MAX_BLANK_LINES,
    MAX_RECORD_BYTES,
    NOT_UTF8,
    Record,
    Source,
    blocks_of_lines,
    refuse_many_columns,
    too_blank,
    too_long,
)

# How the csv module says that a field goes on and on, with all the rows after it inside.
SWALLOWED: Final = ("unexpected end of data", "field larger than field limit")
# A first line that only says how the others are separated.
TOLD_BY_EXCEL: Final = re.compile(r"sep=([,;\t])\s*")
csv.field_size_limit(MAX_RECORD_BYTES)


class Lines:
    """The lines of a table as text, and how much of it was read since the last row was whole."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.is_utf8 = True  # so far
        self.pending = 0
        self._blocks = blocks_of_lines(file, name)
        self._name = name

    def __iter__(self) -> Iterator[str]:
        for block in self._blocks:
            self.pending += sum(map(len, block))
            if self.pending > 2 * MAX_RECORD_BYTES:
                raise too_long(f"A row of {self._name}")
            for line in block:
                try:
                    yield line.decode()
                except UnicodeDecodeError:
                    self.is_utf8 = False
                    yield line.decode(errors="surrogateescape")


def csv_table(file: BinaryIO, name: str) -> Source:
    lines = Lines(file, name)
    texts = iter(lines)
    header = next(texts)
    passed = 0
    if told := TOLD_BY_EXCEL.fullmatch(header):
        header, passed = next(texts, ""), 1
    delimiter = told.group(1) if told else max(",;\t", key=header.count)
    reader = csv.reader(chain([header], texts), delimiter=delimiter, strict=True)
    try:
        columns = tuple(column.strip() for column in next(reader))
    except csv.Error as error:
        raise InputRefused(f"The header of {name} cannot be read: {error}.") from None
    if not lines.is_utf8 and any(map(is_escaped, columns)):
        raise InputRefused(f"{name} {NOT_UTF8}.")
    refuse_many_columns(columns, name)
    return Source(columns, csv_records(reader, columns, lines, name, passed))


def csv_records(
    reader: Any, columns: tuple[str, ...], lines: Lines, name: str, passed: int
) -> Iterator[Record | BadRow]:
    index = written = 0
    width, names = len(columns), list(columns)
    while True:
        line = passed + reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if str(error).startswith(SWALLOWED):
                raise InputRefused(f"{name} is broken at line {line:,}: a quote is opened and not closed.") from None
            yield BadRow(line, f"not valid CSV: {error}")
            continue
        if not fields:
            if line - written > MAX_BLANK_LINES:
                raise too_blank(name, written + 1)
            continue
        written = line
        lines.pending = 0
        if len(fields) != width:
            yield BadRow(line, f"has {len(fields)} fields where the header has {width}")
        elif fields == names:
            yield BadRow(line, "repeats the names of the columns")
        elif not lines.is_utf8 and any(map(is_escaped, fields)):
            yield BadRow(line, f"the row {NOT_UTF8}")
        else:
            yield Record(line, index, dict(zip(columns, fields, strict=True)))
        index += 1


def is_escaped(field: str) -> bool:
    """Whether there are bytes in it that are not UTF-8."""
    return not field.isascii() and any("\udc80" <= letter <= "\udcff" for letter in field)
