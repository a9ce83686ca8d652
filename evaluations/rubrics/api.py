"""API operations on rubrics and their versions."""

from typing import Any

from django.db.models import Count, Max
from django.http import Http404
from django.shortcuts import get_object_or_404
from ninja import Field, Query, Schema

from evaluations.access import Action, require_evaluation
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import PageQuery, paginate_by_cursor
from evaluations.api.serializers import serialize_messages, serialize_row
from evaluations.domain.roles import Scope
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricOrigin, RubricSpec
from evaluations.models.rubrics import Rubric
from evaluations.rubrics.drafts import find_prompt_drafts, preview_rubric
from evaluations.rubrics.schemas import (
    AspectOut,
    BuiltinRubricIn,
    PastedPromptIn,
    PromptDraftList,
    PromptDraftOut,
    PromptPreviewOut,
    RubricDetailOut,
    RubricIn,
    RubricOut,
    RubricPage,
    RubricSpecIn,
    RubricSpecOut,
    RubricVersionIn,
    RubricVersionOut,
)
from evaluations.rubrics.services import create_builtin_rubric, create_next_version, create_rubric
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["rubrics"])


class RubricVersionQuery(Schema):
    version: int | None = Field(None, ge=1, le=2**31 - 1, description="the number of a version; none: the newest")


@operations.get_one("/evaluations/{slug:slug}/rubrics", Scope.READ, RubricPage)
def list_rubrics(request: AuthenticatedRequest, slug: str, paging: Query[PageQuery]) -> RubricPage:
    evaluation = require_evaluation(request.user, slug)
    counted: Any = Rubric.objects.filter(evaluation=evaluation).annotate(
        newest=Max("versions__number"), judges=Count("versions__judges", distinct=True)
    )
    rows, more = paginate_by_cursor(paging, counted)
    return RubricPage(items=[serialize_row(RubricOut, row) for row in rows], next=more)


@operations.get_one("/evaluations/{slug:slug}/rubrics/{int:pk}", Scope.READ, RubricDetailOut)
def get_rubric(request: AuthenticatedRequest, slug: str, pk: int, asked: Query[RubricVersionQuery]) -> RubricDetailOut:
    """Get a rubric with its versions, one of them in full."""
    evaluation = require_evaluation(request.user, slug)
    return serialize_rubric(get_object_or_404(Rubric, evaluation=evaluation, pk=pk), asked.version)


@operations.make("/evaluations/{slug:slug}/rubrics", Scope.WRITE, RubricDetailOut)
def write_rubric(request: AuthenticatedRequest, slug: str, body: RubricIn) -> RubricDetailOut:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    spec = parse_spec(body.spec)
    made = create_rubric(evaluation, name=body.name, spec=spec, origin=RubricOrigin.OWN, user=user)
    return serialize_rubric(made.rubric, None)


@operations.make("/evaluations/{slug:slug}/rubrics/builtin", Scope.WRITE, RubricDetailOut)
def begin_builtin_rubric(request: AuthenticatedRequest, slug: str, body: BuiltinRubricIn) -> RubricDetailOut:
    """Add a built-in rubric: six-aspect, qa-pairwise, summary-rating or reference-metric."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    made = create_builtin_rubric(
        evaluation,
        builtin=body.builtin,
        name=body.name,
        metric=body.metric,
        reason_key=body.reason_key,
        user=user,
    )
    return serialize_rubric(made.rubric, None)


@operations.make("/evaluations/{slug:slug}/rubrics/{int:pk}/versions", Scope.WRITE, RubricDetailOut)
def write_version(request: AuthenticatedRequest, slug: str, pk: int, body: RubricVersionIn) -> RubricDetailOut:
    """Add a version. Verdicts by earlier versions keep theirs."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    rubric = get_object_or_404(Rubric.objects.select_related("evaluation"), evaluation=evaluation, pk=pk)
    if rubric.origin == RubricOrigin.IMPORTED:  # it only names what a file held
        raise Http404
    for_reviews = body.for_reviews and rubric.kind == RubricKind.PAIRWISE
    made = create_next_version(rubric, parse_spec(body.spec), user=user, for_reviews=for_reviews)
    return serialize_rubric(rubric, made.number)


@operations.do("/evaluations/{slug:slug}/rubrics/drafts", Scope.WRITE, PromptDraftList)
def read_prompts(request: AuthenticatedRequest, slug: str, body: PastedPromptIn) -> PromptDraftList:
    """Parse pasted prompts into rubrics. Nothing is stored."""
    require_evaluation(request.user, slug, Action.MANAGE)
    found = [
        PromptDraftOut(
            name=draft.prompt.name,
            placeholders=list(draft.placeholders),
            unknown=draft.unknown,
            spec=serialize_spec(draft.spec),
        )
        for draft in find_prompt_drafts(body.text)
    ]
    return PromptDraftList(items=found)


@operations.do("/evaluations/{slug:slug}/rubrics/look", Scope.WRITE, PromptPreviewOut)
def look_at_rubric(request: AuthenticatedRequest, slug: str, body: RubricSpecIn) -> PromptPreviewOut:
    """Preview the prompt that a judge would receive. Nothing is stored."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    seen = preview_rubric(evaluation, parse_spec(body))
    return PromptPreviewOut(
        messages=serialize_messages(seen.preview.messages) if seen.preview else [],
        reply_schema=seen.preview.schema if seen.preview else "",
        problem=seen.problem,
    )


def serialize_rubric(rubric: Rubric, number: int | None) -> RubricDetailOut:
    counted: Any = rubric.versions.annotate(judges_made=Count("judges")).order_by("-number")
    versions = list(counted)
    shown = next((one for one in versions if number in (None, one.number)), None)
    if shown is None:
        raise Http404
    return serialize_row(
        RubricDetailOut,
        rubric,
        versions=[
            serialize_row(RubricVersionOut, one, is_frozen=one.frozen_at is not None, judges=one.judges_made)
            for one in versions
        ],
        version=shown.number,
        spec=serialize_spec(shown.spec()),
    )


def serialize_spec(spec: RubricSpec) -> RubricSpecOut:
    return serialize_row(RubricSpecOut, spec, aspects=[serialize_row(AspectOut, one) for one in spec.aspects])


def parse_spec(body: RubricSpecIn) -> RubricSpec:
    values = {name: value for name, value in body if name not in ("aspects", "output_order", "few_shot")}
    return RubricSpec(
        **values,
        aspects=tuple(AspectSpec(**dict(one)) for one in body.aspects),
        output_order=tuple(body.output_order or (one.key for one in body.aspects)),
        few_shot=tuple(body.few_shot),
    )
