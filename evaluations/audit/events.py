"""The activity log: each change writes one event, and the outbox entries of its webhooks, in its own transaction."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from django.db import models, transaction

from evaluations.domain.events import WebhookKind
from evaluations.domain.json_values import JsonMapping
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.queues import QueueSlot
from evaluations.models.users import ApiToken, User
from evaluations.models.verdicts import Review
from evaluations.models.webhooks import OutboxEntry, Webhook

logger = logging.getLogger(__name__)

# The token of the current request, which services need not pass on.
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


WebhookSubjects = Iterator[tuple[WebhookKind, int]]


def iterate_review_subjects(review: models.Model) -> WebhookSubjects:
    assert isinstance(review, Review)
    if not review.comparison.is_single:
        yield WebhookKind.DISAGREEMENT_OPENED, review.comparison_id
    # A review counts in every queue that holds its comparison.
    queues = QueueSlot.objects.filter(item__comparison=review.comparison_id, queue__closed_at__isnull=True)
    for pk in queues.values_list("queue", flat=True):
        yield WebhookKind.QUEUE_REVIEWED, pk


def build_run_subjects(kind: WebhookKind) -> Callable[[models.Model], WebhookSubjects]:
    return lambda run: iter([(kind, run.pk)])


# By the object type and the verb of an event.
SUBJECTS_BY_EVENT: Final[Mapping[tuple[str, str], Callable[[models.Model], WebhookSubjects]]] = {
    ("run", "finished"): build_run_subjects(WebhookKind.RUN_FINISHED),
    ("run", "stopped"): build_run_subjects(WebhookKind.RUN_STOPPED),
    ("review", "saved first choices"): iterate_review_subjects,
    ("review", "saved final choices"): iterate_review_subjects,
}


def write_to_outbox(verb: str, about: models.Model, evaluation: Evaluation | None) -> None:
    """Store an outbox entry for every webhook of the evaluation that subscribes to this kind of event."""
    subjects = SUBJECTS_BY_EVENT.get((about._meta.model_name or "", verb))
    if subjects is None or evaluation is None:
        return
    listening = list(Webhook.objects.filter(evaluation=evaluation, stopped_at__isnull=True))
    if not listening:
        return
    try:
        with transaction.atomic():
            save_outbox_entries(listening, subjects(about))
    except Exception:
        logger.exception("webhooks of %s: “%s” of %s %s was not noted", evaluation.slug, verb, about._meta, about.pk)


def save_outbox_entries(listening: Sequence[Webhook], subjects: WebhookSubjects) -> None:
    noted = list(subjects)
    OutboxEntry.objects.bulk_create(
        OutboxEntry(webhook=webhook, kind=kind, subject=subject)
        for webhook in listening
        for kind, subject in noted
        if kind in webhook.subscribed_kinds
    )
