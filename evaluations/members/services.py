"""Changes to members, accounts, sign-in links and tokens."""

import secrets
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.access import Right, list_invitees, list_unclaimed, require_right
from evaluations.audit.events import record_event
from evaluations.audit.security import record_security_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Role, Scope
from evaluations.domain.security import SecurityEventKind
from evaluations.members.selectors import find_account, list_active_tokens, list_time_zones
from evaluations.models.evaluations import Evaluation
from evaluations.models.sign_ins import SecurityEvent, Session
from evaluations.models.users import (
    MAX_USERNAME_CHARACTERS,
    ApiToken,
    Invitation,
    Membership,
    SignInLink,
    User,
    fold_username,
    hash_token,
)
from evaluations.reviews.queues.services import release_departed_reservations

# More than these are released, or deleted, by the next sweep.
RELEASED_AT_ONCE: Final = 200
DELETED_AT_ONCE: Final = 2_000
MAX_DISPLAY_NAME_CHARACTERS: Final = 120  # as the column
USED_LINK: Final = "This sign-in link was already used. Each link works once."


def set_role(evaluation: Evaluation, user: User, role: Role, *, by: User | None) -> Membership:
    """Add a member or change their role. Reservations of people who no longer review are released."""
    membership = write_role(evaluation, user, role, by)
    release_departed_reservations(RELEASED_AT_ONCE, of=user, by=by)
    return membership


@transaction.atomic
def write_role(evaluation: Evaluation, user: User, role: Role, by: User | None) -> Membership:
    membership = Membership.objects.filter(evaluation=evaluation, user=user).first()
    before = membership.role if membership else None
    if membership and before == Role.OWNER and role != Role.OWNER:
        refuse_without_owner(membership)
    membership, _ = Membership.objects.update_or_create(evaluation=evaluation, user=user, defaults={"role": role})
    after = {"person": user.username, "role": role}
    record_event("set role", membership, user=by, evaluation=evaluation, before={"role": before}, after=after)
    return membership


def remove_member(membership: Membership, *, by: User | None) -> None:
    """Remove a member. Their reviews are kept, and their reservations are released."""
    with transaction.atomic():
        if membership.role == Role.OWNER:
            refuse_without_owner(membership)
        before = {"person": membership.user.username, "role": membership.role}
        record_event("removed", membership, user=by, evaluation=membership.evaluation, before=before)
        membership.delete()
    release_departed_reservations(RELEASED_AT_ONCE, of=membership.user, by=by)


def refuse_without_owner(membership: Membership) -> None:
    """Refuse to let the last owner leave or change roles."""
    evaluation = membership.evaluation
    # Locked: of two owners who leave at once, the second must see that the first has gone.
    list(Evaluation.objects.select_for_update().filter(pk=evaluation.pk).values_list("pk"))
    if not Membership.objects.filter(evaluation=evaluation, role=Role.OWNER).exclude(pk=membership.pk).exists():
        raise InputRefused(f"“{evaluation.name}” needs an owner. Make someone else an owner first.")


TOKEN_PREFIX: Final = "jw_"
SHOWN_TOKEN_CHARACTERS: Final = 10  # of the start of a token, so that people recognize it
MAX_TOKEN_DAYS: Final = 366
MAX_TOKENS: Final = 50


@transaction.atomic
def create_token(
    user: User, *, name: str, scopes: Collection[Scope], days: int, evaluation: Evaluation | None = None
) -> tuple[ApiToken, str]:
    """A new token and its text, of which only the hash is stored."""
    lock_active_account(user)  # of two tokens made at once the second sees the first
    name = name.strip()
    if not 1 <= len(name) <= 80 or not name.isprintable():
        raise InputRefused("Give the token a name of up to 80 characters.")
    if not scopes:
        raise InputRefused("Choose at least one scope.")
    if not 1 <= days <= MAX_TOKEN_DAYS:
        raise InputRefused(f"Choose a validity of 1 to {MAX_TOKEN_DAYS} days.")
    if list_active_tokens(user).count() >= MAX_TOKENS:
        raise InputRefused(f"You already have {MAX_TOKENS} tokens. Revoke one that you no longer use.")
    text = TOKEN_PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user,
        evaluation=evaluation,
        name=name,
        prefix=text[:SHOWN_TOKEN_CHARACTERS],
        token_sha256=hash_token(text),
        scopes=",".join(scope for scope in Scope if scope in scopes),
        expires_at=timezone.now() + timedelta(days=days),
    )
    after = {"name": name, "scopes": token.scopes, "expires_at": token.expires_at.isoformat()}
    record_event("made token", token, user=user, evaluation=evaluation, after=after)
    record_security_event(SecurityEventKind.TOKEN_MADE, user, detail=f"{name} ({token.prefix}…)")
    return token, text


@transaction.atomic
def revoke_token(token: ApiToken, *, by: User | None) -> None:
    """Revoke an API token. Revoking it again changes nothing."""
    if ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=timezone.now()):
        record_event("revoked token", token, user=by, evaluation=token.evaluation, before={"name": token.name})
        record_security_event(SecurityEventKind.TOKENS_REVOKED, token.user, by=by, detail=str(token))


def revoke_all_tokens(user: User, *, by: User | None) -> int:
    """Revoke every token of an account that opens anything; the number of them."""
    tokens = list(list_active_tokens(user))
    for token in tokens:
        revoke_token(token, by=by)
    return len(tokens)


class SignInLinkRefused(InputRefused):
    """An invalid sign-in link; the message says why and how to get another. ``user``: its account, if there is one."""

    def __init__(self, message: str, user: User | None = None) -> None:
        super().__init__(message)
        self.user = user


@transaction.atomic
def create_account(
    username: str, *, by: User | None, evaluation: Evaluation | None = None, display_name: str = ""
) -> User:
    """Create an account without a password, for which a sign-in link is needed."""
    require_right(by, Right.CREATE_ACCOUNTS)
    name = check_username(username)
    user = User(
        username=name,
        display_name=display_name.strip()[:MAX_DISPLAY_NAME_CHARACTERS],
        timezone=settings.TIME_ZONE,
        created_for=evaluation,
        created_by=by,
    )
    user.set_unusable_password()
    if existing := find_account(name):
        raise InputRefused(f"The account “{existing.username}” already exists.")
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError:  # somebody else was faster
        raise InputRefused(f"The account “{name}” already exists.") from None
    record_event("made account", user, user=by, evaluation=evaluation, after={"username": name})
    return user


def check_username(username: str) -> str:
    """The name as it is stored; InputRefused if no account can have it."""
    name: str = User.normalize_username(username.strip())
    try:
        User(username=name).clean_fields(exclude={field.name for field in User._meta.fields} - {"username"})
    except ValidationError as error:
        raise InputRefused(
            f"“{name[:MAX_USERNAME_CHARACTERS]}” is not a valid username. "
            f"Use up to {MAX_USERNAME_CHARACTERS} letters, digits and . @ + - _."
        ) from error
    return name


@dataclass(frozen=True)
class AccountSettings:
    """What people set about their own account, by the names of its columns."""

    display_name: str
    timezone: str
    theme: str
    single_keys: bool


def read_account_settings(user: User) -> AccountSettings:
    return AccountSettings(**{field.name: getattr(user, field.name) for field in fields(AccountSettings)})


def change_account(user: User, settings: AccountSettings) -> None:
    if settings.timezone not in list_time_zones():
        raise InputRefused(f"Unknown time zone “{settings.timezone[:64]}”.", field="timezone")
    for name, value in asdict(settings).items():
        setattr(user, name, value)
    user.display_name = settings.display_name.strip()
    try:
        user.clean_fields(exclude={field.name for field in User._meta.fields} - asdict(settings).keys())
    except ValidationError as error:
        name, wrong = next(iter(error.message_dict.items()))
        raise InputRefused(wrong[0], field=name) from error
    user.save(update_fields=list(asdict(settings)))


@transaction.atomic
def make_administrator(user: User) -> None:
    """Make the user a site administrator, who manages endpoints and accounts but sees no more evaluations."""
    if not user.is_superuser:
        User.objects.filter(pk=user.pk).update(is_superuser=True)
        record_event("made administrator", user, user=None, evaluation=None)
        record_security_event(SecurityEventKind.POLICY_CHANGED, user, detail="site administrator")


@transaction.atomic
def enroll_member(
    evaluation: Evaluation, username: str, role: Role, *, by: User | None, display_name: str = ""
) -> tuple[Membership, bool]:
    """Add a member at once, creating the account if needed; the second value says whether it was created.

    This takes the right to create accounts, because it tells whether a username exists. Others invite.
    ``display_name``: of a new account.
    """
    require_right(by, Right.CREATE_ACCOUNTS)
    person = find_account(username)
    if person and not person.is_active:
        raise InputRefused(f"The account “{person.username}” is disabled. Ask a site administrator to enable it.")
    if person and Membership.objects.filter(evaluation=evaluation, user=person).exists():
        raise InputRefused(f"“{person.username}” is already a member. Change the role in the table.")
    account = person or create_account(username, by=by, evaluation=evaluation, display_name=display_name)
    Invitation.objects.filter(evaluation=evaluation, name_key=fold_username(account.username)).delete()
    return set_role(evaluation, account, role, by=by), person is None


def lock_active_account(user: User, *others: User) -> None:
    """Lock the accounts until the transaction ends. Refuse if the first one is disabled by now."""
    pks = {account.pk for account in (user, *others)}
    locked = User.objects.select_for_update(no_key=True).filter(pk__in=pks).order_by("pk")
    if not {row.pk: row.is_active for row in locked}.get(user.pk):
        raise InputRefused(f"The account “{user.username}” is disabled. Enable it first.")


@transaction.atomic
def create_sign_in_link(user: User, *, by: User | None, evaluation: Evaluation | None = None) -> str:
    """The token of a new sign-in link, of which only the hash is stored. ``by`` None: a command on the machine."""
    lock_active_account(user, *([by] if by else []))
    if by is not None:
        require_link_allowed(user, by)
    token = secrets.token_urlsafe(32)
    link = SignInLink.objects.create(
        user=user,
        token_sha256=hash_token(token),
        expires_at=timezone.now() + timedelta(hours=settings.SIGN_IN_LINK_HOURS),
    )
    record_event("made sign-in link", link, user=by, evaluation=evaluation, after={"for": user.username})
    record_security_event(SecurityEventKind.LINK_MADE, user, by=by)
    return token


def require_link_allowed(user: User, by: User) -> None:
    """Refuse a link that would open more than what its maker may open."""
    require_right(by, Right.MAKE_LINKS)
    if not list_invitees(by).filter(pk=user.pk).exists():
        raise InputRefused(
            f"You can’t create a link for {user}: the account has a password or belongs to evaluations that aren’t "
            f"yours. Ask a site administrator, or run  manage.py sign_in_link {user.username}  on the server."
        )


def find_sign_in_link(token: str) -> SignInLink:
    """The valid link of this token; reading it does not use it up."""
    has_expired = ExpressionWrapper(Q(expires_at__lte=Now()), BooleanField())  # by the clock of the database
    links = SignInLink.objects.filter(token_sha256=hash_token(token)).annotate(has_expired=has_expired)
    link = links.select_related("user").first()
    if link is None:
        raise SignInLinkRefused("This sign-in link is not valid. Part of the address may be missing.")
    if not link.user.is_active:
        raise SignInLinkRefused("This account is disabled. Ask a site administrator to enable it.", link.user)
    if link.used_at is not None:
        raise SignInLinkRefused(USED_LINK, link.user)
    if link.has_expired:
        raise SignInLinkRefused("This sign-in link has expired.", link.user)
    return link


@transaction.atomic
def redeem_sign_in_link(token: str) -> User:
    """Use up the link and return its user. Of two clicks at once one is refused."""
    link = find_sign_in_link(token)
    # Only columns of the row itself: a second writer that waited for the first looks at them again.
    won = SignInLink.objects.filter(pk=link.pk, used_at__isnull=True, expires_at__gt=Now()).update(used_at=Now())
    if not won:
        raise SignInLinkRefused(USED_LINK, link.user)
    record_event("signed in by link", link, user=link.user, evaluation=None)
    record_security_event(SecurityEventKind.SIGNED_IN_BY_LINK, link.user)
    return link.user


@transaction.atomic
def set_password(
    user: User, password: str, *, by: User | None, kept_session: str | None = None, keeps_tokens: bool = False
) -> None:
    """Set a new password. All other sessions, all sign-in links and, unless they are kept, all tokens end.

    ``by`` None: a command on the machine.
    An account belongs to the person who sets its first password, so no token from before it is kept.
    """
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise InputRefused(" ".join(error.messages), field="password") from error
    lock_active_account(user)
    # The person proved to know the password that `user` was read with, or that there was none.
    if not User.objects.filter(pk=user.pk, password=user.password).exists():
        raise InputRefused("The password was changed in the meantime. Sign in again.")
    is_first = not user.has_usable_password()
    user.set_password(password)
    user.save(update_fields=["password"])
    expire_sign_in_links(user)
    end_sessions(user, by=by, kept=kept_session)
    if is_first or not keeps_tokens:
        revoke_all_tokens(user, by=by)
    record_event("set password", user, user=by, evaluation=None)
    record_security_event(SecurityEventKind.PASSWORD_SET, user, by=by, detail="the first one" if is_first else "")


def end_sessions(user: User, *, by: User | None, kept: str | None = None) -> int:
    """End the sessions of an account except the one with this key; the number of them."""
    ended, _ = Session.objects.filter(user=user).exclude(pk=kept or "").delete()
    if ended:
        detail = f"{ended} session{'' if ended == 1 else 's'}"
        record_security_event(SecurityEventKind.SESSIONS_ENDED, user, by=by, detail=detail)
    return ended


def delete_ended_sessions() -> None:
    """Delete some thousand sessions that are too old or were idle for too long: they open nothing."""
    now = timezone.now()
    idle = Q(last_seen_at__lte=now - timedelta(hours=settings.SESSION_IDLE_HOURS))
    ended = Session.objects.filter(idle | Q(expire_date__lte=now)).values_list("pk", flat=True)
    Session.objects.filter(pk__in=list(ended[:DELETED_AT_ONCE])).delete()


@transaction.atomic
def end_access(user: User, *, by: User | None) -> None:
    """End all sessions, sign-in links and tokens of an account. With its password it can be signed in to again."""
    expire_sign_in_links(user)  # first: one that is used in between would leave a session
    end_sessions(user, by=by)
    revoke_all_tokens(user, by=by)


def disable_account(user: User, *, by: User) -> None:
    """End all sessions, tokens and links of an account, and refuse new ones. Its reviews are kept.

    They also end for accounts that the person made or made links for and in which nobody has set a password: the
    person could be signed in there.
    """
    if user == by:
        raise InputRefused("You can’t disable your own account. Ask another site administrator.")
    with transaction.atomic():
        User.objects.filter(pk=user.pk).update(is_active=False)
        end_access(user, by=by)
        for account in list_accounts_opened_by(user):
            end_access(account, by=by)
        record_event("disabled account", user, user=by, evaluation=None)
        record_security_event(SecurityEventKind.ACCOUNT_DISABLED, user, by=by)
    release_departed_reservations(RELEASED_AT_ONCE, of=user, by=by)


def list_accounts_opened_by(user: User) -> "QuerySet[User]":
    """Accounts without a password that this person created or made sign-in links for."""
    links = SecurityEvent.objects.filter(kind=SecurityEventKind.LINK_MADE, by=user)
    return list_unclaimed().filter(Q(created_by=user) | Q(pk__in=links.values("user"))).exclude(pk=user.pk)


@transaction.atomic
def enable_account(user: User, *, by: User) -> None:
    """Let an account be used again. What was made before it was disabled stays ended."""
    end_access(user, by=by)  # a sign-in that was under way when the account was disabled left a session
    User.objects.filter(pk=user.pk).update(is_active=True)
    record_event("enabled account", user, user=by, evaluation=None)
    record_security_event(SecurityEventKind.ACCOUNT_ENABLED, user, by=by)


def expire_sign_in_links(user: User) -> None:
    SignInLink.objects.filter(user=user, used_at__isnull=True, expires_at__gt=Now()).update(expires_at=Now())
