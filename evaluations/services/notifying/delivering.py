"""Messages on their way: one request at a time, stored with what came back, tried again for two days."""

import time
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.domain import DeliveryState, next_try_seconds, pause_seconds
from evaluations.models import Delivery, DeliveryTry, Webhook
from evaluations.outside.hooks import Answer, Message, send
from evaluations.services.notifying.subscribing import stop
from evaluations.services.pacing import time_is_up

# A try that did not come to its end, for its process was killed, is made again after so long.
LEASE_SECONDS: Final = 60
KEPT_DAYS: Final = 30
DROPPED_AT_ONCE: Final = 500
GONE: Final = 410


def deliver_due(*, seconds: float) -> bool:
    """Send what is due, one after the other, for so long. True where more is due."""
    until = time.monotonic() + seconds
    while delivery := claim():
        deliver(delivery)
        if time_is_up(until):
            return is_any_due()
    return False


def due() -> "Q":
    """What may be tried now: nothing of a webhook that is stopped, or left alone for a while."""
    free = Q(webhook__paused_until__isnull=True) | Q(webhook__paused_until__lte=Now())
    return free & Q(state=DeliveryState.WAITING, not_before__lte=Now(), webhook__stopped_at__isnull=True)


def is_any_due() -> bool:
    return Delivery.objects.filter(due()).exists()


def claim() -> Delivery | None:
    """The one that has waited longest, for this process alone while the lease lasts."""
    for delivery in Delivery.objects.filter(due()).select_related("webhook").order_by("not_before", "pk")[:10]:
        free = Delivery.objects.filter(pk=delivery.pk, state=DeliveryState.WAITING, not_before__lte=Now())
        if free.update(not_before=Now() + timedelta(seconds=LEASE_SECONDS)):
            return delivery
    return None


def deliver(delivery: Delivery) -> None:
    webhook = delivery.webhook
    message = Message(
        url=webhook.url,
        secret=webhook.secret,
        key=str(delivery.key),
        body=delivery.body,
        moment=int(timezone.now().timestamp()),
    )
    keep(delivery, send(message, settings.WEBHOOK_NETWORKS))


@transaction.atomic
def keep(delivery: Delivery, answer: Answer) -> None:
    """Write down what came of one try, and when the next one is."""
    number = DeliveryTry.objects.filter(delivery=delivery).count() + 1
    DeliveryTry.objects.create(
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
    put_off(delivery, number)
    if answer.http_status == GONE:
        stop(delivery.webhook, user=None, reason="The receiver answered 410 Gone: it wants no more messages.")


def put_off(delivery: Delivery, tries: int) -> None:
    """To its next try, or for good after the last; its receiver is left alone for a while, whatever else waits."""
    waiting = Delivery.objects.filter(pk=delivery.pk, state=DeliveryState.WAITING)
    seconds = next_try_seconds(tries)
    if seconds is None:
        waiting.update(state=DeliveryState.FAILED, not_before=None, finished_at=Now())
    else:
        waiting.update(not_before=Now() + timedelta(seconds=seconds))
    webhook = Webhook.objects.select_for_update().get(pk=delivery.webhook_id)
    webhook.failures += 1
    pause = timedelta(seconds=pause_seconds(webhook.failures))
    Webhook.objects.filter(pk=webhook.pk).update(failures=webhook.failures, paused_until=Now() + pause)


def drop_old() -> None:
    """The log of what ended a month ago, some at a time."""
    ended = Delivery.objects.filter(finished_at__lt=Now() - timedelta(days=KEPT_DAYS)).order_by("pk")
    ids = list(ended.values_list("pk", flat=True)[:DROPPED_AT_ONCE])
    if ids:
        with transaction.atomic():
            DeliveryTry.objects.filter(delivery__in=ids).delete()
            Delivery.objects.filter(pk__in=ids).delete()
