"""API operations on all accounts, site policy and the record of sign-ins, for site administrators."""

from django.conf import settings
from ninja import Field, Query

from evaluations.access import RIGHT_COLUMNS, get_site_policy, require_site_administrator
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import PageQuery, paginate_by_cursor
from evaluations.api.schemas import EmptyIn
from evaluations.api.serializers import serialize_optional_user, serialize_row
from evaluations.domain.roles import Scope
from evaluations.members.accounts.schemas import (
    AccountOut,
    AccountPage,
    AccountRightsPatch,
    SecurityEventOut,
    SecurityEventPage,
    SitePolicyOut,
    SitePolicyPatch,
)
from evaluations.members.accounts.services import change_account_rights, change_site_policy
from evaluations.members.requests import create_link_url, get_account_or_404
from evaluations.members.schemas import SignInLinkOut
from evaluations.members.selectors import find_account, list_security_events
from evaluations.members.services import disable_account, enable_account, end_access
from evaluations.models.sign_ins import SecurityEvent
from evaluations.models.users import MAX_USERNAME_CHARACTERS, User
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["accounts"])


class AccountQuery(PageQuery):
    q: str = Field("", max_length=MAX_USERNAME_CHARACTERS, description="part of the username")


class SecurityEventQuery(PageQuery):
    account: str = Field("", max_length=MAX_USERNAME_CHARACTERS, description="username; empty for all accounts")


@operations.get_one("/accounts", Scope.ADMIN, AccountPage)
def list_accounts(request: AuthenticatedRequest, paging: Query[AccountQuery]) -> AccountPage:
    """List all accounts. Site administrators only."""
    require_site_administrator(request.user)
    rows, next_cursor = paginate_by_cursor(paging, User.objects.filter(username__icontains=paging.q))
    return AccountPage(items=[serialize_account(row) for row in rows], next=next_cursor)


@operations.change("/accounts/{int:pk}", Scope.ADMIN, AccountOut)
def change_rights(request: AuthenticatedRequest, pk: int, body: AccountRightsPatch) -> AccountOut:
    """Change the rights of an account. They add to those that everyone has."""
    sent = body.sent_values()
    rights = {right: sent[columns.account] for right, columns in RIGHT_COLUMNS.items() if columns.account in sent}
    return serialize_account(change_account_rights(get_account_or_404(request, pk), rights, by=request.user))


@operations.make("/accounts/{int:pk}/link", Scope.ADMIN, SignInLinkOut, keeps=False)
def make_account_link(request: AuthenticatedRequest, pk: int, body: EmptyIn | None = None) -> SignInLinkOut:
    """Create a one-time sign-in link for an account."""
    link = create_link_url(request, get_account_or_404(request, pk))
    return SignInLinkOut(link=link, hours=settings.SIGN_IN_LINK_HOURS)


@operations.do("/accounts/{int:pk}/end-access", Scope.ADMIN, AccountOut)
def end_account_access(request: AuthenticatedRequest, pk: int, body: EmptyIn | None = None) -> AccountOut:
    """End all sessions, sign-in links and tokens of an account. Its password stays valid."""
    person = get_account_or_404(request, pk)
    end_access(person, by=request.user)
    return serialize_account(person)


@operations.do("/accounts/{int:pk}/disable", Scope.ADMIN, AccountOut)
def disable(request: AuthenticatedRequest, pk: int, body: EmptyIn | None = None) -> AccountOut:
    """Disable an account: its sessions, links and tokens end, and nobody can sign in to it. Its reviews are kept."""
    disable_account(get_account_or_404(request, pk), by=request.user)
    return serialize_account(get_account_or_404(request, pk))


@operations.do("/accounts/{int:pk}/enable", Scope.ADMIN, AccountOut)
def enable(request: AuthenticatedRequest, pk: int, body: EmptyIn | None = None) -> AccountOut:
    """Enable an account. Earlier sessions, links and tokens stay ended."""
    enable_account(get_account_or_404(request, pk), by=request.user)
    return serialize_account(get_account_or_404(request, pk))


def serialize_account(user: User) -> AccountOut:
    return serialize_row(
        AccountOut,
        user,
        name=str(user),
        is_site_administrator=user.is_superuser,
        has_password=user.has_usable_password(),
    )


@operations.get_one("/policy", Scope.ADMIN, SitePolicyOut)
def get_policy(request: AuthenticatedRequest) -> SitePolicyOut:
    """Get the rights of every account. Site administrators only."""
    require_site_administrator(request.user)
    return serialize_row(SitePolicyOut, get_site_policy())


@operations.change("/policy", Scope.ADMIN, SitePolicyOut)
def change_policy(request: AuthenticatedRequest, body: SitePolicyPatch) -> SitePolicyOut:
    """Change the rights of every account. Site administrators only."""
    require_site_administrator(request.user)
    sent = body.sent_values()
    rights = {right: sent[columns.policy] for right, columns in RIGHT_COLUMNS.items() if columns.policy in sent}
    return serialize_row(SitePolicyOut, change_site_policy(rights, by=request.user))


@operations.get_one("/security-events", Scope.ADMIN, SecurityEventPage)
def list_site_security_events(request: AuthenticatedRequest, paging: Query[SecurityEventQuery]) -> SecurityEventPage:
    """List security events, newest first. Site administrators only."""
    require_site_administrator(request.user)
    person = find_account(paging.account) if paging.account else None
    events = list_security_events().none() if paging.account and person is None else list_security_events(person)
    rows, next_cursor = paginate_by_cursor(paging, events, newest_first=True)
    return SecurityEventPage(items=[serialize_security_event(row) for row in rows], next=next_cursor)


def serialize_security_event(event: SecurityEvent) -> SecurityEventOut:
    return serialize_row(
        SecurityEventOut,
        event,
        account=serialize_optional_user(event.user),
        by=serialize_optional_user(event.by),
        token=event.token.name if event.token else None,
    )
