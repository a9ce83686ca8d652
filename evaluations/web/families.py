"""Which candidates and judges are kin."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.access import Action
from evaluations.forms.families import FamiliesForm
from evaluations.models import User
from evaluations.services.preparing.relating import candidates_and_judges, set_families


@require_http_methods(["GET", "HEAD", "POST"])
def families(request: HttpRequest, slug: str) -> HttpResponse:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    candidates, judges = candidates_and_judges(evaluation)
    form = FamiliesForm(request.POST or None, candidates=candidates, judges=judges)
    if form.is_valid():
        changed = set_families(evaluation, form.of("candidate"), form.of("judge"), user=user)
        messages.success(request, f"Saved: {changed:,} changed." if changed else "Nothing was changed.")
        return redirect("families", slug)
    context = {"page": "families", "evaluation": evaluation, "form": form}
    return render(request, "families/families.html", context, status=422 if request.method == "POST" else 200)
