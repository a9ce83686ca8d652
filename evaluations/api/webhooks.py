"""Other programs that are told what happens, and the log of what they were told."""

from typing import Any

from django.db.models import Prefetch
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query

from evaluations import access
from evaluations.access import Action
from evaluations.api.admission import person
from evaluations.api.forms import checked, sent
from evaluations.api.operations import Operations
from evaluations.api.paging import Paging, page_of
from evaluations.api.schemas.shared import NothingSent
from evaluations.api.schemas.webhooks import (
    DeliveryPage,
    DeliveryTold,
    TryTold,
    WebhookChange,
    WebhookMade,
    WebhookNew,
    WebhookPage,
    WebhookTold,
)
from evaluations.api.telling import anyone_told
from evaluations.domain import DeliveryState, HookKind, Scope
from evaluations.forms.webhooks import KindsForm, WebhookForm
from evaluations.models import Delivery, DeliveryTry, Webhook
from evaluations.services.notifying import subscribing

operations = Operations(tags=["webhooks"])
TRIES = Prefetch("tries", DeliveryTry.objects.order_by("number"))


@operations.get_one("/evaluations/{slug:slug}/webhooks", Scope.READ, WebhookPage)
def list_webhooks(request: HttpRequest, slug: str, paging: Query[Paging]) -> WebhookPage:
    evaluation = access.evaluation_for(person(request), slug, Action.MANAGE)
    rows, more = page_of(paging, evaluation.webhooks.select_related("user"))
    return WebhookPage(items=[told(row) for row in rows], next=more)


@operations.make("/evaluations/{slug:slug}/webhooks", Scope.ADMIN, WebhookMade, keeps=False)
def add_webhook(request: HttpRequest, slug: str, body: WebhookNew) -> WebhookMade:
    """An address that is told of these kinds of events from now on. Its secret is told once, here."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    asked = checked(WebhookForm(sent(body)))
    return made(subscribing.create_webhook(evaluation, url=asked["url"], kinds=asked["kinds"], user=user))


@operations.get_one("/evaluations/{slug:slug}/webhooks/{int:pk}", Scope.READ, WebhookTold)
def get_webhook(request: HttpRequest, slug: str, pk: int) -> WebhookTold:
    return told(webhook_for(request, slug, pk))


@operations.change("/evaluations/{slug:slug}/webhooks/{int:pk}", Scope.ADMIN, WebhookTold)
def change_webhook(request: HttpRequest, slug: str, pk: int, body: WebhookChange) -> WebhookTold:
    """What it is told of."""
    found = webhook_for(request, slug, pk)
    subscribing.change_kinds(found, checked(KindsForm(sent(body)))["kinds"], user=person(request))
    return told(found)


@operations.do("/evaluations/{slug:slug}/webhooks/{int:pk}/test", Scope.ADMIN, WebhookTold)
def send_test(request: HttpRequest, slug: str, pk: int, body: NothingSent | None = None) -> WebhookTold:
    """Send it a message that says nothing but that messages come through; look for it among its deliveries."""
    found = webhook_for(request, slug, pk)
    subscribing.send_test(found, user=person(request))
    return told(found)


@operations.do("/evaluations/{slug:slug}/webhooks/{int:pk}/stop", Scope.ADMIN, WebhookTold)
def stop_webhook(request: HttpRequest, slug: str, pk: int, body: NothingSent | None = None) -> WebhookTold:
    """Nothing more is sent to it; what waits is given up, and can be sent again."""
    found = webhook_for(request, slug, pk)
    subscribing.stop(found, user=person(request))
    return told(found)


@operations.do("/evaluations/{slug:slug}/webhooks/{int:pk}/start", Scope.ADMIN, WebhookTold)
def start_webhook(request: HttpRequest, slug: str, pk: int, body: NothingSent | None = None) -> WebhookTold:
    """It is told again from now on. What happened meanwhile it is not told."""
    found = webhook_for(request, slug, pk)
    subscribing.start(found, user=person(request))
    return told(found)


@operations.do("/evaluations/{slug:slug}/webhooks/{int:pk}/secret", Scope.ADMIN, WebhookMade, keeps=False)
def renew_webhook_secret(request: HttpRequest, slug: str, pk: int, body: NothingSent | None = None) -> WebhookMade:
    """Another secret, in force with the next try; the old one signs nothing more."""
    found = webhook_for(request, slug, pk)
    subscribing.renew_secret(found, user=person(request))
    return made(found)


@operations.get_one("/evaluations/{slug:slug}/webhooks/{int:pk}/deliveries", Scope.READ, DeliveryPage)
def list_deliveries(request: HttpRequest, slug: str, pk: int, paging: Query[Paging]) -> DeliveryPage:
    """Its messages, newest first, each with all its tries."""
    found = webhook_for(request, slug, pk)
    rows, more = page_of(paging, found.deliveries.prefetch_related(TRIES), newest_first=True)
    return DeliveryPage(items=[delivery_told(row) for row in rows], next=more)


@operations.do("/evaluations/{slug:slug}/webhooks/{int:pk}/deliveries/{int:delivery}/again", Scope.ADMIN, DeliveryTold)
def send_again(
    request: HttpRequest, slug: str, pk: int, delivery: int, body: NothingSent | None = None
) -> DeliveryTold:
    """The same message with the same id, once more and at once."""
    of_webhook = Delivery.objects.filter(webhook=webhook_for(request, slug, pk))
    found = of_webhook.select_related("webhook__evaluation").prefetch_related(TRIES)
    subscribing.send_again(get_object_or_404(found, pk=delivery), user=person(request))
    return delivery_told(found.get(pk=delivery))


def webhook_for(request: HttpRequest, slug: str, pk: int) -> Webhook:
    evaluation = access.evaluation_for(person(request), slug, Action.MANAGE)
    return get_object_or_404(evaluation.webhooks.select_related("evaluation", "user"), pk=pk)


def shown(row: Webhook) -> dict[str, Any]:
    return {
        "id": row.pk,
        "url": row.url,
        "kinds": list(row.wanted),
        "person": anyone_told(row.user),
        "created_at": row.created_at,
        "stopped_at": row.stopped_at,
        "stop_reason": row.stop_reason,
        "failures": row.failures,
        "paused_until": row.paused_until,
    }


def told(row: Webhook) -> WebhookTold:
    return WebhookTold(**shown(row))


def made(row: Webhook) -> WebhookMade:
    return WebhookMade(**shown(row), secret=row.secret)


def delivery_told(row: Delivery) -> DeliveryTold:
    return DeliveryTold(
        id=row.pk,
        key=row.key,
        kind=HookKind(row.kind),
        state=DeliveryState(row.state),
        body=row.body,
        created_at=row.created_at,
        not_before=row.not_before,
        finished_at=row.finished_at,
        tries=[
            TryTold(
                number=one.number,
                at=one.created_at,
                http_status=one.http_status,
                answer=one.answer,
                error=one.error,
                milliseconds=one.milliseconds,
            )
            for one in row.tries.all()
        ],
    )
