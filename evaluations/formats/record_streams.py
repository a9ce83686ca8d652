"""A file as a stream of records, read with bounded memory, and the sample from which its format is recognised."""

import codecs
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, BinaryIO, Final, cast

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import BadRow
from evaluations.formats.values import approximate_size

MB: Final = 1024 * 1024
BLOCK_BYTES: Final = 256 * 1024
MAX_RECORD_BYTES: Final = 16 * MB
MAX_COLUMNS: Final = 1_000
# Limits between two rows: decompression bombs are mostly blank.
MAX_BLANK_BYTES: Final = MAX_RECORD_BYTES
MAX_BLANK_LINES: Final = 100_000
NOT_UTF8: Final = "is not UTF-8 (Latin-1 or Windows-1252, perhaps: save the file as UTF-8)"


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a file. ``index`` counts from 0, ``line`` from 1 as an editor shows it.

    In tables without lines (Parquet, Arrow) ``line`` is the number of the row; of several files in one
    archive the rows are numbered through. ``enclosing``: the members of a JSON object before the array of records.
    ``part``: the name of the file in an archive of several files.
    """

    line: int
    index: int
    values: Mapping[str, Any]
    enclosing: Mapping[str, Any] | None = None
    part: str = ""


@dataclass
class BlankCounts:
    """Counts of empty rows and columns of a table, as spreadsheets write them."""

    rows: int = 0
    columns: int = 0

    def __str__(self) -> str:
        counted = ((self.rows, "row"), (self.columns, "column"))
        return " and ".join(f"{number:,} blank {what}{'s' * (number > 1)}" for number, what in counted if number)


@dataclass(frozen=True)
class RecordSource:
    """A file as records. ``columns`` are those of a table; None where each record has its own.

    ``part``: what the only file of an archive is called.
    ``later_rows``: some rows from all over the file, where it can be read out of order. ``blank``: what was skipped
    because nothing is in it, known once all was read.
    """

    columns: tuple[str, ...] | None
    records: Iterator[Record | BadRow]
    part: str = ""
    later_rows: Callable[[], list[Mapping[str, Any]]] = list
    blank: BlankCounts = field(default_factory=BlankCounts)


class PieceFile(io.RawIOBase):
    """A file made of pieces, which can be read once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._rest or next(self._pieces, b"")
        number = min(len(piece), len(buffer))
        buffer[:number], self._rest = piece[:number], piece[number:]
        return number


def file_from_pieces(pieces: Iterator[bytes]) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(PieceFile(pieces), BLOCK_BYTES))


def read_pieces(read: Callable[[int], bytes]) -> Iterator[bytes]:
    return iter(lambda: read(BLOCK_BYTES), b"")


def record_too_long(where: str) -> InputRefused:
    return InputRefused(f"{where} is longer than {MAX_RECORD_BYTES // MB} MB. This is not a file of rows.")


def too_many_blank_lines(name: str, line: int) -> InputRefused:
    return InputRefused(f"{name} has only blank lines from line {line:,} on. This is not a file of rows.")


def blocks_of_lines(file: BinaryIO, name: str) -> Iterator[list[bytes]]:
    """All lines with their ends (LF, CR LF or CR), many at once; the byte order mark is left out."""
    rest = file.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
    passed = 0
    while more := file.read(max(BLOCK_BYTES, len(rest))):
        lines = (rest + more).splitlines(keepends=True)
        rest = lines.pop()  # it may go on in what is read next
        passed += len(lines)
        if len(rest) > MAX_RECORD_BYTES:
            raise record_too_long(f"Line {passed + 1:,} of {name}")
        yield lines
    if rest:
        yield [rest]


def refuse_many_columns(columns: tuple[str, ...], name: str) -> None:
    if len(columns) > MAX_COLUMNS:
        raise InputRefused(f"{name} has {len(columns):,} columns; the limit is {MAX_COLUMNS:,}.")
    if len(set(columns)) < len(columns):
        twice = min(column for column in columns if columns.count(column) > 1)
        what = f"the column “{twice[:60]}” more than once" if twice else "more than one column without a name"
        raise InputRefused(f"{name} has {what}. Give each column its own name, or remove it.")


FIRST_RECORDS: Final = 1_000
FIRST_CHARACTERS: Final = 4 * MB
MOSTLY: Final = 0.9


@dataclass(frozen=True)
class FileSample:
    """``rows``: values of the first records, and of some from later parts of the file where they can be found."""

    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]

    def values(self, column: str) -> list[Any]:
        """The cells of a column that are not empty."""
        return [row[column] for row in self.rows if row.get(column) not in (None, "")]


def fits_mostly(fits: Iterable[bool]) -> bool:
    """Whether enough values fit for the rest to be faults of their rows; true without values."""
    listed = list(fits)
    return sum(listed) >= MOSTLY * len(listed)


def sample_file(source: RecordSource) -> tuple[FileSample, Iterator[Record | BadRow]]:
    """A sample of a file, and all its records. Raises InputRefused where nothing says which columns it has."""
    first: list[Record | BadRow] = []
    rows: list[Mapping[str, Any]] = []
    failure: InputRefused | None = None
    characters = 0
    try:
        for record in source.records:
            first.append(record)
            if isinstance(record, Record):
                rows.append(record.values)
                characters += approximate_size(list(record.values.values()))
            if len(first) == FIRST_RECORDS or characters > FIRST_CHARACTERS:
                rows += source.later_rows()
                break
    except InputRefused as refused:
        if not rows and not source.columns:
            raise
        failure = refused
    columns = source.columns or tuple(dict.fromkeys(chain.from_iterable(rows)))
    return FileSample(columns, rows), chain(first, remaining_records(source.records, failure))


def remaining_records(records: Iterator[Record | BadRow], failure: InputRefused | None) -> Iterator[Record | BadRow]:
    """The records after the first; where the file broke off among those, it breaks off again."""
    if failure:
        raise failure
    yield from records
