"""The throttle of passwords and tokens: how often somebody may try, and how long they wait after that."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.crypto import salted_hmac

from evaluations.audit.security import record_security_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.security import SecurityEventKind
from evaluations.models.sign_ins import Throttle
from evaluations.models.users import User
from evaluations.web.client_address import may_be_shared

# Tries are counted for a day from the first one.
COUNTED_FOR: Final = timedelta(days=1)
FIRST_WAIT_SECONDS: Final = 30
QUARTER_HOUR: Final = 15 * 60
HOUR: Final = 60 * 60
DELETED_AT_ONCE: Final = 2_000

# One address reaches fewer tries at a name in a day than all strangers together may make, so nobody can make others
# wait for a name on their own.
FREE_TRIES_AT_NAME_FROM_ADDRESS: Final = 5
FREE_TRIES_FROM_ADDRESS: Final = 30
FREE_TRIES_AT_NAME: Final = 50
FREE_TRIES_AT_NAME_WITHOUT_ADDRESS: Final = 20
FREE_TRIES_FROM_DEVICE: Final = 10
FREE_TRIES_IN_SESSION: Final = 5
FREE_UNKNOWN_TOKENS: Final = 60
FREE_JOINS_FROM_ADDRESS: Final = 30


@dataclass(frozen=True)
class Limit:
    """So many tries are free; from then on the wait doubles with each try, up to the longest."""

    key: str
    free: int
    longest_wait: int


def build_limit(free: int, longest_wait: int, *parts: object) -> Limit:
    text = "\x1f".join(map(str, parts))
    return Limit(salted_hmac("judgeweb.throttle", text, algorithm="sha256").hexdigest(), free, longest_wait)


def limits_of_sign_in(name: str, address: str, device: str) -> list[Limit]:
    """The limits of a password tried at a name.

    A browser that signed in to this account before (``device``) is counted on its own: strangers cannot make it wait.
    Where everyone may share the address, only the name counts.
    """
    if device:
        return [build_limit(FREE_TRIES_FROM_DEVICE, QUARTER_HOUR, "device", device, name)]
    if may_be_shared(address):
        return [build_limit(FREE_TRIES_AT_NAME_WITHOUT_ADDRESS, QUARTER_HOUR, "name without address", name)]
    return [
        build_limit(FREE_TRIES_AT_NAME_FROM_ADDRESS, HOUR, "name from address", name, address),
        build_limit(FREE_TRIES_FROM_ADDRESS, QUARTER_HOUR, "address", address),
        build_limit(FREE_TRIES_AT_NAME, QUARTER_HOUR, "name", name),
    ]


def limits_of_session(session_key: str) -> list[Limit]:
    """The limits of the present password asked within a session: another session of the account does not wait."""
    return [build_limit(FREE_TRIES_IN_SESSION, QUARTER_HOUR, "session", session_key)]


def limits_of_unknown_token(address: str) -> list[Limit]:
    return [] if may_be_shared(address) else [build_limit(FREE_UNKNOWN_TOKENS, QUARTER_HOUR, "token", address)]


def limits_of_join(address: str) -> list[Limit]:
    """The limits of join links that do not work."""
    return [] if may_be_shared(address) else [build_limit(FREE_JOINS_FROM_ADDRESS, QUARTER_HOUR, "join", address)]


class TooManyTries(InputRefused):
    """A try that was not made. ``seconds``: the wait until the next one is."""

    def __init__(self, seconds: int, advice: str = "") -> None:
        super().__init__(f"Too many tries. Wait {format_wait(seconds)} and try again{advice}.")
        self.seconds = seconds


def format_wait(seconds: int) -> str:
    """
    >>> format_wait(30), format_wait(61)
    ('30 seconds', '2 minutes')
    """
    if seconds < 60:
        return f"{seconds} second{'' if seconds == 1 else 's'}"
    minutes = -(-seconds // 60)
    return f"{minutes} minute{'' if minutes == 1 else 's'}"


def begin_try(limits: Sequence[Limit], *, user: User | None, advice: str = "") -> list[Throttle]:
    """Count a try before it is made, so that many at once count as many. Raises TooManyTries if it must wait.

    ``user``: the account that is tried, for the record. Pass the result to `forgive_try` if the try succeeds.
    """
    keys = [limit.key for limit in limits]
    waiting = Throttle.objects.filter(key__in=keys, blocked_until__gt=timezone.now())
    # A refusal costs no lock.
    if not waiting.exists() and (counted := count_try(limits)) is not None:
        return counted
    until = waiting.order_by("-blocked_until").values_list("blocked_until", flat=True).first()
    seconds = int((until - timezone.now()).total_seconds()) + 1 if until else 1
    refused = TooManyTries(max(seconds, 1), advice)
    if waiting.filter(is_recorded=False).update(is_recorded=True):
        record_security_event(SecurityEventKind.THROTTLED, user, detail=f"for {format_wait(refused.seconds)}")
    raise refused


@transaction.atomic
def count_try(limits: Sequence[Limit]) -> list[Throttle] | None:
    """Count a try in the locked rows of all its limits, or in none: None if one of them must wait."""
    now = timezone.now()
    by_key = {limit.key: limit for limit in limits}
    rows = lock_rows(sorted(by_key), now)
    if any(row.blocked_until is not None and row.blocked_until > now for row in rows):
        return None
    for row in rows:
        if row.ends_at <= now:
            row.tries, row.ends_at = 0, now + COUNTED_FOR
        row.tries += 1
        row.blocked_until = find_end_of_wait(row.tries, by_key[row.key], now)
        row.is_recorded = False
    Throttle.objects.bulk_update(rows, ["tries", "blocked_until", "is_recorded", "ends_at"])
    return rows


def lock_rows(keys: Sequence[str], now: datetime) -> list[Throttle]:
    """The rows of these keys, made where they are missing. Everyone locks in one order, so nobody waits in a circle."""
    rows: list[Throttle] = []
    while len(rows) < len(keys):  # the sweep may delete an expired row in between
        Throttle.objects.bulk_create(
            [Throttle(key=key, ends_at=now + COUNTED_FOR) for key in keys], ignore_conflicts=True
        )
        rows = list(Throttle.objects.select_for_update().filter(key__in=keys).order_by("key"))
    return rows


def find_end_of_wait(tries: int, limit: Limit, now: datetime) -> datetime | None:
    if tries < limit.free:
        return None
    doublings = min(tries - limit.free, 20)
    return now + timedelta(seconds=min(FIRST_WAIT_SECONDS * 2**doublings, limit.longest_wait))


def forgive_try(counted: Sequence[Throttle]) -> None:
    """Take back a try that succeeded. Failed tries before it stay counted: the next success may be somebody else's."""
    for row in counted:
        same = Throttle.objects.filter(pk=row.pk, tries=row.tries)
        same.update(tries=F("tries") - 1, blocked_until=None)


def delete_expired_throttles() -> None:
    """Delete some thousand rows that count no more. Others stay, however many names strangers invent."""
    expired = Throttle.objects.filter(ends_at__lt=timezone.now()).values_list("pk", flat=True)[:DELETED_AT_ONCE]
    Throttle.objects.filter(pk__in=list(expired), ends_at__lt=timezone.now()).delete()
