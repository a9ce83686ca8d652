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
from evaluations.formats.label_parser import LABEL_COLUMNS
from evaluations.formats.native_rows import LabelUnknown, native_score_row, native_verdict_row
from evaluations.formats.record_paths import get_value
from evaluations.formats.record_streams import FileSample, Record
from evaluations.formats.values import RowRefused, content_key, optional_text


@dataclass(frozen=True)
class RowLabels:
    """The labels that a row may hold in addition to the material.

    ``fields``: where a mapping puts the label; ``columns``: columns that may hold it, the first one counts.
    ``all_fields``: all fields of labels, which are not metadata. ``read_rows``: reads the verdicts or scores of a
    record.
    """

    fields: tuple[str, ...]
    columns: tuple[str, ...]
    all_fields: frozenset[str]
    read_rows: Callable[[Record, ReadOptions], tuple[FileRow, ...]]


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


def fields_of_column(column: str, options: ReadOptions) -> tuple[str, ...]:
    """The fields that a column is mapped to; itself without a mapping."""
    mapped = options.mapping.get(column)
    if mapped is not None:
        return tuple(part.strip() for part in mapped.split(","))
    return (f"{column} of the file",) if column in mapped_fields(options) else (column,)


def mapped_fields(options: ReadOptions) -> frozenset[str]:
    return available_fields(tuple(options.mapping.values()), tuple(options.constants))


@lru_cache(maxsize=64)
def available_fields(columns: tuple[str, ...], constants: tuple[str, ...]) -> frozenset[str]:
    return frozenset(part.strip() for fields in columns for part in fields.split(",")) | frozenset(constants)


def mapped_sample(sample: FileSample, options: ReadOptions) -> FileSample:
    """A sample of a file under the names of the product's fields."""
    if not options.is_mapped:
        return sample
    sources = (*sample.columns, *(path for path in options.mapping if path not in sample.columns))
    columns = (*(field for column in sources for field in fields_of_column(column, options)), *options.constants)
    rows = [{**rename_columns(row, options), **options.constants} for row in sample.rows]
    return FileSample(columns, rows)


def rename_columns(values: Mapping[str, Any], options: ReadOptions) -> dict[str, Any]:
    fields = {field: value for column, value in values.items() for field in fields_of_column(column, options)}
    for path in options.mapping:
        if "." in path and path not in values and (value := get_value(values, path)) is not None:
            fields.update(dict.fromkeys(fields_of_column(path, options), value))
    return fields


def mapped_values(values: Mapping[str, Any], index: int, options: ReadOptions) -> Mapping[str, Any]:
    """A record under the names of the product's fields. Raises RowRefused."""
    if not options.is_mapped:
        return values
    fields = rename_columns(values, options)
    fields.update(options.constants)
    if "query_id" in options.constants:
        fields["query_id"] = make_row_id(options.constants["query_id"], fields, index)
    return fields


def make_row_id(source: str, values: Mapping[str, Any], index: int) -> str:
    if source == ID_FROM_ROW_NUMBER:
        return str(index)
    if source != ID_FROM_TEXT:
        return source
    text = values.get("query") or values.get("messages")
    if not text:
        raise RowRefused("query is missing, and its ID is made from it")
    return content_key(text)


def aspect_choice_fields(options: ReadOptions) -> list[str]:
    """The fields with a choice on one aspect each, such as ``choice:style``."""
    return sorted(field for field in mapped_fields(options) if field.startswith(ON_ASPECT))


def has_label(values: Mapping[str, Any], field: str, options: ReadOptions) -> bool:
    """Whether the field holds a label that is not mapped to no choice."""
    label = optional_text(values, field).strip()
    return bool(label) and options.choices.get(label.lower()) != ""


def rows_with_labels(
    name: str, read_rows: Callable[[Record, ReadOptions], tuple[FileRow, ...]], record: Record, options: ReadOptions
) -> tuple[FileRow, ...]:
    """The rows of a record: its material, with the verdicts or the score in the same row."""
    labels = LABELS_IN_ROW.get(name)
    if labels is None:
        rows, used = read_rows(record, options), KEYS_OF_FIELDS.get(name)
        return (
            rows
            if used is None or record.values.keys() <= used
            else (*rows, *unused_label_column_notices(record, used))
        )
    several = aspect_choice_fields(options) if name == FileFormat.COMPARISONS and options.is_mapped else []
    if several or (options.is_mapped and mapped_fields(options).intersection(labels.fields)):
        values = record.values
        rows = read_rows(replace(record, values=material_values(values, labels, several)), options)
        if any(has_label(values, field, options) for field in labels.fields):
            rows = (*rows, *labels.read_rows(record, options))
        for field in several:
            if has_label(values, field, options):
                label_values = {**values, "choice": values[field], "aspect": field.removeprefix(ON_ASPECT)}
                rows = (*rows, *native_verdict_row(replace(record, values=label_values), options))
        return rows
    column = own_label_column(labels, record.values, options)
    if column is None:
        return read_rows(record, options)
    return rows_with_own_label(labels, read_rows, record, options, column)


def own_label_column(labels: RowLabels, values: Mapping[str, Any], options: ReadOptions) -> str | None:
    """The label column of a row that also names the rater and its kind."""
    if LABELS.isdisjoint(values):
        return None
    columns = labels.fields if options.mapping or options.constants else labels.columns
    column = next((column for column in columns if column in values), None)
    if column is None:
        return None
    has_rater = options.rater or any(optional_text(values, rater).strip() for rater in RATERS)
    has_kind = options.rater_kind or optional_text(values, "rater_kind").strip()
    return column if has_rater and has_kind else None


def rows_with_own_label(
    labels: RowLabels,
    read_rows: Callable[[Record, ReadOptions], tuple[FileRow, ...]],
    record: Record,
    options: ReadOptions,
    column: str,
) -> tuple[FileRow, ...]:
    """The material and its label, which is counted where it is not understood."""
    values = dict(record.values)
    rater = next((column for column in RATERS if optional_text(values, column).strip()), None)
    for field, source in ((labels.fields[0], column), ("rater", rater)):
        if source is not None and source not in (*labels.fields, "rater"):
            values[field] = values.pop(source)
    rows = read_rows(replace(record, values=material_values(values, labels, ())), options)
    if not any(has_label(values, field, options) for field in labels.fields):
        return rows
    try:
        label_options = replace(options, mapping={column: labels.fields[0]})
        return (*rows, *labels.read_rows(replace(record, values=values), label_options))
    except LabelUnknown:
        return (*rows, Notice(record.line, NoticeKind.NOT_UNDERSTOOD, optional_text(values, "choice"), column))


def material_values(values: Mapping[str, Any], labels: RowLabels, several: Collection[str]) -> dict[str, Any]:
    return {
        column: value for column, value in values.items() if column not in labels.all_fields and column not in several
    }


def unused_label_column_notices(record: Record, used: Collection[str]) -> Iterator[Notice]:
    """Notices of columns that verdicts and scores do not have. Comparisons and responses keep them as metadata."""
    for column, value in record.values.items():
        if column not in used and value not in (None, ""):
            yield Notice(record.line, NoticeKind.COLUMN, column)
