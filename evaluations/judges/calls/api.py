"""The API of calls."""

from django.db.models import Q
from ninja import Field, Query

from evaluations.access import Action
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import PageQuery, paginate_by_cursor
from evaluations.api.problems import FieldError, Problem
from evaluations.api.schemas import EmptyIn
from evaluations.domain.roles import Scope
from evaluations.judges.calls.schemas import CallDetailOut, CallPage
from evaluations.judges.calls.serializers import serialize_call, serialize_call_detail
from evaluations.judges.calls.services import confirm_suspect_call
from evaluations.judges.guards import get_call_or_404, get_run_or_404
from evaluations.judges.runs.selectors import CALL_FILTERS
from evaluations.models.runs import Attempt, Call
from evaluations.visibility import reveal_call
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["runs"])


class CallStatePaging(PageQuery):
    state: str = Field("", max_length=20, description=f"one of {', '.join(CALL_FILTERS)}")


@operations.get_one("/evaluations/{slug:slug}/runs/{int:pk}/calls", Scope.READ, CallPage)
def list_calls(request: AuthenticatedRequest, slug: str, pk: int, paging: Query[CallStatePaging]) -> CallPage:
    """List calls with their replies, if you may see verdicts before you review."""
    row = get_run_or_404(request, slug, pk, Action.SEE_ALL)
    if paging.state and paging.state not in CALL_FILTERS:
        fault = FieldError("query.state", f"Must be one of {', '.join(CALL_FILTERS)}.")
        raise Problem("invalid", "Unknown call state.", faults=[fault])
    calls = Call.all_rows.filter(CALL_FILTERS.get(paging.state, Q()), run=row)
    rows, next_cursor = paginate_by_cursor(paging, calls.select_related("comparison__query", "response__query"))
    return CallPage(items=[serialize_call(row) for row in rows], next=next_cursor)


@operations.get_one("/evaluations/{slug:slug}/calls/{int:pk}", Scope.READ, CallDetailOut)
def get_call(request: AuthenticatedRequest, slug: str, pk: int) -> CallDetailOut:
    """Get a call with every request and every reply, verbatim."""
    return serialize_seen_call(request, get_call_or_404(request, slug, pk, Action.SEE_ALL))


@operations.do("/evaluations/{slug:slug}/calls/{int:pk}/confirm", Scope.WRITE, CallDetailOut)
def confirm_call(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> CallDetailOut:
    """Count the verdict of a suspect call, whose reply only repeats a judged text. No request is made."""
    confirm_suspect_call(get_call_or_404(request, slug, pk, Action.MANAGE), user=request.user)
    return serialize_seen_call(request, get_call_or_404(request, slug, pk, Action.MANAGE))


def serialize_seen_call(request: AuthenticatedRequest, row: Call) -> CallDetailOut:
    reveal_call(request.user, row)
    return serialize_call_detail(row, Attempt.objects.filter(call=row).order_by("number"))
