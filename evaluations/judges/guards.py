"""Lookups that return a row the user may open, or a 404."""

from typing import Final

from django.shortcuts import get_object_or_404

from evaluations.access import Action, is_allowed, require_evaluation, require_site_administrator
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.runs import Call, Run
from evaluations.web.requests import AuthenticatedRequest

CALL_RELATIONS: Final = (
    *("judge__evaluation", "run", "copied_from__judge", "source_import", "confirmed_by"),
    *("comparison__query", "response__query", "response__candidate"),
)
JUDGE_RELATIONS: Final = ("endpoint", "rubric_version__rubric")
RUN_RELATIONS: Final = ("judge__rubric_version__rubric", "judge__endpoint", "user", "evaluation")


def get_call_or_404(request: AuthenticatedRequest, slug: str, pk: int, action: Action) -> Call:
    evaluation = require_evaluation(request.user, slug, action)
    return get_object_or_404(Call.all_rows.select_related(*CALL_RELATIONS), judge__evaluation=evaluation, pk=pk)


def get_endpoint_or_404(request: AuthenticatedRequest, pk: int) -> Endpoint:
    require_site_administrator(request.user)
    return get_object_or_404(Endpoint, pk=pk)


def get_judge_or_404(request: AuthenticatedRequest, slug: str, pk: int, action: Action = Action.LOOK) -> Judge:
    evaluation = require_evaluation(request.user, slug, action)
    row = get_object_or_404(Judge.objects.select_related(*JUDGE_RELATIONS), evaluation=evaluation, pk=pk)
    row.evaluation = evaluation
    return row


def get_run_or_404(request: AuthenticatedRequest, slug: str, pk: int, action: Action = Action.LOOK) -> Run:
    evaluation = require_evaluation(request.user, slug, action)
    return get_object_or_404(Run.objects.select_related(*RUN_RELATIONS), evaluation=evaluation, pk=pk)


def may_see_calls(request: AuthenticatedRequest, evaluation: Evaluation) -> bool:
    """Replies contain choices: reviewers see how far a run is, and no calls."""
    return is_allowed(request.user, Action.SEE_ALL, evaluation)
