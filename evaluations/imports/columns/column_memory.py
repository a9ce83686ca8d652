"""Column mappings that an evaluation remembers for later files."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import BinaryIO

from django.db import transaction
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.errors import NamesMissing
from evaluations.domain.files import SINGLE_FILE_FIELDS, FileFormat, ReadOptions
from evaluations.imports.source_files import Sheet, read_column_names
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import ColumnMapping, Import
from evaluations.models.users import User


def hash_columns(columns: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(sorted(columns)).encode()).hexdigest()


def find_remembered_mapping(evaluation: Evaluation, columns: Sequence[str]) -> ColumnMapping | None:
    return ColumnMapping.objects.filter(evaluation=evaluation, signature=hash_columns(columns)).first()


def build_mapping_reading(mapping: ColumnMapping) -> ReadOptions:
    """The read options of a remembered mapping, without names, which are given for each file."""
    return ReadOptions(
        format=mapping.format,
        mapping=mapping.mapping,
        constants={field: value for field, value in mapping.constants.items() if field not in SINGLE_FILE_FIELDS},
        choices=mapping.choices,
        later_columns=tuple(column for column in mapping.mapping if column not in mapping.columns),
    )


def find_earlier_reading(importing: Import, sheet: Sheet) -> ReadOptions | None:
    """The read options last used for this file, or else for files with the same columns."""
    own = importing.request.reading
    if own.is_mapped:
        return own
    mapping = find_remembered_mapping(importing.evaluation, sheet.sampled_columns)
    return build_mapping_reading(mapping) if mapping else None


def apply_remembered_mapping(evaluation: Evaluation, file: BinaryIO, name: str, reading: ReadOptions) -> ReadOptions:
    """The read options with the remembered mapping of these columns. Raises NamesMissing."""
    is_mapped = reading.mapping or reading.choices or set(reading.constants) - set(SINGLE_FILE_FIELDS)
    if reading.format != FileFormat.AUTO or is_mapped or reading.as_it_is:
        return reading
    if not ColumnMapping.objects.filter(evaluation=evaluation).exists():
        return reading
    mapping = find_remembered_mapping(evaluation, read_column_names(file, name))
    if mapping is None:
        return reading
    refuse_missing_names(mapping, reading, name)
    remembered = build_mapping_reading(mapping)
    constants = {**remembered.constants, **reading.constants}
    return replace(
        reading,
        format=remembered.format,
        mapping=remembered.mapping,
        choices=remembered.choices,
        constants=constants,
        later_columns=remembered.later_columns,
    )


def refuse_missing_names(mapping: ColumnMapping, reading: ReadOptions, name: str) -> None:
    """Refuse a file without values for fields that had one value for all rows of the earlier file."""
    names = {**get_names_for_all_rows(reading), "candidate": reading.candidate or name}
    missing = [field for field in SINGLE_FILE_FIELDS if field in mapping.constants and not names.get(field)]
    if missing:
        raise NamesMissing(
            f"The columns of {name} are known, but names are not remembered between files. "
            f"Set them for this file: {' '.join(f'--set {name}=…' for name in missing)}, or on the column mapping page."
        )


def get_names_for_all_rows(reading: ReadOptions) -> dict[str, str]:
    """The model, rater and kind of rater that were given for all rows of the file."""
    names = {"candidate": reading.candidate, "rater": reading.rater, "rater_kind": str(reading.rater_kind or "")}
    names |= {field: value for field, value in reading.constants.items() if field in SINGLE_FILE_FIELDS}
    return {field: value for field, value in names.items() if value}


def remember_mapping(evaluation: Evaluation, columns: Sequence[str], reading: ReadOptions, user: User | None) -> None:
    """Remember the mapping for later files with these columns, without the names for all rows of this file."""
    constants = {field: "" if field in SINGLE_FILE_FIELDS else value for field, value in reading.constants.items()}
    columns_of_row = {
        "columns": list(columns),
        "format": str(reading.format),
        "mapping": dict(reading.mapping),
        "constants": constants,
        "choices": dict(reading.choices),
    }
    before = find_remembered_mapping(evaluation, columns)
    if before is not None and all(getattr(before, name) == value for name, value in columns_of_row.items()):
        return
    with transaction.atomic():
        kept, _ = ColumnMapping.objects.update_or_create(
            evaluation=evaluation,
            signature=hash_columns(columns),
            defaults={**columns_of_row, "user": user, "mapped_at": timezone.now()},
        )
        record_event("mapped columns", kept, user=user, evaluation=evaluation, after=columns_of_row)


def forget_mapping(mapping: ColumnMapping, *, user: User | None) -> None:
    with transaction.atomic():
        before = {"columns": mapping.columns, "format": mapping.format}
        record_event("forgot columns", mapping, user=user, evaluation=mapping.evaluation, before=before)
        mapping.delete()
