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
from evaluations.models.evaluations import Evaluation
from evaluations.models.queues import Queue
from evaluations.models.runs import Run
from evaluations.models.webhooks import Delivery, OutboxEntry, Webhook
from evaluations.reviews.queues.selectors import get_queue_statuses

Payload = dict[str, object]
Subject = tuple[int, str, int]  # webhook, kind, and what it is about

logger = logging.getLogger(__name__)

OUTBOX_BATCH_ROWS: Final = 500
SENT_ONCE: Final = (WebhookKind.ROUND_REVIEWED, WebhookKind.DISAGREEMENT_OPENED)


def create_due_messages() -> int:
    """Create messages from the current outbox entries. Returns how many."""
    noted: dict[Subject, list[int]] = defaultdict(list)
    rows = OutboxEntry.objects.order_by("pk").values_list("pk", "webhook_id", "kind", "subject")
    for pk, webhook, kind, subject in rows[:OUTBOX_BATCH_ROWS]:
        noted[webhook, kind, subject].append(pk)
    if not noted:
        return 0
    webhooks = Webhook.objects.select_related("evaluation").in_bulk({webhook for webhook, _, _ in noted})
    return sum(create_message_or_drop(webhooks[subject[0]], subject, ids) for subject, ids in noted.items())


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
    """One message of everything that was noted of one thing; what is noted meanwhile is looked into next time."""
    _, kind, about = subject
    data = PAYLOAD_BUILDERS[WebhookKind(kind)](webhook, about)
    body = json.dumps(
        {"type": kind, "timestamp": timezone.now().isoformat(timespec="seconds"), "data": data},
        ensure_ascii=False,
        sort_keys=True,
    )
    with transaction.atomic():
        # One at a time for each webhook, so that two workers do not tell the same of two reviews.
        Webhook.objects.select_for_update().get(pk=webhook.pk)
        taken, _ = OutboxEntry.objects.filter(pk__in=ids).delete()
        if not (taken and data) or (kind in SENT_ONCE and was_sent(webhook, kind, about)):
            return False
        Delivery.objects.create(webhook=webhook, kind=kind, subject=about, body=body, not_before=Now())
    return True


def build_run_payload(webhook: Webhook, pk: int) -> Payload:
    run = Run.objects.select_related("judge").get(pk=pk)
    return {
        **build_evaluation_payload(webhook.evaluation),
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
    about = Queue.objects.get(pk=pk)
    progress = get_queue_statuses([about])[pk]
    if progress.reviews < progress.wanted:
        return None
    return {
        **build_evaluation_payload(webhook.evaluation),
        "round": about.pk,
        "name": about.name,
        "kind": about.kind,
        "comparisons": progress.comparisons,
        "reviews": progress.reviews,
        "url": build_absolute_url("queue", webhook.evaluation.slug, about.pk),
    }


def build_disagreement_payload(webhook: Webhook, pk: int) -> Payload | None:
    """The payload if people differ on the comparison or differ from the shown judge, else None."""
    comparison = Comparison.objects.select_related("query").get(pk=pk)
    wanted = DisagreementFilter(webhook.evaluation, judge=get_disagreement_judge(webhook.evaluation))
    still_open = get_disagreements(wanted, [pk])[pk]
    if not still_open:
        return None
    return {
        **build_evaluation_payload(webhook.evaluation),
        "comparison": pk,
        "query_id": comparison.query.key,
        "aspects": {one.aspect.key: [kind.value for kind in one.kinds] for one in still_open},
        "url": build_absolute_url("disagreement", webhook.evaluation.slug, pk),
    }


def build_test_payload(webhook: Webhook, pk: int) -> Payload:
    return {
        **build_evaluation_payload(webhook.evaluation),
        "url": build_absolute_url("webhook", webhook.evaluation.slug, pk),
    }


PAYLOAD_BUILDERS: Final[Mapping[WebhookKind, Callable[[Webhook, int], Payload | None]]] = {
    WebhookKind.RUN_FINISHED: build_run_payload,
    WebhookKind.RUN_STOPPED: build_run_payload,
    WebhookKind.ROUND_REVIEWED: build_queue_payload,
    WebhookKind.DISAGREEMENT_OPENED: build_disagreement_payload,
    WebhookKind.TEST: build_test_payload,
}


def was_sent(webhook: Webhook, kind: str, subject: int) -> bool:
    return Delivery.objects.filter(webhook=webhook, kind=kind, subject=subject).exists()


def build_evaluation_payload(evaluation: Evaluation) -> Payload:
    return {"evaluation": evaluation.slug}


def build_absolute_url(name: str, *parts: object) -> str:
    return settings.ADDRESS + reverse(name, args=parts)
