"""The pages of exports: the list, a new export, its record or its file."""

from typing import Final

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import content_disposition_header
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRefresh

from evaluations.access import Action, action_for_export, is_allowed, may_change_row, require_evaluation
from evaluations.backups.selectors import refuse_if_busy
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ExportState
from evaluations.exports.cards import CARD_FORMATS, EXPORT_CARDS, PREVIEWED_AS, list_more_formats
from evaluations.exports.failures import OPEN
from evaluations.exports.forms import ExportForm
from evaluations.exports.options import get_export_format
from evaluations.exports.participants import load_participants
from evaluations.exports.requests import get_export_or_404, send_export_file
from evaluations.exports.selectors import (
    ExportPreview,
    build_manifest,
    list_exclusion_reasons,
    preview_export,
)
from evaluations.exports.services import delete_export_file, get_export_job, request_export, stop_export
from evaluations.formats.export_format import encode_manifest
from evaluations.formats.export_formats import EXPORT_FORMATS
from evaluations.jobs.queue import measure_job_progress
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from evaluations.web.htmx import STOP_POLLING
from evaluations.web.pagination import paginate
from evaluations.web.refusals import get_refusal_status
from evaluations.web.requests import AuthenticatedRequest
from evaluations.web.sorting import SortColumn, parse_sorting

PREVIEW_SECONDS: Final = 0.5


@never_cache
@require_GET
def exports(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    evaluation = require_evaluation(request.user, slug, Action.EXPORT)
    listed = evaluation.exports.select_related("user").defer("manifest", "options", "filters", "reason")
    sorting = parse_sorting(request, SortColumn("created", descending=True))
    page = paginate(request, listed, sorting=sorting)
    backs_up = is_allowed(request.user, Action.BACK_UP, evaluation)
    context = {
        "page": "exports",
        "evaluation": evaluation,
        "exports": page,
        "sorting": sorting,
        "backs_up": backs_up,
        "cards": EXPORT_CARDS,
        "more_formats": list_more_formats(backs_up=backs_up),
    }
    return render(request, "exports/exports.html", context)


@never_cache
@require_GET
def export_preview(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """Counts and first row of a card's format with default options."""
    evaluation = require_evaluation(request.user, slug, Action.EXPORT)
    name = request.GET.get("written_as", "")
    name = name if name in CARD_FORMATS else "jsonl"
    form = ExportForm({"written_as": PREVIEWED_AS.get(name, name)}, evaluation=evaluation)
    context: dict[str, object] = {"evaluation": evaluation}
    if form.is_valid():
        try:
            context["foreseen"] = preview_from_form(request, evaluation, form)
        except InputRefused as refused:
            context["refused"] = str(refused)
    return render(request, "exports/_preview.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def export_new(request: AuthenticatedRequest, slug: str) -> HttpResponseBase:
    """Preview an export; a POST creates it. Small exports are streamed, a worker writes large ones."""
    user = request.user
    evaluation = require_evaluation(user, slug, action_for_export(request.POST.get("written_as", "")))
    sent = request.POST if request.method == "POST" else None
    backs_up = is_allowed(user, Action.BACK_UP, evaluation)
    within, name = request.GET.get("saved_filter", ""), request.GET.get("format", "")
    name = name if name in EXPORT_FORMATS and (backs_up or not EXPORT_FORMATS[name].is_backup) else "jsonl"
    form = ExportForm(sent, evaluation=evaluation, backs_up=backs_up, within=within, format_name=name)
    if request.method != "POST" or request.POST.get("step") == "look":
        return render_export_form(request, evaluation, form)
    if not form.is_valid():
        return render_export_form(request, evaluation, form, status=422)
    try:
        requested = request_export(
            evaluation, written_as=form.cleaned_data["written_as"], user=user, request=form.export_request()
        )
    except InputRefused as refused:
        form.add_error(None, str(refused))
        return render_export_form(request, evaluation, form, status=get_refusal_status(refused))
    if requested.blocks is None:
        return redirect("export", slug, requested.record.pk)
    return StreamingHttpResponse(
        requested.blocks,
        content_type=get_export_format(requested.record.format).content_type,
        headers={"Content-Disposition": content_disposition_header(True, requested.record.file_name) or ""},
    )


def render_export_form(
    request: AuthenticatedRequest, evaluation: Evaluation, form: ExportForm, status: int = 200
) -> HttpResponse:
    """The form with a preview of what it would write."""
    participants = load_participants(evaluation)
    context = {
        "page": "exports",
        "evaluation": evaluation,
        "form": form,
        "raters": participants.list_names(),
        "judges": participants.judges.values(),
        "sent_rows": settings.EXPORT_SENT_ROWS,
    }
    initial = {name: str(field.initial) for name, field in form.fields.items() if field.initial}
    previewed = form if form.is_bound else ExportForm(initial, evaluation=evaluation, backs_up=form.is_whole)
    if previewed.is_valid():
        try:
            context["foreseen"] = preview_from_form(request, evaluation, previewed)
        except InputRefused as refused:
            context["refused"] = str(refused)
    is_fragment = bool(request.headers.get("HX-Request")) and request.POST.get("step") == "look"
    template = "export_new/_form.html" if is_fragment else "export_new/export_new.html"
    return render(request, template, context, status=status)


def preview_from_form(request: AuthenticatedRequest, evaluation: Evaluation, form: ExportForm) -> ExportPreview | None:
    """Preview the export of the form; nothing is counted for a backup."""
    if form.is_whole:
        refuse_if_busy(evaluation)
        return None
    name, asked = form.cleaned_data["written_as"], form.export_request()
    return preview_export(evaluation, name, asked, user=request.user, seconds=PREVIEW_SECONDS)


@never_cache
@require_GET
def export_page(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    return render_export(request, get_export_or_404(request, slug, pk))


def render_export(request: AuthenticatedRequest, export: Export, error: str = "") -> HttpResponse:
    user = request.user
    context = {
        "page": "exports",
        "evaluation": export.evaluation,
        "export": export,
        "busy": export.state in OPEN,
        "progress": measure_job_progress(get_export_job(export)),
        "excluded": list_exclusion_reasons(export.format, export.counts.get("excluded", {})),
        "owns": is_allowed(user, Action.OWN, export.evaluation),
        "may_take": is_allowed(user, action_for_export(export.format), export.evaluation),
        "may_cancel": may_change_row(user, export.user_id, export.evaluation),
        "error": error,
    }
    return render(request, "export/export.html", context, status=422 if error else 200)


@never_cache
@require_GET
def export_progress(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """The progress, polled every second; when the export has ended the whole page is loaded again."""
    export = get_export_or_404(request, slug, pk)
    is_cancelled = export.state == ExportState.CANCELLED
    if export.state not in OPEN and not is_cancelled:
        return HttpResponseClientRefresh()
    context = {
        "evaluation": export.evaluation,
        "export": export,
        "progress": measure_job_progress(get_export_job(export)),
    }
    return render(request, "export/_progress.html", context, status=STOP_POLLING if is_cancelled else 200)


@require_POST
def export_cancel(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    user = request.user
    export = get_export_or_404(request, slug, pk)
    require_evaluation(user, slug, action_for_export(export.format))
    try:
        stop_export(export, user=user)
    except InputRefused as refused:
        return render_export(request, export, error=str(refused))
    messages.success(request, f"{export.file_name} canceled. No file was kept.")
    return redirect("exports", slug)


@require_POST
def export_remove(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    export = get_export_or_404(request, slug, pk, Action.OWN)
    try:
        delete_export_file(export, user=request.user)
    except InputRefused as refused:
        return render_export(request, export, error=str(refused))
    messages.success(request, f"{export.file_name} deleted. Its manifest is kept.")
    return redirect("export", slug, pk)


@never_cache
@require_GET
def export_manifest(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    export = get_export_or_404(request, slug, pk, state=ExportState.DONE)
    name = content_disposition_header(True, f"{export.file_name}.manifest.json") or ""
    content = encode_manifest(build_manifest(export))
    return HttpResponse(content, content_type="application/json", headers={"Content-Disposition": name})


@never_cache
@require_http_methods(["GET", "HEAD"])
def export_file(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponseBase:
    """The file of a finished export, or a range of it."""
    export = get_export_or_404(request, slug, pk, state=ExportState.DONE)
    try:
        return send_export_file(request, export)
    except InputRefused as refused:
        messages.error(request, str(refused))
        return redirect("exports", slug)
