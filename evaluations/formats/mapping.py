"""Columns of any file as the product's own fields: renamed, filled in, and their words translated."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from evaluations.domain import FIELDS, OF_TEXT, ROW_NUMBER, SAMPLE, FileFormat, Notice, NoticeKind, Reading, Row
from evaluations.formats.file_sample import FileSample
from evaluations.formats.rows import LabelUnknown, score_row, verdict_row
from evaluations.formats.streams import Record
from evaluations.formats.values import RowRefused, content_key, optional_text
from evaluations.formats.wording import LABEL_COLUMNS


@dataclass(frozen=True)
class Beside:
    """What may stand in the same row as the material.

    ``fields`` hold it, or the first of ``columns`` that is there. ``own``: all fields of it, which are no metadata.
    """

    fields: tuple[str, ...]
    columns: tuple[str, ...]
    own: frozenset[str]
    meaning: Callable[[Record, Reading], tuple[Row, ...]]


KEYS: Final = frozenset({"query_id", "candidate", "candidate_a", "candidate_b", SAMPLE})
OF: Final[Mapping[str, frozenset[str]]] = {
    kind: frozenset(field.name for field in FIELDS[kind]) for kind in (FileFormat.VERDICTS, FileFormat.SCORES)
}
BESIDE: Final[Mapping[str, Beside]] = {
    FileFormat.COMPARISONS: Beside(("choice",), LABEL_COLUMNS, OF[FileFormat.VERDICTS] - KEYS, verdict_row),
    FileFormat.RESPONSES: Beside(("value", "failure"), ("value", "failure"), OF[FileFormat.SCORES] - KEYS, score_row),
}
LABELS: Final = frozenset({*LABEL_COLUMNS, "value", "failure"})
RATERS: Final = ("rater", "annotator", "annotator_id", "reviewer", "judge", "worker_id")
ON_ASPECT: Final = "choice:"


def fields_of(column: str, reading: Reading) -> tuple[str, ...]:
    """What a column is called by those who read it: itself, where nothing else was said."""
    told = reading.mapping.get(column)
    if told is not None:
        return tuple(part.strip() for part in told.split(","))
    return (f"{column} of the file",) if column in named(reading) else (column,)


def named(reading: Reading) -> frozenset[str]:
    """The fields that somebody said the source of."""
    return sources(tuple(reading.mapping.values()), tuple(reading.constants))


@lru_cache(maxsize=64)
def sources(columns: tuple[str, ...], constants: tuple[str, ...]) -> frozenset[str]:
    return frozenset(part.strip() for told in columns for part in told.split(",")) | frozenset(constants)


def mapped_sample(sample: FileSample, reading: Reading) -> FileSample:
    """A sample of a file under the names of the product's fields."""
    if not reading.is_mapped:
        return sample
    columns = (*(field for column in sample.columns for field in fields_of(column, reading)), *reading.constants)
    rows = [{**renamed(row, reading), **reading.constants} for row in sample.rows]
    return FileSample(columns, rows)


def renamed(values: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    return {field: value for column, value in values.items() for field in fields_of(column, reading)}


def mapped_values(values: Mapping[str, Any], index: int, reading: Reading) -> Mapping[str, Any]:
    """A record under the names of the product's fields. Raises RowRefused."""
    if not reading.is_mapped:
        return values
    found = renamed(values, reading)
    found.update(reading.constants)
    if "query_id" in reading.constants:
        found["query_id"] = made_id(reading.constants["query_id"], found, index)
    return found


def made_id(told: str, values: Mapping[str, Any], index: int) -> str:
    if told == ROW_NUMBER:
        return str(index)
    if told != OF_TEXT:
        return told
    text = values.get("query") or values.get("messages")
    if not text:
        raise RowRefused("query is missing, of which its id is to be made")
    return content_key(text)


def choices_on_aspects(reading: Reading) -> list[str]:
    """The fields that hold a choice on one aspect each, as ``choice:style``, where a row has several."""
    return sorted(field for field in named(reading) if field.startswith(ON_ASPECT))


def is_said(values: Mapping[str, Any], field: str, reading: Reading) -> bool:
    """Whether there is a label, and it is not a word for no choice."""
    given = optional_text(values, field).strip()
    return bool(given) and reading.choices.get(given.lower()) != ""


def rows_meant(
    name: str, meaning: Callable[[Record, Reading], tuple[Row, ...]], record: Record, reading: Reading
) -> tuple[Row, ...]:
    """What a record brings, with the verdicts or the score beside its material."""
    beside = BESIDE.get(name)
    if beside is None:
        rows, known = meaning(record, reading), OF.get(name)
        return rows if known is None or record.values.keys() <= known else (*rows, *columns_left_out(record, known))
    several = choices_on_aspects(reading) if name == FileFormat.COMPARISONS and reading.is_mapped else []
    if several or (reading.is_mapped and named(reading).intersection(beside.fields)):
        values = record.values
        rows = meaning(replace(record, values=material_in(values, beside, several)), reading)
        if any(is_said(values, field, reading) for field in beside.fields):
            rows = (*rows, *beside.meaning(record, reading))
        for field in several:
            if is_said(values, field, reading):
                told = {**values, "choice": values[field], "aspect": field.removeprefix(ON_ASPECT)}
                rows = (*rows, *verdict_row(replace(record, values=told), reading))
        return rows
    column = own_column(beside, record.values, reading)
    if column is None:
        return meaning(record, reading)
    return with_own_label(beside, meaning, record, reading, column)


def own_column(beside: Beside, values: Mapping[str, Any], reading: Reading) -> str | None:
    """The column of labels beside the material, where the row also names the rater and its kind."""
    if LABELS.isdisjoint(values):
        return None
    columns = beside.fields if reading.mapping or reading.constants else beside.columns
    column = next((column for column in columns if column in values), None)
    if column is None:
        return None
    has_rater = reading.rater or any(optional_text(values, rater).strip() for rater in RATERS)
    has_kind = reading.rater_kind or optional_text(values, "rater_kind").strip()
    return column if has_rater and has_kind else None


def with_own_label(
    beside: Beside,
    meaning: Callable[[Record, Reading], tuple[Row, ...]],
    record: Record,
    reading: Reading,
    column: str,
) -> tuple[Row, ...]:
    """The material and its label, which is counted where it is not understood."""
    values = dict(record.values)
    rater = next((one for one in RATERS if optional_text(values, one).strip()), None)
    for field, found in ((beside.fields[0], column), ("rater", rater)):
        if found is not None and found not in (*beside.fields, "rater"):
            values[field] = values.pop(found)
    rows = meaning(replace(record, values=material_in(values, beside, ())), reading)
    if not any(is_said(values, field, reading) for field in beside.fields):
        return rows
    try:
        told = replace(reading, mapping={column: beside.fields[0]})
        return (*rows, *beside.meaning(replace(record, values=values), told))
    except LabelUnknown:
        return (*rows, Notice(record.line, NoticeKind.NOT_UNDERSTOOD, optional_text(values, "choice"), column))


def material_in(values: Mapping[str, Any], beside: Beside, several: Collection[str]) -> dict[str, Any]:
    return {column: value for column, value in values.items() if column not in beside.own and column not in several}


def columns_left_out(record: Record, known: Collection[str]) -> Iterator[Notice]:
    """Columns of verdicts and of scores that no row of them has. Material keeps such columns as metadata."""
    for column, value in record.values.items():
        if column not in known and value not in (None, ""):
            yield Notice(record.line, NoticeKind.COLUMN, column)
