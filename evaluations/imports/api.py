"""Imports in the API."""

from typing import Final

from ninja import Query

from evaluations.access import Action, require_evaluation
from evaluations.api.form_validation import clean_form, refuse_unknown_filters
from evaluations.api.operations import BYTES_TYPE, FORM_TYPE, OperationRouter
from evaluations.api.pagination import PageQuery, paginate_by_cursor
from evaluations.api.schemas import EmptyIn
from evaluations.api.uploads import FILE_NAME_PARAMETER, FILE_SCHEMA, read_sent_file
from evaluations.domain.files import NewResponse
from evaluations.domain.roles import Scope
from evaluations.imports.forms import ImportForm
from evaluations.imports.schemas import ImportDetailOut, ImportPageOut, StoreImportIn
from evaluations.imports.serializers import get_import_for_program, serialize_import, serialize_import_detail
from evaluations.imports.services import discard_import, receive_upload, start_storing
from evaluations.imports.undo import start_undo
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["imports"])
TEXT_SCHEMA: Final = {"type": "string"}
UPLOAD_FIELDS: Final = {
    "format": {"type": "string", "description": "what is in it; `auto`: found out from the columns", "default": "auto"},
    "id_prefix": TEXT_SCHEMA,
    "candidate": {
        "type": "string",
        "description": "the model of every response, whatever the file's column says; without it the column names the "
        "model, else the file's name does",
    },
    "rater": TEXT_SCHEMA,
    "rater_kind": TEXT_SCHEMA,
    "mapping": {"type": "string", "description": "column=field, one a line"},
    "pair": {"type": "string", "description": "pairs made of responses: all, baseline or random"},
    "baseline": TEXT_SCHEMA,
    "pairs_each": TEXT_SCHEMA,
    "new_response": {
        "type": "string",
        "enum": [str(one) for one in NewResponse],
        "default": str(NewResponse.REFUSE),
        "description": "where a candidate has another response to a query already, and no column `sample` tells them "
        "apart: refuse the row, keep both, replace the other (only while nobody used it), or skip the row",
    },
    "lower_is_better": TEXT_SCHEMA,
    "derive_pairs": TEXT_SCHEMA,
}
UPLOAD_BODY: Final[dict[str, object]] = {
    "parameters": [FILE_NAME_PARAMETER],
    "requestBody": {
        "required": True,
        "content": {
            FORM_TYPE: {
                "schema": {"type": "object", "required": ["file"], "properties": {"file": FILE_SCHEMA, **UPLOAD_FIELDS}}
            },
            BYTES_TYPE: {"schema": FILE_SCHEMA},
        },
    },
}


@operations.get_one("/evaluations/{slug:slug}/imports", Scope.READ, ImportPageOut)
def list_imports(request: AuthenticatedRequest, slug: str, paging: Query[PageQuery]) -> ImportPageOut:
    """Newest first."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    rows, more = paginate_by_cursor(paging, evaluation.imports.select_related("user"), newest_first=True)
    return ImportPageOut(items=[serialize_import(row) for row in rows], next=more)


@operations.make(
    "/evaluations/{slug:slug}/imports",
    Scope.WRITE,
    ImportDetailOut,
    takes=f"{FORM_TYPE}, {BYTES_TYPE}",
    needs=Action.MANAGE,
    extra=UPLOAD_BODY,
)
def upload_file(request: AuthenticatedRequest, slug: str) -> ImportDetailOut:
    """Bring in a file, as a form or as the whole body: it is checked, and none of it is stored yet.

    Look at `summary` and `bad_rows`, then store it or discard it. Where its columns are not known its state is
    `mapping`: say what they mean (`set_columns`) before.
    """
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    is_raw = request.content_type == BYTES_TYPE
    fields = request.GET.dict() if is_raw else request.POST.dict()
    fields.pop("file_name", "")
    file, _ = read_sent_file(request)
    form = ImportForm({"format": "auto", **fields}, {"file": file})
    refuse_unknown_filters(fields, form)
    clean_form(form, "query" if is_raw else "form")
    return serialize_import_detail(receive_upload(evaluation, user=user, **form.options()))


@operations.get_one("/evaluations/{slug:slug}/imports/{int:pk}", Scope.READ, ImportDetailOut)
def get_import(request: AuthenticatedRequest, slug: str, pk: int) -> ImportDetailOut:
    """How it stands: what storing it would do, its bad rows, and how far it is."""
    return serialize_import_detail(get_import_for_program(request, slug, pk))


@operations.do("/evaluations/{slug:slug}/imports/{int:pk}/store", Scope.WRITE, ImportDetailOut)
def store_file(request: AuthenticatedRequest, slug: str, pk: int, body: StoreImportIn | None = None) -> ImportDetailOut:
    """Store its rows, in the background. Ask for the import to see how far it is."""
    importing = get_import_for_program(request, slug, pk)
    start_storing(importing, skip_bad=bool(body and body.skip_bad), user=request.user)
    return serialize_import_detail(get_import_for_program(request, slug, pk))


@operations.do("/evaluations/{slug:slug}/imports/{int:pk}/cancel", Scope.WRITE, ImportDetailOut)
def cancel_import(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> ImportDetailOut:
    """Discard it: nothing of it is stored."""
    discard_import(get_import_for_program(request, slug, pk), user=request.user)
    return serialize_import_detail(get_import_for_program(request, slug, pk))


@operations.do("/evaluations/{slug:slug}/imports/{int:pk}/undo", Scope.WRITE, ImportDetailOut)
def undo_import(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> ImportDetailOut:
    """Remove what it alone brought, where nothing was judged, reviewed, resolved, commented or exported with it.

    It is hidden at once and removed in the background: its state is `undoing`, then `undone`.
    """
    importing = get_import_for_program(request, slug, pk)
    start_undo(importing, user=request.user)
    return serialize_import_detail(get_import_for_program(request, slug, pk))
