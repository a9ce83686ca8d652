"""Webhooks in the API, with the log of their deliveries."""

from django.db.models import Prefetch
from django.shortcuts import get_object_or_404
from ninja import Query

from evaluations.access import Action, require_evaluation
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import PageQuery, paginate_by_cursor
from evaluations.api.schemas import EmptyIn
from evaluations.api.serializers import serialize_optional_user, serialize_row
from evaluations.domain.roles import Scope
from evaluations.models.webhooks import Delivery, DeliveryAttempt, Webhook
from evaluations.web.requests import AuthenticatedRequest
from evaluations.webhooks.requests import get_webhook_or_404
from evaluations.webhooks.schemas import (
    DeliveryAttemptOut,
    DeliveryOut,
    DeliveryPage,
    WebhookIn,
    WebhookOut,
    WebhookPage,
    WebhookPatch,
    WebhookSecretOut,
)
from evaluations.webhooks.services import (
    change_webhook_kinds,
    create_webhook,
    resend_delivery,
    rotate_secret,
    send_test_message,
    start_deliveries,
    stop_deliveries,
)

operations = OperationRouter(tags=["webhooks"])
ATTEMPTS_PREFETCH = Prefetch("attempts", DeliveryAttempt.objects.order_by("number"))


@operations.get_one("/evaluations/{slug:slug}/webhooks", Scope.READ, WebhookPage)
def list_webhooks(request: AuthenticatedRequest, slug: str, paging: Query[PageQuery]) -> WebhookPage:
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    rows, next_cursor = paginate_by_cursor(paging, evaluation.webhooks.select_related("user"))
    return WebhookPage(items=[build_webhook_out(row) for row in rows], next=next_cursor)


@operations.make("/evaluations/{slug:slug}/webhooks", Scope.ADMIN, WebhookSecretOut, keeps=False)
def add_webhook(request: AuthenticatedRequest, slug: str, body: WebhookIn) -> WebhookSecretOut:
    """Add a webhook. Only this response contains its secret."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    return build_webhook_secret_out(create_webhook(evaluation, url=body.url, kinds=body.kinds, user=user))


@operations.get_one("/evaluations/{slug:slug}/webhooks/{int:pk}", Scope.READ, WebhookOut)
def get_webhook(request: AuthenticatedRequest, slug: str, pk: int) -> WebhookOut:
    return build_webhook_out(get_webhook_or_404(request, slug, pk))


@operations.change("/evaluations/{slug:slug}/webhooks/{int:pk}", Scope.ADMIN, WebhookOut)
def change_webhook(request: AuthenticatedRequest, slug: str, pk: int, body: WebhookPatch) -> WebhookOut:
    """Change the events of a webhook."""
    row = get_webhook_or_404(request, slug, pk)
    change_webhook_kinds(row, body.kinds, user=request.user)
    return build_webhook_out(row)


@operations.do("/evaluations/{slug:slug}/webhooks/{int:pk}/test", Scope.ADMIN, WebhookOut)
def send_test(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> WebhookOut:
    """Send a test message."""
    row = get_webhook_or_404(request, slug, pk)
    send_test_message(row, user=request.user)
    return build_webhook_out(row)


@operations.do("/evaluations/{slug:slug}/webhooks/{int:pk}/stop", Scope.ADMIN, WebhookOut)
def stop_webhook(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> WebhookOut:
    """Stop a webhook. Waiting messages fail and can be sent again."""
    row = get_webhook_or_404(request, slug, pk)
    stop_deliveries(row, user=request.user)
    return build_webhook_out(row)


@operations.do("/evaluations/{slug:slug}/webhooks/{int:pk}/start", Scope.ADMIN, WebhookOut)
def start_webhook(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> WebhookOut:
    """Start a stopped webhook again. It does not receive earlier events."""
    row = get_webhook_or_404(request, slug, pk)
    start_deliveries(row, user=request.user)
    return build_webhook_out(row)


@operations.do("/evaluations/{slug:slug}/webhooks/{int:pk}/secret", Scope.ADMIN, WebhookSecretOut, keeps=False)
def renew_webhook_secret(
    request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None
) -> WebhookSecretOut:
    """Replace the secret. The next attempt is signed with the new one."""
    row = get_webhook_or_404(request, slug, pk)
    rotate_secret(row, user=request.user)
    return build_webhook_secret_out(row)


@operations.get_one("/evaluations/{slug:slug}/webhooks/{int:pk}/deliveries", Scope.READ, DeliveryPage)
def list_deliveries(request: AuthenticatedRequest, slug: str, pk: int, paging: Query[PageQuery]) -> DeliveryPage:
    """List messages, newest first, with all attempts."""
    deliveries = get_webhook_or_404(request, slug, pk).deliveries.prefetch_related(ATTEMPTS_PREFETCH)
    rows, next_cursor = paginate_by_cursor(paging, deliveries, newest_first=True)
    return DeliveryPage(items=[build_delivery_out(row) for row in rows], next=next_cursor)


@operations.do("/evaluations/{slug:slug}/webhooks/{int:pk}/deliveries/{int:delivery}/again", Scope.ADMIN, DeliveryOut)
def send_again(
    request: AuthenticatedRequest, slug: str, pk: int, delivery: int, body: EmptyIn | None = None
) -> DeliveryOut:
    """Send a message again immediately, with the same id."""
    of_webhook = Delivery.objects.filter(webhook=get_webhook_or_404(request, slug, pk))
    deliveries = of_webhook.select_related("webhook__evaluation").prefetch_related(ATTEMPTS_PREFETCH)
    resend_delivery(get_object_or_404(deliveries, pk=delivery), user=request.user)
    return build_delivery_out(deliveries.get(pk=delivery))


def build_webhook_out(row: Webhook) -> WebhookOut:
    return serialize_row(
        WebhookOut, row, kinds=list(row.subscribed_kinds), created_by=serialize_optional_user(row.user)
    )


def build_webhook_secret_out(row: Webhook) -> WebhookSecretOut:
    return WebhookSecretOut(**build_webhook_out(row).model_dump(), secret=row.secret)


def build_delivery_out(row: Delivery) -> DeliveryOut:
    attempts = row.attempts.all()
    tries = [serialize_row(DeliveryAttemptOut, attempt, at=attempt.created_at) for attempt in attempts]
    return serialize_row(DeliveryOut, row, tries=tries)
