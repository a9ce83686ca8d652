"""Several members added or invited at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from django.db import transaction

from evaluations.access import Right, list_invitees, require_right
from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Role
from evaluations.members.invitations.services import create_invitation
from evaluations.members.pasted_names import PastedName
from evaluations.members.selectors import UnclaimedAccount, describe_unclaimed
from evaluations.members.services import create_sign_in_link, enroll_member
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User


class Outcome(StrEnum):
    CREATED = "created"  # with a new account
    ADDED = "added"  # with the account that they have
    INVITED = "invited"
    REFUSED = "refused"


@dataclass(frozen=True)
class Addition:
    """What became of one pasted name. ``token``: of its sign-in link, if its maker may have one."""

    username: str
    outcome: Outcome
    token: str = field(default="", repr=False)
    problem: str = ""
    unclaimed: UnclaimedAccount | None = None


def add_members(evaluation: Evaluation, names: Sequence[PastedName], role: Role, *, by: User) -> list[Addition]:
    """Add each name at once, with an account and a sign-in link where it is new. A refused name stops no other."""
    with transaction.atomic():
        require_right(by, Right.CREATE_ACCOUNTS)
    return [add_one(evaluation, name, role, by) for name in names]


def add_one(evaluation: Evaluation, name: PastedName, role: Role, by: User) -> Addition:
    try:
        with transaction.atomic():
            membership, is_new = enroll_member(evaluation, name.username, role, by=by, display_name=name.display_name)
            person = membership.user
            if not is_new:
                unclaimed = describe_unclaimed([person], by).get(person.pk)
                return Addition(person.username, Outcome.ADDED, unclaimed=unclaimed)
            may_link = list_invitees(by).filter(pk=person.pk).exists()
            token = create_sign_in_link(person, by=by, evaluation=evaluation) if may_link else ""
            return Addition(person.username, Outcome.CREATED, token)
    except InputRefused as refused:
        return Addition(name.username, Outcome.REFUSED, problem=str(refused))


def invite_members(evaluation: Evaluation, names: Sequence[PastedName], role: Role, *, by: User) -> list[Addition]:
    """Invite each name. The result is the same whether or not an account has it."""
    return [invite_one(evaluation, name, role, by) for name in names]


def invite_one(evaluation: Evaluation, name: PastedName, role: Role, by: User) -> Addition:
    try:
        invitation = create_invitation(evaluation, name.username, role, by=by)
    except InputRefused as refused:
        return Addition(name.username, Outcome.REFUSED, problem=str(refused))
    return Addition(invitation.username, Outcome.INVITED)
