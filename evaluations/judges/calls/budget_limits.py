"""What happens to a run whose next request one of its budgets does not cover."""

from datetime import UTC, datetime, time, timedelta
from typing import Final

from django.db.models import QuerySet

from evaluations.domain.judges import CallState
from evaluations.domain.money import format_exact_usd
from evaluations.judges.calls.work_session import ClaimedCall, WorkSession
from evaluations.judges.endpoints.sql import utc_date
from evaluations.judges.runs.budget import Budget, grant_key
from evaluations.judges.runs.transitions import stop_run
from evaluations.llm.request_loop import ClaimResult
from evaluations.models.endpoint_grants import EndpointAccount, EndpointGrant
from evaluations.models.judges import Endpoint
from evaluations.models.runs import Call, Run

# How soon to check again for budget that requests in flight return.
CHECK_AGAIN_SECONDS: Final = 0.2


def stop_or_wait_for_budget(
    session: WorkSession, exhausted: Budget | None, next_cost: int, now: datetime
) -> ClaimResult[ClaimedCall]:
    """Wait while requests in flight may return budget; otherwise stop the run, or pause the endpoint for the day."""
    key = grant_key(session.run)
    if key is None:
        return ClaimResult()
    if exhausted == Budget.GRANT:
        grant = EndpointGrant.objects.get(endpoint=key.endpoint_id, evaluation=key.evaluation_id)
        return wait_or_stop(session.run, grant, grant.budget, GRANT_USED_UP, next_cost)
    if exhausted == Budget.DAY:
        return wait_or_pause_until_tomorrow(Endpoint.objects.get(pk=key.endpoint_id), next_cost, now)
    run = Run.objects.get(pk=session.run.pk)
    return wait_or_stop(run, run, run.budget, RUN_USED_UP, next_cost)


RUN_USED_UP: Final = (
    "The budget is used up: USD {spent} of {budget} spent; the next request may cost "
    "{next_cost}. Raise the budget, then resume the run."
)
GRANT_USED_UP: Final = (
    "This evaluation’s budget at the endpoint is used up: USD {spent} of {budget} spent; the "
    "next request may cost {next_cost}. Ask a site administrator to raise it, then resume "
    "the run."
)
DAY_USED_UP: Final = (
    "The daily budget is used up: USD {spent} of {budget} spent today; the next request may "
    "cost {next_cost}. Runs continue at 00:00 UTC, or when a site administrator raises it."
)


def wait_or_stop(
    run: Run, account: Run | EndpointGrant, budget: int | None, sentence: str, next_cost: int
) -> ClaimResult[ClaimedCall]:
    if has_requests_in_flight(run, account):
        return ClaimResult(wait=CHECK_AGAIN_SECONDS)
    stop_run(run, fill_in_amounts(sentence, account.spent, budget, next_cost))
    return ClaimResult()


def wait_or_pause_until_tomorrow(endpoint: Endpoint, next_cost: int, now: datetime) -> ClaimResult[ClaimedCall]:
    account = EndpointAccount.objects.get(endpoint=endpoint)
    today = utc_date(now)
    spent = account.spent if account.day >= today else 0
    budget = endpoint.daily_budget or 0
    if next_cost <= budget - spent and has_live_requests(Run.objects.filter(judge__endpoint=endpoint)):
        return ClaimResult(wait=CHECK_AGAIN_SECONDS)
    until = datetime.combine(today + timedelta(days=1), time(), UTC)
    reason = fill_in_amounts(DAY_USED_UP, spent, budget, next_cost)
    Endpoint.objects.filter(pk=endpoint.pk).update(paused_until=until, pause_reason=reason)
    return ClaimResult()


def has_requests_in_flight(run: Run, account: Run | EndpointGrant) -> bool:
    """Whether requests in flight may return some of the budget soon. A file of the Batch API is away for a day."""
    if isinstance(account, Run):
        return account.reserved > 0
    return has_live_requests(Run.objects.filter(evaluation=run.evaluation_id, judge__endpoint=account.endpoint_id))


def has_live_requests(runs: "QuerySet[Run]") -> bool:
    calls = Call.all_rows.filter(run__in=runs, state=CallState.RUNNING, batch__isnull=True, reserved__gt=0)
    return calls.exists()


def fill_in_amounts(sentence: str, spent: int, budget: int | None, next_cost: int) -> str:
    amounts = {"spent": spent, "budget": budget or 0, "next_cost": next_cost}
    return sentence.format_map({name: format_exact_usd(amount) for name, amount in amounts.items()})
