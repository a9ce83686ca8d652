"""A mapping of a file's columns to the product's fields, with constants and words for choices."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from evaluations.domain.files import (
    FIELDS_BY_FORMAT,
    ID_FROM_ROW_NUMBER,
    ID_FROM_TEXT,
    SAMPLE_KEY,
    FileFormat,
    FileRow,
    Notice,
    NoticeKind,
    ReadOptions,
)
from evaluations.formats.file_sample import FileSample
from evaluations.formats.label_parser import LABEL_COLUMNS
from evaluations.formats.native_rows import LabelUnknown, native_score_row, native_verdict_row
from evaluations.formats.record_streams import Record
from evaluations.formats.values import RowRefused, content_key, optional_text


@dataclass(frozen=True)
class RowLabels:
    """The labels that a row may hold in addition to the material.

    ``fields`` hold it, or the first of ``columns`` that is there. ``own``: all fields of it, which are no metadata.
    """

    fields: tuple[str, ...]
    columns: tuple[str, ...]
    own: frozenset[str]
    meaning: Callable[[Record, ReadOptions], tuple[FileRow, ...]]


KEYS: Final = frozenset({"query_id", "candidate", "candidate_a", "candidate_b", SAMPLE_KEY})
KEYS_OF_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    kind: frozenset(field.name for field in FIELDS_BY_FORMAT[kind]) for kind in (FileFormat.VERDICTS, FileFormat.SCORES)
}
LABELS_IN_ROW: Final[Mapping[str, RowLabels]] = {
    FileFormat.COMPARISONS: RowLabels(
        ("choice",), LABEL_COLUMNS, KEYS_OF_FIELDS[FileFormat.VERDICTS] - KEYS, native_verdict_row
    ),
    FileFormat.RESPONSES: RowLabels(
        ("value", "failure"), ("value", "failure"), KEYS_OF_FIELDS[FileFormat.SCORES] - KEYS, native_score_row
    ),
}
LABELS: Final = frozenset({*LABEL_COLUMNS, "value", "failure"})
RATERS: Final = ("rater", "annotator", "annotator_id", "reviewer", "judge", "worker_id")
ON_ASPECT: Final = "choice:"


def fields_of_column(column: str, reading: ReadOptions) -> tuple[str, ...]:
    """The fields that a column is mapped to; itself without a mapping."""
    told = reading.mapping.get(column)
    if told is not None:
        return tuple(part.strip() for part in told.split(","))
    return (f"{column} of the file",) if column in mapped_fields(reading) else (column,)


def mapped_fields(reading: ReadOptions) -> frozenset[str]:
    """The fields with a mapped source."""
    return available_fields(tuple(reading.mapping.values()), tuple(reading.constants))


@lru_cache(maxsize=64)
def available_fields(columns: tuple[str, ...], constants: tuple[str, ...]) -> frozenset[str]:
    return frozenset(part.strip() for told in columns for part in told.split(",")) | frozenset(constants)


def mapped_sample(sample: FileSample, reading: ReadOptions) -> FileSample:
    """A sample of a file under the names of the product's fields."""
    if not reading.is_mapped:
        return sample
    columns = (*(field for column in sample.columns for field in fields_of_column(column, reading)), *reading.constants)
    rows = [{**rename_columns(row, reading), **reading.constants} for row in sample.rows]
    return FileSample(columns, rows)


def rename_columns(values: Mapping[str, Any], reading: ReadOptions) -> dict[str, Any]:
    return {field: value for column, value in values.items() for field in fields_of_column(column, reading)}


def mapped_values(values: Mapping[str, Any], index: int, reading: ReadOptions) -> Mapping[str, Any]:
    """A record under the names of the product's fields. Raises RowRefused."""
    if not reading.is_mapped:
        return values
    found = rename_columns(values, reading)
    found.update(reading.constants)
    if "query_id" in reading.constants:
        found["query_id"] = make_row_id(reading.constants["query_id"], found, index)
    return found


def make_row_id(told: str, values: Mapping[str, Any], index: int) -> str:
    if told == ID_FROM_ROW_NUMBER:
        return str(index)
    if told != ID_FROM_TEXT:
        return told
    text = values.get("query") or values.get("messages")
    if not text:
        raise RowRefused("query is missing, of which its id is to be made")
    return content_key(text)


def aspect_choice_fields(reading: ReadOptions) -> list[str]:
    """The fields that hold a choice on one aspect each, as ``choice:style``, where a row has several."""
    return sorted(field for field in mapped_fields(reading) if field.startswith(ON_ASPECT))


def has_label(values: Mapping[str, Any], field: str, reading: ReadOptions) -> bool:
    """Whether there is a label, and it is not a word for no choice."""
    given = optional_text(values, field).strip()
    return bool(given) and reading.choices.get(given.lower()) != ""


def rows_with_labels(
    name: str, meaning: Callable[[Record, ReadOptions], tuple[FileRow, ...]], record: Record, reading: ReadOptions
) -> tuple[FileRow, ...]:
    """The rows of a record: its material, with the verdicts or the score in the same row."""
    beside = LABELS_IN_ROW.get(name)
    if beside is None:
        rows, known = meaning(record, reading), KEYS_OF_FIELDS.get(name)
        return (
            rows
            if known is None or record.values.keys() <= known
            else (*rows, *unused_label_column_notices(record, known))
        )
    several = aspect_choice_fields(reading) if name == FileFormat.COMPARISONS and reading.is_mapped else []
    if several or (reading.is_mapped and mapped_fields(reading).intersection(beside.fields)):
        values = record.values
        rows = meaning(replace(record, values=material_values(values, beside, several)), reading)
        if any(has_label(values, field, reading) for field in beside.fields):
            rows = (*rows, *beside.meaning(record, reading))
        for field in several:
            if has_label(values, field, reading):
                told = {**values, "choice": values[field], "aspect": field.removeprefix(ON_ASPECT)}
                rows = (*rows, *native_verdict_row(replace(record, values=told), reading))
        return rows
    column = own_label_column(beside, record.values, reading)
    if column is None:
        return meaning(record, reading)
    return rows_with_own_label(beside, meaning, record, reading, column)


def own_label_column(beside: RowLabels, values: Mapping[str, Any], reading: ReadOptions) -> str | None:
    """The label column of a row that also names the rater and its kind."""
    if LABELS.isdisjoint(values):
        return None
    columns = beside.fields if reading.mapping or reading.constants else beside.columns
    column = next((column for column in columns if column in values), None)
    if column is None:
        return None
    has_rater = reading.rater or any(optional_text(values, rater).strip() for rater in RATERS)
    has_kind = reading.rater_kind or optional_text(values, "rater_kind").strip()
    return column if has_rater and has_kind else None


def rows_with_own_label(
    beside: RowLabels,
    meaning: Callable[[Record, ReadOptions], tuple[FileRow, ...]],
    record: Record,
    reading: ReadOptions,
    column: str,
) -> tuple[FileRow, ...]:
    """The material and its label, which is counted where it is not understood."""
    values = dict(record.values)
    rater = next((one for one in RATERS if optional_text(values, one).strip()), None)
    for field, found in ((beside.fields[0], column), ("rater", rater)):
        if found is not None and found not in (*beside.fields, "rater"):
            values[field] = values.pop(found)
    rows = meaning(replace(record, values=material_values(values, beside, ())), reading)
    if not any(has_label(values, field, reading) for field in beside.fields):
        return rows
    try:
        told = replace(reading, mapping={column: beside.fields[0]})
        return (*rows, *beside.meaning(replace(record, values=values), told))
    except LabelUnknown:
        return (*rows, Notice(record.line, NoticeKind.NOT_UNDERSTOOD, optional_text(values, "choice"), column))


def material_values(values: Mapping[str, Any], beside: RowLabels, several: Collection[str]) -> dict[str, Any]:
    return {column: value for column, value in values.items() if column not in beside.own and column not in several}


def unused_label_column_notices(record: Record, known: Collection[str]) -> Iterator[Notice]:
    """Columns of verdicts and of scores that no row of them has. Material keeps such columns as metadata."""
    for column, value in record.values.items():
        if column not in known and value not in (None, ""):
            yield Notice(record.line, NoticeKind.COLUMN, column)
