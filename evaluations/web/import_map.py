"""What the columns of a kept file mean: said by a person, with what its first rows become."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from evaluations.domain import InputRefused
from evaluations.forms.import_map import ColumnsForm
from evaluations.models import ColumnMapping, Import, User
from evaluations.services.importing.fitting import (
    MAPPABLE,
    fit,
    names_given,
    remembered_for,
    said_before,
    sheet_of,
    trial,
)
from evaluations.services.importing.mapping import Sheet, forget
from evaluations.tasks import nudge, store_import
from evaluations.web.imports import import_for


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def import_map(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Every POST shows what the rows become; the one that says so has the file checked as well."""
    importing = import_for(request, slug, pk)
    if importing.state not in MAPPABLE:
        return redirect("import", slug, pk)
    sheet = sheet_of(importing)
    known = remembered_for(importing, sheet)
    if request.method != "POST":
        form = ColumnsForm(sheet, known=said_before(importing, sheet), names=names_given(importing))
        return shown(request, importing, sheet, form, known)
    form = ColumnsForm(sheet, request.POST)
    error = ""
    if request.POST.get("do") == "fit" and form.is_valid():
        try:
            if fit(importing, form.reading(), user=cast(User, request.user)):
                nudge(store_import, importing.pk)
        except InputRefused as refused:
            error = str(refused)
        else:
            return redirect("import", slug, pk)
    is_refused = bool(error) or request.POST.get("do") == "fit"
    return shown(request, importing, sheet, form, known, error=error, status=422 if is_refused else 200)


def shown(
    request: HttpRequest,
    importing: Import,
    sheet: Sheet,
    form: ColumnsForm,
    known: ColumnMapping | None,
    error: str = "",
    status: int = 200,
) -> HttpResponse:
    context = {
        "page": "imports",
        "evaluation": importing.evaluation,
        "import": importing,
        "sheet": sheet,
        "rows": [[row.get(column) for column in sheet.columns] for row in sheet.rows],
        "form": form,
        "known": known,
        "trial": trial(importing, form.reading()),
        "error": error,
    }
    name = "_fitted" if request.htmx else "import_map"  # type: ignore[attr-defined]
    return render(request, f"import_map/{name}.html", context, status=status)


@require_POST
def import_map_forget(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    importing = import_for(request, slug, pk)
    known = remembered_for(importing, sheet_of(importing)) if importing.state in MAPPABLE else None
    if known is not None:
        forget(known, user=cast(User, request.user))
        messages.success(request, "Forgotten: the next file with these columns is looked at anew.")
    return redirect("import_map", slug, pk)
