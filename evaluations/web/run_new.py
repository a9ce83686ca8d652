"""Send one judge or several through the comparisons, knowing beforehand what it takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.access import Action
from evaluations.domain import Channel, InputRefused, Orders
from evaluations.forms.run_new import RunForm, askable_judges
from evaluations.models import Evaluation, Judge, Run, Slice, User
from evaluations.models.filtering import comparisons_in
from evaluations.services.judging.estimating import Estimate, estimate
from evaluations.services.judging.observing import Span
from evaluations.services.judging.running import start_panel
from evaluations.tasks import nudge, work_run


@dataclass(frozen=True)
class Ahead:
    """What one of the chosen judges would take."""

    judge: Judge
    estimate: Estimate


@require_http_methods(["GET", "HEAD", "POST"])
def run_new(request: HttpRequest, slug: str) -> HttpResponse:
    """The form with what it would do; with ``?judge=…`` and the other fields, what those would do."""
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    if request.method != "POST":
        return shown(request, evaluation, RunForm(initial=request.GET.dict(), evaluation=evaluation), request.GET)
    form = RunForm(request.POST, evaluation=evaluation)
    if form.is_valid() and (runs := started(form, user)):
        return on_their_way(request, runs)
    return shown(request, evaluation, form, request.POST, status=422)


def started(form: RunForm, user: User) -> list[Run]:
    try:
        return start_panel(list(form.cleaned_data["judge"]), user=user, **form.options())
    except InputRefused as refused:
        form.add_error(None, str(refused))
        return []


def on_their_way(request: HttpRequest, runs: Sequence[Run]) -> HttpResponse:
    for run in runs:
        nudge(work_run, run.pk)
    names = ", ".join(f"“{run.judge.name}”" for run in runs)
    messages.success(request, f"{names} {'are on their way' if len(runs) > 1 else 'is on its way'}.")
    slug = runs[0].evaluation.slug
    return redirect("run", slug, runs[0].pk) if len(runs) == 1 else redirect("runs", slug)


def shown(
    request: HttpRequest, evaluation: Evaluation, form: RunForm, given: QueryDict, status: int = 200
) -> HttpResponse:
    judges = list(askable_judges(evaluation))
    chosen = chosen_of(judges, given)
    options = options_of(given)
    if (one := form.slices.get(given.get("slice", ""))) and is_usable(one):
        options["sliced"] = one.named
    estimates = [Ahead(judge, estimate(judge, **options)) for judge in chosen]
    context = {
        "page": "runs",
        "evaluation": evaluation,
        "form": form,
        "judges": [(judge, judge in chosen) for judge in judges],
        "estimates": estimates,
        "together": together([one.estimate for one in estimates]) if len(chosen) > 1 else None,
    }
    only_estimate = request.htmx and request.method == "GET"  # type: ignore[attr-defined]
    template = "run_new/_estimates.html" if only_estimate else "run_new/run_new.html"
    return render(request, template, context, status=status)


def is_usable(one: Slice) -> bool:
    """Whether everything that it names is still there: starting says in words what is not."""
    try:
        comparisons_in(one.evaluation, one.wanted)
    except InputRefused:
        return False
    return True


def chosen_of(judges: Sequence[Judge], given: QueryDict) -> list[Judge]:
    """Those that were named; before anything was, the newest."""
    wanted = set(given.getlist("judge"))
    if not wanted and not given:
        return list(judges[:1])
    return [judge for judge in judges if str(judge.pk) in wanted]


def options_of(given: QueryDict) -> dict[str, Any]:
    """What these fields would make; where one is not filled in properly, its default."""
    orders = given.get("orders")
    return {
        "orders": orders if orders in set(Orders) else Orders.BOTH,
        "samples": whole(given.get("samples"), most=100) or 1,
        "limit": whole(given.get("limit"), most=10**9),
        "ask_failures_again": bool(given.get("ask_failures_again")),
        "channel": Channel.BATCH if given.get("channel") == Channel.BATCH else Channel.LIVE,
    }


def whole(given: str | None, *, most: int) -> int | None:
    text = (given or "").strip()
    return int(text) if text.isascii() and text.isdecimal() and 1 <= int(text[:12]) <= most else None


def together(estimates: Sequence[Estimate]) -> dict[str, Any]:
    """The sums of a panel. One unknown price makes the whole unknown, where there is something to buy at it."""
    costs = [one.cost for one in estimates if one.calls]
    known = [cost for cost in costs if cost is not None]
    whole_cost = Span(sum(cost.low for cost in known), sum(cost.high for cost in known))
    return {"calls": sum(one.calls for one in estimates), "cost": whole_cost if len(known) == len(costs) else None}
