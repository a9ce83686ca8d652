"""The activity log: each change writes one event in its own transaction."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.db import models

from evaluations.audit.outbox import write_to_outbox
from evaluations.domain.json_values import JsonMapping
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.users import ApiToken, User

# With which token the request at hand came in: a service need not be told, and cannot forget it.
CURRENT_TOKEN: "ContextVar[ApiToken | None]" = ContextVar("through", default=None)


@contextmanager
def act_with_token(token: ApiToken) -> Iterator[None]:
    """Every event recorded inside is attributed to this API token."""
    before = CURRENT_TOKEN.set(token)
    try:
        yield
    finally:
        CURRENT_TOKEN.reset(before)


def record_event(
    verb: str,
    about: models.Model,
    *,
    user: User | None,
    evaluation: Evaluation | None,
    before: JsonMapping | None = None,
    after: JsonMapping | None = None,
) -> Event:
    """Write one Event in the transaction of the change, with its outbox entries for webhooks."""
    write_to_outbox(verb, about, evaluation)
    return Event.objects.create(
        verb=verb,
        object_type=about._meta.model_name or "",
        object_id=about.pk,
        user=user,
        evaluation=evaluation,
        token=CURRENT_TOKEN.get(),
        before=dict(before or {}),
        after=dict(after or {}),
    )
