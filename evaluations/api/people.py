"""Who takes part, as what; one's own account, and for site administrators everybody's."""

from collections.abc import Sequence

from django.conf import settings
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.urls import reverse
from ninja import Field, Query

from evaluations import access
from evaluations.access import Action
from evaluations.api.admission import person
from evaluations.api.forms import checked, sent
from evaluations.api.operations import Operations
from evaluations.api.paging import Paging, page_of
from evaluations.api.schemas.evaluations import (
    AccountPage,
    AccountTold,
    Link,
    Me,
    MeChange,
    MemberMade,
    MemberNew,
    MemberPage,
    MemberTold,
    RoleChange,
    TokenTold,
)
from evaluations.api.schemas.shared import NothingSent
from evaluations.api.telling import person_told
from evaluations.domain import InputRefused, Role, Scope
from evaluations.forms.account import AccountForm
from evaluations.models import ApiToken, Evaluation, Membership, Rater, User
from evaluations.services.preparing.inviting import add_person, disable_account, enable_account, make_link
from evaluations.services.preparing.preparing import remove_member, set_role
from evaluations.services.reviewing.overseeing import work_of
from evaluations.services.reviewing.releasing import release

operations = Operations(tags=["people"])
# Of the places of somebody who leaves so many are put back at once; a sweep puts back the rest.
AT_ONCE = 200


class Found(Paging):
    q: str = Field("", max_length=150, description="a part of the username")


# ---- oneself -------------------------------------------------------------------------------


@operations.get_one("/me", Scope.READ, Me, site_wide=True)
def get_me(request: HttpRequest) -> Me:
    """Whose token this is, and what it may be used for."""
    return me_told(request)


@operations.change("/me", Scope.ADMIN, Me)
def change_me(request: HttpRequest, body: MeChange) -> Me:
    """How others see you and how you see times. Passwords and tokens are made on the account page alone."""
    user = User.objects.get(pk=person(request).pk)
    stands = {name: getattr(user, name) for name in AccountForm.Meta.fields}
    form = AccountForm(stands | sent(body), instance=user)
    checked(form)
    form.save()
    request.auth.user = user  # type: ignore[attr-defined]
    return me_told(request)


def me_told(request: HttpRequest) -> Me:
    token: ApiToken = request.auth  # type: ignore[attr-defined]
    user = token.user
    return Me(
        username=user.username,
        display_name=user.display_name,
        timezone=user.timezone,
        theme=user.theme,
        single_keys=user.single_keys,
        is_site_administrator=user.is_superuser,
        token=TokenTold(
            name=token.name,
            prefix=token.prefix,
            scopes=token.scopes.split(","),
            evaluation=token.evaluation.slug if token.evaluation else None,
            expires_at=token.expires_at,
        ),
    )


# ---- who takes part ------------------------------------------------------------------------


@operations.get_one("/evaluations/{slug:slug}/people", Scope.READ, MemberPage)
def list_people(request: HttpRequest, slug: str, paging: Query[Paging]) -> MemberPage:
    user = person(request)
    evaluation = access.evaluation_for(user, slug)
    rows, more = page_of(paging, evaluation.memberships.select_related("user"))
    return MemberPage(items=members_told(user, evaluation, rows), next=more)


@operations.make("/evaluations/{slug:slug}/people", Scope.ADMIN, MemberMade, keeps=False)
def add_member(request: HttpRequest, slug: str, body: MemberNew) -> MemberMade:
    """Let somebody take part. An account that is made for it comes with a sign-in link, told once."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.OWN)
    membership, is_new = add_person(evaluation, body.username, body.role, by=user)
    link = link_of(request, make_link(membership.user, by=user, evaluation=evaluation)) if is_new else None
    (told,) = members_told(user, evaluation, [membership])
    return MemberMade(**told.model_dump(), sign_in_link=link)


@operations.change("/evaluations/{slug:slug}/people/{int:pk}", Scope.ADMIN, MemberTold)
def change_role(request: HttpRequest, slug: str, pk: int, body: RoleChange) -> MemberTold:
    user, membership = person(request), membership_for(request, slug, pk)
    changed = set_role(membership.evaluation, membership.user, Role(body.role), by=user)
    release(AT_ONCE, of=membership.user, by=user)
    (told,) = members_told(user, membership.evaluation, [changed])
    return told


@operations.remove("/evaluations/{slug:slug}/people/{int:pk}", Scope.ADMIN)
def remove_person(request: HttpRequest, slug: str, pk: int) -> None:
    """They no longer take part. Every review stays."""
    user, membership = person(request), membership_for(request, slug, pk)
    remove_member(membership, by=user)
    release(AT_ONCE, of=membership.user, by=user)


@operations.make("/evaluations/{slug:slug}/people/{int:pk}/link", Scope.ADMIN, Link, keeps=False)
def make_member_link(request: HttpRequest, slug: str, pk: int, body: NothingSent | None = None) -> Link:
    """A link that signs the person in once, for accounts that open nothing but evaluations of yours."""
    user, membership = person(request), membership_for(request, slug, pk)
    if not access.invitees(user).filter(pk=membership.user_id).exists():
        raise InputRefused(
            f"{membership.user}’s account opens more than your evaluations, so a link has to come from a site "
            f"administrator or, on the machine itself, from  manage.py sign_in_link {membership.user.username}"
        )
    token = make_link(membership.user, by=user, evaluation=membership.evaluation)
    return Link(link=link_of(request, token), hours=settings.SIGN_IN_LINK_HOURS)


def membership_for(request: HttpRequest, slug: str, pk: int) -> Membership:
    evaluation = access.evaluation_for(person(request), slug, Action.OWN)
    return get_object_or_404(Membership.objects.select_related("user", "evaluation"), evaluation=evaluation, pk=pk)


def link_of(request: HttpRequest, token: str) -> str:
    return request.build_absolute_uri(reverse("sign_in_link", args=[token]))


def members_told(user: User, evaluation: Evaluation, rows: Sequence[Membership]) -> list[MemberTold]:
    owns, sees_all = access.may(user, Action.OWN, evaluation), access.may(user, Action.SEE_ALL, evaluation)
    ids = [row.user_id for row in rows]
    invitees = set(access.invitees(user).filter(pk__in=ids).values_list("pk", flat=True)) if owns else set()
    raters = list(Rater.objects.filter(evaluation=evaluation, user__in=ids)) if sees_all else []
    work = work_of(evaluation, raters) if raters else {}
    done = {rater.user_id: work[rater.pk].done for rater in raters}
    return [
        MemberTold(
            id=row.pk,
            person=person_told(row.user),
            role=Role(row.role),
            can_be_sent_a_link=row.user_id in invitees,
            reviews_saved=done.get(row.user_id, 0) if sees_all else None,
        )
        for row in rows
    ]


# ---- accounts of the whole site ------------------------------------------------------------


@operations.get_one("/accounts", Scope.ADMIN, AccountPage)
def list_accounts(request: HttpRequest, paging: Query[Found]) -> AccountPage:
    """For site administrators; to all others there is nothing here."""
    access.require_site_administrator(person(request))
    found = User.objects.filter(username__icontains=paging.q) if paging.q else User.objects.all()
    rows, more = page_of(paging, found)
    return AccountPage(items=[account_told(row) for row in rows], next=more)


@operations.make("/accounts/{int:pk}/link", Scope.ADMIN, Link, keeps=False)
def make_account_link(request: HttpRequest, pk: int, body: NothingSent | None = None) -> Link:
    token = make_link(account_for(request, pk), by=person(request))
    return Link(link=link_of(request, token), hours=settings.SIGN_IN_LINK_HOURS)


@operations.do("/accounts/{int:pk}/disable", Scope.ADMIN, AccountTold)
def disable(request: HttpRequest, pk: int, body: NothingSent | None = None) -> AccountTold:
    """The person can no longer sign in, and their tokens open nothing. Every review stays."""
    account = account_for(request, pk)
    disable_account(account, by=person(request))
    release(AT_ONCE, of=account, by=person(request))
    return account_told(account_for(request, pk))


@operations.do("/accounts/{int:pk}/enable", Scope.ADMIN, AccountTold)
def enable(request: HttpRequest, pk: int, body: NothingSent | None = None) -> AccountTold:
    enable_account(account_for(request, pk), by=person(request))
    return account_told(account_for(request, pk))


def account_for(request: HttpRequest, pk: int) -> User:
    access.require_site_administrator(person(request))
    return get_object_or_404(User, pk=pk)


def account_told(user: User) -> AccountTold:
    return AccountTold(
        id=user.pk,
        username=user.username,
        name=str(user),
        is_active=user.is_active,
        is_site_administrator=user.is_superuser,
    )
