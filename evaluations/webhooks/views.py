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
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.models.webhooks import Delivery, DeliveryAttempt, Webhook
from evaluations.web.forms import add_refusal
from evaluations.web.pagination import paginate
from evaluations.web.requests import AuthenticatedRequest
from evaluations.webhooks.forms import WebhookForm, WebhookKindsForm
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


def show_secret_once(request: AuthenticatedRequest, webhook: Webhook) -> None:
    """On the next page that its maker sees of it, and never again."""
    request.session[SECRET_SESSION_KEY] = [webhook.pk, webhook.secret]


def get_webhook_or_404(request: AuthenticatedRequest, slug: str, pk: int) -> Webhook:
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    return get_object_or_404(evaluation.webhooks.select_related("evaluation", "user"), pk=pk)


@never_cache
@require_safe
def webhook(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    found = get_webhook_or_404(request, slug, pk)
    return render_webhook(request, found, WebhookKindsForm(initial={"kinds": list(found.wanted)}))


def render_webhook(
    request: AuthenticatedRequest, found: Webhook, form: WebhookKindsForm, status: int = 200
) -> HttpResponse:
    attempts = Prefetch("attempts", DeliveryAttempt.objects.order_by("number"))
    log = paginate(request, found.deliveries.prefetch_related(attempts), newest_first=True)
    secret_of, secret = request.session.pop(SECRET_SESSION_KEY, (None, ""))
    context = {
        "page": "evaluation_settings",
        "evaluation": found.evaluation,
        "webhook": found,
        "form": form,
        "deliveries": log,
        "secret": secret if secret_of == found.pk else "",
    }
    return render(request, "webhook/webhook.html", context, status=status)


@require_POST
def webhook_kinds(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    found = get_webhook_or_404(request, slug, pk)
    form = WebhookKindsForm(request.POST)
    if not form.is_valid():
        return render_webhook(request, found, form, status=422)
    change_webhook_kinds(found, form.cleaned_data["kinds"], user=request.user)
    messages.success(request, "Saved.")
    return redirect("webhook", slug, pk)


@require_POST
def webhook_test(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    message = "Test message sent. It appears here in a few seconds."
    return apply_and_redirect(request, slug, pk, send_test_message, message)


@require_POST
def webhook_stop(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    return apply_and_redirect(
        request, slug, pk, stop_deliveries, "Stopped: nothing more is sent to it until you start it again."
    )


@require_POST
def webhook_start(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    return apply_and_redirect(request, slug, pk, start_deliveries, "Started. Events from the meantime are not sent.")


@require_POST
def webhook_secret(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    found = get_webhook_or_404(request, slug, pk)
    rotate_secret(found, user=request.user)
    show_secret_once(request, found)
    return redirect("webhook", slug, pk)


@require_POST
def webhook_again(request: AuthenticatedRequest, slug: str, pk: int, delivery: int) -> HttpResponse:
    found = get_webhook_or_404(request, slug, pk)
    wanted = get_object_or_404(Delivery.objects.select_related("webhook__evaluation"), webhook=found, pk=delivery)

    def again(_: Webhook, *, user: User | None) -> None:
        resend_delivery(wanted, user=user)

    return apply_and_redirect(request, slug, pk, again, "It is on its way again, with the same id.")


def apply_and_redirect(
    request: AuthenticatedRequest, slug: str, pk: int, step: Callable[..., None], message: str
) -> HttpResponse:
    try:
        step(get_webhook_or_404(request, slug, pk), user=request.user)
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
    if form.is_valid() and (webhook := create_from_form(request, evaluation, form)):
        show_secret_once(request, webhook)
        return redirect("webhook", slug, webhook.pk)
    context = {"page": "evaluation_settings", "evaluation": evaluation, "form": form}
    return render(request, "webhook_new/webhook_new.html", context, status=422 if form.is_bound else 200)


def create_from_form(request: AuthenticatedRequest, evaluation: Evaluation, form: WebhookForm) -> Webhook | None:
    asked = form.cleaned_data
    try:
        return create_webhook(evaluation, url=asked["url"], kinds=asked["kinds"], user=request.user)
    except InputRefused as refused:
        add_refusal(form, refused, "url")
        return None
