"""One webhook: what it is told, and the log of every message with its tries."""

from collections.abc import Callable
from typing import Final, cast

from django.contrib import messages
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused
from evaluations.forms.webhooks import KindsForm
from evaluations.models import Delivery, DeliveryTry, User, Webhook
from evaluations.services.notifying import subscribing
from evaluations.web.paging import page_of

SECRET: Final = "webhook_secret"


def show_secret_once(request: HttpRequest, webhook: Webhook) -> None:
    """On the next page that its maker sees of it, and never again."""
    request.session[SECRET] = [webhook.pk, webhook.secret]


def webhook_for(request: HttpRequest, slug: str, pk: int) -> Webhook:
    evaluation = access.evaluation_for(cast(User, request.user), slug, Action.MANAGE)
    return get_object_or_404(evaluation.webhooks.select_related("evaluation", "user"), pk=pk)


@never_cache
@require_safe
def webhook(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    found = webhook_for(request, slug, pk)
    return shown(request, found, KindsForm(initial={"kinds": list(found.wanted)}))


def shown(request: HttpRequest, found: Webhook, form: KindsForm, status: int = 200) -> HttpResponse:
    tries = Prefetch("tries", DeliveryTry.objects.order_by("number"))
    log = page_of(request, found.deliveries.prefetch_related(tries), newest_first=True)
    secret_of, secret = request.session.pop(SECRET, (None, ""))
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
def webhook_kinds(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    found = webhook_for(request, slug, pk)
    form = KindsForm(request.POST)
    if not form.is_valid():
        return shown(request, found, form, status=422)
    subscribing.change_kinds(found, form.cleaned_data["kinds"], user=cast(User, request.user))
    messages.success(request, "Saved.")
    return redirect("webhook", slug, pk)


@require_POST
def webhook_test(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    told = "A test message is on its way: it stands here within some seconds."
    return done(request, slug, pk, subscribing.send_test, told)


@require_POST
def webhook_stop(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    return done(request, slug, pk, subscribing.stop, "Stopped: nothing more is sent to it until you start it again.")


@require_POST
def webhook_start(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    return done(request, slug, pk, subscribing.start, "Started. What happened meanwhile it is not told.")


@require_POST
def webhook_secret(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    found = webhook_for(request, slug, pk)
    subscribing.renew_secret(found, user=cast(User, request.user))
    show_secret_once(request, found)
    return redirect("webhook", slug, pk)


@require_POST
def webhook_again(request: HttpRequest, slug: str, pk: int, delivery: int) -> HttpResponse:
    found = webhook_for(request, slug, pk)
    wanted = get_object_or_404(Delivery.objects.select_related("webhook__evaluation"), webhook=found, pk=delivery)

    def again(_: Webhook, *, user: User | None) -> None:
        subscribing.send_again(wanted, user=user)

    return done(request, slug, pk, again, "It is on its way again, with the same id.")


def done(request: HttpRequest, slug: str, pk: int, step: Callable[..., None], told: str) -> HttpResponse:
    try:
        step(webhook_for(request, slug, pk), user=cast(User, request.user))
    except InputRefused as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, told)
    return redirect("webhook", slug, pk)
