"""Exports in the API: the list, a new export, its record or its file."""

from http import HTTPStatus
from typing import Final

from django.http.response import HttpResponseBase
from ninja import Query

from evaluations.access import Action, action_for_export, require_evaluation
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import PageQuery, paginate_by_cursor
from evaluations.api.problems import DEFAULT_DETAILS, Problem
from evaluations.api.schemas import EmptyIn
from evaluations.api.serializers import serialize_optional_user, serialize_row
from evaluations.comparisons.selectors import get_saved_filter
from evaluations.domain.choices import LabelPolicy
from evaluations.domain.files import ExportState
from evaluations.domain.roles import Scope
from evaluations.domain.splits import Split, make_split
from evaluations.exports.options import ExportRequest
from evaluations.exports.requests import get_export_or_404, send_export_file
from evaluations.exports.schemas import (
    ExportFormatList,
    ExportFormatOut,
    ExportIn,
    ExportOut,
    ExportPage,
    FormatSettingOut,
    ManifestOut,
)
from evaluations.exports.selectors import build_manifest
from evaluations.exports.services import (
    delete_export_file,
    get_export_job,
    get_jobs_of_exports,
    request_export,
    stop_export,
)
from evaluations.formats.export_formats import EXPORT_FORMATS
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from evaluations.models.jobs import Job
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["exports"])
FILE_RESPONSE: Final[dict[str, object]] = {
    "parameters": [
        {
            "name": "Range",
            "in": "header",
            "required": False,
            "description": "byte range of the file, such as bytes=1000-",
            "schema": {"type": "string", "pattern": r"^bytes=(\d{1,18}-\d{0,18}|-\d{1,18})$"},
        }
    ],
    "responses": {
        status: {"description": description, "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
        for status, description in ((200, "the file"), (206, "the requested range"))
    },
}


@operations.get_one("/evaluations/{slug:slug}/exports", Scope.READ, ExportPage)
def list_exports(request: AuthenticatedRequest, slug: str, paging: Query[PageQuery]) -> ExportPage:
    """List exports, newest first."""
    evaluation = require_evaluation(request.user, slug, Action.EXPORT)
    rows, next_cursor = paginate_by_cursor(
        paging, evaluation.exports.select_related("user", "evaluation"), newest_first=True
    )
    jobs = get_jobs_of_exports(rows)
    return ExportPage(items=[build_export_out(row, jobs.get(row.pk)) for row in rows], next=next_cursor)


@operations.get_one("/export-formats", Scope.READ, ExportFormatList, site_wide=True)
def list_export_formats(request: AuthenticatedRequest) -> ExportFormatList:
    """List the export formats with their settings."""
    return ExportFormatList(
        items=[
            serialize_row(
                ExportFormatOut,
                export_format,
                is_whole=export_format.is_backup,
                settings=[
                    serialize_row(FormatSettingOut, setting, values=list(setting.values))
                    for setting in export_format.settings
                ],
            )
            for export_format in EXPORT_FORMATS.values()
        ]
    )


@operations.make("/evaluations/{slug:slug}/exports", Scope.WRITE, ExportOut)
def make_export(request: AuthenticatedRequest, slug: str, body: ExportIn) -> ExportOut:
    """Export the comparisons that you can see. Large exports are written in the background.

    Preference formats use a default rule unless you set `aspect` or `combine`: Overall, if the rubric has it, otherwise
    the majority of aspects. A `backup` contains the whole evaluation. Only owners can create and download it.

    Poll the export until its `state` is `done`, then download the file.
    """
    user = request.user
    evaluation = require_evaluation(user, slug, action_for_export(body.format))
    requested = request_export(evaluation, written_as=body.format, user=user, request=parse_request(evaluation, body))
    for _ in requested.blocks or ():
        pass
    return build_export_out(requested.record, get_export_job(requested.record))


def parse_request(evaluation: Evaluation, body: ExportIn) -> ExportRequest:
    return ExportRequest(
        policy=body.policy,
        aspect=body.aspect,
        combine=body.combine,
        settings=body.settings,
        where=tuple(body.where.items()),
        saved_filter=get_saved_filter(evaluation, body.saved_filter).named if body.saved_filter else None,
        part=body.part,
        split=parse_split(evaluation, body),
        anonymised=body.anonymise,
    )


def parse_split(evaluation: Evaluation, body: ExportIn) -> Split | None:
    if body.split is None:
        return None
    shares = {name: str(getattr(body.split, name)) for name in ("train", "dev", "test")}
    return make_split(body.split.seed or evaluation.slug, shares)


@operations.get_one("/evaluations/{slug:slug}/exports/{int:pk}", Scope.READ, ExportOut)
def get_export(request: AuthenticatedRequest, slug: str, pk: int) -> ExportOut:
    """Get an export with its options and progress, and with its rows and SHA-256 once it is done."""
    export = get_export_or_404(request, slug, pk)
    return build_export_out(export, get_export_job(export))


@operations.get_one("/evaluations/{slug:slug}/exports/{int:pk}/manifest", Scope.READ, ManifestOut)
def get_manifest(request: AuthenticatedRequest, slug: str, pk: int) -> ManifestOut:
    """Get the manifest of an export: filters, label source, rubrics, judges, counts, exclusions."""
    return ManifestOut(manifest=build_manifest(get_export_or_404(request, slug, pk, state=ExportState.DONE)))


@operations.do("/evaluations/{slug:slug}/exports/{int:pk}/cancel", Scope.WRITE, ExportOut)
def cancel_export(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> ExportOut:
    """Cancel an export that is queued or in progress."""
    user, export = request.user, get_export_or_404(request, slug, pk)
    require_evaluation(user, slug, action_for_export(export.format))
    stop_export(export, user=user)
    return build_export_out(export, get_export_job(export))


@operations.remove("/evaluations/{slug:slug}/exports/{int:pk}/file", Scope.ADMIN)
def remove_export_file(request: AuthenticatedRequest, slug: str, pk: int) -> None:
    """Delete the file of an export. Its manifest is kept."""
    delete_export_file(get_export_or_404(request, slug, pk, Action.OWN), user=request.user)


@operations.get_one("/evaluations/{slug:slug}/exports/{int:pk}/file", Scope.READ, None, extra=FILE_RESPONSE)
def get_export_file(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponseBase:
    """Download a finished export. `Range: bytes=1000-` resumes an interrupted download."""
    answer = send_export_file(request, get_export_or_404(request, slug, pk, state=ExportState.DONE))
    if answer.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        code = "range_not_satisfiable"
        raise Problem(code, DEFAULT_DETAILS[code], headers={"Content-Range": answer["Content-Range"]})
    return answer


def build_export_out(row: Export, job: Job | None) -> ExportOut:
    return serialize_row(
        ExportOut,
        row,
        policy=LabelPolicy(row.label_policy),
        bytes=row.size_bytes,
        created_by=serialize_optional_user(row.user),
        reached=job.position if job else row.counts.get("comparisons", 0),
        expected=job.total if job else None,
    )
