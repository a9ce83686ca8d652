"""Columns of any file as the product's own fields: renamed, filled in, and their words translated."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from evaluations.domain import FIELDS, OF_TEXT, ROW_NUMBER, FileFormat, Reading, Row
from evaluations.formats.rows import score_row, verdict_row
from evaluations.formats.streams import Record
from evaluations.formats.values import RowRefused, content_key, optional_text


@dataclass(frozen=True)
class Beside:
    """What may stand in the same row as the material, once somebody says which columns hold it."""

    fields: tuple[str, ...]
    meaning: Callable[[Record, Reading], tuple[Row, ...]]


BESIDE: Final[Mapping[str, Beside]] = {
    FileFormat.COMPARISONS: Beside(("choice",), verdict_row),
    FileFormat.RESPONSES: Beside(("value", "failure"), score_row),
}
ON_ASPECT: Final = "choice:"
SIDES: Final = (("A", "candidate_a"), ("B", "candidate_b"))
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
        found["choice"] = choice_meant(found, "choice", reading.choices)
    for field in choices_on_aspects(reading):
        found[field] = choice_meant(found, field, reading.choices)
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


def choice_meant(values: Mapping[str, Any], field: str, choices: Mapping[str, str]) -> object:
    """What a word of the file stands for: as was said, or the candidate whose name it is, in any case of letters."""
    given = optional_text(values, field).strip()
    if (meant := choices.get(given.lower())) is not None:
        return meant
    sides = [side for side, column in SIDES if given and given.lower() == optional_text(values, column).strip().lower()]
    return sides[0] if len(sides) == 1 else values.get(field)


def rows_meant(
    name: str, meaning: Callable[[Record, Reading], tuple[Row, ...]], record: Record, reading: Reading
) -> tuple[Row, ...]:
    """What a record brings; with the verdict or the score beside its material, where somebody said which it is."""
    beside = BESIDE.get(name)
    several = choices_on_aspects(reading) if name == FileFormat.COMPARISONS else []
    if beside is None or not reading.is_mapped or not (named(reading).intersection(beside.fields) or several):
        return meaning(record, reading)
    values = record.values
    rows = meaning(replace(record, values=material_in(values, several)), reading)
    if any(optional_text(values, field).strip() for field in beside.fields):
        rows = (*rows, *beside.meaning(record, reading))
    for field in several:
        if optional_text(values, field).strip():
            told = {**values, "choice": values[field], "aspect": field.removeprefix(ON_ASPECT)}
            rows = (*rows, *verdict_row(replace(record, values=told), reading))
    return rows


def material_in(values: Mapping[str, Any], several: Collection[str]) -> dict[str, Any]:
    return {column: value for column, value in values.items() if column not in NO_MATERIAL and column not in several}
