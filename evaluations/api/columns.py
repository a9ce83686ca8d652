"""What the columns of a kept file mean: looked at, tried on its first rows, said, and forgotten again."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

from django.http import HttpRequest, QueryDict

from evaluations.api.admission import person
from evaluations.api.imports import import_for, whole
from evaluations.api.operations import Operations
from evaluations.api.problems import Fault, Problem
from evaluations.api.schemas.columns import BadRowTold, ColumnsSaid, ColumnsTold, ColumnsTried, RowKind
from evaluations.api.schemas.files import ImportWhole
from evaluations.domain import FIELDS, OF_TEXT, ROW_NUMBER, InputRefused, Reading, Scope
from evaluations.forms.import_map import ColumnsForm
from evaluations.models import Import
from evaluations.services.importing.fitting import (
    MAPPABLE,
    fit,
    names_given,
    remembered_for,
    said_before,
    sheet_of,
    trial,
)
from evaluations.services.importing.mapping import Sheet, forget
from evaluations.tasks import nudge, store_import

operations = Operations(tags=["imports"])
MADE_IDS: Final = (OF_TEXT, ROW_NUMBER)


@operations.get_one("/evaluations/{slug:slug}/imports/{int:pk}/columns", Scope.READ, ColumnsTold)
def get_columns(request: HttpRequest, slug: str, pk: int) -> ColumnsTold:
    """The columns of a file that is not stored yet, and what they seem to mean."""
    importing, sheet = mappable(request, slug, pk)
    form = ColumnsForm(sheet, known=said_before(importing, sheet), names=names_given(importing))
    return ColumnsTold(
        columns=list(sheet.columns),
        rows=[dict(row) for row in sheet.rows],
        words={column: list(words) for column, words in sheet.words.items()},
        fields={kind: [one.name for one in fields] for kind, fields in FIELDS.items()},
        suggested=as_said(form.reading()),
        remembered=remembered_for(importing, sheet) is not None,
    )


@operations.do("/evaluations/{slug:slug}/imports/{int:pk}/columns/try", Scope.WRITE, ColumnsTried)
def try_columns(request: HttpRequest, slug: str, pk: int, body: ColumnsSaid) -> ColumnsTried:
    """What the first rows become when the file is read like this. Nothing is changed."""
    importing, sheet = mappable(request, slug, pk)
    tried = trial(importing, reading_in(body, sheet))
    return ColumnsTried(
        rows=tried.rows,
        bad_rows=tried.bad_rows,
        refused=tried.refused,
        samples=tried.samples,
        bad=[BadRowTold(line=one.line, reason=one.reason) for one in tried.bad],
    )


@operations.set("/evaluations/{slug:slug}/imports/{int:pk}/columns", Scope.WRITE, ImportWhole)
def set_columns(request: HttpRequest, slug: str, pk: int, body: ColumnsSaid) -> ImportWhole:
    """Read the file like this: it is checked again. Files with the same columns are read so from now on."""
    importing, sheet = mappable(request, slug, pk)
    if fit(importing, reading_in(body, sheet), user=person(request)):
        nudge(store_import, importing.pk)
    return whole(importing)


@operations.remove("/evaluations/{slug:slug}/imports/{int:pk}/columns", Scope.WRITE)
def forget_columns(request: HttpRequest, slug: str, pk: int) -> None:
    """Files with these columns are looked at anew from now on; this one stays as it is."""
    importing, sheet = mappable(request, slug, pk)
    known = remembered_for(importing, sheet)
    if known is not None:
        forget(known, user=person(request))


def mappable(request: HttpRequest, slug: str, pk: int) -> tuple[Import, Sheet]:
    importing = import_for(request, slug, pk)
    if importing.state not in MAPPABLE:
        raise InputRefused(
            f"{importing.file_name} is {importing.state}: its columns can be told only while it waits to be stored."
        )
    return importing, sheet_of(importing)


def reading_in(said: ColumnsSaid, sheet: Sheet) -> Reading:
    """As the form of the page would have it; every fault at its place."""
    refuse_unknown(said, sheet)
    data = QueryDict(mutable=True)
    data.update({"kind": said.format, "asked_about": said.format})
    data.update({f"column_{name}": f"={column}" for name, column in said.columns.items()})
    for name, value in said.values.items():
        data[f"{'column' if value in MADE_IDS else 'whole'}_{name}"] = value
    form = ColumnsForm(sheet, data)
    if not form.is_valid():
        refuse(form.errors)
    return replace(form.reading(), choices={word.strip().lower(): meant for word, meant in said.choices.items()})


def refuse_unknown(said: ColumnsSaid, sheet: Sheet) -> None:
    known = {one.name: one.whole_file or one.name == "query_id" for one in FIELDS[said.format]}
    faults = [
        Fault(f"body.columns.{name}", f"A row of {said.format} has no such field.")
        for name in said.columns
        if name not in known
    ]
    faults += [
        Fault(f"body.columns.{name}", f"The file has no column “{column}”.")
        for name, column in said.columns.items()
        if column not in sheet.columns
    ]
    faults += [
        Fault(f"body.values.{name}", f"No such field of {said.format} can be said for all rows.")
        for name in said.values
        if not known.get(name)
    ]
    faults += [
        Fault(f"body.values.{name}", "Say its column, or one value for all rows: not both.")
        for name in said.values
        if name in said.columns
    ]
    if faults:
        raise Problem("invalid", f"{faults[0].field}: {faults[0].message} Nothing was done.", faults=faults)


def refuse(errors: Mapping[str, Any]) -> None:
    faults = []
    for name, messages in errors.items():
        kind, _, field = name.partition("_")
        place = {"column": f"body.columns.{field}", "whole": f"body.values.{field}"}.get(kind, "body")
        faults += [Fault(place, str(said)) for said in messages]
    raise Problem("invalid", f"{faults[0].field}: {faults[0].message} Nothing was done.", faults=faults)


def as_said(reading: Reading) -> ColumnsSaid:
    """A reading as it would have been sent."""
    known = {one.name for one in FIELDS[reading.format]}
    told = {name: column for column, names in reading.mapping.items() for name in names.split(",") if name in known}
    return ColumnsSaid(
        format=cast(RowKind, str(reading.format)),
        columns=told,
        values={name: value for name, value in reading.constants.items() if name in known and name not in told},
        choices=cast(Any, dict(reading.choices)),
    )
