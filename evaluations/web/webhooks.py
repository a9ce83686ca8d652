"""Other programs that are told what happens: the list of an evaluation, and a new one."""

from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused
from evaluations.forms.webhooks import WebhookForm
from evaluations.models import Evaluation, User, Webhook
from evaluations.services.notifying.subscribing import create_webhook
from evaluations.web.paging import page_of
from evaluations.web.webhook import show_secret_once


@require_safe
def webhooks(request: HttpRequest, slug: str) -> HttpResponse:
    evaluation = access.evaluation_for(cast(User, request.user), slug, Action.MANAGE)
    page = page_of(request, evaluation.webhooks.select_related("user"))
    context = {"page": "evaluation_settings", "evaluation": evaluation, "webhooks": page}
    return render(request, "webhooks/webhooks.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def webhook_new(request: HttpRequest, slug: str) -> HttpResponse:
    evaluation = access.evaluation_for(cast(User, request.user), slug, Action.MANAGE)
    form = WebhookForm(request.POST if request.method == "POST" else None)
    if form.is_valid() and (webhook := created(request, evaluation, form)):
        show_secret_once(request, webhook)
        return redirect("webhook", slug, webhook.pk)
    context = {"page": "evaluation_settings", "evaluation": evaluation, "form": form}
    return render(request, "webhook_new/webhook_new.html", context, status=422 if form.is_bound else 200)


def created(request: HttpRequest, evaluation: Evaluation, form: WebhookForm) -> Webhook | None:
    asked = form.cleaned_data
    try:
        return create_webhook(evaluation, url=asked["url"], kinds=asked["kinds"], user=cast(User, request.user))
    except InputRefused as refused:
        form.add_error("url", str(refused))
        return None
