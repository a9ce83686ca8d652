"""What an evaluation is called and by which rules it is reviewed; out of the way, and back."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from evaluations import access
from evaluations.access import Action
from evaluations.forms.evaluation_settings import SettingsForm
from evaluations.models import Evaluation, User
from evaluations.services.preparing.preparing import archive, bring_back, change_evaluation
from evaluations.services.reviewing.overseeing import ending_with_rubric


@require_http_methods(["GET", "HEAD", "POST"])
def evaluation_settings(request: HttpRequest, slug: str) -> HttpResponse:
    """The form; a POST with ``step=look`` shows the guidelines as reviewers will see them, any other saves."""
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    form = SettingsForm(request.POST or None, evaluation=evaluation)
    if request.POST.get("step") == "look":
        return looked_at(request, evaluation, form)
    if form.is_valid():
        change_evaluation(evaluation, form.cleaned_data, user=user)
        messages.success(request, "Saved.")
        return redirect("evaluation_settings", slug)
    return shown(request, evaluation, form, status=422 if request.method == "POST" else 200)


def looked_at(request: HttpRequest, evaluation: Evaluation, form: SettingsForm) -> HttpResponse:
    """The guidelines as they are being written; nothing is stored."""
    text = request.POST.get("guidelines", "")
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "evaluation_settings/_look.html", {"evaluation": evaluation, "text": text})
    return shown(request, evaluation, form, text=text, is_looking=True)


def shown(
    request: HttpRequest, evaluation: Evaluation, form: SettingsForm, status: int = 200, **more: object
) -> HttpResponse:
    context = {
        "page": "evaluation_settings",
        "evaluation": evaluation,
        "form": form,
        "ending": ending_with_rubric(evaluation),
        **more,
    }
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
