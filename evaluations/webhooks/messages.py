"""Messages to webhooks, made from the entries of the outbox."""

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Final

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from evaluations.disagreements.selectors import DisagreementFilter, get_disagreement_judge, get_disagreements
from evaluations.domain.events import WebhookKind
from evaluations.domain.money import format_exact_usd
from evaluations.judges.runs.selectors import count_calls_by_state
from evaluations.models.comparisons import Comparison
from evaluations.models.queues import Queue
from evaluations.models.runs import Run
from evaluations.models.webhooks import Delivery, OutboxEntry, Webhook
from evaluations.reviews.queues.selectors import get_queue_statuses

Payload = dict[str, object]
Subject = tuple[int, str, int]  # webhook, kind, and what it is about

logger = logging.getLogger(__name__)

OUTBOX_BATCH_ROWS: Final = 500
SENT_ONCE: Final = (WebhookKind.QUEUE_REVIEWED, WebhookKind.DISAGREEMENT_OPENED)


def create_due_messages() -> int:
    """Create messages from the current outbox entries. Returns how many."""
    entries: dict[Subject, list[int]] = defaultdict(list)
    rows = OutboxEntry.objects.order_by("pk").values_list("pk", "webhook_id", "kind", "subject")
    for pk, webhook, kind, subject in rows[:OUTBOX_BATCH_ROWS]:
        entries[webhook, kind, subject].append(pk)
    webhooks = Webhook.objects.select_related("evaluation").in_bulk({webhook for webhook, _, _ in entries})
    return sum(create_message_or_drop(webhooks[subject[0]], subject, ids) for subject, ids in entries.items())


def create_message_or_drop(webhook: Webhook, subject: Subject, ids: list[int]) -> bool:
    """Create a message; an entry that fails is logged and dropped, or kept if the database failed."""
    try:
        return create_message(webhook, subject, ids)
    except DatabaseError:
        logger.exception("webhook %s: %s of %s is not sent yet", *subject)
    except Exception:
        logger.exception("webhook %s: %s of %s cannot be sent", *subject)
        OutboxEntry.objects.filter(pk__in=ids).delete()
    return False


def create_message(webhook: Webhook, subject: Subject, ids: list[int]) -> bool:
    """Create one message from these outbox entries on one subject; entries that come meanwhile make the next one."""
    _, kind, subject_id = subject
    payload = PAYLOAD_BUILDERS[WebhookKind(kind)](webhook, subject_id)
    data = payload and {"evaluation": webhook.evaluation.slug, **payload}
    message = {"type": kind, "timestamp": timezone.now().isoformat(timespec="seconds"), "data": data}
    body = json.dumps(message, ensure_ascii=False, sort_keys=True)
    with transaction.atomic():
        # One at a time for each webhook, so that two workers do not send the same message for two reviews.
        Webhook.objects.select_for_update().get(pk=webhook.pk)
        deleted, _ = OutboxEntry.objects.filter(pk__in=ids).delete()
        if not (deleted and data) or (kind in SENT_ONCE and was_sent(webhook, kind, subject_id)):
            return False
        Delivery.objects.create(webhook=webhook, kind=kind, subject=subject_id, body=body, not_before=Now())
    return True


def build_run_payload(webhook: Webhook, pk: int) -> Payload:
    run = Run.objects.select_related("judge").get(pk=pk)
    return {
        "run": run.pk,
        "judge": run.judge.name,
        "model": run.judge.model,
        "state": run.state,
        "stop_reason": run.stop_reason,
        "calls": count_calls_by_state(run),
        "spent_usd": format_exact_usd(run.spent),
        "url": build_absolute_url("run", webhook.evaluation.slug, run.pk),
    }


def build_queue_payload(webhook: Webhook, pk: int) -> Payload | None:
    """The payload once the queue has every review that it wants, else None."""
    queue = Queue.objects.get(pk=pk)
    status = get_queue_statuses([queue])[pk]
    if status.reviews < status.wanted:
        return None
    return {
        "queue": queue.pk,
        "name": queue.name,
        "kind": queue.kind,
        "comparisons": status.comparisons,
        "reviews": status.reviews,
        "url": build_absolute_url("queue", webhook.evaluation.slug, queue.pk),
    }


def build_disagreement_payload(webhook: Webhook, pk: int) -> Payload | None:
    """The payload if people differ on the comparison or differ from the shown judge, else None."""
    comparison = Comparison.objects.select_related("query").get(pk=pk)
    open_ones = DisagreementFilter(webhook.evaluation, judge=get_disagreement_judge(webhook.evaluation))
    disagreements = get_disagreements(open_ones, [pk])[pk]
    if not disagreements:
        return None
    return {
        "comparison": pk,
        "query_id": comparison.query.key,
        "aspects": {entry.aspect.key: [kind.value for kind in entry.kinds] for entry in disagreements},
        "url": build_absolute_url("disagreement", webhook.evaluation.slug, pk),
    }


def build_test_payload(webhook: Webhook, pk: int) -> Payload:
    return {"url": build_absolute_url("webhook", webhook.evaluation.slug, pk)}


PAYLOAD_BUILDERS: Final[Mapping[WebhookKind, Callable[[Webhook, int], Payload | None]]] = {
    WebhookKind.RUN_FINISHED: build_run_payload,
    WebhookKind.RUN_STOPPED: build_run_payload,
    WebhookKind.QUEUE_REVIEWED: build_queue_payload,
    WebhookKind.DISAGREEMENT_OPENED: build_disagreement_payload,
    WebhookKind.TEST: build_test_payload,
}


def was_sent(webhook: Webhook, kind: str, subject: int) -> bool:
    return Delivery.objects.filter(webhook=webhook, kind=kind, subject=subject).exists()


def build_absolute_url(name: str, *parts: object) -> str:
    return settings.ADDRESS + reverse(name, args=parts)
