"""The page that maps the columns of a file."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from evaluations.domain.errors import InputRefused
from evaluations.imports.columns.column_memory import find_remembered_mapping, forget_mapping
from evaluations.imports.columns.forms import ColumnMappingForm, build_mapping_form
from evaluations.imports.columns.services import (
    apply_mapping,
    preview_mapping,
    read_import_sheet,
)
from evaluations.imports.import_changes import MAPPABLE_STATES
from evaluations.imports.requests import get_import_or_404
from evaluations.imports.source_files import Sheet
from evaluations.models.imports import ColumnMapping, Import
from evaluations.web.refusals import get_refusal_status
from evaluations.web.requests import AuthenticatedRequest


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def column_mapping(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """Preview a mapping; a POST with ``do=fit`` applies it and has the file checked."""
    importing = get_import_or_404(request, slug, pk)
    if importing.state not in MAPPABLE_STATES:
        return redirect("import", slug, pk)
    sheet = read_import_sheet(importing)
    mapping = find_remembered_mapping(importing.evaluation, sheet.sampled_columns)
    if request.method != "POST":
        return render_column_mapping(request, importing, sheet, build_mapping_form(importing, sheet), mapping)
    form = ColumnMappingForm(sheet, request.POST)
    error = ""
    is_applied = request.POST.get("do") == "fit"
    status = 422 if is_applied else 200
    if is_applied and form.is_valid():
        try:
            apply_mapping(importing, form.build_read_options(), user=request.user)
        except InputRefused as refused:
            error, status = str(refused), get_refusal_status(refused)
        else:
            return redirect("imports", slug)
    return render_column_mapping(request, importing, sheet, form, mapping, error=error, status=status)


def render_column_mapping(
    request: AuthenticatedRequest,
    importing: Import,
    sheet: Sheet,
    form: ColumnMappingForm,
    mapping: ColumnMapping | None,
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
        "known": mapping,
        "preview": preview_mapping(importing, form.build_read_options()),
        "error": error,
    }
    name = "_result_preview" if request.htmx else "column_mapping"
    return render(request, f"column_mapping/{name}.html", context, status=status)


@require_POST
def column_mapping_forget(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    importing = get_import_or_404(request, slug, pk)
    is_mappable = importing.state in MAPPABLE_STATES
    columns = read_import_sheet(importing).sampled_columns if is_mappable else ()
    if mapping := find_remembered_mapping(importing.evaluation, columns):
        forget_mapping(mapping, user=request.user)
        messages.success(request, "Column mapping forgotten.")
    return redirect("column_mapping", slug, pk)
