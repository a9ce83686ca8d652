"""A file in, rows out: which format it is, and what each of its records brings."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, BinaryIO, Final

from evaluations.domain import (
    FLIPPED,
    BadRow,
    Choice,
    InputRefused,
    Notice,
    NoticeKind,
    Reading,
    Row,
    ScoreRow,
    Shown,
    VerdictRow,
)
from evaluations.formats.candidates import named_for_the_whole_file, refuse_unclear_model
from evaluations.formats.exported import has_labels, material
from evaluations.formats.file_sample import FileSample, mostly, sample_of
from evaluations.formats.mapping import mapped_sample, mapped_values, rows_meant
from evaluations.formats.messages import left_out_of_turns, refuse_media_columns
from evaluations.formats.recognising import Format, detect, listed, refuse_missing_columns, refuse_other_material
from evaluations.formats.seen import Seen
from evaluations.formats.sources import open_source
from evaluations.formats.streams import Blank, Record
from evaluations.formats.values import MAX_SAMPLE, RowRefused, refuse_unstorable, refuse_unstorable_name

NESTED: Final = ("data", "fields")  # where annotation tools keep the fields of a task
# Chat messages in a cell as Python or NumPy print them, which is no JSON and loses what the quotes stood for.
PRINTED: Final = re.compile(r"\s*\[?\s*(?:array\(\[)?\{'(?:role|content|from|value)': ")


class NamedBy(StrEnum):
    """What names the models of a file's responses."""

    FORM = "form"
    COLUMN = "column"
    FILE = "file"


@dataclass(frozen=True)
class Entry:
    """What one record of a file brings: one row, or material and the verdicts or scores that came with it.

    ``notices``: what it holds and does not bring as it was.
    """

    line: int
    rows: tuple[Row, ...]
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class Contents:
    """A file understood. Reading ``entries`` may raise InputRefused where the file breaks off.

    ``blank``: the rows and columns without anything in them, known after the last entry. ``named_by``: what names the
    models of its responses.
    """

    format: Format
    entries: Iterator[Entry | BadRow]
    blank: Blank = field(default_factory=Blank)
    named_by: NamedBy = NamedBy.COLUMN


def read_rows(file: BinaryIO, name: str, reading: Reading, seen: Seen, brings: str = "") -> Contents:
    """The rows of a file. ``seen`` counts samples; ``brings`` refuses other material."""
    source = open_source(file, name, reading.limits)
    reading = named_for_the_whole_file(reading)
    sample, records = sample_of(source)
    refuse_printed_messages(sample, name)
    refuse_unknown_columns(sample.columns, nested_columns(sample), reading, name)
    sample = mapped_sample(sample, reading)
    found = detect(sample, reading.format, name, brings).of(sample)
    refuse_other_material(found, brings, name)
    if source.columns:
        refuse_missing_columns(found, sample.columns, name)
    named_by = who_names(found, sample.columns, reading, name)
    reading = replace(reading, file_name=(source.part or name) if named_by == NamedBy.FILE else "")
    entries = (with_samples(entry_of(record, found, reading), seen) for record in records)
    return Contents(found, entries, source.blank, named_by)


def who_names(found: Format, columns: tuple[str, ...], reading: Reading, name: str) -> NamedBy:
    """What names the models: the form, else the file's column, else the file's own name."""
    if reading.candidate:
        return NamedBy.FORM
    if not found.model or found.model in columns:
        return NamedBy.COLUMN
    refuse_unclear_model(columns, found.model, name)
    return NamedBy.FILE


def nested_columns(sample: FileSample) -> tuple[str, ...]:
    """What stands in the tasks of an annotation project, one level down."""
    inner = [row.get(field) for row in sample.rows for field in NESTED]
    return tuple(dict.fromkeys(str(column) for fields in inner if isinstance(fields, dict) for column in fields))


def refuse_printed_messages(sample: FileSample, name: str) -> None:
    for column in sample.columns:
        values = sample.values(column)
        if values and mostly(isinstance(one, str) and PRINTED.match(one) is not None for one in values):
            raise InputRefused(
                f"The column “{column}” of {name} holds chat messages as Python prints them, which cannot be read "
                "back: save the file as JSONL or Parquet."
            )


def refuse_unknown_columns(columns: tuple[str, ...], inner: tuple[str, ...], reading: Reading, name: str) -> None:
    for column in reading.mapping:
        if column not in columns and column not in inner:
            raise InputRefused(f"{name} has no column “{column}” to map. It has: {listed(columns + inner)}.")


def entry_of(record: Record | BadRow, found: Format, reading: Reading) -> Entry | BadRow:
    if isinstance(record, BadRow):
        return record
    try:
        told = material(record.values)
        values = mapped_values(told, record.index, reading)
        has_turns = False
        for column, value in values.items():
            refuse_unstorable_name(column)
            refuse_unstorable(value, column)
            has_turns = has_turns or type(value) in (list, dict)
        refuse_media_columns(values)
        unread = said_in(record) if told is not record.values else ()
        if values is not record.values:
            record = replace(record, values=values)
        rows = rows_meant(found.name, found.meaning, record, reading)
        if has_turns:
            unread += tuple(Notice(record.line, NoticeKind.NOT_STORED, what) for what in in_turns(values))
        return told_apart(record.line, (*rows, *unread) if unread else rows)
    except RowRefused as refused:
        return BadRow(record.line, str(refused))


def in_turns(values: Mapping[str, Any]) -> Iterator[str]:
    """What turns hold besides their texts, in the columns of a record or in the fields of a task."""
    yield from left_out_of_turns(values)
    for name in NESTED:
        if isinstance(inner := values.get(name), dict):
            yield from left_out_of_turns(inner)


def said_in(record: Record) -> tuple[Notice, ...]:
    """What raters said of a comparison that was exported, which is not read with it."""
    if not has_labels(record.values):
        return ()
    return (Notice(record.line, NoticeKind.NOT_STORED, "labels and reviews of an export, which “verdicts” brings"),)


def told_apart(line: int, rows: tuple[Row, ...]) -> Entry:
    if Notice not in map(type, rows):
        return Entry(line, rows)
    notices = tuple(row for row in rows if isinstance(row, Notice))
    return Entry(line, tuple(row for row in rows if not isinstance(row, Notice)), notices)


def with_samples(given: Entry | BadRow, seen: Seen) -> Entry | BadRow:
    """Verdicts and scores without a sample are counted: the first of its kind in the file is 0."""
    if isinstance(given, BadRow) or not any(isinstance(row, (VerdictRow, ScoreRow)) for row in given.rows):
        return given
    rows = tuple(numbered(row, seen) for row in given.rows)
    for row in rows:
        if isinstance(row, (VerdictRow, ScoreRow)) and (row.sample or 0) > MAX_SAMPLE:
            what = "verdict" if isinstance(row, VerdictRow) else "score"
            return BadRow(given.line, f"is more than sample {MAX_SAMPLE:,} of the same {what}")
    return replace(given, rows=rows)


def numbered(row: Row, seen: Seen) -> Row:
    if not isinstance(row, (VerdictRow, ScoreRow)) or row.sample is not None:
        return row
    return replace(row, sample=seen.ordinal(counted_as(row)))


def counted_as(row: VerdictRow | ScoreRow) -> tuple[str, ...]:
    """What two rows have in common that are samples of one thing."""
    if isinstance(row, ScoreRow):
        return row.query_key, "score", row.candidate, row.rater_kind, row.rater, row.aspect
    told = sorted_by_name(row)
    names = (told.candidate_a or "", told.candidate_b or "")
    return told.query_key, *names, told.rater_kind, told.rater, told.aspect, told.shown


def sorted_by_name(row: VerdictRow) -> VerdictRow:
    """The row with A as the candidate whose name sorts first; without names it stays as it is."""
    if row.candidate_a is None or row.candidate_b is None or row.candidate_a <= row.candidate_b:
        return row
    return turned_round(replace(row, candidate_a=row.candidate_b, candidate_b=row.candidate_a))


TURNED: Final = {Shown.AS_STORED: Shown.SWAPPED, Shown.SWAPPED: Shown.AS_STORED}


def turned_round(row: VerdictRow) -> VerdictRow:
    """The same choice told with the sides exchanged."""
    choice = FLIPPED[Choice(row.choice)] if row.choice in tuple(Choice) else row.choice
    return replace(row, choice=choice, shown=TURNED.get(row.shown, row.shown))
