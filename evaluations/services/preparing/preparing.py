"""Setting up a study: the evaluation, its rubrics, and who takes part."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model
from django.utils import timezone
from django.utils.text import slugify

from evaluations.domain import CURRENT_LAYOUT, FIRST_LAYOUT, InputRefused, Role, RubricKind, RubricOrigin, RubricSpec
from evaluations.judge.builtin import (
    BUILTIN_RUBRICS,
    DEFAULT_METRIC,
    DEFAULT_REASON_KEY,
    REFERENCE_METRIC_NAME,
    SIX_ASPECT_NAME,
    builtin_like,
    reference_metric,
)
from evaluations.judge.checking import refuse_slow_pattern, refuse_unusable
from evaluations.judge.templating import is_template
from evaluations.models import Aspect, Evaluation, Membership, Rubric, RubricAspect, RubricVersion, User
from evaluations.services.recording import record

FewShot = Sequence[Mapping[str, Any]]

# What rubrics could not say at first. Unsaid it stays out of the sum: versions of that time keep theirs.
LATER_IN_SPEC: Final = {"rationale_key": "rationale", "choices_key": "choices", "layout": FIRST_LAYOUT}
LATER_IN_ASPECT: Final = {"scale_labels": {}, "tie_margin": 0.0, "reply_key": "", "lower_is_better": False}


def create_evaluation(
    *,
    slug: str,
    name: str,
    owner: User | None,
    description: str = "",
    rubric: str = SIX_ASPECT_NAME,
    is_example: bool = False,
) -> Evaluation:
    """A new study with a built-in rubric to begin with, and its owner."""
    if slug != slugify(slug) or not slug:
        raise InputRefused(f"“{slug}” cannot be an address: use small letters, digits and hyphens.")
    spec = builtin_rubric(rubric)
    if Evaluation.objects.filter(slug=slug).exists():
        raise InputRefused(f"There is an evaluation at “{slug}” already: choose another address.")
    evaluation = Evaluation(slug=slug, name=name.strip(), description=description, is_example=is_example)
    try:
        evaluation.clean_fields()
    except ValidationError as error:
        wrong = "; ".join(f"{column}: {' '.join(said)}" for column, said in error.message_dict.items())
        raise InputRefused(f"This evaluation cannot be made: {wrong}") from error
    with transaction.atomic():
        evaluation.save()
        record("created", evaluation, user=owner, evaluation=evaluation, after={"slug": slug, "name": name})
        evaluation.review_rubric = add_rubric(
            evaluation, name=rubric, spec=spec, origin=RubricOrigin.BUILTIN, user=owner
        )
        evaluation.save(update_fields=["review_rubric"])
        if owner is not None:
            set_role(evaluation, owner, Role.OWNER, by=owner)
    return evaluation


def builtins_of(kind: RubricKind) -> list[str]:
    return [name for name, spec in BUILTIN_RUBRICS.items() if spec.kind == kind]


@transaction.atomic
def add_rubric(
    evaluation: Evaluation, *, name: str, spec: RubricSpec, origin: RubricOrigin, user: User | None
) -> RubricVersion:
    """A rubric with its first version. Aspects of a known key are shared, not made again."""
    rubric = Rubric.objects.create(evaluation=evaluation, name=name, kind=spec.kind, origin=origin)
    version = write_version(rubric, spec, number=1)
    record("created", rubric, user=user, evaluation=evaluation, after={"name": name, "version": 1})
    return version


def begin_rubric(
    evaluation: Evaluation, *, name: str, spec: RubricSpec, origin: RubricOrigin, user: User | None
) -> RubricVersion:
    """A rubric that a person asks for: a name of its own, and words that a judge can be asked with."""
    name = name.strip()
    if not 1 <= len(name) <= 120:
        raise InputRefused("A rubric needs a name of at most 120 characters.")
    if Rubric.objects.filter(evaluation=evaluation, name=name).exists():
        raise InputRefused(f"There is a rubric “{name}” already: choose another name.")
    refuse_unusable(spec)
    refuse_slow_pattern(spec)
    refuse_renamed_aspects(evaluation, spec)
    return add_rubric(evaluation, name=name, spec=spec, origin=origin, user=user)


def begin_builtin(
    evaluation: Evaluation,
    *,
    builtin: str,
    name: str = "",
    metric: str = "",
    reason_key: str = "",
    few_shot: FewShot = (),
    user: User | None,
) -> RubricVersion:
    """A rubric in our own words. A metric and its reason can have other names where there is a metric.

    Without a name it is called as its metric, or as what it is. An aspect keeps the name that it
    has in the evaluation. ``few_shot`` takes the place of the rubric's own examples.
    """
    metric, reason_key = metric.strip(), reason_key.strip()
    spec = builtin_rubric(builtin, metric=metric, reason_key=reason_key)
    spec = replace(with_known_names(evaluation, spec), few_shot=tuple(few_shot) or spec.few_shot)
    return begin_rubric(
        evaluation, name=name.strip() or metric or builtin, spec=spec, origin=RubricOrigin.BUILTIN, user=user
    )


def builtin_rubric(name: str, *, metric: str = "", reason_key: str = "") -> RubricSpec:
    if name not in BUILTIN_RUBRICS:
        known = ", ".join(sorted(BUILTIN_RUBRICS))
        raise InputRefused(f"There is no built-in rubric “{name}”: choose one of {known}.")
    if name == REFERENCE_METRIC_NAME:
        return reference_metric(metric or DEFAULT_METRIC, reason_key=reason_key or DEFAULT_REASON_KEY)
    if metric or reason_key:
        raise InputRefused("Only the reference metric can be given a name of its own: leave its fields empty.")
    return BUILTIN_RUBRICS[name]


def current_builtin(version: RubricVersion) -> RubricSpec | None:
    """The current words of a built-in rubric, where this version has earlier ones. Its own examples stay."""
    if version.rubric.origin != RubricOrigin.BUILTIN or version.layout == CURRENT_LAYOUT:
        return None
    spec = version.spec()
    current = None if is_template(spec.placeholders) else builtin_like(spec)
    if current is None:
        return None
    return replace(with_known_names(version.rubric.evaluation, current), few_shot=spec.few_shot or current.few_shot)


def with_known_names(evaluation: Evaluation, spec: RubricSpec) -> RubricSpec:
    """The rubric with its aspects called as they are called in this evaluation."""
    known = dict(Aspect.objects.filter(evaluation=evaluation).values_list("key", "name"))
    aspects = tuple(replace(aspect, name=known.get(aspect.key, aspect.name)) for aspect in spec.aspects)
    return replace(spec, aspects=aspects)


@transaction.atomic
def next_version(rubric: Rubric, spec: RubricSpec, *, user: User | None, for_reviews: bool = False) -> RubricVersion:
    """An edit makes the next version; what was judged by the earlier ones stays theirs.

    ``for_reviews``: people are asked by it from now on.
    """
    if spec.kind != rubric.kind:
        raise InputRefused(f"“{rubric.name}” is a {rubric.kind} rubric and stays one: make another rubric for this.")
    if rubric.origin != RubricOrigin.IMPORTED:  # that one is never put to a judge
        refuse_unusable(spec)
        refuse_slow_pattern(spec)
    refuse_renamed_aspects(rubric.evaluation, spec)
    rubric = Rubric.objects.select_for_update().get(pk=rubric.pk)  # two edits at once get two numbers
    latest = rubric.versions.order_by("-number").first()
    if latest is not None and latest.sha256 == fingerprint(spec):
        raise InputRefused(f"Nothing was changed: this is version {latest.number} of “{rubric.name}” word for word.")
    number = latest.number + 1 if latest else 1
    version = write_version(rubric, spec, number=number)
    record("wrote version", rubric, user=user, evaluation=rubric.evaluation, after={"version": number})
    if for_reviews:
        change_evaluation(rubric.evaluation, {"review_rubric": version}, user=user)
    return version


def refuse_renamed_aspects(evaluation: Evaluation, spec: RubricSpec) -> None:
    """An aspect is one row for all rubrics and raters: a new name would rename what others were asked."""
    known = dict(Aspect.objects.filter(evaluation=evaluation).values_list("key", "name"))
    for aspect in spec.aspects:
        name = known.get(aspect.key, aspect.name)
        if name != aspect.name:
            raise InputRefused(
                f"“{aspect.key}” is called “{name}” in this evaluation: keep that name, or give “{aspect.name}” a "
                "key of its own."
            )


def write_version(rubric: Rubric, spec: RubricSpec, *, number: int) -> RubricVersion:
    """The version with its aspects. Two that are written at once would give their new aspects the same place."""
    lock_aspects(rubric.evaluation_id)
    version = RubricVersion.objects.create(
        rubric=rubric,
        number=number,
        instructions=spec.instructions,
        placeholders=dict(spec.placeholders),
        answer_format=spec.answer_format,
        few_shot=[dict(example) for example in spec.few_shot],
        rationale_key=spec.rationale_key,
        choices_key=spec.choices_key,
        layout=spec.layout,
        sha256=fingerprint(spec),
    )
    for position, asked in enumerate(spec.aspects):
        aspect, _ = Aspect.objects.get_or_create(
            evaluation=rubric.evaluation, key=asked.key, defaults={"name": asked.name}
        )
        RubricAspect.objects.create(
            version=version,
            aspect=aspect,
            position=position,
            output_position=spec.output_order.index(asked.key),
            definition=asked.definition,
            offers_tie=asked.offers_tie,
            offers_both_bad=asked.offers_both_bad,
            choice_labels=dict(asked.labels),
            scale_min=asked.scale_min,
            scale_max=asked.scale_max,
            scale_step=asked.scale_step,
            scale_labels=list(asked.scale_labels.items()),
            tie_margin=asked.tie_margin,
            reply_key=asked.reply_key,
            lower_is_better=asked.lower_is_better,
        )
    return version


def lock_aspects(evaluation_id: int) -> None:
    """Nobody else gives an aspect of the evaluation a place until the transaction ends."""
    # Not as a key: rows that belong to the evaluation are still written meanwhile, and one of them by whoever waits.
    evaluation = Evaluation.objects.select_for_update(no_key=True).filter(pk=evaluation_id)
    list(evaluation.values_list("pk"))


def freeze(version: RubricVersion) -> None:
    """A version that was used never changes again."""
    if version.frozen_at is not None:
        return
    RubricVersion.objects.filter(pk=version.pk, frozen_at__isnull=True).update(frozen_at=timezone.now())


def fingerprint(spec: RubricSpec) -> str:
    """The same words and choices in the same order give the same sum."""
    if is_template(spec.placeholders):
        spec = replace(spec, layout=FIRST_LAYOUT)  # a pasted prompt is in no layout
    said = without_defaults(asdict(spec), LATER_IN_SPEC)
    said["aspects"] = [without_defaults(aspect, LATER_IN_ASPECT) for aspect in said["aspects"]]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def without_defaults(said: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if name not in defaults or value != defaults[name]}


@transaction.atomic
def set_role(evaluation: Evaluation, user: User, role: Role, *, by: User | None) -> Membership:
    """Let a person take part, or take part differently. The last owner stays one."""
    membership = Membership.objects.filter(evaluation=evaluation, user=user).first()
    before = membership.role if membership else None
    if before == Role.OWNER and role != Role.OWNER:
        refuse_without_owner(evaluation, membership)
    membership, _ = Membership.objects.update_or_create(evaluation=evaluation, user=user, defaults={"role": role})
    after = {"person": user.username, "role": role}
    record("set role", membership, user=by, evaluation=evaluation, before={"role": before}, after=after)
    return membership


@transaction.atomic
def remove_member(membership: Membership, *, by: User | None) -> None:
    """What this person judged stays; the person no longer takes part."""
    if membership.role == Role.OWNER:
        refuse_without_owner(membership.evaluation, membership)
    before = {"person": membership.user.username, "role": membership.role}
    record("removed", membership, user=by, evaluation=membership.evaluation, before=before)
    membership.delete()


def refuse_without_owner(evaluation: Evaluation, leaving: Membership | None) -> None:
    # Locked: of two owners who leave at once, the second must see that the first has gone.
    list(Evaluation.objects.select_for_update().filter(pk=evaluation.pk).values_list("pk"))
    others = Membership.objects.filter(evaluation=evaluation, role=Role.OWNER)
    if leaving is not None:
        others = others.exclude(pk=leaving.pk)
    if not others.exists():
        raise InputRefused(f"“{evaluation.name}” needs an owner: make someone else an owner first.")


@transaction.atomic
def change_evaluation(evaluation: Evaluation, changes: Mapping[str, Any], *, user: User | None) -> Evaluation:
    """Write new values into the evaluation's own columns, and what they were into the record.

    What is the same as before is no change, and leaves no trace.
    """
    changes = {name: value for name, value in changes.items() if getattr(evaluation, name) != value}
    if not changes:
        return evaluation
    before = {name: plain(getattr(evaluation, name)) for name in changes}
    dated = {"guidelines_changed_at": timezone.now()} if "guidelines" in changes else {}
    for name, value in {**changes, **dated}.items():
        setattr(evaluation, name, value)
    evaluation.save(update_fields=[*changes, *dated])
    after = {name: plain(value) for name, value in changes.items()}
    record("changed", evaluation, user=user, evaluation=evaluation, before=before, after=after)
    return evaluation


def plain(value: Any) -> Any:
    """A value as the record keeps it: rows by name and number, times as text."""
    if isinstance(value, Model):
        return f"{value} ({value.pk})"
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def archive(evaluation: Evaluation, *, user: User | None) -> Evaluation:
    """Nothing is deleted: it leaves the list, and can be brought back."""
    return change_evaluation(evaluation, {"archived_at": evaluation.archived_at or timezone.now()}, user=user)


def bring_back(evaluation: Evaluation, *, user: User | None) -> Evaluation:
    return change_evaluation(evaluation, {"archived_at": None}, user=user)
