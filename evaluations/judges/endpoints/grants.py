"""Which evaluations may use an endpoint, within which budget, and what was spent there."""

from django.db import transaction
from django.db.models import F, Q, QuerySet, Sum
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import ACTIVE_RUN_STATES
from evaluations.domain.money import format_exact_usd
from evaluations.judges.endpoints.sql import utc_date
from evaluations.judges.runs.transitions import stop_run
from evaluations.models.endpoint_grants import EndpointAccount, EndpointGrant, EndpointSpending
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.runs import Run
from evaluations.models.users import User

NOT_GRANTED = "The endpoint of this judge is not granted to this evaluation. Ask a site administrator to grant it."


def list_granted_endpoints(evaluation: Evaluation) -> "QuerySet[Endpoint]":
    """The endpoints that this evaluation may use, by name."""
    grants = EndpointGrant.objects.filter(evaluation=evaluation, is_active=True)
    return Endpoint.objects.filter(Q(is_offered=True) | Q(pk__in=grants.values("endpoint"))).order_by("name")


def list_selectable_endpoints(user: User, evaluation: Evaluation) -> "QuerySet[Endpoint]":
    """The endpoints that this user may make a judge on: a site administrator grants one by doing so."""
    return Endpoint.objects.order_by("name") if user.is_superuser else list_granted_endpoints(evaluation)


def find_grant(endpoint: Endpoint, evaluation: Evaluation) -> EndpointGrant | None:
    return EndpointGrant.objects.filter(endpoint=endpoint, evaluation=evaluation).first()


def is_granted(endpoint: Endpoint | None, evaluation: Evaluation) -> bool:
    """Whether the evaluation may spend at the endpoint; a rule has none and spends nothing."""
    return endpoint is None or list_granted_endpoints(evaluation).filter(pk=endpoint.pk).exists()


def refuse_ungranted_judge(judge: Judge) -> None:
    """Refuse to spend at an endpoint that the judge's evaluation may not use. The endpoint is not named."""
    if not is_granted(judge.endpoint, judge.evaluation):
        raise InputRefused(NOT_GRANTED)


def open_accounts(endpoint_id: int, evaluation_id: int) -> None:
    """Make the rows that spending is booked in, before the first request; a new one grants nothing."""
    EndpointGrant.objects.get_or_create(
        endpoint_id=endpoint_id, evaluation_id=evaluation_id, defaults={"is_active": False}
    )
    EndpointAccount.objects.get_or_create(endpoint_id=endpoint_id)


@transaction.atomic
def grant_for_new_judge(endpoint: Endpoint, evaluation: Evaluation, *, user: User | None) -> None:
    """Let a judge be made at an endpoint: site administrators and commands grant it by that, others need a grant."""
    if not is_granted(endpoint, evaluation):
        if user is not None and not user.is_superuser:
            raise InputRefused(f"There is no endpoint {endpoint.pk}.", field="endpoint")
        grant = find_grant(endpoint, evaluation)
        grant_endpoint(endpoint, evaluation, budget=grant.budget if grant else None, user=user)
    open_accounts(endpoint.pk, evaluation.pk)


@transaction.atomic
def grant_endpoint(
    endpoint: Endpoint, evaluation: Evaluation, *, budget: int | None, user: User | None
) -> EndpointGrant:
    """Grant an endpoint to an evaluation, or change the budget of the grant (nano-USD; None: no limit)."""
    if budget is not None and budget <= 0:
        raise InputRefused("The budget must be more than USD 0.", field="budget")
    open_accounts(endpoint.pk, evaluation.pk)
    grant = EndpointGrant.objects.select_for_update().get(endpoint=endpoint, evaluation=evaluation)
    used = grant.spent + grant.reserved
    if budget is not None and budget < used:
        raise InputRefused(
            f"USD {format_exact_usd(used)} are spent or in flight here already: grant at least that, or withdraw the "
            "grant.",
            field="budget",
        )
    if grant.is_active and grant.budget == budget:
        return grant
    before = grant_event_fields(grant) if grant.is_active else {}
    verb = "changed grant" if grant.is_active else "granted"
    grant.is_active, grant.budget, grant.granted_by = True, budget, user
    grant.save(update_fields=["is_active", "budget", "granted_by"])
    record_event(verb, grant, user=user, evaluation=evaluation, before=before, after=grant_event_fields(grant))
    return grant


@transaction.atomic
def withdraw_grant(grant: EndpointGrant, *, user: User | None) -> bool:
    """Withdraw the grant; its runs stop. False if it is withdrawn already."""
    if not grant.endpoint.is_offered:
        stop_runs_without_grant(grant.endpoint, Run.objects.filter(evaluation=grant.evaluation_id))
    # After the runs, in the order in which claims lock them.
    if not EndpointGrant.objects.filter(pk=grant.pk, is_active=True).update(is_active=False):
        return False
    record_event("withdrew grant", grant, user=user, evaluation=grant.evaluation, before=grant_event_fields(grant))
    return True


def stop_runs_without_grant(endpoint: Endpoint, runs: "QuerySet[Run]") -> None:
    """Stop these of the endpoint's runs that are not over."""
    for run in runs.filter(judge__endpoint=endpoint, state__in=ACTIVE_RUN_STATES).order_by("pk"):
        stop_run(run, NOT_GRANTED)


def stop_runs_no_longer_offered(endpoint: Endpoint) -> None:
    """Stop the runs of evaluations that used the endpoint only because it was offered to all."""
    granted = EndpointGrant.objects.filter(endpoint=endpoint, is_active=True)
    stop_runs_without_grant(endpoint, Run.objects.exclude(evaluation__in=granted.values("evaluation")))


def grant_event_fields(grant: EndpointGrant) -> dict[str, object]:
    budget = None if grant.budget is None else format_exact_usd(grant.budget)
    return {"endpoint": grant.endpoint.name, "budget_usd": budget}


def list_grants(endpoint: Endpoint) -> "QuerySet[EndpointGrant]":
    """The evaluations that were granted the endpoint or spent something there, by name."""
    used = Q(is_active=True) | ~Q(spent=0) | ~Q(reserved=0)
    return endpoint.grants.filter(used).select_related("evaluation", "endpoint").order_by("evaluation__name", "pk")


def list_grants_of_evaluation(evaluation: Evaluation) -> list[EndpointGrant]:
    """The endpoints that the evaluation may use, each with its account; unsaved where none was opened yet."""
    stored = {grant.endpoint_id: grant for grant in evaluation.endpoint_grants.all()}
    grants = []
    for endpoint in list_granted_endpoints(evaluation):
        grant = stored.get(endpoint.pk) or EndpointGrant(endpoint=endpoint, evaluation=evaluation, is_active=False)
        grant.endpoint = endpoint
        grants.append(grant)
    return grants


def find_account_of_today(endpoint: Endpoint) -> EndpointAccount:
    """What is spent at the endpoint today; an empty account, unsaved, if nothing was ever reserved there."""
    account = EndpointAccount.objects.filter(endpoint=endpoint).first() or EndpointAccount(endpoint=endpoint)
    if account.day < utc_date(timezone.now()):
        account.spent = 0
    return account


def list_spending(endpoint: Endpoint) -> "QuerySet[EndpointSpending]":
    """The totals per day and evaluation, newest first."""
    return endpoint.spending.order_by("-day", "evaluation_name", "pk")


def sum_spending(rows: "QuerySet[EndpointSpending]") -> dict[str, int]:
    """The sums of these totals; ``cost`` includes the bounds of unknown costs."""
    sums = rows.order_by().aggregate(
        requests=Sum("requests"),
        tokens_in=Sum("tokens_in"),
        tokens_out=Sum("tokens_out"),
        cost=Sum(F("cost") + F("max_cost")),
    )
    return {name: value or 0 for name, value in sums.items()}
