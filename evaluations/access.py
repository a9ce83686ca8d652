"""Permissions of roles in an evaluation."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404

from evaluations.domain.files import BACKUP_FORMAT_NAME
from evaluations.domain.roles import REVIEWING_ROLES, Role
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import Membership, User


class Action(StrEnum):
    LOOK = "look at this evaluation"
    REVIEW = "review comparisons here"
    SEE_ALL = "see verdicts before reviewing"
    DISCUSS = "discuss comparisons here"
    ADJUDICATE = "settle disagreements here"
    TAG = "tag comparisons and name slices here"
    EXPORT = "export from this evaluation"
    MANAGE = "change this evaluation"
    OWN = "decide who takes part in this evaluation"
    BACK_UP = "make or download backups of this evaluation"


ALL_ROLES: Final = frozenset(Role)
ALLOWED_ROLES: Final[Mapping[Action, frozenset[Role]]] = {
    Action.LOOK: ALL_ROLES,
    Action.REVIEW: REVIEWING_ROLES,
    Action.SEE_ALL: ALL_ROLES - {Role.REVIEWER},
    Action.DISCUSS: ALL_ROLES - {Role.VIEWER},
    Action.ADJUDICATE: frozenset({Role.OWNER, Role.MANAGER, Role.ADJUDICATOR}),
    Action.TAG: frozenset({Role.OWNER, Role.MANAGER, Role.ADJUDICATOR}),
    Action.EXPORT: frozenset({Role.OWNER, Role.MANAGER, Role.ADJUDICATOR, Role.VIEWER}),
    Action.MANAGE: frozenset({Role.OWNER, Role.MANAGER}),
    Action.OWN: frozenset({Role.OWNER}),
    # A backup holds everything with names, including drafts.
    Action.BACK_UP: frozenset({Role.OWNER}),
}


def get_role(user: User, evaluation: Evaluation) -> Role | None:
    if role := getattr(evaluation, "roles", {}).get(user.pk):
        return Role(role)
    membership = Membership.objects.filter(user=user, evaluation=evaluation).first()
    return Role(membership.role) if membership else None


def is_allowed(user: User, action: Action, evaluation: Evaluation) -> bool:
    return get_role(user, evaluation) in ALLOWED_ROLES[action]


def require_evaluation(user: User, slug: str, action: Action = Action.LOOK) -> Evaluation:
    """The evaluation, if the user may do this in it. For others it raises 404, so that they learn nothing of it."""
    mine = Membership.objects.select_related("evaluation__review_rubric__rubric").filter(user=user)
    taking_part = mine.filter(evaluation__slug=slug).first()
    if taking_part is None:
        raise Http404
    evaluation = taking_part.evaluation
    evaluation.roles = {user.pk: taking_part.role}
    if taking_part.role not in ALLOWED_ROLES[action]:
        raise PermissionDenied(f"Your role does not let you {action}. Ask an owner of “{evaluation.name}”.")
    return evaluation


def may_change_row(user: User, maker_id: int | None, evaluation: Evaluation) -> bool:
    """Whether the user made this row of the evaluation, or manages the evaluation."""
    return maker_id == user.pk or is_allowed(user, Action.MANAGE, evaluation)


def require_maker_or_manager(user: User, maker_id: int | None, evaluation: Evaluation, change: str) -> None:
    if not may_change_row(user, maker_id, evaluation):
        raise PermissionDenied(
            f"Only the person who made it and the managers of “{evaluation.name}” may {change}. Ask one of them."
        )


def action_for_export(written_as: str) -> Action:
    """The action that creating and downloading an export in this format needs."""
    return Action.BACK_UP if written_as == BACKUP_FORMAT_NAME else Action.EXPORT


def list_reviewers(evaluation: Evaluation) -> "QuerySet[User]":
    """The members who may review in an evaluation, by username."""
    roles = ALLOWED_ROLES[Action.REVIEW]
    members = User.objects.filter(memberships__evaluation=evaluation, memberships__role__in=roles, is_active=True)
    return members.order_by("username")


def require_site_administrator(user: User) -> None:
    """Raise 404 for everyone else, so that they do not learn that the page exists."""
    if not user.is_superuser:
        raise Http404


def list_invitees(user: User) -> "QuerySet[User]":
    """The users for whom this user may create sign-in links, which give full access to an account.

    Owners may do so only for accounts that were created for their evaluations and open no others.
    """
    if user.is_superuser:
        return User.objects.all()
    owned = Evaluation.objects.filter(memberships__user=user, memberships__role=Role.OWNER)
    elsewhere = Membership.objects.exclude(evaluation__in=owned)
    created = User.objects.filter(created_for__in=owned, is_superuser=False)
    return created.exclude(pk__in=elsewhere.values("user"))
