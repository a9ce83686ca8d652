"""Files come in: the list of imports, a new one, and one from its check to its last row."""

from collections.abc import Mapping
from typing import Final, cast

from django.contrib import messages
from django.db.models.fields.json import KT
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRefresh

from evaluations import access
from evaluations.access import Action
from evaluations.domain import FileFormat, ImportState, InputRefused
from evaluations.forms.imports import FORMATS, ImportForm
from evaluations.models import Evaluation, Import, User
from evaluations.services.import_undo import begin_undo, later_duplicates, why_it_stays
from evaluations.services.importing.fitting import take
from evaluations.services.importing.importing import begin, progress
from evaluations.services.importing.previewing import pairs_scored
from evaluations.services.importing.sweeping import AT_WORK, BUSY, cancel
from evaluations.tasks import nudge, store_import
from evaluations.web.paging import page_of

STOP_POLLING: Final = 286
READ_AS: Final[Mapping[str, str]] = {name: told for name, told in FORMATS if name != FileFormat.AUTO}


@never_cache
@require_GET
def imports(request: HttpRequest, slug: str) -> HttpResponse:
    evaluation = access.evaluation_for(cast(User, request.user), slug, Action.MANAGE)
    # What a file holds in words is a part of its summary, whose samples may be long texts: those are left unread.
    told = evaluation.imports.select_related("user").annotate(brings=KT("summary__brings"))
    page = page_of(request, told.defer("summary", "bad_rows", "mapping", "options", "reason"), newest_first=True)
    return render(request, "imports/imports.html", {"page": "imports", "evaluation": evaluation, "imports": page})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def import_new(request: HttpRequest, slug: str) -> HttpResponse:
    """The form; a POST checks the file, now or in the background, and stores none of it yet."""
    evaluation = access.evaluation_for(cast(User, request.user), slug, Action.MANAGE)
    if request.method != "POST":
        return asked(request, evaluation, ImportForm())
    form = ImportForm(request.POST, request.FILES)
    if not form.is_valid():
        return asked(request, evaluation, form, status=422)
    try:
        importing = received(request, evaluation, form)
    except InputRefused as refused:
        form.add_error("file", str(refused))
        return asked(request, evaluation, form, status=422)
    return redirect("import", slug, importing.pk)


def received(request: HttpRequest, evaluation: Evaluation, form: ImportForm) -> Import:
    importing = take(evaluation, user=cast(User, request.user), **form.options())
    if importing.state == ImportState.CHECKING:
        nudge(store_import, importing.pk)
    return importing


def asked(request: HttpRequest, evaluation: Evaluation, form: ImportForm, status: int = 200) -> HttpResponse:
    context = {"page": "imports", "evaluation": evaluation, "form": form}
    return render(request, "import_new/import_new.html", context, status=status)


@require_POST
def import_undo(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    importing = import_for(request, slug, pk)
    try:
        begin_undo(importing, user=cast(User, request.user))
    except InputRefused as refused:
        return shown(request, importing, error=str(refused))
    nudge(store_import, importing.pk)
    messages.success(request, f"{importing.file_name} is undone. {later_duplicates(importing)}".strip())
    return redirect("import", slug, pk)


def import_for(request: HttpRequest, slug: str, pk: int) -> Import:
    evaluation = access.evaluation_for(cast(User, request.user), slug, Action.MANAGE)
    return get_object_or_404(evaluation.imports.select_related("evaluation", "user"), pk=pk)


@never_cache
@require_GET
def import_page(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    importing = import_for(request, slug, pk)
    if importing.state == ImportState.MAPPING:
        return redirect("import_map", slug, pk)
    return shown(request, importing)


def shown(request: HttpRequest, importing: Import, error: str = "") -> HttpResponse:
    context = {
        "page": "imports",
        "evaluation": importing.evaluation,
        "import": importing,
        "busy": importing.state in AT_WORK,
        "progress": progress(importing) if importing.state in BUSY else None,
        "pairs_scored": pairs_scored(importing),
        "stays": why_it_stays(importing) if importing.state == ImportState.DONE else "",
        "read_as": READ_AS.get(importing.format),
        "error": error,
    }
    return render(request, "import/import.html", context, status=422 if error else 200)


@never_cache
@require_GET
def import_progress(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """How far it is, asked for every second; when it is over the page itself comes anew.

    Not so where it was cancelled: whoever pressed that button is on the way to the list.
    """
    importing = import_for(request, slug, pk)
    is_cancelled = importing.state == ImportState.CANCELLED
    if importing.state not in AT_WORK and not is_cancelled:
        return HttpResponseClientRefresh()
    context = {"evaluation": importing.evaluation, "import": importing, "progress": progress(importing)}
    return render(request, "import/_progress.html", context, status=STOP_POLLING if is_cancelled else 200)


@require_POST
def import_store(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    importing = import_for(request, slug, pk)
    try:
        begin(importing, skip_bad="skip_bad" in request.POST, user=cast(User, request.user))
    except InputRefused as refused:
        return shown(request, importing, error=str(refused))
    nudge(store_import, importing.pk)
    return redirect("import", slug, pk)


@require_POST
def import_cancel(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    importing = import_for(request, slug, pk)
    try:
        cancel(importing, user=cast(User, request.user))
    except InputRefused as refused:
        return shown(request, importing, error=str(refused))
    messages.success(request, f"{importing.file_name} was discarded. Nothing of it is stored.")
    return redirect("imports", slug)
