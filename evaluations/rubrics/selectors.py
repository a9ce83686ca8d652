"""Rubrics with their versions, built-in rubrics and the names of aspects."""

from dataclasses import replace
from typing import Final

from django.db.models import Count, Max, QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404

from evaluations.access import Action, require_evaluation
from evaluations.domain.errors import InputRefused
from evaluations.domain.rubrics import CURRENT_LAYOUT, RubricKind, RubricOrigin, RubricSpec
from evaluations.judge_prompts.builtin_rubrics import (
    BUILTIN_RUBRICS,
    DEFAULT_METRIC,
    DEFAULT_REASON_KEY,
    REFERENCE_METRIC_NAME,
    build_reference_metric,
    find_matching_builtin,
    put_overall_first,
)
from evaluations.judge_prompts.placeholders import find_unplaced_fields, is_template
from evaluations.models.comparisons import Query
from evaluations.models.evaluations import Evaluation
from evaluations.models.rubrics import Aspect, Rubric, RubricVersion
from evaluations.models.users import User


def list_rubrics_with_counts(evaluation: Evaluation) -> "QuerySet[Rubric]":
    """The rubrics with their newest number and how many judges use them."""
    newest, judges = Max("versions__number"), Count("versions__judges", distinct=True)
    return Rubric.objects.filter(evaluation=evaluation).annotate(newest=newest, judges=judges)


def list_versions(rubric: Rubric) -> "QuerySet[RubricVersion]":
    """The versions, newest first, with how many judges use each."""
    versions: QuerySet[RubricVersion] = rubric.versions.annotate(judges_made=Count("judges"))
    return versions.order_by("-number")


def get_continuable_rubric_or_404(user: User, slug: str, pk: int) -> Rubric:
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    rubric = get_object_or_404(Rubric.objects.select_related("evaluation"), evaluation=evaluation, pk=pk)
    if not rubric.is_editable:
        raise Http404
    return rubric


def list_builtin_rubrics(kind: RubricKind) -> list[str]:
    return [name for name, spec in BUILTIN_RUBRICS.items() if spec.kind == kind]


def get_builtin_rubric(name: str, *, metric: str = "", reason_key: str = "") -> RubricSpec:
    if name not in BUILTIN_RUBRICS:
        known = ", ".join(sorted(BUILTIN_RUBRICS))
        raise InputRefused(f"There is no template “{name}”. Choose one of {known}.")
    if name == REFERENCE_METRIC_NAME:
        return build_reference_metric(metric or DEFAULT_METRIC, reason_key=reason_key or DEFAULT_REASON_KEY)
    if metric or reason_key:
        raise InputRefused("Only the reference metric takes a metric name and reason key. Leave them blank.")
    return BUILTIN_RUBRICS[name]


def get_current_builtin(version: RubricVersion) -> RubricSpec | None:
    """The current text of a built-in rubric, if this version has an earlier one. Its own examples are kept."""
    if version.rubric.origin != RubricOrigin.BUILTIN or version.layout == CURRENT_LAYOUT:
        return None
    spec = version.spec()
    current = None if is_template(spec.placeholders) else find_matching_builtin(spec)
    if current is None:
        return None
    return replace(
        use_known_aspect_names(version.rubric.evaluation, current), few_shot=spec.few_shot or current.few_shot
    )


def get_spec_with_overall(version: RubricVersion) -> RubricSpec | None:
    """The version's rubric with Overall as its first aspect; None if it cannot have it."""
    spec = put_overall_first(version.spec()) if version.rubric.is_editable else None
    return use_known_aspect_names(version.rubric.evaluation, spec) if spec else None


def use_known_aspect_names(evaluation: Evaluation, spec: RubricSpec) -> RubricSpec:
    """The rubric with the evaluation's names of its aspects."""
    names = dict(Aspect.objects.filter(evaluation=evaluation).values_list("key", "name"))
    aspects = tuple(replace(aspect, name=names.get(aspect.key, aspect.name)) for aspect in spec.aspects)
    return replace(spec, aspects=aspects)


# What a judge does not see, by the field without a placeholder in a pasted prompt.
NOT_SEEN_WARNINGS: Final = {
    "query": ("The rubric has no placeholder for the prompt. The judge will not see what the responses answer."),
    "context": "The rubric has no placeholder for the context, so the judge will not see it.",
    "reference": "The rubric has no placeholder for the reference answer, so the judge will not see it.",
}


def missing_placeholder_warnings(evaluation: Evaluation, spec: RubricSpec) -> list[str]:
    """A sentence per text that the evaluation's queries have and the prompt has no placeholder for."""
    queries = Query.objects.filter(evaluation=evaluation).order_by()
    holding = {
        "query": queries.exclude(messages=[]),
        "context": queries.filter(context__gt=""),
        "reference": queries.filter(reference__gt=""),
    }
    return [NOT_SEEN_WARNINGS[field] for field in find_unplaced_fields(spec.placeholders) if holding[field].exists()]
