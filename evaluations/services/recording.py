"""The record of who did what: every service that changes something writes here."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db import models

from evaluations.models import ApiToken, Evaluation, Event, User
from evaluations.services.announcing import announce

# With which token the request at hand came in: a service need not be told, and cannot forget it.
THROUGH: "ContextVar[ApiToken | None]" = ContextVar("through", default=None)


@contextmanager
def through(token: ApiToken) -> Iterator[None]:
    """Whatever is recorded inside was done through the API, with this token."""
    before = THROUGH.set(token)
    try:
        yield
    finally:
        THROUGH.reset(before)


def record(
    verb: str,
    about: models.Model,
    *,
    user: User | None,
    evaluation: Evaluation | None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> Event:
    """Write one Event, in the transaction of the change that it tells of, and note it for webhooks."""
    announce(verb, about, evaluation)
    return Event.objects.create(
        verb=verb,
        object_type=about._meta.model_name or "",
        object_id=about.pk,
        user=user,
        evaluation=evaluation,
        token=THROUGH.get(),
        before=dict(before or {}),
        after=dict(after or {}),
    )
