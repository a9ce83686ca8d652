"""Imports in the API."""

from typing import BinaryIO, cast

from ninja import Query

from evaluations.access import Action, require_evaluation
from evaluations.api.operations import BYTES_TYPE, FORM_TYPE, OperationRouter
from evaluations.api.pagination import PageQuery, paginate_by_cursor
from evaluations.api.schemas import EmptyIn
from evaluations.api.uploads import describe_upload, read_sent_fields, read_sent_file
from evaluations.domain.imports import build_import_request
from evaluations.domain.roles import Scope
from evaluations.imports.requests import get_import_or_404
from evaluations.imports.schemas import ImportDetailOut, ImportIn, ImportPageOut, StoreImportIn
from evaluations.imports.serializers import serialize_import, serialize_import_detail
from evaluations.imports.services import discard_import, receive_upload, start_storing
from evaluations.imports.undo import start_undo
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["imports"])


@operations.get_one("/evaluations/{slug:slug}/imports", Scope.READ, ImportPageOut)
def list_imports(request: AuthenticatedRequest, slug: str, paging: Query[PageQuery]) -> ImportPageOut:
    """List imports, newest first."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    rows, next_cursor = paginate_by_cursor(paging, evaluation.imports.select_related("user"), newest_first=True)
    return ImportPageOut(items=[serialize_import(row) for row in rows], next=next_cursor)


@operations.make(
    "/evaluations/{slug:slug}/imports",
    Scope.WRITE,
    ImportDetailOut,
    takes=f"{FORM_TYPE}, {BYTES_TYPE}",
    needs=Action.MANAGE,
    extra=describe_upload(ImportIn),
)
def upload_file(request: AuthenticatedRequest, slug: str) -> ImportDetailOut:
    """Upload a file, as a form or as the request body. It is validated; nothing is imported yet.

    Read `summary` and `bad_rows`, then import or cancel it. If its state is `mapping`, set its columns first
    (`set_columns`).
    """
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    file, name = read_sent_file(request)
    import_request = build_import_request(**dict(read_sent_fields(request, ImportIn)))
    return serialize_import_detail(receive_upload(evaluation, cast(BinaryIO, file), name, import_request, user=user))


@operations.get_one("/evaluations/{slug:slug}/imports/{int:pk}", Scope.READ, ImportDetailOut)
def get_import(request: AuthenticatedRequest, slug: str, pk: int) -> ImportDetailOut:
    """Get an import with its preview, its invalid rows and its progress."""
    return serialize_import_detail(get_import_or_404(request, slug, pk))


@operations.do("/evaluations/{slug:slug}/imports/{int:pk}/store", Scope.WRITE, ImportDetailOut)
def store_file(request: AuthenticatedRequest, slug: str, pk: int, body: StoreImportIn | None = None) -> ImportDetailOut:
    """Import the rows of a file in the background. Get the import to follow its progress."""
    importing = get_import_or_404(request, slug, pk)
    start_storing(importing, skip_bad=bool(body and body.skip_bad), user=request.user)
    return serialize_import_detail(get_import_or_404(request, slug, pk))


@operations.do("/evaluations/{slug:slug}/imports/{int:pk}/cancel", Scope.WRITE, ImportDetailOut)
def cancel_import(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> ImportDetailOut:
    """Cancel an import. Nothing is imported."""
    discard_import(get_import_or_404(request, slug, pk), user=request.user)
    return serialize_import_detail(get_import_or_404(request, slug, pk))


@operations.do("/evaluations/{slug:slug}/imports/{int:pk}/undo", Scope.WRITE, ImportDetailOut)
def undo_import(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> ImportDetailOut:
    """Undo an import, unless its data was judged, reviewed, resolved, commented on or exported.

    Its rows are hidden at once and removed in the background: its state is `undoing`, then `undone`.
    """
    importing = get_import_or_404(request, slug, pk)
    start_undo(importing, user=request.user)
    return serialize_import_detail(get_import_or_404(request, slug, pk))
