"""The pages of webhooks: the list, a new webhook, the log of its deliveries."""

from collections.abc import Callable
from typing import Final

from django.contrib import messages
from django.db.models import Prefetch
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evaluations.access import Action, require_evaluation
from evaluations.domain.errors import InputRefused
from evaluations.models.users import User
from evaluations.models.webhooks import Delivery, DeliveryAttempt, Webhook
from evaluations.web.forms import add_refusal
from evaluations.web.pagination import paginate
from evaluations.web.requests import AuthenticatedRequest
from evaluations.web.sorting import NEWEST_FIRST
from evaluations.webhooks.forms import WebhookForm, WebhookKindsForm
from evaluations.webhooks.requests import get_webhook_or_404
from evaluations.webhooks.services import (
    change_webhook_kinds,
    create_webhook,
    resend_delivery,
    rotate_secret,
    send_test_message,
    start_deliveries,
    stop_deliveries,
)

SECRET_SESSION_KEY: Final = "webhook_secret"


def redirect_with_secret(request: AuthenticatedRequest, slug: str, row: Webhook) -> HttpResponse:
    """Show the secret on the webhook's page once."""
    request.session[SECRET_SESSION_KEY] = [row.pk, row.secret]
    return redirect("webhook", slug, row.pk)


@never_cache
@require_safe
def webhook(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    row = get_webhook_or_404(request, slug, pk)
    return render_webhook(request, row, WebhookKindsForm(initial={"kinds": list(row.subscribed_kinds)}))


def render_webhook(
    request: AuthenticatedRequest, row: Webhook, form: WebhookKindsForm, status: int = 200
) -> HttpResponse:
    attempts = Prefetch("attempts", DeliveryAttempt.objects.order_by("number"))
    secret_of, secret = request.session.pop(SECRET_SESSION_KEY, (None, ""))
    context = {
        "page": "evaluation_settings",
        "evaluation": row.evaluation,
        "webhook": row,
        "form": form,
        "deliveries": paginate(request, row.deliveries.prefetch_related(attempts), sorting=NEWEST_FIRST),
        "secret": secret if secret_of == row.pk else "",
    }
    return render(request, "webhook/webhook.html", context, status=status)


@require_POST
def webhook_kinds(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    row = get_webhook_or_404(request, slug, pk)
    form = WebhookKindsForm(request.POST)
    if not form.is_valid():
        return render_webhook(request, row, form, status=422)
    change_webhook_kinds(row, form.cleaned_data["kinds"], user=request.user)
    messages.success(request, "Saved.")
    return redirect("webhook", slug, pk)


@require_POST
def webhook_test(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    message = "Test message sent. It appears here in a few seconds."
    return apply_and_redirect(request, slug, pk, send_test_message, message)


@require_POST
def webhook_stop(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    message = "Webhook stopped."
    return apply_and_redirect(request, slug, pk, stop_deliveries, message)


@require_POST
def webhook_start(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    return apply_and_redirect(request, slug, pk, start_deliveries, "Started. Events from the meantime are not sent.")


@require_POST
def webhook_secret(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    row = get_webhook_or_404(request, slug, pk)
    rotate_secret(row, user=request.user)
    return redirect_with_secret(request, slug, row)


@require_POST
def webhook_retry(request: AuthenticatedRequest, slug: str, pk: int, delivery: int) -> HttpResponse:
    deliveries = Delivery.objects.filter(webhook=get_webhook_or_404(request, slug, pk))
    row = get_object_or_404(deliveries.select_related("webhook__evaluation"), pk=delivery)

    def resend(_: Webhook, *, user: User | None) -> None:
        resend_delivery(row, user=user)

    return apply_and_redirect(request, slug, pk, resend, "Sending again with the same id.")


def apply_and_redirect(
    request: AuthenticatedRequest, slug: str, pk: int, change: Callable[..., None], message: str
) -> HttpResponse:
    try:
        change(get_webhook_or_404(request, slug, pk), user=request.user)
    except InputRefused as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, message)
    return redirect("webhook", slug, pk)


@require_safe
def webhooks(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    page = paginate(request, evaluation.webhooks.select_related("user"))
    context = {"page": "evaluation_settings", "evaluation": evaluation, "webhooks": page}
    return render(request, "webhooks/webhooks.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def webhook_new(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    form = WebhookForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            return redirect_with_secret(
                request, slug, create_webhook(evaluation, **form.cleaned_data, user=request.user)
            )
        except InputRefused as refused:
            add_refusal(form, refused, "url")
    context = {"page": "evaluation_settings", "evaluation": evaluation, "form": form}
    return render(request, "webhook_new/webhook_new.html", context, status=422 if form.is_bound else 200)
