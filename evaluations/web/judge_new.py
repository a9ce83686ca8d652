"""Make a judge."""

from typing import Final, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused, may_be_key
from evaluations.forms.judge_new import JudgeForm, askable_versions
from evaluations.models import Endpoint, Evaluation, Judge, RubricVersion, User
from evaluations.services.judging.connecting import known_models
from evaluations.services.judging.judging import create_judge, left_out_warnings, warnings_of_judge
from evaluations.services.judging.pricing import price_of

LEFT_OUT: Final = "left-out"  # the part of the page that says what the rubric leaves out


@require_http_methods(["GET", "HEAD", "POST"])
def judge_new(request: HttpRequest, slug: str) -> HttpResponse:
    """The form; fields in the address fill it in, and htmx is told the price of their model or what their rubric leaves
    out alone."""
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    if request.method != "POST":
        return shown(request, evaluation, JudgeForm(initial=request.GET.dict(), evaluation=evaluation))
    form = JudgeForm(request.POST, evaluation=evaluation)
    if form.is_valid() and (judge := created(form, evaluation, user)):
        return ready(request, slug, judge)
    return shown(request, evaluation, form, status=422)


def ready(request: HttpRequest, slug: str, judge: Judge) -> HttpResponse:
    """A rule can run at once; what a model is sent is read, and tried, before."""
    if judge.is_baseline:
        messages.success(request, f"“{judge.name}” is ready. Say how it is to run.")
        return redirect(f"{reverse('run_new', args=[slug])}?judge={judge.pk}")
    messages.success(request, f"“{judge.name}” is ready. Read what it is sent, and try it before you run it.")
    for warning in warnings_of_judge(judge):
        messages.warning(request, warning)
    return redirect("judge", slug, judge.pk)


def created(form: JudgeForm, evaluation: Evaluation, user: User) -> Judge | None:
    try:
        return create_judge(evaluation, **form.settings(), user=user)
    except InputRefused as refused:
        form.add_error(None, str(refused))
        return None


def shown(request: HttpRequest, evaluation: Evaluation, form: JudgeForm, status: int = 200) -> HttpResponse:
    asks_for_part = request.htmx and request.method == "GET"  # type: ignore[attr-defined]
    if asks_for_part and request.htmx.target == LEFT_OUT:  # type: ignore[attr-defined]
        return render(request, "rubric/_left_out.html", {"warnings": warnings_in(form, evaluation)})
    endpoint, model = endpoint_in(form), str(form["model"].value() or "").strip()
    if may_be_key(model):
        model = ""
    context = {
        "page": "judges",
        "evaluation": evaluation,
        "form": form,
        "endpoint": endpoint,
        "model": model,
        "price": price_of(endpoint, model) if model else None,
    }
    if asks_for_part:
        return render(request, "judge_new/_price.html", context)
    context |= {
        "has_endpoints": Endpoint.objects.exists(),
        "may_add_endpoints": cast(User, request.user).is_superuser,
        "models": known_models(evaluation),
        "warnings": warnings_in(form, evaluation),
    }
    return render(request, "judge_new/judge_new.html", context, status=status)


def warnings_in(form: JudgeForm, evaluation: Evaluation) -> list[str]:
    """What a judge with the rubric version in the form, sent or not, would not see."""
    chosen = form["version"].value()
    pk = chosen.pk if isinstance(chosen, RubricVersion) else str(chosen or "")
    version = askable_versions(evaluation).filter(pk=pk).first() if isinstance(pk, int) or is_id(pk) else None
    return left_out_warnings(evaluation, version.spec()) if version else []


def is_id(text: str) -> bool:
    return text.isdecimal() and len(text) < 19


def endpoint_in(form: JudgeForm) -> Endpoint | None:
    """The endpoint that stands in the form, sent or not."""
    chosen = str(form["endpoint"].value() or "")
    return Endpoint.objects.filter(pk=chosen).first() if is_id(chosen) else None
