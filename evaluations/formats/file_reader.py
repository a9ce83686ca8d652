"""The rows of an import file, whatever its format."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, Final

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import (
    BadRow,
    FileEntry,
    FileLimits,
    FileRow,
    Notice,
    NoticeKind,
    ReadOptions,
    ScoreRow,
    VerdictRow,
)
from evaluations.domain.imports import CandidateNaming
from evaluations.formats.candidate_names import refuse_unclear_model, use_constant_candidate
from evaluations.formats.chat_messages import ignored_in_turns, refuse_media_columns
from evaluations.formats.column_mapping import mapped_sample, mapped_values, rows_with_labels
from evaluations.formats.exported_rows import has_exported_labels, read_exported_material
from evaluations.formats.import_format import ImportFormat
from evaluations.formats.import_formats import (
    detect_format,
    list_columns,
    refuse_missing_columns,
    refuse_other_material,
)
from evaluations.formats.record_paths import get_value
from evaluations.formats.record_streams import BlankCounts, FileSample, Record, fits_mostly, sample_file
from evaluations.formats.seen_index import SeenIndex
from evaluations.formats.sources import USUAL, open_source
from evaluations.formats.values import MAX_SAMPLE, RowRefused, refuse_unstorable, refuse_unstorable_name

NESTED: Final = ("data", "fields")  # where annotation tools keep the fields of a task
# Chat messages in a cell as Python or NumPy print them, which is no JSON and loses what the quotes stood for.
PRINTED: Final = re.compile(r"\s*\[?\s*(?:array\(\[)?\{'(?:role|content|from|value)': ")


@dataclass(frozen=True)
class FileContents:
    """The contents of a file whose format is known. Reading ``entries`` may raise InputRefused where the file breaks
    off.

    ``blank``: counts of empty rows and columns, known after the last entry. ``named_by``: the source of model names.
    """

    format: ImportFormat
    entries: Iterator[FileEntry | BadRow]
    blank: BlankCounts = field(default_factory=BlankCounts)
    named_by: CandidateNaming = CandidateNaming.COLUMN


def read_file_rows(
    file: BinaryIO, name: str, options: ReadOptions, seen: SeenIndex, *, brings: str = "", limits: FileLimits = USUAL
) -> FileContents:
    """The rows of a file. ``seen``: counts samples; ``brings``: the only material that is accepted, any if empty."""
    source = open_source(file, name, limits)
    options = use_constant_candidate(options)
    sample, records = sample_file(source)
    refuse_printed_messages(sample, name)
    refuse_unknown_columns(sample, options, name)
    sample = mapped_sample(sample, options)
    form = detect_format(sample, options.format, name, brings).for_sample(sample)
    refuse_other_material(form, brings, name)
    if source.columns:
        refuse_missing_columns(form, sample.columns, name)
    named_by = candidate_naming(form, sample.columns, options, name)
    options = replace(options, file_name=(source.part or name) if named_by == CandidateNaming.FILE else "")
    entries = (number_samples(entry_of_record(record, form, options), seen) for record in records)
    return FileContents(form, entries, source.blank, named_by)


def candidate_naming(form: ImportFormat, columns: tuple[str, ...], options: ReadOptions, name: str) -> CandidateNaming:
    """The source of candidate names: the form, else a column, else the file name."""
    if options.candidate:
        return CandidateNaming.FORM
    if not form.model or form.model in columns:
        return CandidateNaming.COLUMN
    refuse_unclear_model(columns, form.model, name)
    return CandidateNaming.FILE


def nested_task_columns(sample: FileSample) -> tuple[str, ...]:
    """The columns nested in the tasks of an annotation project."""
    inner = [row.get(field) for row in sample.rows for field in NESTED]
    return tuple(dict.fromkeys(str(column) for fields in inner if isinstance(fields, dict) for column in fields))


def refuse_printed_messages(sample: FileSample, name: str) -> None:
    for column in sample.columns:
        values = sample.values(column)
        if values and fits_mostly(isinstance(value, str) and PRINTED.match(value) is not None for value in values):
            raise InputRefused(
                f"The column “{column}” of {name} has chat messages printed by Python, which cannot be parsed. "
                "Save the file as JSONL or Parquet."
            )


def refuse_unknown_columns(sample: FileSample, options: ReadOptions, name: str) -> None:
    """Refuse a mapping of a column that the first rows do not have, nor at a path inside their objects."""
    columns = (*sample.columns, *nested_task_columns(sample))
    for column in options.mapping:
        known = column in columns or any(get_value(row, column) is not None for row in sample.rows)
        if not known and column not in options.later_columns:
            raise InputRefused(f"{name} has no column “{column}” to map. It has: {list_columns(columns)}.")


def entry_of_record(record: Record | BadRow, form: ImportFormat, options: ReadOptions) -> FileEntry | BadRow:
    if isinstance(record, BadRow):
        return record
    try:
        material = read_exported_material(record.values)
        values = mapped_values(material, record.index, options)
        has_turns = False
        for column, value in values.items():
            refuse_unstorable_name(column)
            refuse_unstorable(value, column)
            has_turns = has_turns or type(value) in (list, dict)
        refuse_media_columns(values)
        unread = exported_label_notices(record) if material is not record.values else ()
        if values is not record.values:
            record = replace(record, values=values)
        rows = rows_with_labels(form.name, form.read_rows, record, options)
        if has_turns:
            unread += tuple(Notice(record.line, NoticeKind.NOT_STORED, what) for what in ignored_turn_content(values))
        return split_material_and_labels(record.line, (*rows, *unread) if unread else rows)
    except RowRefused as refused:
        return BadRow(record.line, str(refused))


def ignored_turn_content(values: Mapping[str, Any]) -> Iterator[str]:
    """Content of turns other than text, in the columns of a record or the fields of a task."""
    yield from ignored_in_turns(values)
    for name in NESTED:
        if isinstance(inner := values.get(name), dict):
            yield from ignored_in_turns(inner)


def exported_label_notices(record: Record) -> tuple[Notice, ...]:
    """Notices of labels in an exported comparison, which are not imported with it."""
    if not has_exported_labels(record.values):
        return ()
    return (Notice(record.line, NoticeKind.NOT_STORED, "exported labels and reviews (import “verdicts”)"),)


def split_material_and_labels(line: int, rows: tuple[FileRow, ...]) -> FileEntry:
    if Notice not in map(type, rows):
        return FileEntry(line, rows)
    notices = tuple(row for row in rows if isinstance(row, Notice))
    return FileEntry(line, tuple(row for row in rows if not isinstance(row, Notice)), notices)


def number_samples(entry: FileEntry | BadRow, seen: SeenIndex) -> FileEntry | BadRow:
    """The rows with sample numbers: verdicts and scores without one are numbered from 0 by their key."""
    if isinstance(entry, BadRow) or not any(isinstance(row, (VerdictRow, ScoreRow)) for row in entry.rows):
        return entry
    rows = tuple(number_sample(row, seen) for row in entry.rows)
    for row in rows:
        if isinstance(row, (VerdictRow, ScoreRow)) and (row.sample or 0) > MAX_SAMPLE:
            what = "verdict" if isinstance(row, VerdictRow) else "score"
            return BadRow(entry.line, f"has a sample above {MAX_SAMPLE:,} of the same {what}")
    return replace(entry, rows=rows)


def number_sample(row: FileRow, seen: SeenIndex) -> FileRow:
    if not isinstance(row, (VerdictRow, ScoreRow)) or row.sample is not None:
        return row
    return replace(row, sample=seen.ordinal(sample_key(row)))


def sample_key(row: VerdictRow | ScoreRow) -> tuple[str, ...]:
    """The key that rows share which are samples of the same verdict or score."""
    if isinstance(row, ScoreRow):
        return row.query_key, "score", row.candidate, row.rater_kind, row.rater, row.aspect
    sorted_row = row.with_sides_by_name()
    names = (sorted_row.candidate_a or "", sorted_row.candidate_b or "")
    return sorted_row.query_key, *names, sorted_row.rater_kind, sorted_row.rater, sorted_row.aspect, sorted_row.shown
