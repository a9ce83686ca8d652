"""API operations on rubrics and their versions."""

from typing import Any

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
from evaluations.rubrics.selectors import get_continuable_rubric_or_404, list_rubrics_with_counts, list_versions
from evaluations.rubrics.services import create_builtin_rubric, create_next_version, create_rubric
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["rubrics"])


class RubricVersionQuery(Schema):
    version: int | None = Field(None, ge=1, le=2**31 - 1, description="version number; defaults to the latest")


@operations.get_one("/evaluations/{slug:slug}/rubrics", Scope.READ, RubricPage)
def list_rubrics(request: AuthenticatedRequest, slug: str, paging: Query[PageQuery]) -> RubricPage:
    evaluation = require_evaluation(request.user, slug)
    rows, next_cursor = paginate_by_cursor(paging, list_rubrics_with_counts(evaluation))
    return RubricPage(items=[serialize_row(RubricOut, row) for row in rows], next=next_cursor)


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
    version = create_rubric(evaluation, name=body.name, spec=spec, origin=RubricOrigin.OWN, user=user)
    return serialize_rubric(version.rubric, None)


@operations.make("/evaluations/{slug:slug}/rubrics/builtin", Scope.WRITE, RubricDetailOut)
def create_rubric_from_template(request: AuthenticatedRequest, slug: str, body: BuiltinRubricIn) -> RubricDetailOut:
    """Add a built-in rubric: six-aspect, overall, qa-pairwise, summary-rating or reference-metric."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    version = create_builtin_rubric(evaluation, **dict(body), user=request.user)
    return serialize_rubric(version.rubric, None)


@operations.make("/evaluations/{slug:slug}/rubrics/{int:pk}/versions", Scope.WRITE, RubricDetailOut)
def write_version(request: AuthenticatedRequest, slug: str, pk: int, body: RubricVersionIn) -> RubricDetailOut:
    """Add a version. Verdicts by earlier versions keep theirs."""
    rubric = get_continuable_rubric_or_404(request.user, slug, pk)
    for_reviews = body.for_reviews and rubric.kind == RubricKind.PAIRWISE
    version = create_next_version(rubric, parse_spec(body.spec), user=request.user, for_reviews=for_reviews)
    return serialize_rubric(rubric, version.number)


@operations.do("/evaluations/{slug:slug}/rubrics/drafts", Scope.WRITE, PromptDraftList)
def parse_prompts(request: AuthenticatedRequest, slug: str, body: PastedPromptIn) -> PromptDraftList:
    """Parse pasted prompts into rubrics. Nothing is stored."""
    require_evaluation(request.user, slug, Action.MANAGE)
    items = [
        serialize_row(PromptDraftOut, draft, name=draft.prompt.name, spec=serialize_spec(draft.spec))
        for draft in find_prompt_drafts(body.text)
    ]
    return PromptDraftList(items=items)


@operations.do("/evaluations/{slug:slug}/rubrics/preview", Scope.WRITE, PromptPreviewOut)
def preview_rubric_prompt(request: AuthenticatedRequest, slug: str, body: RubricSpecIn) -> PromptPreviewOut:
    """Preview the prompt that a judge would receive. Nothing is stored."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    look = preview_rubric(evaluation, parse_spec(body))
    return PromptPreviewOut(
        messages=serialize_messages(look.preview.messages) if look.preview else [],
        reply_schema=look.preview.schema if look.preview else "",
        problem=look.problem,
    )


def serialize_rubric(rubric: Rubric, number: int | None) -> RubricDetailOut:
    versions: list[Any] = list(list_versions(rubric))
    shown = next((version for version in versions if number in (None, version.number)), None)
    if shown is None:
        raise Http404
    return serialize_row(
        RubricDetailOut,
        rubric,
        versions=[
            serialize_row(RubricVersionOut, row, is_frozen=row.frozen_at is not None, judges=row.judges_made)
            for row in versions
        ],
        version=shown.number,
        spec=serialize_spec(shown.spec()),
    )


def serialize_spec(spec: RubricSpec) -> RubricSpecOut:
    return serialize_row(RubricSpecOut, spec, aspects=[serialize_row(AspectOut, aspect) for aspect in spec.aspects])


def parse_spec(body: RubricSpecIn) -> RubricSpec:
    values = {name: value for name, value in body if name not in ("aspects", "output_order", "few_shot")}
    return RubricSpec(
        **values,
        aspects=tuple(AspectSpec(**dict(aspect)) for aspect in body.aspects),
        output_order=tuple(body.output_order or (aspect.key for aspect in body.aspects)),
        few_shot=tuple(body.few_shot),
    )
