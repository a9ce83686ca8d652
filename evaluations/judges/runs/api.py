"""The API of runs, of their calls."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final

from django.db.models import Q
from django.shortcuts import get_object_or_404
from ninja import Field, Query

from evaluations.access import Action, require_evaluation, require_site_administrator
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import PageQuery, paginate_by_cursor
from evaluations.api.problems import FieldError, Problem
from evaluations.api.schemas import EmptyIn
from evaluations.domain.judges import FAILURE_STATES, CallState
from evaluations.domain.roles import Scope
from evaluations.judges.calls.reply_reparse import start_reparse
from evaluations.judges.calls.schemas import CallDetailOut, CallPage
from evaluations.judges.calls.serializers import serialize_call, serialize_call_detail
from evaluations.judges.calls.services import confirm_suspect_call
from evaluations.judges.endpoints.prices import parse_budget_usd
from evaluations.judges.runs import services as runs_services
from evaluations.judges.runs.estimates import estimate_run
from evaluations.judges.runs.forms import runnable_judges
from evaluations.judges.runs.schemas import (
    OpenRunOut,
    OpenRunPage,
    ReparseOut,
    RunBudgetIn,
    RunDetailOut,
    RunEstimateList,
    RunIn,
    RunList,
    RunOut,
    RunPage,
    RunRetryIn,
)
from evaluations.judges.runs.selection import RunOptions
from evaluations.judges.runs.selectors import list_open_runs_of_site
from evaluations.judges.runs.serializers import (
    serialize_estimate,
    serialize_open_run,
    serialize_run,
    serialize_run_detail,
)
from evaluations.judges.runs.services import change_budget, start_panel, start_run
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge
from evaluations.models.runs import Attempt, Call, Run
from evaluations.visibility import reveal_call
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["runs"])
CALL_FILTERS: Final[Mapping[str, Q]] = {
    **{state.value: Q(state=state) for state in CallState},
    "unusable": Q(state__in=FAILURE_STATES),
    "repaired": Q(repaired=True),
    "copied": Q(copied_from__isnull=False),
}
CALL_API_RELATIONS: Final = (
    *("comparison__query", "response__query", "response__candidate"),
    *("judge__evaluation", "confirmed_by"),
)


class CallStatePaging(PageQuery):
    state: str = Field("", max_length=20, description=f"only these: {', '.join(CALL_FILTERS)}")


@operations.get_one("/evaluations/{slug:slug}/runs", Scope.READ, RunPage)
def list_runs(request: AuthenticatedRequest, slug: str, paging: Query[PageQuery]) -> RunPage:
    """Newest first."""
    evaluation = require_evaluation(request.user, slug)
    found = Run.objects.filter(evaluation=evaluation).select_related("judge", "user")
    rows, more = paginate_by_cursor(paging, found, newest_first=True)
    return RunPage(items=[serialize_run(row) for row in rows], next=more)


@operations.do("/evaluations/{slug:slug}/runs/estimate", Scope.READ, RunEstimateList)
def estimate_runs(request: AuthenticatedRequest, slug: str, body: RunIn) -> RunEstimateList:
    """What such runs would take: calls, tokens, money and time. Nothing is started."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    options = run_options(body)
    judges = get_run_judges(evaluation, body.judges)
    return RunEstimateList(items=[serialize_estimate(judge, estimate_run(judge, **options)) for judge in judges])


@operations.make("/evaluations/{slug:slug}/runs", Scope.WRITE, RunList)
def start_runs(request: AuthenticatedRequest, slug: str, body: RunIn) -> RunList:
    """Send judges through the comparisons, in the background. Runs that are started together are a panel."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    runs = start_panel(get_run_judges(evaluation, body.judges), user=user, **run_options(body))
    return RunList(items=[serialize_run(run) for run in runs])


def run_options(body: RunIn) -> RunOptions:
    return RunOptions(
        orders=body.orders,
        samples=body.samples,
        limit=body.limit,
        ask_failures_again=body.ask_failures_again,
        budget=parse_api_budget(body.budget_usd),
        channel=body.channel,
    )


def exact_decimal(given: float | None) -> str:
    return "" if given is None else f"{Decimal(str(given)):f}"


def parse_api_budget(given: float | None) -> int | None:
    return None if given is None else parse_budget_usd(exact_decimal(given), "Budget")


def get_run_judges(evaluation: Evaluation, ids: Sequence[int]) -> list[Judge]:
    found = {judge.pk: judge for judge in runnable_judges(evaluation).filter(pk__in=ids)}
    if len(found) < len(set(ids)):
        fault = FieldError("body.judges", "One of these is no judge here.")
        raise Problem("invalid", "One of these is no judge here. Nothing was done.", faults=[fault])
    return list(found.values())


@operations.get_one("/evaluations/{slug:slug}/runs/{int:pk}", Scope.READ, RunDetailOut)
def get_run(request: AuthenticatedRequest, slug: str, pk: int) -> RunDetailOut:
    """How far it is, what failed, and what it cost so far."""
    return serialize_run_detail(get_api_run_or_404(request, slug, pk))


@operations.do("/evaluations/{slug:slug}/runs/{int:pk}/pause", Scope.WRITE, RunDetailOut)
def pause_run(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> RunDetailOut:
    return change_api_run(request, slug, pk, lambda run: runs_services.pause_run(run, user=request.user))


@operations.do("/evaluations/{slug:slug}/runs/{int:pk}/resume", Scope.WRITE, RunDetailOut)
def resume_run(request: AuthenticatedRequest, slug: str, pk: int, body: RunBudgetIn | None = None) -> RunDetailOut:
    """Let it go on, with another budget where one is given."""

    def go_on(run: Run) -> None:
        runs_services.resume_run(run, user=request.user, budget=parse_api_budget(body.budget_usd) if body else None)

    return change_api_run(request, slug, pk, go_on)


@operations.do("/evaluations/{slug:slug}/runs/{int:pk}/cancel", Scope.WRITE, RunDetailOut)
def cancel_run(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> RunDetailOut:
    return change_api_run(request, slug, pk, lambda run: runs_services.cancel_run(run, user=request.user))


@operations.get_one("/runs", Scope.ADMIN, OpenRunPage)
def list_open_runs(request: AuthenticatedRequest, paging: Query[PageQuery]) -> OpenRunPage:
    """The runs of all evaluations that are not over, for site administrators."""
    require_site_administrator(request.user)
    rows, more = paginate_by_cursor(paging, list_open_runs_of_site())
    return OpenRunPage(items=[serialize_open_run(row) for row in rows], next=more)


@operations.do("/runs/{int:pk}/cancel", Scope.ADMIN, OpenRunOut)
def cancel_any_run(request: AuthenticatedRequest, pk: int, body: EmptyIn | None = None) -> OpenRunOut:
    """Cancel a run of any evaluation, for site administrators. Answers that are in flight are still stored."""
    require_site_administrator(request.user)
    row = get_object_or_404(list_open_runs_of_site(), pk=pk)
    runs_services.cancel_run(row, user=request.user)
    return serialize_open_run(row)


@operations.set("/evaluations/{slug:slug}/runs/{int:pk}/budget", Scope.WRITE, RunDetailOut)
def set_budget(request: AuthenticatedRequest, slug: str, pk: int, body: RunBudgetIn) -> RunDetailOut:
    budget = parse_api_budget(body.budget_usd)
    return change_api_run(request, slug, pk, lambda run: change_budget(run, budget, user=request.user))


@operations.make("/evaluations/{slug:slug}/runs/{int:pk}/retry", Scope.WRITE, RunOut)
def retry_run(request: AuthenticatedRequest, slug: str, pk: int, body: RunRetryIn) -> RunOut:
    """A new run of its judge that asks again what ended in these states, in its other runs as well."""
    row = get_api_run_or_404(request, slug, pk, Action.MANAGE)
    budget = parse_api_budget(body.budget_usd)
    run = start_run(row.judge, user=request.user, only_states=[str(state) for state in body.states], budget=budget)
    return serialize_run(run)


@operations.do("/evaluations/{slug:slug}/runs/{int:pk}/reread", Scope.WRITE, ReparseOut)
def reread_run(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> ReparseOut:
    """Read the stored replies of its judge once more, in the background: no request, no cost."""
    row = get_api_run_or_404(request, slug, pk, Action.MANAGE)
    calls = start_reparse(row.judge, user=request.user)
    return ReparseOut(calls=calls)


def change_api_run(request: AuthenticatedRequest, slug: str, pk: int, change: Callable[[Run], object]) -> RunDetailOut:
    change(get_api_run_or_404(request, slug, pk, Action.MANAGE))
    return serialize_run_detail(get_api_run_or_404(request, slug, pk))


def get_api_run_or_404(request: AuthenticatedRequest, slug: str, pk: int, action: Action = Action.LOOK) -> Run:
    evaluation = require_evaluation(request.user, slug, action)
    runs = Run.objects.select_related("judge__rubric_version__rubric", "user", "evaluation")
    return get_object_or_404(runs, evaluation=evaluation, pk=pk)


# ---- calls ---------------------------------------------------------------------------------


@operations.get_one("/evaluations/{slug:slug}/runs/{int:pk}/calls", Scope.READ, CallPage)
def list_calls(request: AuthenticatedRequest, slug: str, pk: int, paging: Query[CallStatePaging]) -> CallPage:
    """Replies speak of choices: for those alone who may see verdicts before reviewing."""
    row = get_api_run_or_404(request, slug, pk, Action.SEE_ALL)
    if paging.state and paging.state not in CALL_FILTERS:
        fault = FieldError("query.state", f"One of {', '.join(CALL_FILTERS)}.")
        raise Problem("invalid", "There is no such state of calls.", faults=[fault])
    found = Call.all_rows.filter(CALL_FILTERS.get(paging.state, Q()), run=row).select_related(*CALL_API_RELATIONS)
    rows, more = paginate_by_cursor(paging, found)
    return CallPage(items=[serialize_call(one) for one in rows], next=more)


@operations.get_one("/evaluations/{slug:slug}/calls/{int:pk}", Scope.READ, CallDetailOut)
def get_call(request: AuthenticatedRequest, slug: str, pk: int) -> CallDetailOut:
    """Every request that was made for it, and what came back word for word."""
    return serialize_seen_call(request, get_api_call_or_404(request, slug, pk, Action.SEE_ALL))


@operations.do("/evaluations/{slug:slug}/calls/{int:pk}/confirm", Scope.WRITE, CallDetailOut)
def confirm_call(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> CallDetailOut:
    """Count the verdict of a suspect call, whose whole reply repeats a judged text. Nothing is asked or paid."""
    confirm_suspect_call(get_api_call_or_404(request, slug, pk, Action.MANAGE), user=request.user)
    return serialize_seen_call(request, get_api_call_or_404(request, slug, pk, Action.MANAGE))


def get_api_call_or_404(request: AuthenticatedRequest, slug: str, pk: int, action: Action) -> Call:
    evaluation = require_evaluation(request.user, slug, action)
    row: Call = get_object_or_404(
        Call.all_rows.select_related(*CALL_API_RELATIONS), judge__evaluation=evaluation, pk=pk
    )
    return row


def serialize_seen_call(request: AuthenticatedRequest, row: Call) -> CallDetailOut:
    """The whole call, noted as seen by a reviewer."""
    reveal_call(request.user, row)
    return serialize_call_detail(row, list(Attempt.objects.filter(call=row).order_by("number")))
