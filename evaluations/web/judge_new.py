"""Make a judge."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused
from evaluations.forms.judge_new import JudgeForm
from evaluations.models import Endpoint, Evaluation, Judge, User
from evaluations.services.judging.judging import create_judge

BASELINE = "longest"


@require_http_methods(["GET", "HEAD", "POST"])
def judge_new(request: HttpRequest, slug: str) -> HttpResponse:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    form = JudgeForm(request.POST if request.method == "POST" else None, evaluation=evaluation)
    if form.is_valid() and (judge := created(form, evaluation, user)):
        messages.success(request, f"“{judge.name}” is ready. Say how it is to run.")
        return redirect(f"{reverse('run_new', args=[slug])}?judge={judge.pk}")
    context = {
        "page": "judges",
        "evaluation": evaluation,
        "form": form,
        "has_endpoints": Endpoint.objects.exists(),
        "may_add_endpoints": user.is_superuser,
    }
    return render(request, "judge_new/judge_new.html", context, status=422 if form.is_bound else 200)


def created(form: JudgeForm, evaluation: Evaluation, user: User) -> Judge | None:
    given = dict(form.cleaned_data)
    given["model"] = given["model"] or ("" if given["endpoint"] else BASELINE)
    given["name"] = given["name"] or given["model"]
    try:
        return create_judge(evaluation, **given, user=user)
    except InputRefused as refused:
        form.add_error(None, str(refused))
        return None
