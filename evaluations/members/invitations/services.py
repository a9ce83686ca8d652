"""Invitations: an owner offers a role to a name, and the person of that name accepts or declines it."""

from typing import Final

from django.db import IntegrityError, transaction
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Role
from evaluations.members.services import check_username, set_role
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import Invitation, Membership, User, fold_username

MAX_INVITATIONS: Final = 200  # of one evaluation


@transaction.atomic
def create_invitation(evaluation: Evaluation, username: str, role: Role, *, by: User) -> Invitation:
    """Invite a name. What happens is the same whether or not an account of that name exists."""
    name = check_username(username)
    key = fold_username(name)
    members = Membership.objects.filter(evaluation=evaluation, user__username__iexact=name).select_related("user")
    if member := members.first():
        raise InputRefused(f"“{member.user.username}” is already a member. Change the role in the table.")
    if Invitation.objects.filter(evaluation=evaluation).count() >= MAX_INVITATIONS:
        raise InputRefused(f"There are {MAX_INVITATIONS} pending invitations. Withdraw one first.")
    try:
        with transaction.atomic():
            invitation = Invitation.objects.create(
                evaluation=evaluation, username=name, name_key=key, role=role, invited_by=by
            )
    except IntegrityError:
        raise InputRefused(f"“{name}” is already invited. Withdraw that invitation to change the role.") from None
    record_event("invited", invitation, user=by, evaluation=evaluation, after={"person": name, "role": role})
    return invitation


@transaction.atomic
def withdraw_invitation(invitation: Invitation, *, by: User) -> None:
    """Take an invitation back. If it was accepted or withdrawn meanwhile, that is refused."""
    remove_invitation(invitation)
    before = {"person": invitation.username, "role": invitation.role}
    record_event("withdrew invitation", invitation, user=by, evaluation=invitation.evaluation, before=before)


@transaction.atomic
def accept_invitation(invitation: Invitation, *, by: User) -> Membership:
    """Make the invited person a member. Of acceptance and withdrawal at once, one is refused."""
    remove_invitation(invitation)
    record_event("accepted invitation", invitation, user=by, evaluation=invitation.evaluation)
    existing = Membership.objects.filter(evaluation=invitation.evaluation, user=by).first()
    return existing or set_role(invitation.evaluation, by, Role(invitation.role), by=by)


def decline_invitation(invitation: Invitation) -> None:
    """Hide an invitation from the invited person. Owners still see it as pending, as if nobody had that name."""
    Invitation.objects.filter(pk=invitation.pk).update(declined_at=timezone.now())


def remove_invitation(invitation: Invitation) -> None:
    # Under its id and its role: another one may have been made for the name meanwhile.
    deleted, _ = Invitation.objects.filter(pk=invitation.pk, role=invitation.role).delete()
    if not deleted:
        raise InputRefused("This invitation was already accepted or withdrawn.")
