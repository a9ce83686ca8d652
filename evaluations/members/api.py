"""API operations on members and on the token's own account."""

from collections.abc import Sequence
from dataclasses import replace

from django.conf import settings
from ninja import Query

from evaluations.access import Action, is_allowed, list_invitees, list_rights, require_evaluation
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import PageQuery, paginate_by_cursor
from evaluations.api.schemas import EmptyIn
from evaluations.api.serializers import serialize_row, serialize_user
from evaluations.domain.roles import Role, Scope
from evaluations.members import services
from evaluations.members.requests import create_link_url, get_membership_or_404
from evaluations.members.schemas import (
    MemberIn,
    MemberOut,
    MemberPage,
    MemberPatch,
    MeOut,
    MePatch,
    NewMemberOut,
    SignInLinkOut,
    TokenOut,
    UnclaimedAccountOut,
)
from evaluations.members.selectors import describe_unclaimed
from evaluations.members.services import change_account, enroll_member, read_account_settings, set_role
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.users import Membership, User
from evaluations.reviews.queues.selectors import get_reviewer_work
from evaluations.web.requests import ApiRequest, AuthenticatedRequest

operations = OperationRouter(tags=["members"])


@operations.get_one("/me", Scope.READ, MeOut, site_wide=True)
def get_me(request: ApiRequest) -> MeOut:
    """Get the account and the scopes of this token."""
    return serialize_me(request)


@operations.change("/me", Scope.ADMIN, MeOut)
def change_me(request: ApiRequest, body: MePatch) -> MeOut:
    """Change your name, time zone and display settings. Passwords and tokens are managed on the account page."""
    user = User.objects.get(pk=request.user.pk)
    change_account(user, replace(read_account_settings(user), **body.sent_values()))
    request.auth.user = user
    return serialize_me(request)


def serialize_me(request: ApiRequest) -> MeOut:
    token = request.auth
    slug = token.evaluation.slug if token.evaluation else None
    shown_token = serialize_row(TokenOut, token, scopes=token.scopes.split(","), evaluation=slug)
    rights = sorted(right.name.lower() for right in list_rights(token.user))
    return serialize_row(
        MeOut, token.user, is_site_administrator=token.user.is_superuser, rights=rights, token=shown_token
    )


@operations.get_one("/evaluations/{slug:slug}/members", Scope.READ, MemberPage)
def list_members(request: AuthenticatedRequest, slug: str, paging: Query[PageQuery]) -> MemberPage:
    """List the members with their roles."""
    user = request.user
    evaluation = require_evaluation(user, slug)
    rows, next_cursor = paginate_by_cursor(paging, evaluation.memberships.select_related("user"))
    return MemberPage(items=serialize_members(user, evaluation, rows), next=next_cursor)


@operations.make("/evaluations/{slug:slug}/members", Scope.ADMIN, NewMemberOut, keeps=False)
def add_member(request: AuthenticatedRequest, slug: str, body: MemberIn) -> NewMemberOut:
    """Add a member, creating the account if needed. Without the right to create accounts, use `invite_member`.

    For a new account, and if you may create links, the response contains a sign-in link, shown once.
    """
    user = request.user
    evaluation = require_evaluation(user, slug, Action.OWN)
    membership, is_new = enroll_member(evaluation, body.username, body.role, by=user)
    may_link = is_new and list_invitees(user).filter(pk=membership.user_id).exists()
    link = create_link_url(request, membership.user, evaluation) if may_link else None
    (serialized,) = serialize_members(user, evaluation, [membership])
    return NewMemberOut(**serialized.model_dump(), sign_in_link=link)


@operations.change("/evaluations/{slug:slug}/members/{int:pk}", Scope.ADMIN, MemberOut)
def change_role(request: AuthenticatedRequest, slug: str, pk: int, body: MemberPatch) -> MemberOut:
    """Change the role of a member."""
    user, membership = request.user, get_membership_or_404(request, slug, pk)
    changed = set_role(membership.evaluation, membership.user, Role(body.role), by=user)
    (serialized,) = serialize_members(user, membership.evaluation, [changed])
    return serialized


@operations.remove("/evaluations/{slug:slug}/members/{int:pk}", Scope.ADMIN)
def remove_member(request: AuthenticatedRequest, slug: str, pk: int) -> None:
    """Remove a member from the evaluation. Their reviews are kept."""
    services.remove_member(get_membership_or_404(request, slug, pk), by=request.user)


@operations.make("/evaluations/{slug:slug}/members/{int:pk}/link", Scope.ADMIN, SignInLinkOut, keeps=False)
def make_member_link(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> SignInLinkOut:
    """Create a one-time sign-in link for an account that has no password and opens only evaluations of yours."""
    membership = get_membership_or_404(request, slug, pk)
    link = create_link_url(request, membership.user, membership.evaluation)
    return SignInLinkOut(link=link, hours=settings.SIGN_IN_LINK_HOURS)


def serialize_members(user: User, evaluation: Evaluation, rows: Sequence[Membership]) -> list[MemberOut]:
    owns, sees_all = is_allowed(user, Action.OWN, evaluation), is_allowed(user, Action.SEE_ALL, evaluation)
    ids = [row.user_id for row in rows]
    invitees = set(list_invitees(user).filter(pk__in=ids).values_list("pk", flat=True)) if owns else set()
    unclaimed = describe_unclaimed([row.user for row in rows], user) if owns else {}
    raters = list(Rater.objects.filter(evaluation=evaluation, user__in=ids)) if sees_all else []
    work = get_reviewer_work(evaluation, raters) if raters else {}
    done = {rater.user_id: work[rater.pk].done for rater in raters}
    return [
        MemberOut(
            id=row.pk,
            user=serialize_user(row.user),
            role=Role(row.role),
            can_be_sent_a_link=row.user_id in invitees,
            unclaimed=serialize_row(UnclaimedAccountOut, unclaimed[row.user_id]) if row.user_id in unclaimed else None,
            reviews_saved=done.get(row.user_id, 0) if sees_all else None,
        )
        for row in rows
    ]
