"""The rubric that comes with imported scores: the scale seen, which end of it is better, and the margin of a tie."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any, Final

from django.db.models import Q, QuerySet

from evaluations.domain import AspectSpec, InputRefused, RubricKind, RubricOrigin, RubricSpec, ScoreRule
from evaluations.models import Aspect, Evaluation, Rubric, RubricAspect, Score, User
from evaluations.services.importing.bringing import free_name
from evaluations.services.preparing.preparing import add_rubric, freeze, next_version

IMPORTED_SCORES: Final = "imported scores"


@dataclass(frozen=True)
class Scale:
    """The values that occur for one aspect, and which end of them is better."""

    low: float
    high: float
    lower_is_better: bool

    def joined(self, other: "Scale") -> "Scale":
        return replace(self, low=min(self.low, other.low), high=max(self.high, other.high))


Scales = Mapping[str, Scale]


def as_told(scales: Scales) -> dict[str, Any]:
    """As an import's summary keeps them."""
    return {key: asdict(scale) for key, scale in sorted(scales.items())}


def from_told(told: Mapping[str, Any]) -> dict[str, Scale]:
    return {key: Scale(**scale) for key, scale in told.items()}


# ---- what was brought so far ---------------------------------------------------------------------


def scores_rubric(evaluation: Evaluation) -> Rubric | None:
    rubrics = Rubric.objects.filter(evaluation=evaluation, origin=RubricOrigin.IMPORTED)
    return rubrics.filter(kind=RubricKind.POINTWISE).first()


def asked_so_far(evaluation: Evaluation) -> list[RubricAspect]:
    """What the newest version says of each aspect, in its order."""
    rubric = scores_rubric(evaluation)
    version = rubric.versions.order_by("-number").first() if rubric else None
    return list(version.asked.select_related("aspect").order_by("position")) if version else []


def score_rules(among: Q) -> dict[int, ScoreRule]:
    """By aspect id how two imported scores of the aspects among these are held against each other. One query."""
    brought = RubricAspect.objects.filter(
        among,
        version__rubric__origin=RubricOrigin.IMPORTED,
        version__rubric__kind=RubricKind.POINTWISE,
    )
    columns = brought.order_by("version__number").values_list("aspect_id", "tie_margin", "lower_is_better")
    return {aspect: ScoreRule(margin, lower) for aspect, margin, lower in columns}


# ---- what a file would change --------------------------------------------------------------------


def refuse_odd_margin(margin: float | None) -> None:
    if margin is not None and not (isfinite(margin) and margin >= 0):
        raise InputRefused("The margin of a tie is a number from 0 up.")


def refuse_unfitting(evaluation: Evaluation, scales: Scales, margin: float | None) -> None:
    """Of the scores of one aspect the same end is better throughout, and a margin leaves some that are no tie."""
    before = {one.aspect.key: one for one in asked_so_far(evaluation)}
    for key, scale in scales.items():
        if key in before and before[key].lower_is_better != scale.lower_is_better:
            better = "lower" if before[key].lower_is_better else "higher"
            raise InputRefused(
                f"Of the scores of {key} that are here already the {better} one is better: "
                "say the same of this file, or give its aspect another name."
            )
        seen = after(before.get(key), scale, margin)
        if margin and seen.low < seen.high and margin >= seen.high - seen.low:
            raise InputRefused(
                f"A margin of {margin:g} makes a tie of every two scores of {key}: "
                f"they lie between {seen.low:g} and {seen.high:g}."
            )


def after(before: RubricAspect | None, scale: Scale, margin: float | None) -> "Brought":
    """What the rubric is to say of an aspect once this scale was seen."""
    if before is None or before.scale_min is None or before.scale_max is None:
        return Brought(scale.low, scale.high, scale.lower_is_better, margin or 0.0)
    wide = scale.joined(Scale(before.scale_min, before.scale_max, before.lower_is_better))
    return Brought(wide.low, wide.high, before.lower_is_better, before.tie_margin if margin is None else margin)


@dataclass(frozen=True)
class Brought(Scale):
    margin: float


def other_margins(evaluation: Evaluation, keys: Iterable[str], margin: float | None) -> dict[str, float]:
    """The margins so far of those aspects that are given another; none where no margin is given."""
    before = {one.aspect.key: one.tie_margin for one in asked_so_far(evaluation)} if margin is not None else {}
    return {key: before[key] for key in keys if key in before and before[key] != margin}


def weighed_anew(evaluation: Evaluation, keys: Iterable[str], margin: float | None) -> QuerySet[Score]:
    """The scores of these aspects, here already, that make other choices by this margin."""
    changed = other_margins(evaluation, keys, margin)
    aspects = Aspect.objects.filter(evaluation=evaluation, key__in=changed)
    return Score.objects.filter(aspect__in=aspects, source_import__isnull=False).order_by()


def bring_scales(evaluation: Evaluation, scales: Scales, margin: float | None, user: User | None) -> list[int]:
    """A version of the rubric that knows these scales too, as its id; none where it says all of it already."""
    refuse_unfitting(evaluation, scales, margin)
    before = {one.aspect.key: one for one in asked_so_far(evaluation)}
    names = dict(Aspect.objects.filter(evaluation=evaluation, key__in=scales).values_list("key", "name"))
    said = {key: one.spec() for key, one in before.items()}
    now = said | {key: spec_of(key, name, after(before.get(key), scales[key], margin)) for key, name in names.items()}
    if now == said:
        return []
    spec = RubricSpec(
        kind=RubricKind.POINTWISE,
        instructions="These scores came in files; how they were asked for is not known here.",
        aspects=tuple(now.values()),
        output_order=tuple(now),
    )
    rubric = scores_rubric(evaluation)
    if rubric:
        version = next_version(rubric, spec, user=user)
    else:
        name = free_name(evaluation, IMPORTED_SCORES)
        version = add_rubric(evaluation, name=name, spec=spec, origin=RubricOrigin.IMPORTED, user=user)
    freeze(version)
    return [version.pk]


def spec_of(key: str, name: str, brought: Brought) -> AspectSpec:
    return AspectSpec(
        key,
        name,
        definition="As in the imported file.",
        scale_min=brought.low,
        scale_max=brought.high,
        tie_margin=brought.margin,
        lower_is_better=brought.lower_is_better,
    )


# ---- in words ------------------------------------------------------------------------------------


def warnings_about(evaluation: Evaluation, scales: Scales, margin: float | None) -> Iterator[str]:
    before = {one.aspect.key for one in asked_so_far(evaluation)}
    if brought := sorted(scales.keys() - before):
        names = ", ".join(brought)
        yield f"A rubric named {IMPORTED_SCORES} comes with the scores of {names}, with the scale seen in the file."
    for key, old in other_margins(evaluation, sorted(scales), margin).items():
        yield (
            f"The margin of a tie was {old:g} for {key} and becomes {margin:g}: "
            "choices derived from its scores that are here already change with it."
        )


def notes_about(scales: Scales, margin: float | None) -> Iterator[str]:
    for better, lower in (("Lower", True), ("Higher", False)):
        if keys := sorted(key for key, scale in scales.items() if scale.lower_is_better == lower):
            yield f"{better} scores are better: {', '.join(keys)}."
    if scales and margin is not None:
        yield (
            "Of every two responses to a query with scores a comparison is made, where there is none. "
            f"Scores that differ by at most {margin:g} make a tie."
        )
