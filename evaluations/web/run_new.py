"""Send a judge through the comparisons."""

from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused, Orders
from evaluations.forms.run_new import RunForm, askable_judges
from evaluations.models import Evaluation, Judge, Run, User
from evaluations.services.judging.running import start_run
from evaluations.services.judging.selecting import Expected, expected
from evaluations.tasks import nudge, work_run


@require_http_methods(["GET", "HEAD", "POST"])
def run_new(request: HttpRequest, slug: str) -> HttpResponse:
    """The form with what it would do; with ``?judge=…`` and the other fields, what those would do."""
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    if request.method != "POST":
        return shown(request, evaluation, RunForm(initial=request.GET.dict(), evaluation=evaluation))
    form = RunForm(request.POST, evaluation=evaluation)
    if form.is_valid() and (run := started(form, user)):
        nudge(work_run, run.pk)
        messages.success(request, f"“{run.judge.name}” is on its way.")
        return redirect("run", slug, run.pk)
    return shown(request, evaluation, form, status=422)


def started(form: RunForm, user: User) -> Run | None:
    options = dict(form.cleaned_data)
    try:
        return start_run(options.pop("judge"), user=user, **options)
    except InputRefused as refused:
        form.add_error(None, str(refused))
        return None


def shown(request: HttpRequest, evaluation: Evaluation, form: RunForm, status: int = 200) -> HttpResponse:
    judge = chosen_judge(form, evaluation, request)
    context = {
        "page": "runs",
        "evaluation": evaluation,
        "form": form,
        "judge": judge,
        "expected": would_do(judge, request.POST if form.is_bound else request.GET) if judge else None,
    }
    only_count = request.htmx and request.method == "GET"  # type: ignore[attr-defined]
    return render(request, "run_new/_expected.html" if only_count else "run_new/run_new.html", context, status=status)


def chosen_judge(form: RunForm, evaluation: Evaluation, request: HttpRequest) -> Judge | None:
    wanted = (request.POST if form.is_bound else request.GET).get("judge", "")
    judges = askable_judges(evaluation)
    return judges.filter(pk=wanted if wanted.isdecimal() and len(wanted) < 19 else 0).first() or judges.first()


def would_do(judge: Judge, given: Any) -> Expected:
    """What these fields would make; where one is not filled in properly, its default."""
    orders = given.get("orders")
    return expected(
        judge,
        orders=orders if orders in set(Orders) else Orders.BOTH,
        samples=whole(given.get("samples"), most=100) or 1,
        limit=whole(given.get("limit"), most=10**9),
        ask_failures_again=bool(given.get("ask_failures_again")),
    )


def whole(given: str | None, *, most: int) -> int | None:
    text = (given or "").strip()
    return int(text) if text.isascii() and text.isdecimal() and 1 <= int(text[:12]) <= most else None
