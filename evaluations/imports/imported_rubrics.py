"""Rubrics for the aspects of imported verdicts and scores."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final

from django.db.models import QuerySet

from evaluations.domain.choices import Choice
from evaluations.domain.errors import InputRefused
from evaluations.domain.imports import ScoreScale, ScoreScales
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricOrigin, RubricSpec
from evaluations.domain.texts import find_free_name
from evaluations.models.evaluations import Evaluation
from evaluations.models.rubrics import Aspect, Rubric, RubricAspect
from evaluations.models.users import User
from evaluations.models.verdicts import Score
from evaluations.rubrics.services import add_rubric, create_next_version, freeze_version
from evaluations.verdicts.score_choices import find_imported_rubric, list_imported_aspects

VERDICTS_RUBRIC_NAME: Final = "imported"
SCORES_RUBRIC_NAME: Final = "imported scores"


def load_imported_choices(evaluation: Evaluation) -> dict[str, set[str]]:
    """By aspect, the choices that the rubric of imported verdicts offers."""
    return {row.aspect.key: set(row.choices) for row in list_imported_aspects(evaluation, RubricKind.PAIRWISE)}


def update_verdicts_rubric(evaluation: Evaluation, occurring: Mapping[str, set[str]], user: User | None) -> list[int]:
    """Extend the rubric of imported verdicts by aspects without a rubric. Returns the id of a new version, if any."""
    before = load_imported_choices(evaluation)
    sides = {str(Choice.A), str(Choice.B)}
    choices = {key: before.get(key, sides) | occurring.get(key, set()) for key in [*before, *sorted(occurring)]}
    if choices == before:
        return []
    names = dict(Aspect.objects.filter(evaluation=evaluation, key__in=choices).values_list("key", "name"))
    aspects = [
        AspectSpec(
            key,
            names[key],
            definition="As in the imported file.",
            offers_tie=Choice.TIE in offers,
            offers_both_bad=Choice.BOTH_BAD in offers,
        )
        for key, offers in choices.items()
    ]
    return [add_imported_version(evaluation, RubricKind.PAIRWISE, aspects, user)]


def add_imported_version(
    evaluation: Evaluation, kind: RubricKind, aspects: Sequence[AspectSpec], user: User | None
) -> int:
    """Add a version to the imported rubric of this kind, or create it. Returns the id of the version."""
    things, name = ("verdicts", VERDICTS_RUBRIC_NAME) if kind == RubricKind.PAIRWISE else ("scores", SCORES_RUBRIC_NAME)
    spec = RubricSpec(
        kind=kind,
        instructions=f"These {things} were imported. Their original instructions are unknown.",
        aspects=tuple(aspects),
        output_order=tuple(aspect.key for aspect in aspects),
    )
    if rubric := find_imported_rubric(evaluation, kind):
        version = create_next_version(rubric, spec, user=user)
    else:
        name = find_free_name(name, Rubric.objects.filter(evaluation=evaluation).values_list("name", flat=True))
        version = add_rubric(evaluation, name=name, spec=spec, origin=RubricOrigin.IMPORTED, user=user)
    freeze_version(version)
    return version.pk


def refuse_invalid_margin(margin: float | None) -> None:
    if margin is not None and not (isfinite(margin) and margin >= 0):
        raise InputRefused("The tie margin must be 0 or more.")


def refuse_conflicting_scales(evaluation: Evaluation, scales: ScoreScales, margin: float | None) -> None:
    """Refuse scores whose better end differs from earlier ones, or a margin that makes every pair a tie."""
    before = {row.aspect.key: row for row in list_imported_aspects(evaluation)}
    for key, scale in scales.items():
        if key in before and before[key].lower_is_better != scale.lower_is_better:
            better = "lower" if before[key].lower_is_better else "higher"
            raise InputRefused(
                f"For {key}, {better} scores are better in this evaluation. "
                "Set the same for this file, or rename its aspect."
            )
        seen = merge_scale(before.get(key), scale, margin)
        if margin and seen.low < seen.high and margin >= seen.high - seen.low:
            raise InputRefused(
                f"A tie margin of {margin:g} makes every pair of {key} scores a tie: "
                f"they range from {seen.low:g} to {seen.high:g}."
            )


def merge_scale(before: RubricAspect | None, scale: ScoreScale, margin: float | None) -> "ImportedScale":
    """The scale of an aspect, widened by the scores of a file."""
    if before is None or before.scale_min is None or before.scale_max is None:
        return ImportedScale(scale.low, scale.high, scale.lower_is_better, margin or 0.0)
    wide = scale.joined(ScoreScale(before.scale_min, before.scale_max, before.lower_is_better))
    return ImportedScale(wide.low, wide.high, before.lower_is_better, before.tie_margin if margin is None else margin)


@dataclass(frozen=True)
class ImportedScale(ScoreScale):
    margin: float


def find_changed_margins(evaluation: Evaluation, keys: Iterable[str], margin: float | None) -> dict[str, float]:
    before = {row.aspect.key: row.tie_margin for row in list_imported_aspects(evaluation)} if margin is not None else {}
    return {key: before[key] for key in keys if key in before and before[key] != margin}


def find_scores_with_changed_margin(
    evaluation: Evaluation, keys: Iterable[str], margin: float | None
) -> QuerySet[Score]:
    """The stored imported scores of aspects whose margin changes."""
    changed = find_changed_margins(evaluation, keys, margin)
    aspects = Aspect.objects.filter(evaluation=evaluation, key__in=changed)
    return Score.objects.filter(aspect__in=aspects, source_import__isnull=False).order_by()


def update_scores_rubric(
    evaluation: Evaluation, scales: ScoreScales, margin: float | None, user: User | None
) -> list[int]:
    """Add a rubric version with these scales and return its id, or nothing if no scale is new."""
    refuse_conflicting_scales(evaluation, scales, margin)
    before = {row.aspect.key: row for row in list_imported_aspects(evaluation)}
    names = dict(Aspect.objects.filter(evaluation=evaluation, key__in=scales).values_list("key", "name"))
    old_specs = {key: row.spec() for key, row in before.items()}
    new_specs = old_specs | {
        key: build_aspect_spec(key, name, merge_scale(before.get(key), scales[key], margin))
        for key, name in names.items()
    }
    if new_specs == old_specs:
        return []
    return [add_imported_version(evaluation, RubricKind.POINTWISE, list(new_specs.values()), user)]


def build_aspect_spec(key: str, name: str, scale: ImportedScale) -> AspectSpec:
    return AspectSpec(
        key,
        name,
        definition="As in the imported file.",
        scale_min=scale.low,
        scale_max=scale.high,
        tie_margin=scale.margin,
        lower_is_better=scale.lower_is_better,
    )


def list_scale_warnings(evaluation: Evaluation, scales: ScoreScales, margin: float | None) -> Iterator[str]:
    before = {row.aspect.key for row in list_imported_aspects(evaluation)}
    if brought := sorted(scales.keys() - before):
        names = ", ".join(brought)
        yield f"The import adds a rubric named “{SCORES_RUBRIC_NAME}” for {names}, with the scale of the file."
    for key, old in find_changed_margins(evaluation, sorted(scales), margin).items():
        yield (
            f"The tie margin of {key} changes from {old:g} to {margin:g}. "
            "Choices derived from existing scores change with it."
        )


def list_scale_notes(scales: ScoreScales, margin: float | None) -> Iterator[str]:
    for better, lower in (("Lower", True), ("Higher", False)):
        if keys := sorted(key for key, scale in scales.items() if scale.lower_is_better == lower):
            yield f"{better} scores are better: {', '.join(keys)}."
    if scales and margin is not None:
        yield f"Responses with scores are paired. Scores within {margin:g} of each other are a tie."
