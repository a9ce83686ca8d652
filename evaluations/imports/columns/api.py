"""Column mappings in the API."""

from dataclasses import asdict
from typing import Any, cast

from evaluations.api.operations import OperationRouter
from evaluations.api.problems import FieldError, Problem
from evaluations.api.serializers import serialize_row
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import FIELDS_BY_FORMAT, ReadOptions
from evaluations.domain.roles import Scope
from evaluations.imports.columns.column_guess import ColumnFields, build_reading, find_faults
from evaluations.imports.columns.column_memory import find_remembered_mapping, forget_mapping
from evaluations.imports.columns.forms import build_mapping_form
from evaluations.imports.columns.services import (
    apply_mapping,
    preview_mapping,
    read_import_sheet,
)
from evaluations.imports.import_changes import MAPPABLE_STATES
from evaluations.imports.requests import get_import_or_404
from evaluations.imports.schemas import (
    BadRowOut,
    ColumnMappingIn,
    ColumnMappingOut,
    ImportDetailOut,
    MappingPreviewOut,
    RowKind,
)
from evaluations.imports.serializers import serialize_import_detail
from evaluations.imports.source_files import Sheet
from evaluations.models.imports import Import
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["imports"])


@operations.get_one("/evaluations/{slug:slug}/imports/{int:pk}/columns", Scope.READ, ColumnMappingOut)
def get_columns(request: AuthenticatedRequest, slug: str, pk: int) -> ColumnMappingOut:
    """Get the columns of a file that is not stored yet, with a suggested mapping."""
    importing, sheet = get_mappable_import(request, slug, pk)
    form = build_mapping_form(importing, sheet)
    return ColumnMappingOut(
        columns=list(sheet.columns),
        paths=list(sheet.paths),
        rows=[dict(row) for row in sheet.rows],
        words={column: list(words) for column, words in sheet.words.items()},
        fields={kind: [field.name for field in fields] for kind, fields in FIELDS_BY_FORMAT.items()},
        suggested=serialize_mapping(form.build_read_options()),
        remembered=find_remembered_mapping(importing.evaluation, sheet.sampled_columns) is not None,
    )


@operations.do("/evaluations/{slug:slug}/imports/{int:pk}/columns/try", Scope.WRITE, MappingPreviewOut)
def try_columns(request: AuthenticatedRequest, slug: str, pk: int, body: ColumnMappingIn) -> MappingPreviewOut:
    """Preview the first rows under this column mapping. Nothing is changed."""
    importing, sheet = get_mappable_import(request, slug, pk)
    preview = preview_mapping(importing, parse_mapping(body, sheet))
    return serialize_row(
        MappingPreviewOut,
        preview,
        samples=[asdict(sample) for sample in preview.samples],
        bad=[serialize_row(BadRowOut, row) for row in preview.bad],
    )


@operations.set("/evaluations/{slug:slug}/imports/{int:pk}/columns", Scope.WRITE, ImportDetailOut)
def set_columns(request: AuthenticatedRequest, slug: str, pk: int, body: ColumnMappingIn) -> ImportDetailOut:
    """Set the column mapping and validate the file again. Later files with the same columns use it, too."""
    importing, sheet = get_mappable_import(request, slug, pk)
    apply_mapping(importing, parse_mapping(body, sheet), user=request.user)
    return serialize_import_detail(importing)


@operations.remove("/evaluations/{slug:slug}/imports/{int:pk}/columns", Scope.WRITE)
def forget_columns(request: AuthenticatedRequest, slug: str, pk: int) -> None:
    """Forget the column mapping for later files. This file keeps it."""
    importing, sheet = get_mappable_import(request, slug, pk)
    mapping = find_remembered_mapping(importing.evaluation, sheet.sampled_columns)
    if mapping is not None:
        forget_mapping(mapping, user=request.user)


def get_mappable_import(request: AuthenticatedRequest, slug: str, pk: int) -> tuple[Import, Sheet]:
    importing = get_import_or_404(request, slug, pk)
    if importing.state not in MAPPABLE_STATES:
        raise InputRefused(f"{importing.file_name} is {importing.state}. Columns can be mapped only before the import.")
    return importing, read_import_sheet(importing)


def parse_mapping(body: ColumnMappingIn, sheet: Sheet) -> ReadOptions:
    mapped = ColumnFields(body.format, body.columns, body.values)
    mistakes = find_faults(mapped, sheet.sources)
    if faults := [FieldError(f"body.{fault.part}.{fault.field}", fault.message) for fault in mistakes]:
        raise Problem("invalid", f"{faults[0].field}: {faults[0].message}", faults=faults)
    choices = {word.strip().lower(): meaning for word, meaning in body.choices.items()}
    return build_reading(mapped, sheet, choices)


def serialize_mapping(reading: ReadOptions) -> ColumnMappingIn:
    """The mapping that would give these read options."""
    fields = {field.name for field in FIELDS_BY_FORMAT[reading.format]}
    columns = {name: column for column, names in reading.mapping.items() for name in names.split(",") if name in fields}
    return ColumnMappingIn(
        format=cast(RowKind, str(reading.format)),
        columns=columns,
        values={name: value for name, value in reading.constants.items() if name in fields and name not in columns},
        choices=cast(Any, dict(reading.choices)),
    )
