"""Columns of any file as the product's own fields: renamed, filled in, and their words translated."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from evaluations.domain import FIELDS, OF_TEXT, ROW_NUMBER, FileFormat, Reading, Row
from evaluations.formats.rows import score_row, verdict_row
from evaluations.formats.streams import Record
from evaluations.formats.values import RowRefused, content_key, optional_text


@dataclass(frozen=True)
class Beside:
    """What may stand in the same row as the material, once somebody says which column holds it."""

    field: str
    meaning: Callable[[Record, Reading], tuple[Row, ...]]


BESIDE: Final[Mapping[str, Beside]] = {
    FileFormat.COMPARISONS: Beside("choice", verdict_row),
    FileFormat.RESPONSES: Beside("value", score_row),
}
# Fields of verdicts and scores: no metadata of the material they stand beside.
NO_MATERIAL: Final = frozenset(
    field.name for kind in (FileFormat.VERDICTS, FileFormat.SCORES) for field in FIELDS[kind]
) - {"query_id", "candidate", "candidate_a", "candidate_b"}


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


def mapped_columns(columns: tuple[str, ...], reading: Reading) -> tuple[str, ...]:
    if not reading.is_mapped:
        return columns
    return (*(field for column in columns for field in fields_of(column, reading)), *reading.constants)


def mapped_values(values: Mapping[str, Any], index: int, reading: Reading) -> Mapping[str, Any]:
    """A record under the names of the product's fields. Raises RowRefused."""
    if not reading.is_mapped:
        return values
    found = {field: value for column, value in values.items() for field in fields_of(column, reading)}
    found.update(reading.constants)
    if "query_id" in reading.constants:
        found["query_id"] = made_id(reading.constants["query_id"], found, index)
    if "choice" in named(reading) or reading.choices:
        found["choice"] = choice_meant(found, reading.choices)
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


def choice_meant(values: Mapping[str, Any], choices: Mapping[str, str]) -> object:
    """What a word of the file stands for: as was said, or the candidate whose name it is."""
    given = optional_text(values, "choice").strip()
    if (meant := choices.get(given.lower())) is not None:
        return meant
    for side, column in (("A", "candidate_a"), ("B", "candidate_b")):
        if given and given == values.get(column):
            return side
    return values.get("choice")


def rows_meant(
    name: str, meaning: Callable[[Record, Reading], tuple[Row, ...]], record: Record, reading: Reading
) -> tuple[Row, ...]:
    """What a record brings; with the verdict or the score beside its material, where somebody said which it is."""
    beside = BESIDE.get(name)
    if beside is None or not reading.is_mapped or beside.field not in named(reading):
        return meaning(record, reading)
    material = {column: value for column, value in record.values.items() if column not in NO_MATERIAL}
    rows = meaning(replace(record, values=material), reading)
    if not optional_text(record.values, beside.field).strip():
        return rows
    return (*rows, *beside.meaning(record, reading))
