"""API operations on invitations, for owners and for those who are invited."""

from ninja import Query

from evaluations.access import Action, require_evaluation
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import PageQuery, paginate_by_cursor
from evaluations.api.schemas import EmptyIn
from evaluations.api.serializers import serialize_optional_user, serialize_row
from evaluations.domain.roles import Role, Scope
from evaluations.members.invitations.schemas import (
    AcceptedInvitationOut,
    InvitationOut,
    InvitationPage,
    OwnInvitationList,
    OwnInvitationOut,
)
from evaluations.members.invitations.services import (
    accept_invitation,
    create_invitation,
    decline_invitation,
    withdraw_invitation,
)
from evaluations.members.requests import get_invitation_or_404, get_own_invitation_or_404
from evaluations.members.schemas import MemberIn
from evaluations.members.selectors import list_invitations, list_invitations_for
from evaluations.models.users import Invitation
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["members"])


@operations.get_one("/evaluations/{slug:slug}/invitations", Scope.ADMIN, InvitationPage)
def list_pending_invitations(request: AuthenticatedRequest, slug: str, paging: Query[PageQuery]) -> InvitationPage:
    """List pending invitations."""
    evaluation = require_evaluation(request.user, slug, Action.OWN)
    rows, next_cursor = paginate_by_cursor(paging, list_invitations(evaluation))
    return InvitationPage(items=[serialize_invitation(row) for row in rows], next=next_cursor)


@operations.make("/evaluations/{slug:slug}/invitations", Scope.ADMIN, InvitationOut)
def invite_member(request: AuthenticatedRequest, slug: str, body: MemberIn) -> InvitationOut:
    """Invite a username. The response is the same whether or not the account exists."""
    evaluation = require_evaluation(request.user, slug, Action.OWN)
    return serialize_invitation(create_invitation(evaluation, body.username, body.role, by=request.user))


@operations.remove("/evaluations/{slug:slug}/invitations/{int:pk}", Scope.ADMIN)
def withdraw_pending_invitation(request: AuthenticatedRequest, slug: str, pk: int) -> None:
    """Withdraw a pending invitation."""
    withdraw_invitation(get_invitation_or_404(request, slug, pk), by=request.user)


def serialize_invitation(invitation: Invitation) -> InvitationOut:
    return serialize_row(InvitationOut, invitation, invited_by=serialize_optional_user(invitation.invited_by))


@operations.get_one("/me/invitations", Scope.ADMIN, OwnInvitationList)
def list_own_invitations(request: AuthenticatedRequest) -> OwnInvitationList:
    """List your pending invitations."""
    return OwnInvitationList(items=[serialize_own_invitation(row) for row in list_invitations_for(request.user)])


@operations.do("/me/invitations/{int:pk}/accept", Scope.ADMIN, AcceptedInvitationOut)
def accept_own_invitation(request: AuthenticatedRequest, pk: int, body: EmptyIn | None = None) -> AcceptedInvitationOut:
    """Accept an invitation and join the evaluation."""
    membership = accept_invitation(get_own_invitation_or_404(request, pk), by=request.user)
    return AcceptedInvitationOut(slug=membership.evaluation.slug, role=Role(membership.role))


@operations.remove("/me/invitations/{int:pk}", Scope.ADMIN)
def decline_own_invitation(request: AuthenticatedRequest, pk: int) -> None:
    """Decline an invitation. Owners still see it as pending."""
    decline_invitation(get_own_invitation_or_404(request, pk))


def serialize_own_invitation(invitation: Invitation) -> OwnInvitationOut:
    return serialize_row(
        OwnInvitationOut,
        invitation,
        evaluation=invitation.evaluation.name,
        invited_by=serialize_optional_user(invitation.invited_by),
    )
