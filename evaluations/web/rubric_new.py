"""Begin a rubric: with one that is built in, a prompt that is pasted, or a blank page."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused
from evaluations.forms.rubric_new import BuiltinForm
from evaluations.forms.rubric_paste import PasteForm
from evaluations.models import Evaluation, RubricVersion, User
from evaluations.services.preparing.preparing import begin_builtin


@require_http_methods(["GET", "HEAD", "POST"])
def rubric_new(request: HttpRequest, slug: str) -> HttpResponse:
    """The three ways; a POST takes the first."""
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    form = BuiltinForm(request.POST if request.method == "POST" else None)
    if form.is_valid() and (version := begun(form, evaluation, user)):
        messages.success(request, f"“{version.rubric}” is here. Make a judge with it, or write a version of your own.")
        return redirect("rubric", slug, version.rubric_id)
    context = {"page": "rubrics", "evaluation": evaluation, "form": form, "paste": PasteForm()}
    return render(request, "rubric_new/rubric_new.html", context, status=422 if form.is_bound else 200)


def begun(form: BuiltinForm, evaluation: Evaluation, user: User) -> RubricVersion | None:
    try:
        return begin_builtin(evaluation, **form.cleaned_data, user=user)
    except InputRefused as refused:
        form.add_error(None, str(refused))
        return None
