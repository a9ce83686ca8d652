"""Pages of the imports of an evaluation."""

from collections.abc import Mapping
from typing import Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRefresh

from evaluations.access import Action, require_evaluation
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import DEFAULT_FILE_NAME, FileFormat, ImportState
from evaluations.domain.jobs import JobState
from evaluations.imports.forms import FORMAT_CHOICES, ImportForm
from evaluations.imports.lifecycle import BUSY_STATES, IMPORT_JOB, WORKING_STATES, get_import_progress
from evaluations.imports.requests import get_import_or_404
from evaluations.imports.services import discard_import, receive_upload, start_storing
from evaluations.imports.undo import describe_later_duplicates, explain_why_not_undoable, start_undo
from evaluations.jobs.queue import find_job
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.web.forms import add_refusal
from evaluations.web.htmx import STOP_POLLING
from evaluations.web.pagination import paginate
from evaluations.web.refusals import get_refusal_status
from evaluations.web.requests import AuthenticatedRequest

FORMAT_LABELS: Final[Mapping[str, str]] = {name: label for name, label in FORMAT_CHOICES if name != FileFormat.AUTO}


@never_cache
@require_GET
def import_list(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    # The samples of a summary may be long texts.
    rows = evaluation.imports.select_related("user")
    rows = rows.defer("summary_json", "options_json", "created_json", "bad_rows", "reason")
    page = paginate(request, rows, newest_first=True)
    return render(request, "imports/imports.html", {"page": "imports", "evaluation": evaluation, "imports": page})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def import_new(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The form; a POST checks the file, now or in the background, and stores none of it yet."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    if request.method != "POST":
        return render_import_form(request, evaluation, ImportForm())
    form = ImportForm(request.POST, request.FILES)
    if form.is_valid():
        file = form.cleaned_data["file"]
        try:
            name = file.name or DEFAULT_FILE_NAME
            importing = receive_upload(evaluation, file, name, form.import_request, user=request.user)
        except InputRefused as refused:
            add_refusal(form, refused, "file")
            return render_import_form(request, evaluation, form, status=get_refusal_status(refused))
        return redirect("import", slug, importing.pk)
    return render_import_form(request, evaluation, form, status=422)


def render_import_form(
    request: AuthenticatedRequest, evaluation: Evaluation, form: ImportForm, status: int = 200
) -> HttpResponse:
    context = {"page": "imports", "evaluation": evaluation, "form": form}
    return render(request, "import_new/import_new.html", context, status=status)


@require_POST
def import_undo(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    importing = get_import_or_404(request, slug, pk)
    try:
        start_undo(importing, user=request.user)
    except InputRefused as refused:
        return render_import(request, importing, error=str(refused))
    messages.success(request, f"{importing.file_name} is undone. {describe_later_duplicates(importing)}".strip())
    return redirect("import", slug, pk)


@never_cache
@require_GET
def import_detail(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    importing = get_import_or_404(request, slug, pk)
    if importing.state == ImportState.MAPPING:
        return redirect("import_map", slug, pk)
    return render_import(request, importing)


def render_import(request: AuthenticatedRequest, importing: Import, error: str = "") -> HttpResponse:
    context = {
        "page": "imports",
        "evaluation": importing.evaluation,
        "import": importing,
        "is_working": importing.state in WORKING_STATES,
        "progress": get_import_progress(importing) if importing.state in BUSY_STATES else None,
        "is_worked_on": is_worked_on(importing),
        "options": importing.options,
        "summary": importing.summary,
        "undo_refusal": explain_why_not_undoable(importing) if importing.state == ImportState.DONE else "",
        "read_as": FORMAT_LABELS.get(importing.format),
        "error": error,
    }
    return render(request, "import/import.html", context, status=422 if error else 200)


@never_cache
@require_GET
def import_progress(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """The progress. When the import has ended the whole page is loaded again, except after Cancel."""
    importing = get_import_or_404(request, slug, pk)
    is_cancelled = importing.state == ImportState.CANCELLED
    if importing.state not in WORKING_STATES and not is_cancelled:
        return HttpResponseClientRefresh()
    context = {
        "evaluation": importing.evaluation,
        "import": importing,
        "progress": get_import_progress(importing),
        "is_worked_on": is_worked_on(importing),
    }
    return render(request, "import/_progress.html", context, status=STOP_POLLING if is_cancelled else 200)


def is_worked_on(importing: Import) -> bool:
    job = find_job(IMPORT_JOB, importing.pk)
    return job is not None and job.state == JobState.RUNNING


@require_POST
def import_store(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    importing = get_import_or_404(request, slug, pk)
    try:
        start_storing(importing, skip_bad="skip_bad" in request.POST, user=request.user)
    except InputRefused as refused:
        return render_import(request, importing, error=str(refused))
    return redirect("import", slug, pk)


@require_POST
def import_cancel(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    importing = get_import_or_404(request, slug, pk)
    try:
        discard_import(importing, user=request.user)
    except InputRefused as refused:
        return render_import(request, importing, error=str(refused))
    messages.success(request, f"{importing.file_name} was discarded. Nothing of it is stored.")
    return redirect("imports", slug)
