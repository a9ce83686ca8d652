"""Imports that requests name, or a 404."""

from django.shortcuts import get_object_or_404

from evaluations.access import Action, require_evaluation
from evaluations.models.imports import Import
from evaluations.web.requests import AuthenticatedRequest


def get_import_or_404(request: AuthenticatedRequest, slug: str, pk: int) -> Import:
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    return get_object_or_404(evaluation.imports.select_related("evaluation", "user"), pk=pk)
