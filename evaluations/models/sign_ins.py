"""Sessions, the throttle of passwords and the record of sign-ins."""

import secrets
from datetime import datetime
from typing import Any, Final

from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import connection, models

from evaluations.domain.security import SecurityEventKind
from evaluations.models.base import Row, enum_choices, enum_constraint
from evaluations.models.joined_rows import JoinedRow
from evaluations.models.users import ApiToken, User

# Programs in any language hold whole numbers up to 2⁵³ exactly; all between these have as many digits.
MIN_PUBLIC_ID: Final = 10**15
MAX_PUBLIC_ID: Final = 2**53 - 1


class Session(AbstractBaseSession):
    """A signed-in browser. Pages and the API name it by ``public_id``: its key is what signs in.

    ``expire_date`` is its end however much it is used, ``last_seen_at`` decides when it was idle for too long.
    """

    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="sessions")
    public_id = models.BigIntegerField(unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField(auto_now_add=True)
    address = models.CharField(max_length=64, blank=True)
    user_agent = models.CharField(max_length=200, blank=True)

    def __str__(self) -> str:
        return f"session {self.public_id}"

    def save(self, *args: Any, **options: Any) -> None:
        """Store changed data without the dates, which the session store does not know."""
        if self.public_id is None:
            self.public_id = MIN_PUBLIC_ID + secrets.randbelow(MAX_PUBLIC_ID - MIN_PUBLIC_ID + 1)
        if options.get("force_update"):
            options.setdefault("update_fields", ("session_data", "user"))
        super().save(*args, **options)


SESSION: Final = JoinedRow(Session, "s")
SESSION_USER: Final = JoinedRow(User, "u")

SELECT_SESSION: Final = f"""
SELECT {SESSION.columns}, {SESSION_USER.columns}
FROM evaluations_session s LEFT JOIN evaluations_user u ON u.id = s.user_id
WHERE s.session_key = %s AND s.expire_date > %s
"""


def find_session(key: str, now: datetime) -> Session | None:
    """The session with its user, if it has not expired: what nearly every request begins with."""
    with connection.cursor() as cursor:
        cursor.execute(SELECT_SESSION, [key, connection.ops.adapt_datetimefield_value(now)])
        row = cursor.fetchone()
    if row is None:
        return None
    values = iter(row)
    session = SESSION.build(values)
    session.user = SESSION_USER.build_if_any(values)
    return session


class Throttle(Row):
    """How often something was tried in vain, by a key that names the kind of try and who tried.

    The key is a hash: what strangers type as a name may be a password. A row may be deleted once ``ends_at`` is past.
    """

    key = models.CharField(max_length=64, unique=True)
    tries = models.PositiveIntegerField(default=0)
    blocked_until = models.DateTimeField(null=True)
    ends_at = models.DateTimeField(db_index=True)
    # Whether the refusal of this wait is on record already.
    is_recorded = models.BooleanField(default=False)


class SecurityEvent(Row):
    """A sign-in, a refusal or another moment in which who gets in was decided. Old ones are deleted.

    ``user`` is the account that it is about, ``by`` who did it where that is somebody else.
    """

    kind = models.CharField(max_length=32, choices=enum_choices(SecurityEventKind))
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="security_events", db_index=False)
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+", db_index=False)
    token = models.ForeignKey(ApiToken, on_delete=models.PROTECT, null=True, related_name="+", db_index=False)
    address = models.CharField(max_length=64, blank=True)
    user_agent = models.CharField(max_length=200, blank=True)
    detail = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [enum_constraint("kind", SecurityEventKind, "security_event_kind")]
        indexes = [
            models.Index(fields=["user", "-id"], name="security_event_of_user"),
            models.Index(fields=["token", "address"], name="security_event_of_token"),
            models.Index(fields=["created_at"], name="security_event_age"),
        ]
