"""Files come in: uploaded, checked, stored or discarded."""

from typing import Any, Final, cast

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query

from evaluations import access
from evaluations.access import Action
from evaluations.api.admission import person
from evaluations.api.forms import checked, refuse_unknown
from evaluations.api.operations import BYTES, FORM, Operations
from evaluations.api.paging import Paging, page_of
from evaluations.api.problems import Fault, Problem
from evaluations.api.schemas.files import ImportPage, ImportProgress, ImportTold, ImportWhole, Storing
from evaluations.api.schemas.shared import NothingSent
from evaluations.api.telling import anyone_told
from evaluations.domain import NO_FILE_NAME, ImportState, NewResponse, Scope
from evaluations.forms.imports import ImportForm
from evaluations.models import Evaluation, Import, User
from evaluations.services.import_undo import begin_undo
from evaluations.services.importing.fitting import take
from evaluations.services.importing.importing import begin, progress
from evaluations.services.importing.sweeping import BUSY, cancel
from evaluations.tasks import nudge, store_import

operations = Operations(tags=["imports"])
TEXT: Final = {"type": "string"}
FIELDS: Final = {
    "format": {"type": "string", "description": "what is in it; `auto`: found out from the columns", "default": "auto"},
    "id_prefix": TEXT,
    "candidate": {
        "type": "string",
        "description": "the model of every response, whatever the file's column says; without it the column names the "
        "model, else the file's name does",
    },
    "rater": TEXT,
    "rater_kind": TEXT,
    "mapping": {"type": "string", "description": "column=field, one a line"},
    "pair": {"type": "string", "description": "pairs made of responses: all, baseline or random"},
    "baseline": TEXT,
    "pairs_each": TEXT,
    "new_response": {
        "type": "string",
        "enum": [str(one) for one in NewResponse],
        "default": str(NewResponse.REFUSE),
        "description": "where a candidate has another response to a query already, and no column `sample` tells them "
        "apart: refuse the row, keep both, replace the other (only while nobody used it), or skip the row",
    },
    "lower_is_better": TEXT,
    "derive_pairs": TEXT,
}
WHOLE_FILE: Final = {"type": "string", "format": "binary"}
FILE_NAME: Final = {
    "name": "file_name",
    "in": "query",
    "required": False,
    "description": "of a raw body: what the file is called. The fields of the form may stand here, too",
    "schema": {"type": "string", "maxLength": 255},
}
UPLOAD: Final[dict[str, Any]] = {
    "parameters": [FILE_NAME],
    "requestBody": {
        "required": True,
        "content": {
            FORM: {"schema": {"type": "object", "required": ["file"], "properties": {"file": WHOLE_FILE, **FIELDS}}},
            BYTES: {"schema": WHOLE_FILE},
        },
    },
}


@operations.get_one("/evaluations/{slug:slug}/imports", Scope.READ, ImportPage)
def list_imports(request: HttpRequest, slug: str, paging: Query[Paging]) -> ImportPage:
    """Newest first."""
    evaluation = access.evaluation_for(person(request), slug, Action.MANAGE)
    rows, more = page_of(paging, evaluation.imports.select_related("user"), newest_first=True)
    return ImportPage(items=[told(row) for row in rows], next=more)


@operations.make(
    "/evaluations/{slug:slug}/imports",
    Scope.WRITE,
    ImportWhole,
    takes=f"{FORM}, {BYTES}",
    needs=Action.MANAGE,
    extra=UPLOAD,
)
def upload_file(request: HttpRequest, slug: str) -> ImportWhole:
    """Bring in a file, as a form or as the whole body: it is checked, and none of it is stored yet.

    Look at `summary` and `bad_rows`, then store it or discard it. Where its columns are not known its state is
    `mapping`: say what they mean (`set_columns`) before.
    """
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    is_raw = request.content_type == BYTES
    fields = request.GET.dict() if is_raw else request.POST.dict()
    fields.pop("file_name", "")
    file, _ = sent_file(request)
    form = ImportForm({"format": "auto", **fields}, {"file": file})
    refuse_unknown(fields, form)
    checked(form, "query" if is_raw else "form")
    return whole(received(evaluation, form, user))


def sent_file(request: HttpRequest) -> tuple["UploadedFile[bytes]", str]:
    """The file of the form, or the whole body, and what it is called."""
    is_raw = request.content_type == BYTES
    file = (
        raw_file(request, request.GET.get("file_name", "")[:255] or NO_FILE_NAME)
        if is_raw
        else request.FILES.get("file")
    )
    if file is None:
        raise Problem("invalid", "There is no file in the form.", faults=[Fault("form.file", "This is required.")])
    return cast("UploadedFile[bytes]", file), file.name or NO_FILE_NAME


def raw_file(request: HttpRequest, name: str) -> "UploadedFile[bytes]":
    file = getattr(request, "spooled", None)
    if file is None:
        raise Problem("invalid", "The body is empty.", faults=[Fault("body", "Send the file as the body.")])
    file.seek(0, 2)
    size = file.tell()
    file.seek(0)
    return UploadedFile(file, name=name.replace("/", "_").replace("\\", "_"), size=size)


def received(evaluation: Evaluation, form: ImportForm, user: User) -> Import:
    importing = take(evaluation, user=user, **form.options())
    if importing.state == ImportState.CHECKING:
        nudge(store_import, importing.pk)
    return importing


@operations.get_one("/evaluations/{slug:slug}/imports/{int:pk}", Scope.READ, ImportWhole)
def get_import(request: HttpRequest, slug: str, pk: int) -> ImportWhole:
    """How it stands: what storing it would do, its bad rows, and how far it is."""
    return whole(import_for(request, slug, pk))


@operations.do("/evaluations/{slug:slug}/imports/{int:pk}/store", Scope.WRITE, ImportWhole)
def store_file(request: HttpRequest, slug: str, pk: int, body: Storing | None = None) -> ImportWhole:
    """Store its rows, in the background. Ask for the import to see how far it is."""
    importing = import_for(request, slug, pk)
    begin(importing, skip_bad=bool(body and body.skip_bad), user=person(request))
    nudge(store_import, importing.pk)
    return whole(import_for(request, slug, pk))


@operations.do("/evaluations/{slug:slug}/imports/{int:pk}/cancel", Scope.WRITE, ImportWhole)
def cancel_import(request: HttpRequest, slug: str, pk: int, body: NothingSent | None = None) -> ImportWhole:
    """Discard it: nothing of it is stored."""
    cancel(import_for(request, slug, pk), user=person(request))
    return whole(import_for(request, slug, pk))


@operations.do("/evaluations/{slug:slug}/imports/{int:pk}/undo", Scope.WRITE, ImportWhole)
def undo_import(request: HttpRequest, slug: str, pk: int, body: NothingSent | None = None) -> ImportWhole:
    """Remove what it alone brought, where nothing was judged, reviewed, resolved, commented or exported with it.

    It is hidden at once and removed in the background: its state is `undoing`, then `undone`.
    """
    importing = import_for(request, slug, pk)
    begin_undo(importing, user=person(request))
    nudge(store_import, importing.pk)
    return whole(import_for(request, slug, pk))


def import_for(request: HttpRequest, slug: str, pk: int) -> Import:
    evaluation = access.evaluation_for(person(request), slug, Action.MANAGE)
    found = evaluation.imports.select_related("evaluation", "user")
    return get_object_or_404(found, pk=pk)


def told(row: Import) -> ImportTold:
    return ImportTold(
        id=row.pk,
        file_name=row.file_name,
        sha256=row.sha256,
        format=row.format,
        state=ImportState(row.state),
        person=anyone_told(row.user),
        rows_read=row.rows_read,
        rows_stored=row.rows_stored,
        rows_unchanged=row.rows_unchanged,
        rows_bad=row.rows_bad,
        rows_skipped=row.rows_skipped,
        reason=row.reason,
        created_at=row.created_at,
        finished_at=row.finished_at,
    )


def whole(row: Import) -> ImportWhole:
    how_far = progress(row) if row.state in BUSY else None
    return ImportWhole(
        **told(row).model_dump(),
        mapping=row.mapping,
        options=row.options,
        summary=row.summary,
        bad_rows=row.bad_rows,
        progress=ImportProgress(
            rows=how_far.rows,
            of=how_far.of,
            rows_per_second=how_far.rows_per_second,
            seconds_left=how_far.seconds_left,
        )
        if how_far
        else None,
    )
