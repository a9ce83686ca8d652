"""Questions about built-in rubrics and known aspects."""

from dataclasses import replace
from typing import Final

from evaluations.domain.errors import InputRefused
from evaluations.domain.rubrics import CURRENT_LAYOUT, RubricKind, RubricOrigin, RubricSpec
from evaluations.judge_prompts.builtin_rubrics import (
    BUILTIN_RUBRICS,
    DEFAULT_METRIC,
    DEFAULT_REASON_KEY,
    REFERENCE_METRIC_NAME,
    build_reference_metric,
    find_matching_builtin,
)
from evaluations.judge_prompts.placeholders import find_unplaced_fields, is_template
from evaluations.models.comparisons import Query
from evaluations.models.evaluations import Evaluation
from evaluations.models.rubrics import Aspect, RubricVersion


def list_builtin_rubrics(kind: RubricKind) -> list[str]:
    return [name for name, spec in BUILTIN_RUBRICS.items() if spec.kind == kind]


def get_builtin_rubric(name: str, *, metric: str = "", reason_key: str = "") -> RubricSpec:
    if name not in BUILTIN_RUBRICS:
        known = ", ".join(sorted(BUILTIN_RUBRICS))
        raise InputRefused(f"There is no built-in rubric “{name}”: choose one of {known}.")
    if name == REFERENCE_METRIC_NAME:
        return build_reference_metric(metric or DEFAULT_METRIC, reason_key=reason_key or DEFAULT_REASON_KEY)
    if metric or reason_key:
        raise InputRefused("Only the reference metric can be given a name of its own: leave its fields empty.")
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


def use_known_aspect_names(evaluation: Evaluation, spec: RubricSpec) -> RubricSpec:
    """The rubric with the evaluation's names of its aspects."""
    known = dict(Aspect.objects.filter(evaluation=evaluation).values_list("key", "name"))
    aspects = tuple(replace(aspect, name=known.get(aspect.key, aspect.name)) for aspect in spec.aspects)
    return replace(spec, aspects=aspects)


# What a judge does not see, by the field without a placeholder in a pasted prompt.
NOT_SEEN_WARNINGS: Final = {
    "query": "The prompt has no placeholder for the query. The judge will not see the conversation that the responses "
    "answer.",
    "context": "The prompt has no placeholder for the context. Queries in this evaluation have one, and the judge will "
    "not see it.",
    "reference": "The prompt has no placeholder for the reference answer. Queries in this evaluation have one, and the "
    "judge will not see it.",
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
