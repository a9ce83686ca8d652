"""API operations on one's own sessions and sign-ins."""

from django.shortcuts import get_object_or_404
from ninja import Query

from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import MAX_PAGE_SIZE, PageQuery, paginate_by_cursor
from evaluations.api.schemas import EmptyIn
from evaluations.api.serializers import serialize_row
from evaluations.domain.roles import Scope
from evaluations.members.account.schemas import (
    EndedSessionsOut,
    OwnSecurityEventOut,
    OwnSecurityEventPage,
    SessionList,
    SessionOut,
)
from evaluations.members.account.services import end_session, sign_out_everywhere
from evaluations.members.selectors import list_active_sessions, list_security_events
from evaluations.models.sign_ins import SecurityEvent
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["account"])


@operations.get_one("/me/sessions", Scope.ADMIN, SessionList)
def list_sessions(request: AuthenticatedRequest) -> SessionList:
    """List up to 200 browsers where you are signed in, most recently used first."""
    rows = list_active_sessions(request.user)[:MAX_PAGE_SIZE]
    return SessionList(items=[serialize_row(SessionOut, row, id=row.public_id) for row in rows])


@operations.remove("/me/sessions/{int:pk}", Scope.ADMIN)
def end_own_session(request: AuthenticatedRequest, pk: int) -> None:
    """Sign out of one browser."""
    end_session(get_object_or_404(list_active_sessions(request.user), public_id=pk), by=request.user)


@operations.do("/me/sessions/end", Scope.ADMIN, EndedSessionsOut)
def end_own_sessions(request: AuthenticatedRequest, body: EmptyIn | None = None) -> EndedSessionsOut:
    """Sign out everywhere and expire your unused sign-in links. Tokens stay valid."""
    return EndedSessionsOut(ended=sign_out_everywhere(request.user))


@operations.get_one("/me/security-events", Scope.ADMIN, OwnSecurityEventPage)
def list_own_security_events(request: AuthenticatedRequest, paging: Query[PageQuery]) -> OwnSecurityEventPage:
    """List the security events of your account, newest first."""
    rows, next_cursor = paginate_by_cursor(paging, list_security_events(request.user), newest_first=True)
    return OwnSecurityEventPage(items=[serialize_own_event(row) for row in rows], next=next_cursor)


def serialize_own_event(event: SecurityEvent) -> OwnSecurityEventOut:
    return serialize_row(OwnSecurityEventOut, event, token=event.token.name if event.token else None)
