"""Deliveries of messages: sent, logged, tried again for two days."""

from datetime import timedelta
from http import HTTPStatus
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.domain.events import DeliveryState, delivery_pause_seconds, next_delivery_seconds
from evaluations.jobs.kinds import JobClaim, JobKind, register_job_kind
from evaluations.jobs.queue import enqueue_jobs
from evaluations.models.jobs import Job
from evaluations.models.transactions import is_time_up
from evaluations.models.webhooks import Delivery, DeliveryAttempt, Webhook
from evaluations.net.webhook_client import WebhookAnswer, WebhookMessage, send_webhook_message
from evaluations.webhooks.services import stop_deliveries

DELIVER_JOB: Final = "deliver"
LOG_RETENTION_DAYS: Final = 30
DELETE_BATCH: Final = 500


def find_due_deliveries() -> "QuerySet[Delivery]":
    """The deliveries that may be tried now: none of a webhook that is stopped or paused."""
    is_free = Q(webhook__paused_until__isnull=True) | Q(webhook__paused_until__lte=Now())
    return Delivery.objects.filter(
        is_free, state=DeliveryState.WAITING, not_before__lte=Now(), webhook__stopped_at__isnull=True
    )


def enqueue_due_deliveries() -> None:
    """Enqueue a job for each webhook that has due deliveries and no job yet."""
    with_job = Job.objects.unfinished().filter(kind=DELIVER_JOB).values("subject")
    due = find_due_deliveries().exclude(webhook__in=with_job).order_by()
    webhooks = due.values_list("webhook", "webhook__evaluation").distinct()
    enqueue_jobs([Job(kind=DELIVER_JOB, subject=pk, evaluation_id=evaluation) for pk, evaluation in webhooks])


def deliver_for_a_while(claim: JobClaim) -> bool:
    """Send the due deliveries of one webhook, one after the other; whether no more are due."""
    while delivery := find_next_delivery(claim.job.subject):
        claim.heartbeat()
        send_delivery(delivery)
        if is_time_up(claim.until):
            return find_next_delivery(claim.job.subject) is None
    return True


# Receivers that hang must not take all threads of a worker.
register_job_kind(JobKind(DELIVER_JOB, deliver_for_a_while, per_worker=1))


def find_next_delivery(webhook_id: int) -> Delivery | None:
    """The due delivery that has waited longest."""
    due = find_due_deliveries().filter(webhook=webhook_id).select_related("webhook")
    return due.order_by("not_before", "pk").first()


def send_delivery(delivery: Delivery) -> None:
    webhook = delivery.webhook
    message = WebhookMessage(
        url=webhook.url,
        secret=webhook.secret,
        key=str(delivery.key),
        body=delivery.body,
        moment=int(timezone.now().timestamp()),
    )
    record_delivery_attempt(delivery, send_webhook_message(message, settings.WEBHOOK_NETWORKS))


@transaction.atomic
def record_delivery_attempt(delivery: Delivery, answer: WebhookAnswer) -> None:
    """Record the result of one attempt, and schedule the next one if it failed."""
    number = DeliveryAttempt.objects.filter(delivery=delivery).count() + 1
    DeliveryAttempt.objects.create(
        delivery=delivery,
        number=number,
        http_status=answer.http_status,
        answer=answer.text,
        error=answer.error,
        milliseconds=answer.milliseconds,
    )
    waiting = Delivery.objects.filter(pk=delivery.pk, state=DeliveryState.WAITING)
    if answer.is_taken:
        waiting.update(state=DeliveryState.DELIVERED, not_before=None, finished_at=Now())
        Webhook.objects.filter(pk=delivery.webhook_id).update(failures=0, paused_until=None)
        return
    schedule_next_attempt(delivery, number)
    if answer.http_status == HTTPStatus.GONE:
        reason = "The receiver answered 410 Gone: it wants no more messages."
        stop_deliveries(delivery.webhook, user=None, reason=reason)


def schedule_next_attempt(delivery: Delivery, tries: int) -> None:
    """Schedule the next attempt, or give up after the last; pause the webhook for all its deliveries."""
    waiting = Delivery.objects.filter(pk=delivery.pk, state=DeliveryState.WAITING)
    seconds = next_delivery_seconds(tries)
    if seconds is None:
        waiting.update(state=DeliveryState.FAILED, not_before=None, finished_at=Now())
    else:
        waiting.update(not_before=Now() + timedelta(seconds=seconds))
    webhook = Webhook.objects.select_for_update().get(pk=delivery.webhook_id)
    webhook.failures += 1
    pause = timedelta(seconds=delivery_pause_seconds(webhook.failures))
    Webhook.objects.filter(pk=webhook.pk).update(failures=webhook.failures, paused_until=Now() + pause)


def delete_old_deliveries() -> None:
    """Delete some of the deliveries that ended a month ago, with their attempts."""
    ended = Delivery.objects.filter(finished_at__lt=Now() - timedelta(days=LOG_RETENTION_DAYS)).order_by("pk")
    ids = list(ended.values_list("pk", flat=True)[:DELETE_BATCH])
    if ids:
        with transaction.atomic():
            DeliveryAttempt.objects.filter(delivery__in=ids).delete()
            Delivery.objects.filter(pk__in=ids).delete()
