"""Tables as text: separated by commas, semicolons or tabs, with the column names in the first line."""

import csv
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, BinaryIO, Final

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import BadRow
from evaluations.formats.record_streams import (
    MAX_BLANK_LINES,
    MAX_RECORD_BYTES,
    NOT_UTF8,
    BlankCounts,
    Record,
    RecordSource,
    blocks_of_lines,
    record_too_long,
    refuse_many_columns,
    too_many_blank_lines,
)

# Errors of the csv module for a field whose quote is never closed.
SWALLOWED: Final = ("unexpected end of data", "field larger than field limit")
# A first line that only declares the separator.
EXCEL_SEPARATOR_LINE: Final = re.compile(r"sep=([,;\t])\s*")
# A line of separators alone.
BLANK_LINE: Final = re.compile(r'[\s,;"]*')
# A column without a name, as it is or as pandas writes it.
NO_NAME: Final = re.compile(r"(Unnamed: \d+)?")
csv.field_size_limit(MAX_RECORD_BYTES)


class CsvLines:
    """The lines of a table as text. ``pending``: bytes read since the last complete row."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.is_utf8 = True  # so far
        self.pending = 0
        self._blocks = blocks_of_lines(file, name)
        self._name = name

    def __iter__(self) -> Iterator[str]:
        for block in self._blocks:
            self.pending += sum(map(len, block))
            if self.pending > 2 * MAX_RECORD_BYTES:
                raise record_too_long(f"A row of {self._name}")
            for line in block:
                try:
                    yield line.decode()
                except UnicodeDecodeError:
                    self.is_utf8 = False
                    yield line.decode(errors="surrogateescape")


def read_csv(file: BinaryIO, name: str) -> RecordSource:
    lines = CsvLines(file, name)
    texts = iter(lines)
    header, passed = next(texts), 0
    delimiter = ""
    if separator := EXCEL_SEPARATOR_LINE.fullmatch(header):
        header, passed, delimiter = next(texts, ""), 1, separator.group(1)
    while header and BLANK_LINE.fullmatch(header):
        header, passed = next(texts, ""), passed + 1
    reader = csv.reader(chain([header], texts), delimiter=delimiter or max(",;\t", key=header.count), strict=True)
    try:
        columns = tuple(column.strip() for column in next(reader, []))
    except csv.Error as error:
        raise InputRefused(f"The header of {name} cannot be read: {error}.") from None
    if not lines.is_utf8 and any(map(is_escaped, columns)):
        raise InputRefused(f"{name} {NOT_UTF8}.")
    table = CsvTable(columns, name, passed)
    refuse_many_columns(table.named, name)
    return RecordSource(table.named, table.records(reader, lines), blank=table.blank)


class CsvTable:
    """The rows of a table under the names of its columns. What spreadsheets leave blank is skipped and counted."""

    def __init__(self, columns: tuple[str, ...], name: str, passed: int) -> None:
        self.named = tuple(filter(None, columns)) if columns.count("") > 1 else columns
        self.blank = BlankCounts()
        self._columns, self._name, self._passed = columns, name, passed
        self._unnamed = [place for place, column in enumerate(columns) if NO_NAME.fullmatch(column)]
        self._seen_blank: set[int] = set()
        self._seen_full: set[int] = set()

    def records(self, reader: Any, lines: CsvLines) -> Iterator[Record | BadRow]:
        index = written = 0
        name, width, names = self._name, len(self._columns), list(self._columns)
        while True:
            line = self._passed + reader.line_num + 1
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                if str(error).startswith(SWALLOWED):
                    why = f"{name} is broken at line {line:,}: a quote is never closed."
                    raise InputRefused(why) from None
                yield BadRow(line, f"not valid CSV: {error}")
                continue
            if not fields:
                if line - written > MAX_BLANK_LINES:
                    raise too_many_blank_lines(name, written + 1)
                continue
            written = line
            lines.pending = 0
            if not any(map(str.strip, fields)):
                self.blank.rows += 1
                continue
            if len(fields) != width:
                fields = self.fitted(fields)
            if len(fields) != width:
                yield BadRow(line, f"has {len(fields)} fields; the header has {width}")
            elif fields == names:
                yield BadRow(line, "repeats the header")
            elif not lines.is_utf8 and any(map(is_escaped, fields)):
                yield BadRow(line, f"the row {NOT_UTF8}")
            elif self._unnamed:
                yield self.without_blank_cells(line, index, fields)
            else:
                yield Record(line, index, dict(zip(self._columns, fields, strict=True)))
            index += 1

    def fitted(self, fields: list[str]) -> list[str]:
        """A row padded or cut to the width of the header where the difference is blank cells of unnamed columns."""
        width = len(self._columns)
        if len(fields) < width:
            return fields if any(self._columns[len(fields) :]) else fields + [""] * (width - len(fields))
        if any(map(str.strip, fields[width:])):
            return fields
        self.note(range(width, len(fields)), ())
        return fields[:width]

    def without_blank_cells(self, line: int, index: int, fields: list[str]) -> Record | BadRow:
        """A row without the blank cells of columns that have no name. One alone may be full: row numbers."""
        blank = {place for place in self._unnamed if not fields[place].strip()}
        full = [place for place in self._unnamed if place not in blank]
        self.note(blank, full)
        nameless = [place for place in full if not self._columns[place]]
        if nameless and "" not in self.named:
            return BadRow(line, f"column {nameless[0] + 1} has no name and holds “{fields[nameless[0]][:40]}”. Name it")
        cells = enumerate(zip(self._columns, fields, strict=True))
        return Record(line, index, {column: field for place, (column, field) in cells if place not in blank})

    def note(self, blank: Iterable[int], full: Iterable[int]) -> None:
        self._seen_blank.update(blank)
        self._seen_full.update(full)
        self.blank.columns = len(self._seen_blank - self._seen_full)


def is_escaped(field: str) -> bool:
    """Whether there are bytes in it that are not UTF-8."""
    return not field.isascii() and any("\udc80" <= letter <= "\udcff" for letter in field)
