"""Rubrics with their frozen versions and shared aspects."""

from datetime import datetime
from typing import Any, Final, cast

from django.db import models

from evaluations.domain.choices import Choice
from evaluations.domain.rubrics import FIRST_LAYOUT, AspectSpec, RubricKind, RubricOrigin, RubricSpec
from evaluations.models.base import Row, enum_choices, enum_constraint
from evaluations.models.evaluations import Evaluation

# Specs of frozen versions, which never change, by id and moment of making: each page asks for one.
FROZEN_SPECS: "dict[tuple[int, datetime], RubricSpec]" = {}

MAX_FROZEN_SPECS: Final = 500

# Columns that hold fields of `RubricSpec` and `AspectSpec` unchanged.
VERSION_COLUMNS: Final = ("instructions", "answer_format", "rationale_key", "choices_key", "layout")
ASPECT_COLUMNS: Final = (
    *("definition", "offers_tie", "offers_both_bad", "scale_min", "scale_max", "scale_step", "tie_margin"),
    *("reply_key", "lower_is_better"),
)


class Rubric(Row):
    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="rubrics")
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=10, default=RubricKind.PAIRWISE.value, choices=enum_choices(RubricKind))
    origin = models.CharField(max_length=10, default=RubricOrigin.OWN.value, choices=enum_choices(RubricOrigin))

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "name"], name="rubric_name"),
            enum_constraint("kind", RubricKind, "rubric_kind"),
            enum_constraint("origin", RubricOrigin, "rubric_origin"),
        ]

    @property
    def is_editable(self) -> bool:
        """Whether it may have another version: an imported rubric only names what a file held."""
        return self.origin != RubricOrigin.IMPORTED


class RubricVersion(Row):
    """One wording of a rubric. Once used it is frozen; an edit makes the next number."""

    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    instructions = models.TextField(blank=True)
    placeholders = models.JSONField(default=dict)
    answer_format = models.CharField(max_length=400, default="json")
    few_shot = models.JSONField(default=list)
    rationale_key = models.CharField(max_length=60, default="rationale")
    choices_key = models.CharField(max_length=60, default="choices", blank=True)
    # Versions and backups from before there was a second layout keep the first.
    layout = models.PositiveSmallIntegerField(default=FIRST_LAYOUT)
    sha256 = models.CharField(max_length=64)
    frozen_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rubric", "number"], name="rubric_version_number")]

    def __str__(self) -> str:
        return f"{self.rubric} {self.number}"

    def spec(self) -> RubricSpec:
        """The version as the judge's room knows it."""
        if self.frozen_at is None:
            return self.read_spec()
        known = FROZEN_SPECS.get((self.pk, self.created_at))
        if known is None:
            if len(FROZEN_SPECS) >= MAX_FROZEN_SPECS:
                FROZEN_SPECS.clear()
            known = FROZEN_SPECS[self.pk, self.created_at] = self.read_spec()
        return known

    def read_spec(self) -> RubricSpec:
        aspects = list(self.rubric_aspects.select_related("aspect").order_by("position"))
        by_output = sorted(aspects, key=lambda aspect: aspect.output_position)
        return RubricSpec(
            kind=RubricKind(self.rubric.kind),
            aspects=tuple(aspect.spec() for aspect in aspects),
            output_order=tuple(aspect.aspect.key for aspect in by_output),
            placeholders=cast("dict[str, str]", self.placeholders),
            few_shot=tuple(self.few_shot),
            **{name: getattr(self, name) for name in VERSION_COLUMNS},
        )


class Aspect(Row):
    """A name in one evaluation: the same row for every rubric version, rater and import.

    ``slot``: its own number in the evaluation, from 0, at which packed votes store the choices on it.
    """

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="aspects")
    key = models.SlugField(max_length=60)
    name = models.CharField(max_length=80)
    slot = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "key"], name="aspect_key"),
            models.UniqueConstraint(fields=["evaluation", "slot"], name="aspect_slot"),
        ]

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.slot is None:
            self.slot = next_aspect_slot(self.evaluation_id)
        super().save(*args, **kwargs)


def next_aspect_slot(evaluation_id: int) -> int:
    """The first slot that no aspect of the evaluation has had."""
    last = Aspect.objects.filter(evaluation=evaluation_id).aggregate(last=models.Max("slot"))["last"]
    return 0 if last is None else last + 1


class RubricAspect(Row):
    """That a version asks about an aspect: where, in which words, with which choices or scale."""

    version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="rubric_aspects")
    aspect = models.ForeignKey(Aspect, on_delete=models.PROTECT, related_name="rubric_aspects")
    position = models.PositiveSmallIntegerField()
    output_position = models.PositiveSmallIntegerField()
    definition = models.TextField(blank=True)
    offers_tie = models.BooleanField(default=True)
    offers_both_bad = models.BooleanField(default=False)
    choice_labels = models.JSONField(default=dict)
    scale_min = models.FloatField(null=True)
    scale_max = models.FloatField(null=True)
    scale_step = models.FloatField(null=True)
    # Pairs in the order in which they are shown: PostgreSQL keeps no order of keys.
    scale_labels = models.JSONField(default=list)
    tie_margin = models.FloatField(default=0.0)
    reply_key = models.CharField(max_length=60, blank=True)
    lower_is_better = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "aspect"], name="rubric_aspect_once")]
        ordering = ["position"]

    def spec(self) -> AspectSpec:
        return AspectSpec(
            key=self.aspect.key,
            name=self.aspect.name,
            labels=cast("dict[str, str]", self.choice_labels),
            scale_labels=dict(self.scale_labels),
            **{name: getattr(self, name) for name in ASPECT_COLUMNS},
        )

    @property
    def choices(self) -> tuple[Choice, ...]:
        return self.spec().choices


def list_aspect_keys(evaluation: Evaluation) -> dict[int, str]:
    """The aspects of the rubric that people review by, in page order, then the others by key."""
    in_rubric = RubricAspect.objects.filter(version=evaluation.review_rubric_id).order_by("position")
    others = sorted(evaluation.aspects.values_list("key", "pk"))
    return {**dict(in_rubric.values_list("aspect_id", "aspect__key")), **{pk: key for key, pk in others}}
