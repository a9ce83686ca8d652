"""Changes to rubrics and their versions."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Final

from django.db import transaction
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.json_values import JsonDict, JsonMapping
from evaluations.domain.rubrics import FIRST_LAYOUT, RubricOrigin, RubricSpec
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.judge_prompts.placeholders import is_template
from evaluations.judge_prompts.rubric_checks import refuse_slow_pattern, refuse_unusable_rubric
from evaluations.models.evaluations import Evaluation
from evaluations.models.rubrics import (
    ASPECT_COLUMNS,
    VERSION_COLUMNS,
    Aspect,
    Rubric,
    RubricAspect,
    RubricVersion,
)
from evaluations.models.users import User
from evaluations.rubrics.selectors import get_builtin_rubric, use_known_aspect_names

FewShotExamples = Sequence[Mapping[str, object]]

# Fields that were added later. At their defaults they stay out of the hash, so that older hashes stay valid.
SPEC_DEFAULTS: Final = {"rationale_key": "rationale", "choices_key": "choices", "layout": FIRST_LAYOUT}
ASPECT_DEFAULTS: Final = {"scale_labels": {}, "tie_margin": 0.0, "reply_key": "", "lower_is_better": False}


@transaction.atomic
def add_rubric(
    evaluation: Evaluation, *, name: str, spec: RubricSpec, origin: RubricOrigin, user: User | None
) -> RubricVersion:
    """A rubric with its first version. Aspects with known keys are shared."""
    rubric = Rubric.objects.create(evaluation=evaluation, name=name, kind=spec.kind, origin=origin)
    version = add_rubric_version(rubric, spec, number=1)
    record_event("created", rubric, user=user, evaluation=evaluation, after={"name": name, "version": 1})
    return version


def create_rubric(
    evaluation: Evaluation, *, name: str, spec: RubricSpec, origin: RubricOrigin, user: User | None
) -> RubricVersion:
    """A rubric that a person writes: it needs a unique name, and a text that judges can use."""
    name = name.strip()
    if not 1 <= len(name) <= 120:
        raise InputRefused("Enter a name of up to 120 characters.")
    if Rubric.objects.filter(evaluation=evaluation, name=name).exists():
        raise InputRefused(f"A rubric named “{name}” already exists. Choose another name.")
    refuse_unusable_rubric(spec)
    refuse_slow_pattern(spec)
    refuse_renamed_aspects(evaluation, spec)
    return add_rubric(evaluation, name=name, spec=spec, origin=origin, user=user)


def create_builtin_rubric(
    evaluation: Evaluation,
    *,
    builtin: str,
    name: str = "",
    metric: str = "",
    reason_key: str = "",
    few_shot: FewShotExamples = (),
    user: User | None,
) -> RubricVersion:
    """A built-in rubric. Only the reference metric takes names for its metric and reason.

    Without a name it is named after its metric or after itself. Aspects keep their names in the evaluation.
    ``few_shot`` replaces the rubric's own examples.
    """
    metric, reason_key = metric.strip(), reason_key.strip()
    spec = get_builtin_rubric(builtin, metric=metric, reason_key=reason_key)
    spec = replace(use_known_aspect_names(evaluation, spec), few_shot=tuple(few_shot) or spec.few_shot)
    return create_rubric(
        evaluation, name=name.strip() or metric or builtin, spec=spec, origin=RubricOrigin.BUILTIN, user=user
    )


@transaction.atomic
def create_next_version(
    rubric: Rubric, spec: RubricSpec, *, user: User | None, for_reviews: bool = False
) -> RubricVersion:
    """The next version of a rubric; earlier ones keep what was judged by them.

    ``for_reviews``: reviewers use it from now on.
    """
    if spec.kind != rubric.kind:
        raise InputRefused(f"“{rubric.name}” is a {rubric.kind} rubric. Create a new rubric for another kind.")
    if rubric.is_editable:  # imported ones never reach a judge
        refuse_unusable_rubric(spec)
        refuse_slow_pattern(spec)
    refuse_renamed_aspects(rubric.evaluation, spec)
    rubric = Rubric.objects.select_for_update().get(pk=rubric.pk)  # two edits at once get two numbers
    latest = rubric.versions.order_by("-number").first()
    if latest is not None and latest.sha256 == hash_rubric(spec):
        raise InputRefused(f"Nothing changed since version {latest.number} of “{rubric.name}”.")
    number = latest.number + 1 if latest else 1
    version = add_rubric_version(rubric, spec, number=number)
    record_event("wrote version", rubric, user=user, evaluation=rubric.evaluation, after={"version": number})
    if for_reviews:
        change_evaluation(rubric.evaluation, {"review_rubric": version}, user=user)
    return version


def refuse_renamed_aspects(evaluation: Evaluation, spec: RubricSpec) -> None:
    """Refuse new names for known aspects: an aspect is one row for all rubrics and raters."""
    names = dict(Aspect.objects.filter(evaluation=evaluation).values_list("key", "name"))
    for aspect in spec.aspects:
        name = names.get(aspect.key, aspect.name)
        if name != aspect.name:
            raise InputRefused(
                f"“{aspect.key}” is already named “{name}” in this evaluation. Keep that name, or give "
                f"“{aspect.name}” another key."
            )


def add_rubric_version(rubric: Rubric, spec: RubricSpec, *, number: int) -> RubricVersion:
    """Write a version with its aspects, under a lock so that new aspects get different slots."""
    lock_aspects(rubric.evaluation_id)
    version = RubricVersion.objects.create(
        rubric=rubric,
        number=number,
        placeholders=dict(spec.placeholders),
        few_shot=[dict(example) for example in spec.few_shot],
        sha256=hash_rubric(spec),
        **{name: getattr(spec, name) for name in VERSION_COLUMNS},
    )
    for position, aspect_spec in enumerate(spec.aspects):
        aspect, _ = Aspect.objects.get_or_create(
            evaluation=rubric.evaluation, key=aspect_spec.key, defaults={"name": aspect_spec.name}
        )
        RubricAspect.objects.create(
            version=version,
            aspect=aspect,
            position=position,
            output_position=spec.output_order.index(aspect_spec.key),
            choice_labels=dict(aspect_spec.labels),
            scale_labels=list(aspect_spec.scale_labels.items()),
            **{name: getattr(aspect_spec, name) for name in ASPECT_COLUMNS},
        )
    return version


def lock_aspects(evaluation_id: int) -> None:
    """Lock the evaluation's aspect slots until the transaction ends."""
    # Without the key: others still write rows of the evaluation meanwhile, among them those who wait for this lock.
    evaluation = Evaluation.objects.select_for_update(no_key=True).filter(pk=evaluation_id)
    list(evaluation.values_list("pk"))


def freeze_version(version: RubricVersion) -> None:
    """Freeze a version that is used, so that it never changes again."""
    if version.frozen_at is not None:
        return
    RubricVersion.objects.filter(pk=version.pk, frozen_at__isnull=True).update(frozen_at=timezone.now())


def hash_rubric(spec: RubricSpec) -> str:
    """The SHA-256 of a rubric's content; equal content gives an equal hash."""
    if is_template(spec.placeholders):
        spec = replace(spec, layout=FIRST_LAYOUT)  # a pasted prompt has no layout
    fields = drop_defaults(asdict(spec), SPEC_DEFAULTS)
    fields["aspects"] = [drop_defaults(aspect, ASPECT_DEFAULTS) for aspect in fields["aspects"]]
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def drop_defaults(fields: JsonMapping, defaults: JsonMapping) -> JsonDict:
    return {name: value for name, value in fields.items() if name not in defaults or value != defaults[name]}
