"""Webhooks that requests name, or a 404."""

from django.shortcuts import get_object_or_404

from evaluations.access import Action, require_evaluation
from evaluations.models.webhooks import Webhook
from evaluations.web.requests import AuthenticatedRequest


def get_webhook_or_404(request: AuthenticatedRequest, slug: str, pk: int) -> Webhook:
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    return get_object_or_404(evaluation.webhooks.select_related("evaluation", "user"), pk=pk)
