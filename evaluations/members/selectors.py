"""Questions about accounts and tokens."""

from zoneinfo import available_timezones

from django.db.models import QuerySet
from django.utils import timezone

from evaluations.models.users import ApiToken, User


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
    users = User.objects.filter(username__iexact=name)
    return next((user for user in users if user.username == name), None) or users.first()
