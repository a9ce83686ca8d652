"""Webhooks with their outbox, deliveries and attempts."""

import uuid

from django.db import models
from django.db.models import Q

from evaluations.domain.events import DeliveryState, WebhookKind
from evaluations.models.base import Row, enum_choices, enum_constraint
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User


class Webhook(Row):
    """An address that receives some kinds of events. ``kinds``: values of WebhookKind, separated by commas.

    ``secret`` signs every message. ``failures`` in a row pause it until ``paused_until``; a stopped one is told
    nothing, and ``stop_reason`` says why where no person stopped it.
    """

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="webhooks")
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="webhooks")
    url = models.URLField(max_length=500)
    kinds = models.CharField(max_length=200)
    secret = models.CharField(max_length=80)
    failures = models.PositiveIntegerField(default=0)
    paused_until = models.DateTimeField(null=True)
    stopped_at = models.DateTimeField(null=True)
    stop_reason = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["evaluation", "url"], name="webhook_once")]

    def __str__(self) -> str:
        return self.url

    @property
    def subscribed_kinds(self) -> tuple[WebhookKind, ...]:
        return tuple(WebhookKind(kind) for kind in self.kinds.split(",") if kind)


class OutboxEntry(Row):
    """An outbox row, written with the change, from which deliveries are made in the background."""

    webhook = models.ForeignKey(Webhook, on_delete=models.PROTECT, related_name="outbox_entries")
    kind = models.CharField(max_length=20, choices=enum_choices(WebhookKind))
    subject = models.BigIntegerField()

    class Meta:
        constraints = [enum_constraint("kind", WebhookKind, "outbox_entry_kind")]


class Delivery(Row):
    """One message to one webhook. All attempts have the same ``key``, so a receiver can recognize repeats."""

    webhook = models.ForeignKey(Webhook, on_delete=models.PROTECT, related_name="deliveries", db_index=False)
    kind = models.CharField(max_length=20, choices=enum_choices(WebhookKind))
    subject = models.BigIntegerField()
    key = models.UUIDField(default=uuid.uuid4, unique=True)
    body = models.TextField()
    state = models.CharField(max_length=10, default=DeliveryState.WAITING.value, choices=enum_choices(DeliveryState))
    not_before = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "deliveries"
        constraints = [
            enum_constraint("kind", WebhookKind, "delivery_kind"),
            enum_constraint("state", DeliveryState, "delivery_state"),
            models.CheckConstraint(
                condition=Q(state=DeliveryState.WAITING.value, not_before__isnull=False, finished_at__isnull=True)
                | (~Q(state=DeliveryState.WAITING.value) & Q(finished_at__isnull=False)),
                name="delivery_waits_or_ended",
            ),
        ]
        indexes = [
            models.Index(
                fields=["not_before"], condition=Q(state=DeliveryState.WAITING.value), name="delivery_waiting"
            ),
            models.Index(fields=["webhook", "-id"], name="delivery_newest"),
            models.Index(fields=["webhook", "kind", "subject"], name="delivery_of_subject"),
        ]

    @property
    def last_attempt(self) -> "DeliveryAttempt | None":
        return max(self.attempts.all(), key=lambda attempt: attempt.number, default=None)


class DeliveryAttempt(Row):
    """One request with a message: the status that came back, or why none did."""

    delivery = models.ForeignKey(Delivery, on_delete=models.PROTECT, related_name="attempts", db_index=False)
    number = models.PositiveSmallIntegerField()
    http_status = models.PositiveSmallIntegerField(null=True)
    answer = models.TextField(blank=True)
    error = models.CharField(max_length=300, blank=True)
    milliseconds = models.PositiveIntegerField()

    class Meta:
        verbose_name_plural = "delivery attempts"
        constraints = [models.UniqueConstraint(fields=["delivery", "number"], name="delivery_attempt_once")]
