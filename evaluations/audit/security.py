"""The record of sign-ins and refusals, with the address from which each came."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from evaluations.audit.events import CURRENT_TOKEN
from evaluations.domain.security import SecurityEventKind
from evaluations.models.sign_ins import SecurityEvent
from evaluations.models.users import User

DETAIL_CHARACTERS: Final = 300
DELETED_AT_ONCE: Final = 2_000
LATEST_EVENTS: Final = 20  # of an account, among which one is not repeated
# Strangers can add a failed sign-in with every request: beyond so many the oldest events go early.
MAX_EVENTS: Final = 500_000


@dataclass(frozen=True)
class Client:
    """Where a request comes from. The address is "" where it is not known."""

    address: str = ""
    user_agent: str = ""


CURRENT_CLIENT: "ContextVar[Client]" = ContextVar("client", default=Client())  # noqa: B039 - it is frozen


@contextmanager
def act_from(address: str, user_agent: str) -> Iterator[None]:
    """Every security event recorded inside has this address and browser."""
    before = CURRENT_CLIENT.set(Client(address, user_agent))
    try:
        yield
    finally:
        CURRENT_CLIENT.reset(before)


def get_client() -> Client:
    return CURRENT_CLIENT.get()


def record_security_event(
    kind: SecurityEventKind, user: User | None, *, by: User | None = None, detail: str = ""
) -> SecurityEvent:
    """Write one security event about the account. ``by``: who did it, where that is somebody else."""
    client = get_client()
    return SecurityEvent.objects.create(
        kind=kind,
        user=user,
        by=by if by != user else None,
        token=CURRENT_TOKEN.get(),
        address=client.address,
        user_agent=client.user_agent,
        detail=detail[:DETAIL_CHARACTERS],
    )


def record_failed_sign_in(user: User, detail: str) -> None:
    """Record the use of a sign-in link or token that no longer works. A repeat is not recorded again."""
    latest = SecurityEvent.objects.filter(user=user).order_by("-pk").values_list("kind", "address", "detail")
    if (SecurityEventKind.SIGN_IN_FAILED, get_client().address, detail) not in latest[:LATEST_EVENTS]:
        record_security_event(SecurityEventKind.SIGN_IN_FAILED, user, detail=detail)


def delete_old_security_events() -> None:
    """Delete some thousand events that are older than the setting says, or too many."""
    old = SecurityEvent.objects.filter(created_at__lt=timezone.now() - timedelta(days=settings.SECURITY_EVENT_DAYS))
    delete_some(old.order_by("created_at").values_list("pk", flat=True)[:DELETED_AT_ONCE])
    newest = SecurityEvent.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    beyond = SecurityEvent.objects.filter(pk__lte=newest - MAX_EVENTS).order_by("pk")
    delete_some(beyond.values_list("pk", flat=True)[:DELETED_AT_ONCE])


def delete_some(pks: "QuerySet[SecurityEvent, int]") -> None:
    SecurityEvent.objects.filter(pk__in=list(pks)).delete()
