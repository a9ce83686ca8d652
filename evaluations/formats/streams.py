"""Bytes in, records out: JSONL, CSV and JSON arrays, read as a stream with bounded memory."""

import codecs
import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO, Final

from evaluations.domain import BadRow, InputRefused

HEAD_BYTES: Final = 64 * 1024
MAX_RECORD_BYTES: Final = 16 * 1024 * 1024
MAX_COLUMNS: Final = 1_000
# So many unreadable records at the start, or later without a good one between: it is the wrong file.
PATIENCE: Final = 100
LATER_PATIENCE: Final = 10_000
MAGIC: Final = {
    b"PK\x03\x04": "a spreadsheet or ZIP archive",
    b"\x1f\x8b": "compressed with gzip",
    b"PAR1": "a Parquet file",
    b"SQLite format 3": "an SQLite database",
    b"%PDF": "a PDF",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
# How the csv module says that a field goes on and on, with all the rows after it inside.
SWALLOWED: Final = ("unexpected end of data", "field larger than field limit")
csv.field_size_limit(MAX_RECORD_BYTES)


@dataclass(frozen=True)
class Record:
    """One record of a file. ``line`` counts from 1 as an editor shows it, ``index`` from 0."""

    line: int
    index: int
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """A file as records. ``columns`` are those of a CSV header; None where each record has its own."""

    columns: tuple[str, ...] | None
    records: Iterator[Record | BadRow]


def open_source(file: BinaryIO, name: str) -> Source:
    """Look at the beginning of a seekable file and read it for what it is.

    Raises InputRefused where the file as a whole cannot be read; then or while it is read.
    """
    file.seek(0)
    head = file.read(HEAD_BYTES)
    refuse_what_is_no_text(head, name)
    file.seek(0)
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if start.startswith(b"["):
        return Source(None, without_hope_refused(json_array(file, name), name))
    if start.startswith(b"{"):
        return Source(None, without_hope_refused(json_lines(file, name), name))
    columns, records = csv_table(file, name)
    return Source(columns, without_hope_refused(records, name))


def refuse_what_is_no_text(head: bytes, name: str) -> None:
    if not head:
        raise InputRefused(f"{name} is empty (0 bytes).")
    for magic, what in MAGIC.items():
        if head.startswith(magic):
            raise InputRefused(f"{name} is {what}: save it as JSONL or CSV in UTF-8.")
    if not head.removeprefix(codecs.BOM_UTF8).strip():
        raise InputRefused(f"{name} holds nothing but blank space.")
    control = sum(byte < 32 and byte not in b"\t\n\r\f" for byte in head)
    if control > 8 and control * 20 > len(head):
        raise InputRefused(f"{name} is a binary file, not text: save it as JSONL or CSV in UTF-8.")


def without_hope_refused(records: Iterator[Record | BadRow], name: str) -> Iterator[Record | BadRow]:
    """Refuse a file of which nothing can be read at all, or nothing any more, and that soon."""
    broken: list[BadRow] = []
    any_read = False
    for record in records:
        if isinstance(record, Record):
            yield from broken
            yield record
            broken, any_read = [], True
            continue
        broken.append(record)
        if len(broken) == (LATER_PATIENCE if any_read else PATIENCE):
            where = f"of {len(broken):,} rows of {name}, from line {broken[0].line:,} on,"
            raise InputRefused(f"None {where} can be read. {told(broken[0])}")
    if not any_read:
        raise InputRefused(f"No row of {name} can be read. {told(broken[0])}" if broken else f"{name} holds no rows.")
    yield from broken


def told(bad: BadRow) -> str:
    return f"Line {bad.line}: {bad.reason}."


def bounded_lines(file: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, its byte order mark left out."""
    number = 0
    while line := file.readline(MAX_RECORD_BYTES + 1):
        number += 1
        if len(line) > MAX_RECORD_BYTES:
            raise InputRefused(
                f"Line {number} of {name} is longer than {MAX_RECORD_BYTES // 1024 // 1024} MB: "
                "this is no file of rows."
            )
        yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def json_lines(file: BinaryIO, name: str) -> Iterator[Record | BadRow]:
    index = 0
    for number, line in bounded_lines(file, name):
        if not line.strip():
            continue
        yield json_record(number, index, line)
        index += 1


def json_record(number: int, index: int, line: bytes) -> Record | BadRow:
    try:
        values = json.loads(line.decode().strip())
    except UnicodeDecodeError:
        return BadRow(number, "the line is not UTF-8")
    except json.JSONDecodeError as error:
        return BadRow(number, f"not valid JSON: {error.msg.lower()} at column {error.colno}")
    except ValueError:
        return BadRow(number, "holds a number of more digits than can be read")
    except RecursionError:
        return BadRow(number, "nested too deeply")
    if not isinstance(values, dict):
        return BadRow(number, "is not a JSON object")
    return Record(number, index, values)


def csv_table(file: BinaryIO, name: str) -> tuple[tuple[str, ...], Iterator[Record | BadRow]]:
    """The header and the records of a comma, semicolon or tab separated table."""
    lines = (line.decode(errors="surrogateescape") for _, line in bounded_lines(file, name))
    header = next(lines)
    delimiter = max(",;\t", key=header.count)
    reader = csv.reader(chain([header], lines), delimiter=delimiter, strict=True)
    try:
        columns = tuple(column.strip() for column in next(reader))
    except csv.Error as error:
        raise InputRefused(f"The header of {name} cannot be read: {error}.") from None
    refuse_bad_header(columns, name)
    return columns, csv_records(reader, columns, name)


def refuse_bad_header(columns: tuple[str, ...], name: str) -> None:
    if len(columns) > MAX_COLUMNS:
        raise InputRefused(f"{name} has {len(columns):,} columns; at most {MAX_COLUMNS:,} can be read.")
    if any("\udc80" <= letter <= "\udcff" for column in columns for letter in column):
        raise InputRefused(f"{name} is not UTF-8: save it as UTF-8 text.")
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise InputRefused(f"{name} has the column “{twice[0][:60]}” more than once.")


def csv_records(reader: Any, columns: tuple[str, ...], name: str) -> Iterator[Record | BadRow]:
    index = 0
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if str(error).startswith(SWALLOWED):
                raise InputRefused(f"{name} is broken at line {line}: a quote is opened and not closed.") from None
            yield BadRow(line, f"not valid CSV: {error}")
            continue
        if fields:
            yield csv_record(line, index, columns, fields)
            index += 1


def csv_record(line: int, index: int, columns: tuple[str, ...], fields: list[str]) -> Record | BadRow:
    if len(fields) != len(columns):
        return BadRow(line, f"has {len(fields)} fields where the header has {len(columns)}")
    if any("\udc80" <= letter <= "\udcff" for field in fields if not field.isascii() for letter in field):
        return BadRow(line, "the row is not UTF-8")
    return Record(line, index, dict(zip(columns, fields, strict=True)))


def json_array(file: BinaryIO, name: str) -> Iterator[Record | BadRow]:
    """The objects of one JSON array, decoded one by one as the text comes in."""
    text = Text(file, name)
    text.take("[")
    index = 0
    while (letter := text.next_letter()) != "]":
        if index:
            if letter != ",":
                raise text.refusal("a comma or the closing bracket is missing")
            text.take(",")
            letter = text.next_letter()
        if letter != "{":
            raise text.refusal("each entry of the array must be an object")
        line = text.line
        yield Record(line, index, text.take_object())
        index += 1
    text.take("]")
    if not text.is_over():
        raise text.refusal("there is text after the end of the array")


class Text:
    """A window on a long text: knows its line, grows until an object fits, forgets what was read."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name = name
        self.line = 1
        self._read: Callable[[int], bytes] = file.read
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._scan = json.JSONDecoder().raw_decode
        self._window = ""
        self._at = 0
        self._ended = False

    def refusal(self, why: str) -> InputRefused:
        return InputRefused(f"{self.name} is broken at line {self.line}: {why}. Nothing after it could be read.")

    def is_over(self) -> bool:
        """Pass what is blank, and say whether nothing else is left."""
        while True:
            while self._at < len(self._window) and self._window[self._at].isspace():
                self._pass(self._at + 1)
            if self._at < len(self._window) or self._ended:
                return self._at == len(self._window)
            self._grow()

    def next_letter(self) -> str:
        """The next letter that is not blank, not yet taken."""
        if self.is_over():
            raise self.refusal("the file ends before the array does")
        return self._window[self._at]

    def take(self, letter: str) -> None:
        if self.next_letter() == letter:
            self._pass(self._at + 1)

    def take_object(self) -> Mapping[str, Any]:
        while True:
            try:
                values, end = self._scan(self._window, self._at)
            except json.JSONDecodeError as error:
                if self._ended or len(self._window) - self._at > MAX_RECORD_BYTES:
                    raise self.refusal(f"not valid JSON ({error.msg.lower()})") from None
                self._grow()
            except (ValueError, RecursionError):
                raise self.refusal("a number is too long or objects are nested too deeply") from None
            else:
                self._pass(end)
                return dict(values)

    def _pass(self, end: int) -> None:
        self.line += self._window.count("\n", self._at, end)
        self._at = end

    def _grow(self) -> None:
        """Read on: as much again as is waiting, so that a long object is not scanned too often."""
        self._window = self._window[self._at :]
        self._at = 0
        more = self._read(max(HEAD_BYTES, len(self._window)))
        self._ended = not more
        try:
            self._window += self._decoder.decode(more, final=self._ended)
        except UnicodeDecodeError:
            raise self.refusal("the text is not UTF-8") from None
