"""Make a calibration round: comparisons with known labels that reviewers meet before any other."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused
from evaluations.forms.calibration_new import CalibrationForm
from evaluations.models import Evaluation, Round, User
from evaluations.services.reviewing.posing import begin, with_known_labels


@require_http_methods(["GET", "HEAD", "POST"])
def calibration_new(request: HttpRequest, slug: str) -> HttpResponse:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    known = with_known_labels(evaluation).count()
    form = CalibrationForm(request.POST or None, initial={"size": min(8, known) or None})
    if form.is_valid() and (made := made_by(form, evaluation, user)):
        messages.success(request, f"“{made.name}” is open: everyone who reviews here meets it first.")
        return redirect("round", slug, made.pk)
    context = {"page": "rounds", "evaluation": evaluation, "form": form, "known": known}
    status = 422 if request.method == "POST" else 200
    return render(request, "calibration_new/calibration_new.html", context, status=status)


def made_by(form: CalibrationForm, evaluation: Evaluation, user: User) -> Round | None:
    try:
        return begin(evaluation, user=user, **form.cleaned_data)
    except InputRefused as refused:
        form.add_error(None, str(refused))
        return None
