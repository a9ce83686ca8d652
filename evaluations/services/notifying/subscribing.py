"""Which addresses are told of what: made, changed, stopped and started again by people who run the evaluation."""

from collections.abc import Sequence
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from evaluations.domain import CHOSEN_KINDS, DeliveryState, HookKind, InputRefused
from evaluations.models import Announcement, Delivery, Evaluation, User, Webhook
from evaluations.outside.addresses import checked_hook_url, without_path
from evaluations.outside.hooks import new_secret
from evaluations.services.recording import record

MOST: Final = 20


def create_webhook(evaluation: Evaluation, *, url: str, kinds: Sequence[str], user: User | None) -> Webhook:
    """A webhook with a secret of its own, which its maker is shown once."""
    if evaluation.archived_at is not None:
        raise InputRefused("This evaluation is archived: nothing happens in it that could be told.")
    if Webhook.objects.filter(evaluation=evaluation).count() >= MOST:
        raise InputRefused(f"An evaluation has at most {MOST} webhooks: change one of those that are here.")
    webhook = Webhook(
        evaluation=evaluation, user=user, url=checked_hook_url(url), kinds=checked(kinds), secret=new_secret()
    )
    try:
        with transaction.atomic():
            webhook.save()
            after = {"url": without_path(webhook.url), "kinds": webhook.kinds}
            record("added", webhook, user=user, evaluation=evaluation, after=after)
    except IntegrityError:
        raise InputRefused("This address has a webhook already: change what it is sent instead.") from None
    return webhook


def checked(kinds: Sequence[str]) -> str:
    """In the one order of the list, whatever order they came in."""
    unknown = sorted(set(kinds) - {kind.value for kind in CHOSEN_KINDS})
    if unknown:
        raise InputRefused(f"“{unknown[0]}” is nothing to be told of: choose among {', '.join(CHOSEN_KINDS)}.")
    if not kinds:
        raise InputRefused("Choose at least one thing that it is to be told of.")
    return ",".join(kind for kind in CHOSEN_KINDS if kind in kinds)


@transaction.atomic
def change_kinds(webhook: Webhook, kinds: Sequence[str], *, user: User | None) -> None:
    before, webhook.kinds = webhook.kinds, checked(kinds)
    webhook.save(update_fields=["kinds"])
    states = {"before": {"kinds": before}, "after": {"kinds": webhook.kinds}}
    record("changed", webhook, user=user, evaluation=webhook.evaluation, **states)


@transaction.atomic
def stop(webhook: Webhook, *, user: User | None, reason: str = "") -> None:
    """Nothing more is sent: what waits is given up, and can be sent again by hand."""
    stopped = Webhook.objects.filter(pk=webhook.pk, stopped_at__isnull=True)
    if stopped.update(stopped_at=Now(), stop_reason=reason):
        waiting = Delivery.objects.filter(webhook=webhook, state=DeliveryState.WAITING)
        waiting.update(state=DeliveryState.FAILED, not_before=None, finished_at=Now())
        Announcement.objects.filter(webhook=webhook).delete()
        record("stopped", webhook, user=user, evaluation=webhook.evaluation, after={"reason": reason})
    webhook.refresh_from_db()


@transaction.atomic
def start(webhook: Webhook, *, user: User | None) -> None:
    """From now on it is told again; what happened meanwhile it is not told."""
    stopped = Webhook.objects.filter(pk=webhook.pk, stopped_at__isnull=False)
    if stopped.update(stopped_at=None, stop_reason="", failures=0, paused_until=None):
        record("started", webhook, user=user, evaluation=webhook.evaluation)
    webhook.refresh_from_db()


@transaction.atomic
def renew_secret(webhook: Webhook, *, user: User | None) -> None:
    """Another secret, in force with the next try; the old one signs nothing more."""
    webhook.secret = new_secret()
    webhook.save(update_fields=["secret"])
    record("renewed secret", webhook, user=user, evaluation=webhook.evaluation)


def send_test(webhook: Webhook, *, user: User | None) -> None:
    """A message that says nothing but that messages come through."""
    refuse_stopped(webhook)
    with transaction.atomic():
        Announcement.objects.create(webhook=webhook, kind=HookKind.TEST, subject=webhook.pk)
        record("tested", webhook, user=user, evaluation=webhook.evaluation)


def send_again(delivery: Delivery, *, user: User | None) -> None:
    """The same message with the same id, once more and at once."""
    refuse_stopped(delivery.webhook)
    with transaction.atomic():
        ended = Delivery.objects.filter(pk=delivery.pk).exclude(state=DeliveryState.WAITING)
        if not ended.update(state=DeliveryState.WAITING, not_before=Now(), finished_at=None):
            raise InputRefused("This message is on its way already.")
        Webhook.objects.filter(pk=delivery.webhook_id).update(paused_until=None)
        record("sent again", delivery, user=user, evaluation=delivery.webhook.evaluation)


def refuse_stopped(webhook: Webhook) -> None:
    if webhook.stopped_at is not None:
        raise InputRefused("This webhook is stopped: start it first.")
