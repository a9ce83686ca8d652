"""Questions about accounts, tokens, sessions and invitations."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from zoneinfo import available_timezones

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from evaluations.access import Right, has_right, list_unclaimed
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
)


def list_active_tokens(user: User) -> "QuerySet[ApiToken]":
    """The tokens of this person that open anything, newest first."""
    mine: QuerySet[ApiToken] = ApiToken.objects.filter(user=user, revoked_at__isnull=True)
    return mine.filter(expires_at__gt=timezone.now()).select_related("evaluation").order_by("-pk")


def list_time_zones() -> list[str]:
    """Zones by region and city; the old abbreviations (EST5EDT, Zulu, …) are left out."""
    return ["UTC", *sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))]


def find_account(username: str) -> User | None:
    """The account of that name; another spelling in capitals and small letters finds it too."""
    name = User.normalize_username(username.strip())
    if len(name) > MAX_USERNAME_CHARACTERS:  # SQLite refuses to look for very long ones
        return None
    users = list(User.objects.filter(username__iexact=name).order_by("pk"))  # one query, found or not
    # PostgreSQL finds “admin” by “admın” too, which is counted as another name where tries are counted.
    same = [user for user in users if fold_username(user.username) == fold_username(name)]
    return next((user for user in same if user.username == name), next(iter(same), None))


def list_active_sessions(user: User) -> "QuerySet[Session]":
    """The sessions of this person that have not ended, the one used last first."""
    now = timezone.now()
    seen_after = now - timedelta(hours=settings.SESSION_IDLE_HOURS)
    mine: QuerySet[Session] = Session.objects.filter(user=user, expire_date__gt=now, last_seen_at__gt=seen_after)
    return mine.order_by("-last_seen_at", "-created_at")


def list_security_events(user: User | None = None) -> "QuerySet[SecurityEvent]":
    """The record of sign-ins, of the whole site or of one account."""
    events = SecurityEvent.objects.select_related("user", "by", "token")
    return events if user is None else events.filter(user=user)


def list_invitations(evaluation: Evaluation) -> "QuerySet[Invitation]":
    """The pending invitations of an evaluation. Declined ones are among them: an owner learns of neither."""
    return Invitation.objects.filter(evaluation=evaluation).select_related("invited_by").order_by("pk")


def list_invitations_for(user: User) -> "QuerySet[Invitation]":
    """The invitations that this person has neither accepted nor declined."""
    open_ones = Invitation.objects.filter(name_key=fold_username(user.username), declined_at__isnull=True)
    return open_ones.select_related("evaluation", "invited_by").order_by("-pk")


@dataclass(frozen=True)
class UnclaimedAccount:
    """An account without a password: who made it could sign in as it. The counts are of what opens it now.

    ``maker`` and ``made_for`` are "" where the viewer may not know them.
    """

    maker: str
    made_for: str
    sessions: int
    tokens: int
    links: int


def describe_unclaimed(users: Sequence[User], viewer: User) -> dict[int, UnclaimedAccount]:
    """By user id, for those of the users who have no password yet."""
    unclaimed = list(
        list_unclaimed()
        .filter(pk__in=[user.pk for user in users], is_active=True)
        .select_related("created_by", "created_for")
    )
    if not unclaimed:
        return {}
    pks = [user.pk for user in unclaimed]
    seen_after = timezone.now() - timedelta(hours=settings.SESSION_IDLE_HOURS)
    now = timezone.now()
    sessions = Session.objects.filter(expire_date__gt=now, last_seen_at__gt=seen_after)
    tokens = ApiToken.objects.filter(revoked_at__isnull=True, expires_at__gt=now)
    links = SignInLink.objects.filter(used_at__isnull=True, expires_at__gt=now)
    counts = [Counter(rows.filter(user__in=pks).values_list("user", flat=True)) for rows in (sessions, tokens, links)]
    sees_accounts = has_right(viewer, Right.CREATE_ACCOUNTS)
    of_viewer = set(Membership.objects.filter(user=viewer).values_list("evaluation", flat=True))
    return {
        user.pk: UnclaimedAccount(
            user.created_by.username if user.created_by and (sees_accounts or user.created_by == viewer) else "",
            user.created_for.name if user.created_for and user.created_for_id in of_viewer else "",
            *(count[user.pk] for count in counts),
        )
        for user in unclaimed
    }
