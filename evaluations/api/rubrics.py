"""Rubrics: what is asked about each aspect, in which words; versions that never change once used."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Count, Max
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Field, Query, Schema

from evaluations import access
from evaluations.access import Action
from evaluations.api.admission import person
from evaluations.api.operations import Operations
from evaluations.api.paging import Paging, page_of
from evaluations.api.problems import Fault, Problem
from evaluations.api.schemas.judging import (
    AspectSent,
    AspectSpecTold,
    BuiltinNew,
    DraftList,
    LookTold,
    Pasted,
    PromptDraft,
    RubricNew,
    RubricPage,
    RubricTold,
    RubricWhole,
    SpecSent,
    SpecTold,
    VersionNew,
    VersionTold,
)
from evaluations.api.telling import messages_told
from evaluations.domain import AspectSpec, Choice, RubricKind, RubricOrigin, RubricSpec, Scope
from evaluations.models import Rubric
from evaluations.services.judging.drafting import drafts_in, look
from evaluations.services.preparing.preparing import begin_builtin, begin_rubric, next_version

operations = Operations(tags=["rubrics"])
SCALE = ("scale_min", "scale_max", "scale_step")


class Which(Schema):
    version: int | None = Field(None, ge=1, le=2**31 - 1, description="the number of a version; none: the newest")


@operations.get_one("/evaluations/{slug:slug}/rubrics", Scope.READ, RubricPage)
def list_rubrics(request: HttpRequest, slug: str, paging: Query[Paging]) -> RubricPage:
    evaluation = access.evaluation_for(person(request), slug)
    counted: Any = Rubric.objects.filter(evaluation=evaluation).annotate(
        newest=Max("versions__number"), judges=Count("versions__judges", distinct=True)
    )
    rows, more = page_of(paging, counted)
    items = [
        RubricTold(
            id=row.pk,
            name=row.name,
            kind=RubricKind(row.kind),
            origin=RubricOrigin(row.origin),
            newest=row.newest,
            judges=row.judges,
        )
        for row in rows
    ]
    return RubricPage(items=items, next=more)


@operations.get_one("/evaluations/{slug:slug}/rubrics/{int:pk}", Scope.READ, RubricWhole)
def get_rubric(request: HttpRequest, slug: str, pk: int, asked: Query[Which]) -> RubricWhole:
    """Its versions, and one of them word for word."""
    evaluation = access.evaluation_for(person(request), slug)
    return whole(get_object_or_404(Rubric, evaluation=evaluation, pk=pk), asked.version)


@operations.make("/evaluations/{slug:slug}/rubrics", Scope.WRITE, RubricWhole)
def write_rubric(request: HttpRequest, slug: str, body: RubricNew) -> RubricWhole:
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    spec = spec_in(body.spec)
    made = begin_rubric(evaluation, name=body.name, spec=spec, origin=RubricOrigin.OWN, user=user)
    return whole(made.rubric, None)


@operations.make("/evaluations/{slug:slug}/rubrics/builtin", Scope.WRITE, RubricWhole)
def begin_builtin_rubric(request: HttpRequest, slug: str, body: BuiltinNew) -> RubricWhole:
    """One in our own words: six-aspect, qa-pairwise, summary-rating or reference-metric."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    return whole(begin_builtin(evaluation, **body.model_dump(), user=user).rubric, None)


@operations.make("/evaluations/{slug:slug}/rubrics/{int:pk}/versions", Scope.WRITE, RubricWhole)
def write_version(request: HttpRequest, slug: str, pk: int, body: VersionNew) -> RubricWhole:
    """The next version; what was judged by the earlier ones stays theirs."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    rubric = get_object_or_404(Rubric.objects.select_related("evaluation"), evaluation=evaluation, pk=pk)
    if rubric.origin == RubricOrigin.IMPORTED:  # it only names what a file held
        raise Http404
    for_reviews = body.for_reviews and rubric.kind == RubricKind.PAIRWISE
    made = next_version(rubric, spec_in(body.spec), user=user, for_reviews=for_reviews)
    return whole(rubric, made.number)


@operations.do("/evaluations/{slug:slug}/rubrics/drafts", Scope.WRITE, DraftList)
def read_prompts(request: HttpRequest, slug: str, body: Pasted) -> DraftList:
    """The prompts of a pasted text, each as the rubric that it seems to be. Nothing is stored."""
    access.evaluation_for(person(request), slug, Action.MANAGE)
    found = [
        PromptDraft(
            name=draft.prompt.name,
            placeholders=list(draft.placeholders),
            unknown=draft.unknown,
            spec=spec_told(draft.spec),
        )
        for draft in drafts_in(body.text)
    ]
    return DraftList(items=found)


@operations.do("/evaluations/{slug:slug}/rubrics/look", Scope.WRITE, LookTold)
def look_at_rubric(request: HttpRequest, slug: str, body: SpecSent) -> LookTold:
    """What a judge would be sent by it. Nothing is stored."""
    evaluation = access.evaluation_for(person(request), slug, Action.MANAGE)
    seen = look(evaluation, spec_in(body))
    return LookTold(
        messages=messages_told(seen.preview.messages) if seen.preview else [],
        reply_schema=seen.preview.schema if seen.preview else "",
        problem=seen.problem,
    )


def whole(rubric: Rubric, number: int | None) -> RubricWhole:
    counted: Any = rubric.versions.annotate(judges_made=Count("judges")).order_by("-number")
    versions = list(counted)
    shown = next((one for one in versions if number in (None, one.number)), None)
    if shown is None:
        raise Http404
    return RubricWhole(
        id=rubric.pk,
        name=rubric.name,
        kind=RubricKind(rubric.kind),
        origin=RubricOrigin(rubric.origin),
        versions=[
            VersionTold(
                id=one.pk,
                number=one.number,
                is_frozen=one.frozen_at is not None,
                judges=one.judges_made,
                created_at=one.created_at,
            )
            for one in versions
        ],
        version=shown.number,
        spec=spec_told(shown.spec()),
    )


def spec_told(spec: RubricSpec) -> SpecTold:
    return SpecTold(
        kind=spec.kind,
        instructions=spec.instructions,
        aspects=[aspect_told(one) for one in spec.aspects],
        output_order=list(spec.output_order),
        placeholders=dict(spec.placeholders),
        answer_format=spec.answer_format,
        few_shot=[dict(one) for one in spec.few_shot],
        rationale_key=spec.rationale_key,
        choices_key=spec.choices_key,
    )


def aspect_told(one: AspectSpec) -> AspectSpecTold:
    return AspectSpecTold(
        key=one.key,
        name=one.name,
        definition=one.definition,
        offers_tie=one.offers_tie,
        offers_both_bad=one.offers_both_bad,
        labels=dict(one.labels),
        scale_min=one.scale_min,
        scale_max=one.scale_max,
        scale_step=one.scale_step,
        scale_labels=dict(one.scale_labels),
        tie_margin=one.tie_margin,
        reply_key=one.reply_key,
    )


# ---- what a program wrote ------------------------------------------------------------------


def spec_in(sent: SpecSent) -> RubricSpec:
    """The rubric as services have it; what the editor of the page would not take is refused here, too."""
    keys = [one.key for one in sent.aspects]
    order = sent.output_order or keys
    if len(set(keys)) < len(keys):
        refuse("aspects", "An aspect is asked once: two of these have the same key.")
    if sorted(order) != sorted(keys):
        refuse("output_order", "The order of the reply names every aspect once, and no other.")
    for place, aspect in enumerate(sent.aspects):
        refuse_wrong_kind(place, aspect, sent.kind)
    told = sent.model_dump(exclude={"aspects", "output_order", "few_shot"})
    return RubricSpec(
        **told,
        aspects=tuple(AspectSpec(**one.model_dump()) for one in sent.aspects),
        output_order=tuple(order),
        few_shot=tuple(sent.few_shot),
    )


def refuse_wrong_kind(place: int, aspect: AspectSent, kind: RubricKind) -> None:
    where = f"aspects.{place}"
    unknown = sorted(set(aspect.labels) - set(Choice))
    if unknown:
        refuse(f"{where}.labels", f"“{unknown[0][:40]}” is no choice: there are {', '.join(Choice)}.")
    given: Mapping[str, Any] = {name: getattr(aspect, name) for name in SCALE}
    if kind == RubricKind.PAIRWISE and any(value is not None for value in given.values()):
        refuse(where, "A pairwise aspect has no scale.")
    if kind == RubricKind.POINTWISE and (aspect.scale_min is None or aspect.scale_max is None):
        refuse(where, "An aspect that is scored needs the lowest and the highest score.")


def refuse(where: str, message: str) -> None:
    raise Problem("invalid", f"{message} Nothing was stored.", faults=[Fault(f"body.spec.{where}", message)])
