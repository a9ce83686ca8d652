"""Pages of the imports of an evaluation."""

from collections.abc import Collection, Mapping
from typing import BinaryIO, cast

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRefresh

from evaluations.access import Action, require_evaluation
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import DEFAULT_FILE_NAME, ImportState
from evaluations.domain.imports import ImportRequest
from evaluations.domain.jobs import JobState
from evaluations.imports.cards import FORMAT_LABELS, build_cards
from evaluations.imports.forms import ImportOptionsForm
from evaluations.imports.import_changes import change_import, check_waiting_again
from evaluations.imports.import_queue import queue_imports, queue_undo
from evaluations.imports.lifecycle import BUSY_STATES, IMPORT_JOB, WORKING_STATES, get_import_progress
from evaluations.imports.requests import get_import_or_404
from evaluations.imports.services import discard_import, receive_upload, start_storing
from evaluations.imports.undo import describe_later_duplicates, explain_why_not_undoable, start_undo
from evaluations.jobs.queue import find_job
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.web.forms import MAX_ID_DIGITS, add_refusal
from evaluations.web.htmx import STOP_POLLING
from evaluations.web.notices import add_notice_with_undo
from evaluations.web.pagination import paginate
from evaluations.web.refusals import get_refusal_status
from evaluations.web.requests import AuthenticatedRequest
from evaluations.web.sorting import SortColumn, parse_sorting

MAX_IDS = 100


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def import_list(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The drop zone with a card for each file, and the list of imports; a POST uploads files."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    if request.method != "POST":
        return render_imports(request, evaluation)
    files = request.FILES.getlist("file")
    errors = [] if files else ["Choose at least one file."]
    status = 200 if files else 422
    for file in files:
        name = file.name or DEFAULT_FILE_NAME
        try:
            receive_upload(evaluation, cast(BinaryIO, file), name, ImportRequest(), user=request.user, in_batch=True)
        except InputRefused as refused:
            sentence = str(refused)
            errors.append(sentence if name in sentence else f"{name}: {sentence}")
            status = max(status, get_refusal_status(refused))
    if errors or request.htmx:
        return render_imports(request, evaluation, errors=errors, status=status)
    return redirect("imports", slug)


def render_imports(
    request: AuthenticatedRequest,
    evaluation: Evaluation,
    *,
    forms: Mapping[int, ImportOptionsForm] | None = None,
    errors: Collection[str] = (),
    status: int = 200,
) -> HttpResponse:
    """The page, or for htmx its cards with the list."""
    imported = parse_ids(request.GET.get("imported") or request.POST.get("imported", ""))
    # The samples of a summary may be long texts.
    rows = evaluation.imports.select_related("user")
    rows = rows.defer("summary_json", "options_json", "created_json", "bad_rows", "reason")
    sorting = parse_sorting(request, SortColumn("date", descending=True))
    context = {
        "page": "imports",
        "evaluation": evaluation,
        "imports": paginate(request, rows, sorting=sorting),
        "sorting": sorting,
        "batch": build_cards(evaluation, request.user, imported, forms),
        "errors": errors,
        "most_bytes": settings.MAX_UPLOAD_BYTES,
    }
    template = "imports/_batch.html" if request.htmx else "imports/imports.html"
    return render(request, template, context, status=status)


def parse_ids(text: str) -> list[int]:
    parts = [part for part in text.split(",") if part.isascii() and part.isdecimal() and len(part) <= MAX_ID_DIGITS]
    return list(dict.fromkeys(map(int, parts)))[:MAX_IDS]


@require_GET
def import_new(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    require_evaluation(request.user, slug, Action.MANAGE)
    return redirect("imports", slug)


@require_POST
def imports_store(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """Apply what was changed on the cards; with ``do=import`` store the files that are ready."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    forms = apply_changes(request, evaluation)
    errors: list[str] = []
    if not forms and request.POST.get("do") == "import":
        ready = parse_ids(",".join(request.POST.getlist("ready")))
        imports = list(evaluation.imports.filter(pk__in=ready).select_related("evaluation").order_by("pk"))
        try:
            queue_imports(evaluation, imports, user=request.user)
        except InputRefused as refused:
            errors.append(str(refused))
        else:
            files = imports[0].file_name if len(imports) == 1 else f"{len(imports)} files"
            ids = ",".join(str(importing.pk) for importing in imports)
            add_notice_with_undo(request, f"Importing {files}.", reverse("imports_undo", args=[slug]), {"ids": ids})
            return redirect_to_imported(slug, ids)
    if forms or errors or request.htmx:
        return render_imports(request, evaluation, forms=forms, errors=errors, status=422 if forms or errors else 200)
    return redirect("imports", slug)


def redirect_to_imported(slug: str, ids: str) -> HttpResponseRedirect:
    return HttpResponseRedirect(f"{reverse('imports', args=[slug])}?imported={ids}")


def apply_changes(request: AuthenticatedRequest, evaluation: Evaluation) -> dict[int, ImportOptionsForm]:
    """Apply the forms of the cards that were sent and changed. Returns those that were refused, by import."""
    refused_forms = {}
    sent = parse_ids(",".join(name.partition("-")[0] for name in request.POST if name.endswith("-format")))
    for pk in sorted(sent):
        importing = evaluation.imports.select_related("evaluation").filter(pk=pk, state=ImportState.PREVIEWED).first()
        if importing is None:
            continue
        form = ImportOptionsForm(importing, request.POST)
        if not form.has_changed():
            continue
        if form.is_valid():
            try:
                change_import(importing, form.import_request, user=request.user)
            except InputRefused as refused:
                add_refusal(form, refused)
        if form.errors:
            refused_forms[pk] = form
    return refused_forms


@require_POST
def imports_undo(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """Undo imports; those that are not stored yet are cancelled."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    ids = parse_ids(request.POST.get("ids", ""))
    imports = list(evaluation.imports.filter(pk__in=ids).select_related("evaluation").order_by("pk"))
    try:
        queue_undo(evaluation, imports, user=request.user)
    except InputRefused as refused:
        messages.error(request, str(refused))
    else:
        duplicates = " ".join(filter(None, map(describe_later_duplicates, imports)))
        messages.success(request, f"Import undone. {duplicates}".strip())
    return redirect_to_imported(slug, ",".join(map(str, ids)))


@require_POST
def import_undo(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    importing = get_import_or_404(request, slug, pk)
    try:
        start_undo(importing, user=request.user)
    except InputRefused as refused:
        return render_import(request, importing, error=str(refused))
    messages.success(request, f"Import of {importing.file_name} undone. {describe_later_duplicates(importing)}".strip())
    return redirect("import", slug, pk)


@never_cache
@require_GET
def import_detail(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    importing = get_import_or_404(request, slug, pk)
    if importing.state == ImportState.MAPPING:
        return redirect("column_mapping", slug, pk)
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
    check_waiting_again(importing)
    messages.success(request, f"{importing.file_name} discarded.")
    return redirect("imports", slug)
