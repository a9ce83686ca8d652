"""What an evaluation is called and by which rules it is reviewed; out of the way, and back."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from evaluations import access
from evaluations.access import Action
from evaluations.forms.evaluation_settings import SettingsForm
from evaluations.models import User
from evaluations.services.preparing.preparing import archive, bring_back, change_evaluation


@require_http_methods(["GET", "HEAD", "POST"])
def evaluation_settings(request: HttpRequest, slug: str) -> HttpResponse:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    form = SettingsForm(request.POST or None, evaluation=evaluation)
    if form.is_valid():
        change_evaluation(evaluation, form.cleaned_data, user=user)
        messages.success(request, "Saved.")
        return redirect("evaluation_settings", slug)
    context = {"page": "evaluation_settings", "evaluation": evaluation, "form": form}
    status = 422 if request.method == "POST" else 200
    return render(request, "evaluation_settings/evaluation_settings.html", context, status=status)


@require_POST
def evaluation_archive(request: HttpRequest, slug: str) -> HttpResponse:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    archive(evaluation, user=user)
    messages.success(request, f"“{evaluation.name}” is archived. It stands under “Archived”, and can be brought back.")
    return redirect("evaluations")


@require_POST
def evaluation_bring_back(request: HttpRequest, slug: str) -> HttpResponse:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    bring_back(evaluation, user=user)
    messages.success(request, f"“{evaluation.name}” is back.")
    return redirect("evaluation", slug)
