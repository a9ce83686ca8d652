"""An evaluation with its settings and its events."""

from dataclasses import fields
from typing import Any, Final

from django.db import models
from django.db.models import Q

from evaluations.domain.choices import LabelPolicy
from evaluations.domain.decisions import DecisionBars
from evaluations.domain.reviews import NameReveal, Reveal
from evaluations.models.base import ArchivableQuerySet, Row, enum_choices, enum_constraint
from evaluations.models.users import User

DEFAULT_BARS: Final = DecisionBars()
BAR_COLUMNS: Final = tuple(f"bar_{field.name}" for field in fields(DecisionBars))


def bar_column(default: float) -> "models.FloatField[float, float]":
    return models.FloatField(default=default, db_default=default)


def bar_constraint(column: str) -> models.CheckConstraint:
    """Constrain a bar to a share between 0 and 1; a half-width beyond half of that says nothing of a win rate."""
    highest = Q(**{f"{column}__lte": 0.5}) if column == "bar_half_width" else Q(**{f"{column}__lt": 1})
    return models.CheckConstraint(condition=Q(**{f"{column}__gt": 0}) & highest, name=f"evaluation_{column}")


class EvaluationQuerySet(ArchivableQuerySet["Evaluation"]):
    def of(self, user: User) -> "EvaluationQuerySet":
        """The evaluations in which this person takes part."""
        return self.filter(memberships__user=user)


class Evaluation(Row):
    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    guidelines = models.TextField(blank=True)
    # Reviewers see a notice once after a change.
    guidelines_changed_at = models.DateTimeField(null=True, blank=True)
    review_rubric = models.ForeignKey(
        "RubricVersion", on_delete=models.PROTECT, null=True, blank=True, related_name="reviewed_in"
    )
    shown_judge = models.ForeignKey("Judge", on_delete=models.PROTECT, null=True, blank=True, related_name="shown_in")
    reveal = models.CharField(max_length=12, default=Reveal.BLIND.value, choices=enum_choices(Reveal))
    name_reveal = models.CharField(max_length=12, default=NameReveal.AFTER_LAST.value, choices=enum_choices(NameReveal))
    reviews_wanted = models.PositiveSmallIntegerField(default=1)
    label_policy = models.CharField(
        max_length=20, default=LabelPolicy.PEOPLE_THEN_JUDGES.value, choices=enum_choices(LabelPolicy)
    )
    # Whether a reviewer and the shown judge who differ count as a disagreement, like two reviewers do.
    resolve_judge_disagreements = models.BooleanField(default=False)
    # How long a comparison from the default queue stays reserved for a reviewer.
    reservation_minutes = models.PositiveSmallIntegerField(default=30)
    # The bars of decisions on judges, as shares of 1: see `DecisionBars`.
    bar_stand_in = bar_column(DEFAULT_BARS.stand_in)
    bar_aspect = bar_column(DEFAULT_BARS.aspect)
    bar_unreliable = bar_column(DEFAULT_BARS.unreliable)
    bar_failures = bar_column(DEFAULT_BARS.failures)
    bar_inconsistency = bar_column(DEFAULT_BARS.inconsistency)
    bar_bias = bar_column(DEFAULT_BARS.bias)
    bar_half_width = bar_column(DEFAULT_BARS.half_width)
    # When the bars were last changed; if null, they hold since the evaluation was created.
    bars_changed_at = models.DateTimeField(null=True, blank=True)
    # When somebody first looked at decisions: bars that were changed later were not set before looking.
    results_seen_at = models.DateTimeField(null=True, blank=True)
    is_example = models.BooleanField(default=False)
    # When comparisons were last added or changed; caches of earlier reads are out of date.
    comparisons_changed_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    # By user id the role by which this very object was handed out: no column, and asked once a request.
    roles: dict[int, str]

    objects = EvaluationQuerySet.as_manager()

    class Meta:
        constraints = [
            enum_constraint("reveal", Reveal, "evaluation_reveal"),
            enum_constraint("name_reveal", NameReveal, "evaluation_name_reveal"),
            enum_constraint("label_policy", LabelPolicy, "evaluation_label_policy"),
            models.CheckConstraint(condition=models.Q(reviews_wanted__gte=1), name="evaluation_reviews_wanted"),
            models.CheckConstraint(
                condition=models.Q(reservation_minutes__gte=1), name="evaluation_reservation_minutes"
            ),
            *map(bar_constraint, BAR_COLUMNS),
        ]


class Event(Row):
    """An audit event: who did what and when, with the values before and after. Append-only."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, null=True, related_name="events")
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="events")
    verb = models.CharField(max_length=60)
    # Of what a program did through the API: with which token of that person.
    token = models.ForeignKey("ApiToken", on_delete=models.PROTECT, null=True, related_name="events", db_index=False)
    object_type = models.CharField(max_length=40)
    object_id = models.BigIntegerField(null=True)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["evaluation", "-id"], name="event_newest"),
            models.Index(fields=["object_type", "object_id"], name="event_of_object"),
        ]

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise TypeError("An Event is written once and never changed.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise TypeError("An Event is never deleted.")


class EarlierGuidelines(Row):
    """A wording of the guidelines that ``user`` replaced at ``created_at``."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="earlier_guidelines")
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="earlier_guidelines")
    text = models.TextField(blank=True)


class JudgeComparisonLook(Row):
    """A look at how judges compare on the test part: one for every result that was shown, counted from 1."""

    evaluation = models.ForeignKey(
        Evaluation, on_delete=models.PROTECT, related_name="judge_comparison_looks", db_index=False
    )
    number = models.PositiveSmallIntegerField()
    results_sha256 = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "number"], name="judge_comparison_look_number"),
            models.UniqueConstraint(fields=["evaluation", "results_sha256"], name="judge_comparison_look_once"),
        ]
