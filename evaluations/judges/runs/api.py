"""The API of runs."""

from collections.abc import Callable, Sequence
from decimal import Decimal

from django.shortcuts import get_object_or_404
from ninja import Query

from evaluations.access import Action, require_evaluation, require_site_administrator
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import ArchivePageQuery, PageQuery, paginate_by_cursor
from evaluations.api.problems import FieldError, Problem
from evaluations.api.schemas import EmptyIn
from evaluations.domain.money import parse_budget_usd
from evaluations.domain.roles import Scope
from evaluations.judges.calls.reply_reparse import begin_reparse
from evaluations.judges.endpoints.outages import probe_endpoint_of_run
from evaluations.judges.guards import get_run_or_404
from evaluations.judges.runs import services as runs_services
from evaluations.judges.runs.estimates import estimate_run
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
from evaluations.judges.runs.selectors import list_open_runs_of_site, list_runnable_judges
from evaluations.judges.runs.serializers import (
    serialize_estimate,
    serialize_open_run,
    serialize_run,
    serialize_run_detail,
)
from evaluations.judges.runs.services import change_budget, start_panel, start_run
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge
from evaluations.models.runs import Run
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["runs"])


@operations.get_one("/evaluations/{slug:slug}/runs", Scope.READ, RunPage)
def list_runs(request: AuthenticatedRequest, slug: str, paging: Query[ArchivePageQuery]) -> RunPage:
    """List current runs, or archived ones with `archived`, newest first."""
    evaluation = require_evaluation(request.user, slug)
    all_runs = Run.objects.filter(evaluation=evaluation)
    runs = all_runs.archived() if paging.archived else all_runs.current()
    rows, next_cursor = paginate_by_cursor(paging, runs.select_related("judge__endpoint", "user"), newest_first=True)
    return RunPage(items=[serialize_run(row) for row in rows], next=next_cursor)


@operations.do("/evaluations/{slug:slug}/runs/estimate", Scope.READ, RunEstimateList)
def estimate_runs(request: AuthenticatedRequest, slug: str, body: RunIn) -> RunEstimateList:
    """Estimate calls, tokens, cost and time of runs without starting them."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    options, judges = run_options(body), get_run_judges(evaluation, body.judges)
    return RunEstimateList(items=[serialize_estimate(judge, estimate_run(judge, **options)) for judge in judges])


@operations.make("/evaluations/{slug:slug}/runs", Scope.WRITE, RunList)
def start_runs(request: AuthenticatedRequest, slug: str, body: RunIn) -> RunList:
    """Run judges on comparisons in the background. Runs started together form a panel."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    runs = start_panel(get_run_judges(evaluation, body.judges), user=request.user, **run_options(body))
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


def parse_api_budget(usd: float | None) -> int | None:
    return None if usd is None else parse_budget_usd(Decimal(str(usd)), "Budget")


def get_run_judges(evaluation: Evaluation, ids: Sequence[int]) -> list[Judge]:
    judges = {judge.pk: judge for judge in list_runnable_judges(evaluation).filter(pk__in=ids)}
    if len(judges) < len(set(ids)):
        fault = FieldError("body.judges", "Unknown judge ID.")
        raise Problem("invalid", "One of these judges does not exist here. Nothing was started.", faults=[fault])
    return list(judges.values())


@operations.get_one("/evaluations/{slug:slug}/runs/{int:pk}", Scope.READ, RunDetailOut)
def get_run(request: AuthenticatedRequest, slug: str, pk: int) -> RunDetailOut:
    """Get a run with its progress, failures and cost."""
    return serialize_run_detail(get_run_or_404(request, slug, pk))


@operations.do("/evaluations/{slug:slug}/runs/{int:pk}/pause", Scope.WRITE, RunDetailOut)
def pause_run(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> RunDetailOut:
    return change_api_run(request, slug, pk, lambda run: runs_services.pause_run(run, user=request.user))


@operations.do("/evaluations/{slug:slug}/runs/{int:pk}/resume", Scope.WRITE, RunDetailOut)
def resume_run(request: AuthenticatedRequest, slug: str, pk: int, body: RunBudgetIn | None = None) -> RunDetailOut:
    """Resume a paused or stopped run, with a new budget if you send one."""

    def go_on(run: Run) -> None:
        runs_services.resume_run(run, user=request.user, budget=parse_api_budget(body.budget_usd) if body else None)

    return change_api_run(request, slug, pk, go_on)


@operations.do("/evaluations/{slug:slug}/runs/{int:pk}/try-now", Scope.WRITE, RunDetailOut)
def try_endpoint_now(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> RunDetailOut:
    """Check now whether the run's endpoint is back, with a free request."""
    return change_api_run(request, slug, pk, probe_endpoint_of_run)


@operations.do("/evaluations/{slug:slug}/runs/{int:pk}/cancel", Scope.WRITE, RunDetailOut)
def cancel_run(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> RunDetailOut:
    return change_api_run(request, slug, pk, lambda run: runs_services.cancel_run(run, user=request.user))


@operations.do("/evaluations/{slug:slug}/runs/{int:pk}/archive", Scope.WRITE, RunDetailOut)
def archive_run(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> RunDetailOut:
    """Archive an ended run: the list of runs omits it, and its verdicts still count."""
    return change_api_run(request, slug, pk, lambda run: runs_services.archive_run(run, user=request.user))


@operations.do("/evaluations/{slug:slug}/runs/{int:pk}/restore", Scope.WRITE, RunDetailOut)
def restore_run(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> RunDetailOut:
    """Restore an archived run."""
    return change_api_run(request, slug, pk, lambda run: runs_services.restore_run(run, user=request.user))


@operations.remove("/evaluations/{slug:slug}/runs/{int:pk}", Scope.WRITE)
def delete_run(request: AuthenticatedRequest, slug: str, pk: int) -> None:
    """Delete a cancelled run in which nothing was asked or paid."""
    runs_services.delete_run(get_run_or_404(request, slug, pk, Action.MANAGE), user=request.user)


@operations.get_one("/runs", Scope.ADMIN, OpenRunPage)
def list_open_runs(request: AuthenticatedRequest, paging: Query[PageQuery]) -> OpenRunPage:
    """List unfinished runs of all evaluations, for site administrators."""
    require_site_administrator(request.user)
    rows, next_cursor = paginate_by_cursor(paging, list_open_runs_of_site())
    return OpenRunPage(items=[serialize_open_run(row) for row in rows], next=next_cursor)


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
    """Start a run that retries the judge's calls in these states, across all its runs."""
    row = get_run_or_404(request, slug, pk, Action.MANAGE)
    budget = parse_api_budget(body.budget_usd)
    run = start_run(row.judge, user=request.user, only_states=[str(state) for state in body.states], budget=budget)
    return serialize_run(run)


@operations.do("/evaluations/{slug:slug}/runs/{int:pk}/reparse", Scope.WRITE, ReparseOut)
def reparse_run(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> ReparseOut:
    """Re-parse the judge's stored replies in the background, without requests or cost."""
    row = get_run_or_404(request, slug, pk, Action.MANAGE)
    return ReparseOut(calls=begin_reparse(row.judge, user=request.user).calls)


def change_api_run(request: AuthenticatedRequest, slug: str, pk: int, change: Callable[[Run], object]) -> RunDetailOut:
    change(get_run_or_404(request, slug, pk, Action.MANAGE))
    return serialize_run_detail(get_run_or_404(request, slug, pk))
