"""Labels leave the evaluation: the list of exports, a new one, and its file again."""

from typing import cast

from django.contrib import messages
from django.http import FileResponse, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import content_disposition_header
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from evaluations import access
from evaluations.access import Action
from evaluations.domain import DOWNLOADED, ExportState, InputRefused
from evaluations.forms.exports import ExportForm
from evaluations.models import Evaluation, Export, User
from evaluations.services.exporting import collecting, exporting
from evaluations.services.recording import record
from evaluations.web.paging import page_of


@never_cache
@require_GET
def exports(request: HttpRequest, slug: str) -> HttpResponse:
    evaluation = access.evaluation_for(cast(User, request.user), slug, Action.EXPORT)
    page = page_of(request, evaluation.exports.select_related("user"), newest_first=True)
    return render(request, "exports/exports.html", {"page": "exports", "evaluation": evaluation, "exports": page})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def export_new(request: HttpRequest, slug: str) -> HttpResponseBase:
    """What would be written; a POST writes it and sends it while it is written."""
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.EXPORT)
    form = ExportForm(request.POST if request.method == "POST" else None)
    if not form.is_valid():
        return described(request, evaluation, form, status=422 if form.is_bound else 200)
    export = exporting.begin(evaluation, written_as=form.cleaned_data["written_as"], user=user)
    record(DOWNLOADED, export, user=user, evaluation=evaluation)
    return StreamingHttpResponse(
        exporting.write(export, access.open_comparisons(user, evaluation)),
        content_type=exporting.CONTENT_TYPES[export.format],
        headers={"Content-Disposition": content_disposition_header(True, export.file_name) or ""},
    )


def described(request: HttpRequest, evaluation: Evaluation, form: ExportForm, status: int) -> HttpResponse:
    those = collecting.cast_of(evaluation)
    context = {
        "page": "exports",
        "evaluation": evaluation,
        "form": form,
        "rows": access.open_comparisons(cast(User, request.user), evaluation).count(),
        "raters": those.names(),
        "judges": those.judges.values(),
    }
    return render(request, "export_new/export_new.html", context, status=status)


@never_cache
@require_GET
def export_file(request: HttpRequest, slug: str, pk: int) -> HttpResponseBase:
    """The file of a finished export, once more."""
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.EXPORT)
    export = get_object_or_404(Export, evaluation=evaluation, pk=pk, state=ExportState.DONE)
    try:
        file = exporting.kept(export)
    except InputRefused as refused:
        messages.error(request, str(refused))
        return redirect("exports", slug)
    record(DOWNLOADED, export, user=user, evaluation=evaluation)
    return FileResponse(
        file,
        as_attachment=True,
        filename=export.file_name,
        content_type=exporting.CONTENT_TYPES[export.format],
    )
