"""Labels leave the evaluation: the list of exports, a new one, its record, and its file again."""

from dataclasses import dataclass
from typing import Final, cast

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.http import content_disposition_header
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRefresh

from evaluations import access
from evaluations.access import Action
from evaluations.domain import DOWNLOADED, ExportState, InputRefused
from evaluations.forms.exports import ExportForm
from evaluations.models import Evaluation, Export, User
from evaluations.services.archiving.backing_up import refuse_busy
from evaluations.services.exporting import casting, exporting, lasting, manifesting
from evaluations.services.recording import record
from evaluations.tasks import nudge, write_export
from evaluations.web.paging import page_of
from evaluations.web.ranged import ranged

LOOKED_AHEAD_SECONDS: Final = 0.5
STOP_POLLING: Final = 286


@never_cache
@require_GET
def exports(request: HttpRequest, slug: str) -> HttpResponse:
    evaluation = access.evaluation_for(cast(User, request.user), slug, Action.EXPORT)
    listed = evaluation.exports.select_related("user").defer("manifest", "options", "filters", "reason")
    page = page_of(request, listed, newest_first=True)
    backs_up = access.may(cast(User, request.user), Action.BACK_UP, evaluation)
    context = {"page": "exports", "evaluation": evaluation, "exports": page, "backs_up": backs_up}
    return render(request, "exports/exports.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def export_new(request: HttpRequest, slug: str) -> HttpResponseBase:
    """What would be written; a POST writes it: a short one is sent while it is written, a long one by a worker."""
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, access.needed_for_export(request.POST.get("written_as", "")))
    sent = request.POST if request.method == "POST" else None
    backs_up = access.may(user, Action.BACK_UP, evaluation)
    form = ExportForm(sent, evaluation=evaluation, backs_up=backs_up, within=request.GET.get("slice", ""))
    if request.method != "POST" or request.POST.get("step") == "look":
        return described(request, evaluation, form)
    if not form.is_valid():
        return described(request, evaluation, form, status=422)
    comparisons = access.open_comparisons(user, evaluation)
    try:
        wanted = form.wanted()
        written_as = form.cleaned_data["written_as"]
        is_long = exporting.is_long(evaluation, written_as, comparisons, wanted)
        export = exporting.begin(evaluation, written_as=written_as, user=user, wanted=wanted, in_background=is_long)
    except InputRefused as refused:
        form.add_error(None, str(refused))
        return described(request, evaluation, form, status=422)
    if is_long:
        nudge(write_export, export.pk)
        return redirect("export", slug, export.pk)
    record(DOWNLOADED, export, user=user, evaluation=evaluation)
    return StreamingHttpResponse(
        exporting.write(export, comparisons),
        content_type=exporting.content_type(export),
        headers={"Content-Disposition": content_disposition_header(True, export.file_name) or ""},
    )


def described(request: HttpRequest, evaluation: Evaluation, form: ExportForm, status: int = 200) -> HttpResponse:
    """The form with what it would write, counted for a moment. Only looking at it refuses nothing with a status."""
    those = casting.cast_of(evaluation)
    context = {
        "page": "exports",
        "evaluation": evaluation,
        "form": form,
        "raters": those.names(),
        "judges": those.judges.values(),
        "sent_rows": settings.EXPORT_SENT_ROWS,
    }
    asked = form if form.is_bound else ExportForm({"written_as": "jsonl", **opening(form)}, evaluation=evaluation)
    if asked.is_valid():
        try:
            context["foreseen"] = foreseen(request, evaluation, asked)
        except InputRefused as refused:
            context["refused"] = str(refused)
    is_fragment = bool(request.headers.get("HX-Request")) and request.POST.get("step") == "look"
    template = "export_new/_form.html" if is_fragment else "export_new/export_new.html"
    return render(request, template, context, status=status)


def foreseen(request: HttpRequest, evaluation: Evaluation, asked: ExportForm) -> exporting.Foreseen | None:
    """What would be in it; of a backup nothing is counted."""
    if asked.is_whole:
        refuse_busy(evaluation)
        return None
    comparisons = access.open_comparisons(cast(User, request.user), evaluation)
    return exporting.foresee(
        evaluation, asked.cleaned_data["written_as"], asked.wanted(), comparisons, LOOKED_AHEAD_SECONDS
    )


def opening(form: ExportForm) -> dict[str, str]:
    """What the fields say before anybody touches them."""
    return {name: str(field.initial) for name, field in form.fields.items() if field.initial}


def export_for(request: HttpRequest, slug: str, pk: int, action: Action = Action.EXPORT) -> Export:
    evaluation = access.evaluation_for(cast(User, request.user), slug, action)
    return get_object_or_404(evaluation.exports.select_related("evaluation", "user"), pk=pk)


@dataclass(frozen=True)
class Progress:
    reached: int
    expected: int
    per_second: float
    seconds_left: float | None


def progress(export: Export) -> Progress:
    expected = export.expected or 0
    passed = (timezone.now() - export.begun_at).total_seconds() if export.begun_at else 0.0
    rate = export.reached / passed if passed > 0 else 0.0
    return Progress(export.reached, expected, rate, (expected - export.reached) / rate if rate else None)


@never_cache
@require_GET
def export_page(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    return shown(request, export_for(request, slug, pk))


def shown(request: HttpRequest, export: Export, error: str = "") -> HttpResponse:
    user = cast(User, request.user)
    context = {
        "page": "exports",
        "evaluation": export.evaluation,
        "export": export,
        "busy": export.state in lasting.OPEN,
        "progress": progress(export),
        "excluded": exporting.in_words(export.format, export.counts.get("excluded", {})),
        "owns": access.may(user, Action.OWN, export.evaluation),
        "may_take": access.may(user, access.needed_for_export(export.format), export.evaluation),
        "error": error,
    }
    return render(request, "export/export.html", context, status=422 if error else 200)


@never_cache
@require_GET
def export_progress(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """How far it is, asked for every second; when it is over the page itself comes anew."""
    export = export_for(request, slug, pk)
    is_cancelled = export.state == ExportState.CANCELLED
    if export.state not in lasting.OPEN and not is_cancelled:
        return HttpResponseClientRefresh()
    context = {"evaluation": export.evaluation, "export": export, "progress": progress(export)}
    return render(request, "export/_progress.html", context, status=STOP_POLLING if is_cancelled else 200)


@require_POST
def export_cancel(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = cast(User, request.user)
    export = export_for(request, slug, pk)
    access.evaluation_for(user, slug, access.needed_for_export(export.format))
    try:
        lasting.cancel(export, user=user)
    except InputRefused as refused:
        return shown(request, export, error=str(refused))
    messages.success(request, f"{export.file_name} was cancelled. No file of it is kept.")
    return redirect("exports", slug)


@require_POST
def export_remove(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The file goes, the record stays."""
    export = export_for(request, slug, pk, Action.OWN)
    try:
        lasting.remove(export, user=cast(User, request.user))
    except InputRefused as refused:
        return shown(request, export, error=str(refused))
    messages.success(request, f"The file {export.file_name} was deleted. Its record and its manifest stay.")
    return redirect("export", slug, pk)


@never_cache
@require_GET
def export_manifest(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    export = get_object_or_404(Export, pk=export_for(request, slug, pk).pk, state=ExportState.DONE)
    name = content_disposition_header(True, manifesting.manifest_name(export)) or ""
    told = manifesting.document(manifesting.manifest_of(export))
    return HttpResponse(told, content_type="application/json", headers={"Content-Disposition": name})


@never_cache
@require_http_methods(["GET", "HEAD"])
def export_file(request: HttpRequest, slug: str, pk: int) -> HttpResponseBase:
    """The file of a finished export, once more, or the rest of it."""
    user = cast(User, request.user)
    export = get_object_or_404(Export, pk=export_for(request, slug, pk).pk, state=ExportState.DONE)
    access.evaluation_for(user, slug, access.needed_for_export(export.format))
    try:
        file = exporting.kept(export)
    except InputRefused as refused:
        messages.error(request, str(refused))
        return redirect("exports", slug)
    if request.method == "GET":
        record(DOWNLOADED, export, user=user, evaluation=export.evaluation)
    return ranged(
        request,
        file,
        size=file.size,
        tag=export.sha256,
        name=export.file_name,
        content_type=exporting.content_type(export),
    )
