"""The rules of a column mapping, and the read options that it makes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evaluations.domain.files import CANDIDATE_FIELD, FIELDS_BY_FORMAT, ID_FROM_ROW_NUMBER, ID_FROM_TEXT, ReadOptions

GENERATED_IDS: Final = (ID_FROM_TEXT, ID_FROM_ROW_NUMBER)
FIXED_VALUES: Final[Mapping[str, Sequence[str]]] = {
    "rater_kind": ("human", "judge", "gold"),
    "shown_swapped": ("true", "false", "folded"),
}


@dataclass(frozen=True)
class ColumnFields:
    """The column of each field, or its value for all rows, for one kind of row."""

    kind: str
    columns: Mapping[str, str]
    values: Mapping[str, str]


@dataclass(frozen=True)
class MappingFault:
    """``part``: whether the column or the value of the field is at fault."""

    part: str  # columns or values
    field: str
    message: str


def find_faults(mapped: ColumnFields, known_columns: Sequence[str]) -> Iterator[MappingFault]:
    fields = {field.name: field for field in FIELDS_BY_FORMAT[mapped.kind]}
    for name, column in mapped.columns.items():
        if name not in fields:
            yield MappingFault("columns", name, f"A row of {mapped.kind} has no such field.")
        elif column not in known_columns:
            yield MappingFault("columns", name, f"The file has no column “{column}”.")
    for name, value in mapped.values.items():
        if name not in fields or not (fields[name].whole_file or value in GENERATED_IDS):
            yield MappingFault("values", name, f"No such field of {mapped.kind} can be said for all rows.")
        elif name in mapped.columns:
            yield MappingFault("values", name, "Choose a column, or say one value for all rows: not both.")
        elif value not in FIXED_VALUES.get(name, (value,)):
            yield MappingFault("values", name, f"“{value}” is none of {', '.join(FIXED_VALUES[name])}.")
    for field in fields.values():
        is_given = field.name in mapped.columns or field.name in mapped.values
        if field.needed and not is_given and not (field.name == "query" and "messages" in mapped.columns):
            message = "Choose its column, or say it for all rows." if field.whole_file else "Choose its column."
            yield MappingFault("columns", field.name, message)


def build_reading(mapped: ColumnFields, known_columns: Sequence[str], choices: Mapping[str, str]) -> ReadOptions:
    """The read options of a mapping; columns that are only called like a field are read as no field."""
    mapping: dict[str, list[str]] = {}
    for field in FIELDS_BY_FORMAT[mapped.kind]:
        if column := mapped.columns.get(field.name):
            mapping.setdefault(column, []).append(field.name)
    own_names = {field.name for field in FIELDS_BY_FORMAT[mapped.kind]}
    own_names -= {CANDIDATE_FIELD} & mapped.values.keys()
    for column in known_columns:
        if column not in mapping and column in own_names:
            mapping[column] = [f"{column} of the file"]
    return ReadOptions(
        format=mapped.kind,
        mapping={column: ",".join(names) for column, names in mapping.items()},
        constants=mapped.values,
        choices=choices,
    )
