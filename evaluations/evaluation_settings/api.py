"""API operations on the settings, bars of decisions, guidelines and model families of an evaluation."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TypeVar

from django.db.models import Model, QuerySet
from django.shortcuts import get_object_or_404

from evaluations.access import Action, require_evaluation
from evaluations.api.operations import OperationRouter
from evaluations.api.problems import FieldError, Problem
from evaluations.api.serializers import serialize_row
from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Scope
from evaluations.evaluation_settings import services as settings_services
from evaluations.evaluation_settings.schemas import (
    CandidatePatch,
    DecisionBarsOut,
    DecisionBarsPatch,
    EvaluationSettingsOut,
    EvaluationSettingsPatch,
    FamiliesOut,
    FamiliesPatch,
    FamilyOut,
    GuidelinesOut,
)
from evaluations.evaluation_settings.selectors import (
    get_bars_set_at,
    list_candidates_and_judges,
    list_review_rubrics,
    list_showable_judges,
)
from evaluations.evaluation_settings.services import (
    change_bars,
    read_bars,
    read_settings,
    rename_candidates,
    set_families,
)
from evaluations.models.comparisons import Candidate
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["evaluations"])
R = TypeVar("R", bound=Model)


@operations.get_one("/evaluations/{slug:slug}/settings", Scope.READ, EvaluationSettingsOut)
def get_settings(request: AuthenticatedRequest, slug: str) -> EvaluationSettingsOut:
    """Get the rules by which the evaluation is reviewed and labeled, if you may change them."""
    return serialize_settings(require_evaluation(request.user, slug, Action.MANAGE))


@operations.change("/evaluations/{slug:slug}/settings", Scope.ADMIN, EvaluationSettingsOut)
def change_settings(request: AuthenticatedRequest, slug: str, body: EvaluationSettingsPatch) -> EvaluationSettingsOut:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    sent = body.sent_values()
    if body.review_rubric is not None:
        sent["review_rubric"] = find_sent_row(list_review_rubrics(evaluation), body.review_rubric, "review_rubric")
    if body.shown_judge is not None:
        sent["shown_judge"] = find_sent_row(list_showable_judges(evaluation), body.shown_judge, "shown_judge")
    settings = replace(read_settings(evaluation), **sent)
    return serialize_settings(settings_services.change_settings(evaluation, settings, user=user))


def find_sent_row(rows: QuerySet[R], pk: int, field: str) -> R:
    row = rows.filter(pk=pk).first()
    if row is None:
        raise InputRefused(f"{pk} is not available in this evaluation.", field=field)
    return row


def serialize_settings(evaluation: Evaluation) -> EvaluationSettingsOut:
    chosen = {"review_rubric": evaluation.review_rubric_id, "shown_judge": evaluation.shown_judge_id}
    return serialize_row(EvaluationSettingsOut, evaluation, **chosen)


@operations.get_one("/evaluations/{slug:slug}/decision-bars", Scope.READ, DecisionBarsOut)
def get_decision_bars(request: AuthenticatedRequest, slug: str) -> DecisionBarsOut:
    """Get the bars of decisions on judges, if you may change them."""
    return serialize_bars(require_evaluation(request.user, slug, Action.MANAGE))


@operations.change("/evaluations/{slug:slug}/decision-bars", Scope.ADMIN, DecisionBarsOut)
def change_decision_bars(request: AuthenticatedRequest, slug: str, body: DecisionBarsPatch) -> DecisionBarsOut:
    """Change the bars. A change after somebody looked at decisions is printed with every decision."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    bars = replace(read_bars(evaluation), **body.sent_values())
    return serialize_bars(change_bars(evaluation, bars, user=request.user))


def serialize_bars(evaluation: Evaluation) -> DecisionBarsOut:
    return DecisionBarsOut(
        **asdict(read_bars(evaluation)),
        set_at=get_bars_set_at(evaluation),
        results_seen_at=evaluation.results_seen_at,
    )


@operations.get_one("/evaluations/{slug:slug}/guidelines", Scope.READ, GuidelinesOut)
def get_guidelines(request: AuthenticatedRequest, slug: str) -> GuidelinesOut:
    """The guidelines for reviewers, as Markdown."""
    evaluation = require_evaluation(request.user, slug)
    return GuidelinesOut(guidelines=evaluation.guidelines, changed_at=evaluation.guidelines_changed_at)


@operations.get_one("/evaluations/{slug:slug}/model-families", Scope.READ, FamiliesOut)
def get_families(request: AuthenticatedRequest, slug: str) -> FamiliesOut:
    """The models and judges of an evaluation, with their model families."""
    return serialize_families(require_evaluation(request.user, slug, Action.MANAGE))


@operations.change("/evaluations/{slug:slug}/model-families", Scope.WRITE, FamiliesOut)
def change_families(request: AuthenticatedRequest, slug: str, body: FamiliesPatch) -> FamiliesOut:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    candidates, judges = list_candidates_and_judges(evaluation)
    of_candidates = parse_families(body.candidates, candidates, "candidates")
    of_judges = parse_families(body.judges, judges, "judges")
    set_families(evaluation, of_candidates, of_judges, user=user)
    return serialize_families(evaluation)


@operations.change("/evaluations/{slug:slug}/candidates/{int:pk}", Scope.WRITE, FamilyOut)
def rename_candidate(request: AuthenticatedRequest, slug: str, pk: int, body: CandidatePatch) -> FamilyOut:
    """Rename a model. Its responses, comparisons and verdicts stay as they are."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    candidate = get_object_or_404(Candidate, evaluation=evaluation, pk=pk)
    rename_candidates(evaluation, {pk: body.name.strip()}, user=request.user)
    candidate.refresh_from_db()
    return FamilyOut(id=candidate.pk, name=candidate.name, family=candidate.family)


def parse_families(sent: Mapping[str, str], rows: Sequence[Candidate] | Sequence[Judge], where: str) -> dict[int, str]:
    ids = {str(row.pk): row.pk for row in rows}
    for name in sent:
        if name not in ids:
            fault = FieldError(f"body.{where}.{name}", "No model or judge has this id.")
            raise Problem(
                "invalid", f"No model or judge has the id “{name[:40]}”. Nothing was changed.", faults=[fault]
            )
    return {ids[name]: family.strip() for name, family in sent.items()}


def serialize_families(evaluation: Evaluation) -> FamiliesOut:
    candidates, judges = list_candidates_and_judges(evaluation)

    def with_family(rows: Sequence[Candidate] | Sequence[Judge]) -> list[FamilyOut]:
        return [FamilyOut(id=row.pk, name=row.name, family=row.family) for row in rows]

    return FamiliesOut(candidates=with_family(candidates), judges=with_family(judges))
