"""Runs: what they would take, how far they are, and every call with every request that was made for it."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Field, Query

from evaluations import access
from evaluations.access import Action
from evaluations.api.admission import person
from evaluations.api.forms import checked
from evaluations.api.operations import Operations
from evaluations.api.paging import Paging, page_of
from evaluations.api.problems import Fault, Problem
from evaluations.api.schemas.judging import (
    AttemptTold,
    BudgetChange,
    CallPage,
    CallScore,
    CallTold,
    CallVerdict,
    CallWhole,
    EstimateList,
    EstimateTold,
    OpenRun,
    OpenRunPage,
    RangeTold,
    Reread,
    Retrying,
    RunList,
    RunNew,
    RunPage,
    RunProgress,
    RunTold,
    RunWhole,
)
from evaluations.api.schemas.shared import NothingSent
from evaluations.api.telling import anyone_told, usd
from evaluations.domain import FAILURE_STATES, CallState, Channel, Choice, Orders, RunState, Scope, Shown
from evaluations.forms.run_new import RunForm, askable_judges
from evaluations.forms.run_retry import RetryForm
from evaluations.models import Attempt, Call, Comparison, Evaluation, Judge, Run, Score, Verdict
from evaluations.services.judging.confirmation import confirm
from evaluations.services.judging.estimating import Estimate, estimate
from evaluations.services.judging.observing import Span
from evaluations.services.judging.pricing import nano_usd
from evaluations.services.judging.progressing import progress
from evaluations.services.judging.rereading import reread
from evaluations.services.judging.running import cancel, change_budget, open_runs, pause, resume, start_panel, start_run
from evaluations.services.reporting.noticing import note_seen
from evaluations.tasks import nudge, reread_replies, work_run

operations = Operations(tags=["runs"])
KINDS: Final[Mapping[str, Q]] = {
    **{state.value: Q(state=state) for state in CallState},
    "unusable": Q(state__in=FAILURE_STATES),
    "repaired": Q(repaired=True),
    "copied": Q(copied_from__isnull=False),
}
RELATED: Final = (
    *("comparison__query", "response__query", "response__candidate"),
    *("judge__evaluation", "confirmed_by"),
)


class OfState(Paging):
    state: str = Field("", max_length=20, description=f"only these: {', '.join(KINDS)}")


@operations.get_one("/evaluations/{slug:slug}/runs", Scope.READ, RunPage)
def list_runs(request: HttpRequest, slug: str, paging: Query[Paging]) -> RunPage:
    """Newest first."""
    evaluation = access.evaluation_for(person(request), slug)
    found = Run.objects.filter(evaluation=evaluation).select_related("judge", "user")
    rows, more = page_of(paging, found, newest_first=True)
    return RunPage(items=[told(row) for row in rows], next=more)


@operations.do("/evaluations/{slug:slug}/runs/estimate", Scope.READ, EstimateList)
def estimate_runs(request: HttpRequest, slug: str, body: RunNew) -> EstimateList:
    """What such runs would take: calls, tokens, money and time. Nothing is started."""
    evaluation = access.evaluation_for(person(request), slug, Action.MANAGE)
    options = options_in(body)
    del options["budget"]
    judges = judges_in(evaluation, body.judges)
    return EstimateList(items=[estimate_told(judge, estimate(judge, **options)) for judge in judges])


@operations.make("/evaluations/{slug:slug}/runs", Scope.WRITE, RunList)
def start_runs(request: HttpRequest, slug: str, body: RunNew) -> RunList:
    """Send judges through the comparisons, in the background. Runs that are started together are a panel."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    given = body.model_dump(mode="json", exclude_none=True)
    form = RunForm({**given, "judge": given["judges"], "budget": exactly(body.budget_usd)}, evaluation=evaluation)
    checked(form)
    runs = start_panel(list(form.cleaned_data["judge"]), user=user, **form.options())
    for run in runs:
        nudge(work_run, run.pk)
    return RunList(items=[told(run) for run in runs])


def options_in(body: RunNew) -> dict[str, Any]:
    given = body.model_dump(exclude={"judges", "budget_usd"})
    return {**given, "budget": budget_in(body.budget_usd)}


def exactly(given: float | None) -> str:
    return "" if given is None else f"{Decimal(str(given)):f}"


def budget_in(given: float | None) -> int | None:
    return None if given is None else nano_usd(exactly(given), "Budget")


def judges_in(evaluation: Evaluation, ids: Sequence[int]) -> list[Judge]:
    found = {judge.pk: judge for judge in askable_judges(evaluation).filter(pk__in=ids)}
    if len(found) < len(set(ids)):
        fault = Fault("body.judges", "One of these is no judge here.")
        raise Problem("invalid", "One of these is no judge here. Nothing was done.", faults=[fault])
    return list(found.values())


@operations.get_one("/evaluations/{slug:slug}/runs/{int:pk}", Scope.READ, RunWhole)
def get_run(request: HttpRequest, slug: str, pk: int) -> RunWhole:
    """How far it is, what failed, and what it cost so far."""
    return whole(run_for(request, slug, pk))


@operations.do("/evaluations/{slug:slug}/runs/{int:pk}/pause", Scope.WRITE, RunWhole)
def pause_run(request: HttpRequest, slug: str, pk: int, body: NothingSent | None = None) -> RunWhole:
    return changed(request, slug, pk, lambda run: pause(run, user=person(request)))


@operations.do("/evaluations/{slug:slug}/runs/{int:pk}/resume", Scope.WRITE, RunWhole)
def resume_run(request: HttpRequest, slug: str, pk: int, body: BudgetChange | None = None) -> RunWhole:
    """Let it go on, with another budget where one is given."""

    def go_on(run: Run) -> None:
        resume(run, user=person(request), budget=budget_in(body.budget_usd) if body else None)
        nudge(work_run, run.pk)

    return changed(request, slug, pk, go_on)


@operations.do("/evaluations/{slug:slug}/runs/{int:pk}/cancel", Scope.WRITE, RunWhole)
def cancel_run(request: HttpRequest, slug: str, pk: int, body: NothingSent | None = None) -> RunWhole:
    return changed(request, slug, pk, lambda run: cancel(run, user=person(request)))


@operations.get_one("/runs", Scope.ADMIN, OpenRunPage)
def list_open_runs(request: HttpRequest, paging: Query[Paging]) -> OpenRunPage:
    """The runs of all evaluations that are not over, for site administrators."""
    access.require_site_administrator(person(request))
    rows, more = page_of(paging, open_runs())
    return OpenRunPage(items=[open_run(row) for row in rows], next=more)


@operations.do("/runs/{int:pk}/cancel", Scope.ADMIN, OpenRun)
def cancel_any_run(request: HttpRequest, pk: int, body: NothingSent | None = None) -> OpenRun:
    """Cancel a run of any evaluation, for site administrators. Answers that are in flight are still stored."""
    access.require_site_administrator(person(request))
    row = get_object_or_404(open_runs(), pk=pk)
    cancel(row, user=person(request))
    return open_run(row)


@operations.set("/evaluations/{slug:slug}/runs/{int:pk}/budget", Scope.WRITE, RunWhole)
def set_budget(request: HttpRequest, slug: str, pk: int, body: BudgetChange) -> RunWhole:
    budget = budget_in(body.budget_usd)
    return changed(request, slug, pk, lambda run: change_budget(run, budget, user=person(request)))


@operations.make("/evaluations/{slug:slug}/runs/{int:pk}/retry", Scope.WRITE, RunTold)
def retry_run(request: HttpRequest, slug: str, pk: int, body: Retrying) -> RunTold:
    """A new run of its judge that asks again what ended in these states, in its other runs as well."""
    row = run_for(request, slug, pk, Action.MANAGE)
    form = RetryForm({"states": [state.value for state in body.states], "budget": exactly(body.budget_usd)})
    chosen = checked(form)
    run = start_run(row.judge, user=person(request), only_states=chosen["states"], budget=chosen["budget"])
    nudge(work_run, run.pk)
    return told(run)


@operations.do("/evaluations/{slug:slug}/runs/{int:pk}/reread", Scope.WRITE, Reread)
def reread_run(request: HttpRequest, slug: str, pk: int, body: NothingSent | None = None) -> Reread:
    """Read the stored replies of its judge once more, in the background: no request, no cost."""
    row = run_for(request, slug, pk, Action.MANAGE)
    calls = reread(row.judge, user=person(request))
    nudge(reread_replies, row.judge_id)
    return Reread(calls=calls)


def changed(request: HttpRequest, slug: str, pk: int, change: Callable[[Run], object]) -> RunWhole:
    change(run_for(request, slug, pk, Action.MANAGE))
    return whole(run_for(request, slug, pk))


def run_for(request: HttpRequest, slug: str, pk: int, action: Action = Action.LOOK) -> Run:
    evaluation = access.evaluation_for(person(request), slug, action)
    runs = Run.objects.select_related("judge__rubric_version__rubric", "user", "evaluation")
    return get_object_or_404(runs, evaluation=evaluation, pk=pk)


# ---- calls ---------------------------------------------------------------------------------


@operations.get_one("/evaluations/{slug:slug}/runs/{int:pk}/calls", Scope.READ, CallPage)
def list_calls(request: HttpRequest, slug: str, pk: int, paging: Query[OfState]) -> CallPage:
    """Replies speak of choices: for those alone who may see verdicts before reviewing."""
    row = run_for(request, slug, pk, Action.SEE_ALL)
    if paging.state and paging.state not in KINDS:
        fault = Fault("query.state", f"One of {', '.join(KINDS)}.")
        raise Problem("invalid", "There is no such state of calls.", faults=[fault])
    found = Call.all_rows.filter(KINDS.get(paging.state, Q()), run=row).select_related(*RELATED)
    rows, more = page_of(paging, found)
    return CallPage(items=[call_told(one) for one in rows], next=more)


@operations.get_one("/evaluations/{slug:slug}/calls/{int:pk}", Scope.READ, CallWhole)
def get_call(request: HttpRequest, slug: str, pk: int) -> CallWhole:
    """Every request that was made for it, and what came back word for word."""
    return seen(request, call_for(request, slug, pk, Action.SEE_ALL))


@operations.do("/evaluations/{slug:slug}/calls/{int:pk}/confirm", Scope.WRITE, CallWhole)
def confirm_call(request: HttpRequest, slug: str, pk: int, body: NothingSent | None = None) -> CallWhole:
    """Count the verdict of a suspect call, whose whole reply repeats a judged text. Nothing is asked or paid."""
    confirm(call_for(request, slug, pk, Action.MANAGE), user=person(request))
    return seen(request, call_for(request, slug, pk, Action.MANAGE))


def call_for(request: HttpRequest, slug: str, pk: int, action: Action) -> Call:
    evaluation = access.evaluation_for(person(request), slug, action)
    row: Call = get_object_or_404(Call.all_rows.select_related(*RELATED), judge__evaluation=evaluation, pk=pk)
    return row


def seen(request: HttpRequest, row: Call) -> CallWhole:
    """The whole call, noted as seen by a reviewer."""
    user, evaluation = person(request), row.judge.evaluation
    if access.may(user, Action.REVIEW, evaluation):
        note_seen(user, evaluation, list(comparisons_of(row)), tests=True)
    return call_whole(row, list(Attempt.objects.filter(call=row).order_by("number")))


def comparisons_of(row: Call) -> "QuerySet[Comparison]":
    """The comparisons that its answer says something about: one, or all those of the response."""
    if row.comparison_id is not None:
        return Comparison.objects.filter(pk=row.comparison_id)
    return Comparison.objects.filter(Q(response_a=row.response_id) | Q(response_b=row.response_id))


def call_told(row: Call) -> CallTold:
    subject = row.comparison or row.response
    assert subject is not None
    return CallTold(
        id=row.pk,
        comparison=row.comparison_id,
        response=row.response_id,
        query_id=subject.query.key,
        shown=Shown(row.shown),
        sample=row.sample,
        state=CallState(row.state),
        repaired=row.repaired,
        copied_from=row.copied_from_id,
        error=row.error,
    )


def call_whole(row: Call, attempts: Sequence[Attempt]) -> CallWhole:
    verdicts = Verdict.all_rows.filter(call=row).select_related("aspect").order_by("aspect__key")
    scores = Score.all_rows.filter(call=row).select_related("aspect").order_by("aspect__key")
    return CallWhole(
        **call_told(row).model_dump(),
        rationale=row.rationale,
        confirmed_by=anyone_told(row.confirmed_by),
        confirmed_at=row.confirmed_at,
        attempts=[attempt_told(one) for one in attempts],
        verdicts=[
            CallVerdict(
                aspect=one.aspect.key,
                choice=Choice(one.choice),
                inconsistent=one.inconsistent,
                rationale=one.rationale,
            )
            for one in verdicts
        ],
        scores=[CallScore(aspect=one.aspect.key, value=one.value, rationale=one.rationale) for one in scores],
    )


LATER: Final = ("reasoning", "aspect", "error")


def attempt_told(one: Attempt) -> AttemptTold:
    same = ("number", "step", "outcome", "http_status", "raw", "finish_reason", "model_returned", "tokens_in")
    values = {name: getattr(one, name) for name in (*same, "tokens_out", "tokens_reasoning", "latency_ms", *LATER)}
    return AttemptTold(**values, cost_usd=usd(one.cost))


def open_run(row: Run) -> OpenRun:
    return OpenRun(
        id=row.pk,
        evaluation=row.evaluation.slug,
        judge_name=row.judge.name,
        endpoint=row.judge.endpoint_id,
        state=RunState(row.state),
        spent_usd=row.spent / 1e9,
        person=anyone_told(row.user),
        created_at=row.created_at,
    )


# ---- runs as answers have them -------------------------------------------------------------


def told(row: Run) -> RunTold:
    return RunTold(
        id=row.pk,
        judge=row.judge_id,
        judge_name=row.judge.name,
        batch=str(row.batch),
        state=RunState(row.state),
        channel=Channel(row.channel),
        orders=Orders(row.orders),
        samples=row.samples,
        planned=row.planned,
        reused=row.reused,
        budget_usd=usd(row.budget),
        spent_usd=row.spent / 1e9,
        stop_reason=row.stop_reason,
        person=anyone_told(row.user),
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )


def whole(row: Run) -> RunWhole:
    how_far = progress(row)
    same = ("total", "settled", "failures", "per_minute", "seconds_left", "repeated", "retried", "tokens_in")
    values = {name: getattr(how_far, name) for name in (*same, "tokens_out", "unpriced", "repaired", "copied")}
    counts = {str(state): number for state, number in how_far.counts.items()}
    return RunWhole(**told(row).model_dump(), progress=RunProgress(counts=counts, **values, cost_usd=usd(how_far.cost)))


def estimate_told(judge: Judge, ahead: Estimate) -> EstimateTold:
    return EstimateTold(
        judge=judge.pk,
        comparisons=ahead.expected.comparisons,
        calls=ahead.calls,
        reused=ahead.expected.reused,
        left_as_they_are=ahead.expected.left,
        requests=span_told(ahead.requests),
        tokens_in=span_told(ahead.tokens_in),
        tokens_out=span_told(ahead.tokens_out),
        cost_usd=span_told(ahead.cost.times(1e-9)) if ahead.cost else None,
        minutes=span_told(ahead.minutes) if ahead.minutes else None,
        assumptions=[*ahead.warnings, *ahead.assumptions],
    )


def span_told(span: Span) -> RangeTold:
    return RangeTold(low=span.low, high=span.high)
