"""Writing one comparison by hand."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused
from evaluations.forms.comparison_new import ComparisonForm
from evaluations.models import Candidate, User
from evaluations.services.importing.adding import add_comparison

NAMES_OFFERED = 100


@require_http_methods(["GET", "HEAD", "POST"])
def comparison_new(request: HttpRequest, slug: str) -> HttpResponse:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    form = ComparisonForm(request.POST or None)
    if form.is_valid():
        try:
            comparison = add_comparison(evaluation, form.written(), user=user)
        except InputRefused as refused:
            form.add_error(None, str(refused))
        else:
            messages.success(request, "The comparison is stored.")
            return redirect("comparison", slug, comparison.pk)
    names = Candidate.objects.filter(evaluation=evaluation).order_by("name").values_list("name", flat=True)
    context = {"page": "comparisons", "evaluation": evaluation, "form": form, "names": names[:NAMES_OFFERED]}
    status = 422 if request.method == "POST" else 200
    return render(request, "comparison_new/comparison_new.html", context, status=status)
