"""Adding, changing, stopping or testing webhooks."""

from collections.abc import Sequence
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.events import SELECTABLE_WEBHOOK_KINDS, DeliveryState, WebhookKind
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.models.webhooks import Delivery, OutboxEntry, Webhook
from evaluations.net.addresses import check_webhook_url, url_without_path
from evaluations.net.webhook_client import create_webhook_secret

MAX_WEBHOOKS: Final = 20


def create_webhook(evaluation: Evaluation, *, url: str, kinds: Sequence[str], user: User | None) -> Webhook:
    """Create a webhook with its secret, which is shown once."""
    if evaluation.archived_at is not None:
        raise InputRefused("This evaluation is archived, so it has no new events.")
    if Webhook.objects.filter(evaluation=evaluation).count() >= MAX_WEBHOOKS:
        raise InputRefused(f"An evaluation can have {MAX_WEBHOOKS} webhooks. Change an existing one instead.")
    webhook = Webhook(
        evaluation=evaluation,
        user=user,
        url=check_webhook_url(url),
        kinds=validate_kinds(kinds),
        secret=create_webhook_secret(),
    )
    try:
        with transaction.atomic():
            webhook.save()
            after = {"url": url_without_path(webhook.url), "kinds": webhook.kinds}
            record_event("added", webhook, user=user, evaluation=evaluation, after=after)
    except IntegrityError:
        raise InputRefused("This address already has a webhook. Change its events instead.") from None
    return webhook


def validate_kinds(kinds: Sequence[str]) -> str:
    """Return the kinds in the order of the list, joined by commas."""
    unknown = sorted(set(kinds) - {kind.value for kind in SELECTABLE_WEBHOOK_KINDS})
    if unknown:
        raise InputRefused(
            f"“{unknown[0]}” is not an event. Choose among {', '.join(SELECTABLE_WEBHOOK_KINDS)}.", field="kinds"
        )
    if not kinds:
        raise InputRefused("Choose at least one event.", field="kinds")
    return ",".join(kind for kind in SELECTABLE_WEBHOOK_KINDS if kind in kinds)


@transaction.atomic
def change_webhook_kinds(webhook: Webhook, kinds: Sequence[str], *, user: User | None) -> None:
    before, webhook.kinds = webhook.kinds, validate_kinds(kinds)
    webhook.save(update_fields=["kinds"])
    kinds_before, kinds_after = {"kinds": before}, {"kinds": webhook.kinds}
    record_event("changed", webhook, user=user, evaluation=webhook.evaluation, before=kinds_before, after=kinds_after)


@transaction.atomic
def stop_deliveries(webhook: Webhook, *, user: User | None, reason: str = "") -> None:
    """Stop sending: waiting deliveries fail, and can be sent again by hand."""
    stopped = Webhook.objects.filter(pk=webhook.pk, stopped_at__isnull=True)
    if stopped.update(stopped_at=Now(), stop_reason=reason):
        waiting = Delivery.objects.filter(webhook=webhook, state=DeliveryState.WAITING)
        waiting.update(state=DeliveryState.FAILED, not_before=None, finished_at=Now())
        OutboxEntry.objects.filter(webhook=webhook).delete()
        record_event("stopped", webhook, user=user, evaluation=webhook.evaluation, after={"reason": reason})
    webhook.refresh_from_db()


@transaction.atomic
def start_deliveries(webhook: Webhook, *, user: User | None) -> None:
    """Send messages again from now on; events since it was stopped are not sent."""
    stopped = Webhook.objects.filter(pk=webhook.pk, stopped_at__isnull=False)
    if stopped.update(stopped_at=None, stop_reason="", failures=0, paused_until=None):
        record_event("started", webhook, user=user, evaluation=webhook.evaluation)
    webhook.refresh_from_db()


@transaction.atomic
def rotate_secret(webhook: Webhook, *, user: User | None) -> None:
    """Replace the secret; the next attempt is signed with the new one."""
    webhook.secret = create_webhook_secret()
    webhook.save(update_fields=["secret"])
    record_event("renewed secret", webhook, user=user, evaluation=webhook.evaluation)


def send_test_message(webhook: Webhook, *, user: User | None) -> None:
    """Send a message that only shows that messages arrive."""
    refuse_stopped_webhook(webhook)
    with transaction.atomic():
        OutboxEntry.objects.create(webhook=webhook, kind=WebhookKind.TEST, subject=webhook.pk)
        record_event("tested", webhook, user=user, evaluation=webhook.evaluation)


def resend_delivery(delivery: Delivery, *, user: User | None) -> None:
    """Send the same message with the same id again, immediately."""
    refuse_stopped_webhook(delivery.webhook)
    with transaction.atomic():
        ended = Delivery.objects.filter(pk=delivery.pk).exclude(state=DeliveryState.WAITING)
        if not ended.update(state=DeliveryState.WAITING, not_before=Now(), finished_at=None):
            raise InputRefused("This message is already being sent.")
        Webhook.objects.filter(pk=delivery.webhook_id).update(paused_until=None)
        record_event("sent again", delivery, user=user, evaluation=delivery.webhook.evaluation)


def refuse_stopped_webhook(webhook: Webhook) -> None:
    if webhook.stopped_at is not None:
        raise InputRefused("This webhook is stopped. Start it first.")
