"""Labels leave the evaluation: a new export, its record, its file again."""

from typing import Any, Final

from django.http import FileResponse, HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.http import content_disposition_header
from ninja import Query

from evaluations import access
from evaluations.access import Action
from evaluations.api.admission import person
from evaluations.api.operations import Operations
from evaluations.api.paging import Paging, page_of
from evaluations.api.problems import IN_GENERAL, Problem
from evaluations.api.schemas.files import (
    ExportNew,
    ExportPage,
    ExportTold,
    FormatList,
    FormatSetting,
    FormatTold,
    ManifestTold,
)
from evaluations.api.schemas.shared import NothingSent
from evaluations.api.telling import anyone_told
from evaluations.domain import DOWNLOADED, ExportState, LabelPolicy, Scope, Split, blocks, range_in, split_from
from evaluations.models import Evaluation, Export
from evaluations.services.exporting import exporting, lasting
from evaluations.services.exporting.manifesting import manifest_of
from evaluations.services.exporting.wanting import Wanted, offered
from evaluations.services.preparing.slicing import slice_of
from evaluations.services.recording import record
from evaluations.tasks import nudge, write_export

operations = Operations(tags=["exports"])
FILE: Final[dict[str, Any]] = {
    "parameters": [
        {
            "name": "Range",
            "in": "header",
            "required": False,
            "description": "a part of the file, as bytes=1000-",
            "schema": {"type": "string", "pattern": r"^bytes=(\d{1,18}-\d{0,18}|-\d{1,18})$"},
        }
    ],
    "responses": {
        status: {"description": said, "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
        for status, said in ((200, "the file"), (206, "the part that was asked for"))
    },
}


@operations.get_one("/evaluations/{slug:slug}/exports", Scope.READ, ExportPage)
def list_exports(request: HttpRequest, slug: str, paging: Query[Paging]) -> ExportPage:
    """Newest first."""
    evaluation = access.evaluation_for(person(request), slug, Action.EXPORT)
    rows, more = page_of(paging, evaluation.exports.select_related("user", "evaluation"), newest_first=True)
    return ExportPage(items=[told(row) for row in rows], next=more)


@operations.get_one("/export-formats", Scope.READ, FormatList, site_wide=True)
def list_export_formats(request: HttpRequest) -> FormatList:
    """What an export can be written as, with the settings of each."""
    return FormatList(
        items=[
            FormatTold(
                name=one.name,
                title=one.title,
                ending=one.ending,
                wants_choice=one.wants_choice,
                is_whole=one.is_whole,
                settings=[
                    FormatSetting(
                        name=each.name,
                        values=list(each.values),
                        initial=each.initial,
                        of_candidates=each.of_candidates,
                    )
                    for each in one.settings
                ],
            )
            for one in offered()
        ]
    )


@operations.make("/evaluations/{slug:slug}/exports", Scope.WRITE, ExportTold)
def make_export(request: HttpRequest, slug: str, body: ExportNew) -> ExportTold:
    """Write the comparisons that you may see into a file: a short one now, a long one in the background.

    A `backup` holds the whole evaluation, for owners alone, and is always written in the background.

    Ask for the export until its `state` is `done`, then fetch the file.
    """
    user = person(request)
    evaluation = access.evaluation_for(user, slug, access.needed_for_export(body.format))
    comparisons, wanted = access.open_comparisons(user, evaluation), wanted_in(evaluation, body)
    is_long = exporting.is_long(evaluation, body.format, comparisons, wanted)
    export = exporting.begin(evaluation, written_as=body.format, user=user, wanted=wanted, in_background=is_long)
    if is_long:
        nudge(write_export, export.pk)
    else:
        record(DOWNLOADED, export, user=user, evaluation=evaluation)
        for _ in exporting.write(export, comparisons):
            pass
    return told(export)


def wanted_in(evaluation: Evaluation, body: ExportNew) -> Wanted:
    return Wanted(
        policy=body.policy,
        aspect=body.aspect,
        combine=body.combine,
        settings=body.settings,
        where=tuple(body.where.items()),
        sliced=slice_of(evaluation, body.slice).named if body.slice else None,
        part=body.part,
        split=split_in(evaluation, body),
        anonymised=body.anonymise,
    )


def split_in(evaluation: Evaluation, body: ExportNew) -> Split | None:
    if body.split is None:
        return None
    shares = {name: str(getattr(body.split, name)) for name in ("train", "dev", "test")}
    return split_from(body.split.seed or evaluation.slug, shares)


@operations.get_one("/evaluations/{slug:slug}/exports/{int:pk}", Scope.READ, ExportTold)
def get_export(request: HttpRequest, slug: str, pk: int) -> ExportTold:
    """The record: what was asked for, how far it is, rows and SHA-256 once it is whole."""
    return told(export_for(request, slug, pk))


@operations.get_one("/evaluations/{slug:slug}/exports/{int:pk}/manifest", Scope.READ, ManifestTold)
def get_manifest(request: HttpRequest, slug: str, pk: int) -> ManifestTold:
    """What the file rests on: filters, policy, rubrics, judges, counts, exclusions."""
    export = export_for(request, slug, pk, state=ExportState.DONE)
    return ManifestTold(manifest=manifest_of(export))


@operations.do("/evaluations/{slug:slug}/exports/{int:pk}/cancel", Scope.WRITE, ExportTold)
def cancel_export(request: HttpRequest, slug: str, pk: int, body: NothingSent | None = None) -> ExportTold:
    """Stop one that is waiting or being written: no file of it stays."""
    user, export = person(request), export_for(request, slug, pk)
    access.evaluation_for(user, slug, access.needed_for_export(export.format))
    lasting.cancel(export, user=user)
    return told(export_for(request, slug, pk))


@operations.remove("/evaluations/{slug:slug}/exports/{int:pk}/file", Scope.ADMIN)
def remove_export_file(request: HttpRequest, slug: str, pk: int) -> None:
    """The file goes; its record and its manifest stay."""
    user = person(request)
    access.evaluation_for(user, slug, Action.OWN)
    lasting.remove(export_for(request, slug, pk), user=user)


@operations.get_one("/evaluations/{slug:slug}/exports/{int:pk}/file", Scope.READ, None, extra=FILE)
def get_export_file(request: HttpRequest, slug: str, pk: int) -> HttpResponseBase:
    """The file of a finished export; with `Range: bytes=1000-` what is missing of an interrupted download."""
    user = person(request)
    export = export_for(request, slug, pk, state=ExportState.DONE)
    access.evaluation_for(user, slug, access.needed_for_export(export.format))
    file = exporting.kept(export)
    record(DOWNLOADED, export, user=user, evaluation=export.evaluation)
    answer = part_of(request, file, export.sha256) or FileResponse(file)
    answer["Content-Type"] = exporting.content_type(export)
    answer["Content-Disposition"] = content_disposition_header(True, export.file_name) or ""
    answer["Accept-Ranges"] = "bytes"
    answer["ETag"] = f'"{export.sha256}"'
    return answer


def part_of(request: HttpRequest, file: Any, tag: str) -> HttpResponseBase | None:
    """The part that was asked for; None where the whole file was, several parts, or a part of another file."""
    size = file.size
    wanted = range_in(request.headers.get("Range", ""), request.headers.get("If-Range"), size=size, tag=tag)
    if wanted is None:
        return None
    first, last = wanted
    if first > last:
        file.close()
        raise Problem(
            "range_not_satisfiable", IN_GENERAL["range_not_satisfiable"], headers={"Content-Range": f"bytes */{size}"}
        )
    answer = StreamingHttpResponse(blocks(file, first, last - first + 1), status=206)
    answer["Content-Range"] = f"bytes {first}-{last}/{size}"
    answer["Content-Length"] = str(last - first + 1)
    return answer


def export_for(request: HttpRequest, slug: str, pk: int, **columns: Any) -> Export:
    evaluation = access.evaluation_for(person(request), slug, Action.EXPORT)
    found = Export.objects.select_related("user", "evaluation")
    return get_object_or_404(found, evaluation=evaluation, pk=pk, **columns)


def told(row: Export) -> ExportTold:
    return ExportTold(
        id=row.pk,
        format=row.format,
        file_name=row.file_name,
        state=ExportState(row.state),
        policy=LabelPolicy(row.policy),
        filters=row.filters,
        options=row.options,
        rows=row.rows,
        bytes=row.bytes,
        sha256=row.sha256,
        counts=row.counts,
        person=anyone_told(row.user),
        reached=row.reached,
        expected=row.expected,
        reason=row.reason,
        created_at=row.created_at,
        finished_at=row.finished_at,
    )
