"""Permissions of roles in an evaluation, and rights on the whole site."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.db.models import QuerySet
from django.http import Http404

from evaluations.domain.files import BACKUP_FORMAT_NAME
from evaluations.domain.roles import REVIEWING_ROLES, Role
from evaluations.models.evaluations import Evaluation
from evaluations.models.memberships import find_membership
from evaluations.models.users import Membership, SitePolicy, User


class Action(StrEnum):
    LOOK = "look at this evaluation"
    REVIEW = "review comparisons here"
    SEE_ALL = "see verdicts before reviewing"
    DISCUSS = "discuss comparisons here"
    ADJUDICATE = "resolve disagreements here"
    TAG = "tag comparisons and save filters here"
    EXPORT = "export from this evaluation"
    MANAGE = "change this evaluation"
    OWN = "manage the members of this evaluation"
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
    membership, _ = find_membership(user, slug)
    return require_role(user, membership, action)


def require_role(user: User, membership: Membership | None, action: Action) -> Evaluation:
    """The evaluation of the user's membership, as `require_evaluation` gives it."""
    if membership is None:
        raise Http404
    evaluation, role = membership.evaluation, membership.role
    evaluation.roles = {user.pk: role}
    user.roles = {evaluation.slug: role}
    if role not in ALLOWED_ROLES[action]:
        raise PermissionDenied(f"Your role does not let you {action}. Ask an owner of “{evaluation.name}”.")
    return evaluation


def may_change_row(user: User, maker_id: int | None, evaluation: Evaluation) -> bool:
    """Whether the user made this row of the evaluation, or manages the evaluation."""
    return maker_id == user.pk or is_allowed(user, Action.MANAGE, evaluation)


def require_maker_or_manager(user: User, maker_id: int | None, evaluation: Evaluation, change: str) -> None:
    if not may_change_row(user, maker_id, evaluation):
        raise PermissionDenied(f"Only its creator and managers of “{evaluation.name}” may {change}. Ask one of them.")


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


class Right(StrEnum):
    """What site policy lets an account do. Site administrators may do all of it."""

    CREATE_EVALUATIONS = "create evaluations"
    CREATE_ACCOUNTS = "create accounts"
    MAKE_LINKS = "make sign-in links"


@dataclass(frozen=True)
class RightColumns:
    """Where a right is granted: to one account, and to all."""

    account: str
    policy: str


RIGHT_COLUMNS: Final[Mapping[Right, RightColumns]] = {
    Right.CREATE_EVALUATIONS: RightColumns("can_create_evaluations", "everyone_creates_evaluations"),
    Right.CREATE_ACCOUNTS: RightColumns("can_create_accounts", "everyone_creates_accounts"),
    Right.MAKE_LINKS: RightColumns("can_make_links", "everyone_makes_links"),
}
ASK_ADMINISTRATOR: Final = "Ask a site administrator."


class RightRefused(PermissionDenied):
    """Site policy does not give this account the right."""

    def __init__(self, right: Right) -> None:
        super().__init__(f"Your account may not {right}. {ASK_ADMINISTRATOR}")
        self.right = right


def get_site_policy() -> SitePolicy:
    """The policy in force: closed while nobody has changed it."""
    return SitePolicy.objects.filter(pk=1).first() or SitePolicy(pk=1)


def has_right(user: User, right: Right) -> bool:
    return grants_right(right, user, get_site_policy)


def grants_right(right: Right, user: User, find_policy: Callable[[], SitePolicy]) -> bool:
    columns = RIGHT_COLUMNS[right]
    return user.is_superuser or getattr(user, columns.account) or getattr(find_policy(), columns.policy)


def list_rights(user: User) -> frozenset[Right]:
    policy = get_site_policy()
    return frozenset(right for right in Right if grants_right(right, user, lambda: policy))


def require_right(user: User | None, right: Right) -> None:
    """Raise RightRefused if the account lacks the right now. None: a command of the machine's owner.

    It reads the account and the policy anew and locks them, so that neither changes before the transaction ends.
    """
    if user is None:
        return
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("A right is checked in the transaction of what it allows.")
    current = User.objects.select_for_update(no_key=True).filter(pk=user.pk, is_active=True).first()
    policy = SitePolicy.objects.select_for_update(no_key=True).filter(pk=1).first() or SitePolicy(pk=1)
    if current is None or not grants_right(right, current, lambda: policy):
        raise RightRefused(right)


WITHOUT_RIGHTS: Final = {columns.account: False for columns in RIGHT_COLUMNS.values()}


def list_invitees(user: User) -> "QuerySet[User]":
    """The users for whom this user may create sign-in links, which give full access to an account.

    Owners with the right may do so only for accounts that were created for their evaluations, open no others, have no
    rights of their own and no password yet: an account belongs to the person who sets its password.
    """
    if user.is_superuser:
        return User.objects.all()
    if not has_right(user, Right.MAKE_LINKS):
        return User.objects.none()
    owned = Evaluation.objects.filter(memberships__user=user, memberships__role=Role.OWNER)
    elsewhere = Membership.objects.exclude(evaluation__in=owned)
    created = list_unclaimed().filter(created_for__in=owned, is_superuser=False, **WITHOUT_RIGHTS)
    return created.exclude(pk__in=elsewhere.values("user"))


def list_unclaimed() -> "QuerySet[User]":
    """The accounts in which nobody has set a password yet."""
    return User.objects.filter(password__startswith=UNUSABLE_PASSWORD_PREFIX)
