"""Make a judge."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused, may_be_key
from evaluations.forms.judge_new import JudgeForm
from evaluations.models import Endpoint, Evaluation, Judge, User
from evaluations.services.judging.connecting import known_models
from evaluations.services.judging.judging import create_judge
from evaluations.services.judging.pricing import price_of


@require_http_methods(["GET", "HEAD", "POST"])
def judge_new(request: HttpRequest, slug: str) -> HttpResponse:
    """The form; fields in the address fill it in, and htmx is told the price of their model alone."""
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
    return redirect("judge", slug, judge.pk)


def created(form: JudgeForm, evaluation: Evaluation, user: User) -> Judge | None:
    try:
        return create_judge(evaluation, **form.settings(), user=user)
    except InputRefused as refused:
        form.add_error(None, str(refused))
        return None


def shown(request: HttpRequest, evaluation: Evaluation, form: JudgeForm, status: int = 200) -> HttpResponse:
    asks_for_price = request.htmx and request.method == "GET"  # type: ignore[attr-defined]
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
    if asks_for_price:
        return render(request, "judge_new/_price.html", context)
    context |= {
        "has_endpoints": Endpoint.objects.exists(),
        "may_add_endpoints": cast(User, request.user).is_superuser,
        "models": known_models(evaluation),
    }
    return render(request, "judge_new/judge_new.html", context, status=status)


def endpoint_in(form: JudgeForm) -> Endpoint | None:
    """The endpoint that stands in the form, sent or not."""
    chosen = str(form["endpoint"].value() or "")
    return Endpoint.objects.filter(pk=chosen).first() if chosen.isdecimal() and len(chosen) < 19 else None
