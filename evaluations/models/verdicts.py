"""What raters chose on comparisons, from the first choice of a review to the label."""

from django.db import models
from django.db.models import F, Q

from evaluations.domain.choices import Choice, LabelSource, ShownOrder, Stage
from evaluations.domain.reviews import DifferenceReason, Reveal, ReviewState, SelectionMethod
from evaluations.models.base import (
    Row,
    enum_choices,
    enum_constraint,
    exactly_one_of,
    not_null_index,
)
from evaluations.models.comparisons import Comparison, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import FinishedManager, Import
from evaluations.models.judges import Judge, Rater
from evaluations.models.queues import Queue
from evaluations.models.rubrics import Aspect, RubricVersion
from evaluations.models.runs import Call, CountedManager
from evaluations.models.users import User


class Review(Row):
    """One human's pass over one comparison.

    ``selection_method``, ``queue`` and ``probability`` are fixed at the first save, as the assignment has
    them: reports weigh by what is reviewed of a stratum by then. ``judge_first``: the judge's choices stood
    there from the start; ``reveal`` says by which rule that was decided.
    ``judge`` is the one that was shown or is to be, whichever the evaluation shows by now.
    ``draft`` holds what was entered and not saved yet, by the names of the page's fields, ``draft_number``
    counts its changes and ``draft_tab`` says which page made the last one.
    """

    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="reviews", db_index=False)
    comparison = models.ForeignKey(Comparison, on_delete=models.PROTECT, related_name="reviews")
    rubric_version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="reviews")
    source_import = models.ForeignKey(Import, on_delete=models.PROTECT, null=True, related_name="reviews")
    shown = models.CharField(max_length=10, choices=enum_choices(ShownOrder))
    state = models.CharField(max_length=8, default=ReviewState.DRAFT.value, choices=enum_choices(ReviewState))
    version = models.PositiveIntegerField(default=0)
    blind = models.BooleanField(default=True)
    judge_first = models.BooleanField(default=False)
    reveal = models.CharField(max_length=12, blank=True, choices=enum_choices(Reveal))
    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, null=True, related_name="reviews", db_index=False)
    selection_method = models.CharField(
        max_length=20, default=SelectionMethod.BY_HAND.value, choices=enum_choices(SelectionMethod)
    )
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, null=True, related_name="reviews")
    probability = models.FloatField(null=True)
    # Its first choices became final because the shown judge had not answered: it can come back.
    awaits_judge = models.BooleanField(default=False)
    draft = models.JSONField(default=dict)
    draft_number = models.PositiveIntegerField(default=0)
    draft_tab = models.CharField(max_length=36, blank=True)
    first_saved_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    active_ms = models.PositiveIntegerField(default=0)
    skip_reason = models.CharField(max_length=200, blank=True)
    note = models.TextField(blank=True)
    is_example = models.BooleanField(default=False)

    objects = FinishedManager["Review"]()
    all_rows = models.Manager["Review"]()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rater", "comparison", "rubric_version"], name="review_once"),
            enum_constraint("state", ReviewState, "review_state"),
            enum_constraint("shown", ShownOrder, "review_shown"),
            enum_constraint("selection_method", SelectionMethod, "review_selection_method"),
            enum_constraint("reveal", Reveal, "review_reveal", or_empty=True),
            models.CheckConstraint(
                condition=Q(probability__isnull=True) | Q(probability__gt=0, probability__lte=1),
                name="review_probability",
            ),
        ]
        indexes = [
            models.Index(fields=["comparison", "rubric_version", "state"], name="review_of_comparison"),
            models.Index(fields=["rater", "rubric_version", "state"], name="review_of_rater"),
            models.Index(fields=["rater", "rubric_version", "finished_at"], name="review_last_finished"),
            models.Index(
                fields=["rubric_version", "rater"], condition=Q(awaits_judge=True), name="review_awaiting_judge"
            ),
        ]


class Verdict(Row):
    """One rater's choice for one aspect of one comparison, in terms of A and B as stored."""

    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="verdicts", db_index=False)
    comparison = models.ForeignKey(Comparison, on_delete=models.PROTECT, related_name="verdicts", db_index=False)
    aspect = models.ForeignKey(Aspect, on_delete=models.PROTECT, related_name="verdicts")
    sample = models.PositiveSmallIntegerField(default=0)
    stage = models.CharField(max_length=5, default=Stage.FIRST.value, choices=enum_choices(Stage))
    shown = models.CharField(max_length=10, choices=enum_choices(ShownOrder))
    choice = models.CharField(max_length=8, choices=enum_choices(Choice))
    inconsistent = models.BooleanField(default=False)
    call = models.ForeignKey(Call, on_delete=models.PROTECT, null=True, related_name="verdicts", db_index=False)
    review = models.ForeignKey(Review, on_delete=models.PROTECT, null=True, related_name="verdicts", db_index=False)
    source_import = models.ForeignKey(
        Import, on_delete=models.PROTECT, null=True, related_name="verdicts", db_index=False
    )
    rationale = models.TextField(blank=True)
    note = models.TextField(blank=True)
    reason = models.CharField(max_length=40, blank=True, choices=enum_choices(DifferenceReason))
    confidence = models.FloatField(null=True)
    # From the model's own probabilities of the labels: A is 1, tie a half, B is 0. Beside the choice, never instead.
    weighted = models.FloatField(null=True)

    objects = CountedManager["Verdict"]()
    all_rows = models.Manager["Verdict"]()

    class Meta:
        constraints = [
            enum_constraint("choice", Choice, "verdict_choice"),
            enum_constraint("shown", ShownOrder, "verdict_shown"),
            enum_constraint("stage", Stage, "verdict_stage"),
            enum_constraint("reason", DifferenceReason, "verdict_reason", or_empty=True),
            models.CheckConstraint(condition=exactly_one_of("call", "review", "source_import"), name="verdict_source"),
            models.UniqueConstraint(fields=["call", "aspect"], condition=Q(call__isnull=False), name="verdict_of_call"),
            models.UniqueConstraint(
                fields=["review", "aspect", "stage"], condition=Q(review__isnull=False), name="verdict_of_review"
            ),
            models.UniqueConstraint(
                fields=["rater", "comparison", "aspect", "sample", "shown"],
                condition=Q(source_import__isnull=False),
                name="verdict_of_import",
            ),
        ]
        # Six rows a call: no index begins as another does, and a column that is mostly empty has none of its own.
        indexes = [
            models.Index(fields=["comparison", "aspect", "rater", "choice"], name="verdict_of_comparison"),
            # Of a judge on a few comparisons: SQLite would read all that it ever said.
            models.Index(fields=["rater", "comparison"], name="verdict_of_rater"),
            not_null_index("source_import", "verdict"),
        ]


class Score(Row):
    """One rater's number for one aspect of one response."""

    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="scores", db_index=False)
    response = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="scores")
    aspect = models.ForeignKey(Aspect, on_delete=models.PROTECT, related_name="scores")
    value = models.FloatField()
    # From the model's own probabilities of the scale's values: their mean. Beside the value, never instead.
    weighted = models.FloatField(null=True)
    sample = models.PositiveSmallIntegerField(default=0)
    stage = models.CharField(max_length=5, default=Stage.FIRST.value, choices=enum_choices(Stage))
    call = models.ForeignKey(Call, on_delete=models.PROTECT, null=True, related_name="scores", db_index=False)
    review = models.ForeignKey(Review, on_delete=models.PROTECT, null=True, related_name="scores", db_index=False)
    source_import = models.ForeignKey(
        Import, on_delete=models.PROTECT, null=True, related_name="scores", db_index=False
    )
    rationale = models.TextField(blank=True)
    note = models.TextField(blank=True)
    reason = models.CharField(max_length=40, blank=True, choices=enum_choices(DifferenceReason))

    objects = CountedManager["Score"]()
    all_rows = models.Manager["Score"]()

    class Meta:
        indexes = [
            models.Index(fields=["rater", "response"], name="score_of_rater"),
            not_null_index("source_import", "score"),
        ]
        constraints = [
            enum_constraint("stage", Stage, "score_stage"),
            enum_constraint("reason", DifferenceReason, "score_reason", or_empty=True),
            models.CheckConstraint(condition=exactly_one_of("call", "review", "source_import"), name="score_source"),
            models.UniqueConstraint(fields=["call", "aspect"], condition=Q(call__isnull=False), name="score_of_call"),
            models.UniqueConstraint(
                fields=["review", "response", "aspect", "stage"],
                condition=Q(review__isnull=False),
                name="score_of_review",
            ),
            models.UniqueConstraint(
                fields=["rater", "response", "aspect", "sample"],
                condition=Q(source_import__isnull=False),
                name="score_of_import",
            ),
        ]


class PackedVotes(Row):
    """All that one rater chose on one comparison at once: in one call, one review, or one sample of an import.

    Derived from Verdicts in the transaction that writes them. ``first_choices`` and ``final_choices`` are packed as in
    `domain.packed_votes`; only reviews have final ones. ``shown``: the order's place in PACKED_ORDERS.
    ``inconsistent_aspects``: a bit for each aspect. ``decided_at_ms``: milliseconds since 1970-01-01 UTC, of an import
    that does not say when it came in. Imported choices that were made at different times have a row each.
    """

    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="packed_votes", db_index=False)
    comparison = models.ForeignKey(Comparison, on_delete=models.PROTECT, related_name="packed_votes", db_index=False)
    shown = models.PositiveSmallIntegerField()
    sample = models.PositiveSmallIntegerField(default=0)
    call = models.ForeignKey(Call, on_delete=models.PROTECT, null=True, related_name="packed_votes", db_index=False)
    review = models.ForeignKey(Review, on_delete=models.PROTECT, null=True, related_name="packed_votes", db_index=False)
    source_import = models.ForeignKey(
        Import, on_delete=models.PROTECT, null=True, related_name="packed_votes", db_index=False
    )
    aspect_block = models.PositiveSmallIntegerField(default=0)
    first_choices = models.BigIntegerField(default=0)
    final_choices = models.BigIntegerField(default=0)
    inconsistent_aspects = models.BigIntegerField(default=0)
    decided_at_ms = models.BigIntegerField(default=0)

    objects = FinishedManager["PackedVotes"]()
    all_rows = models.Manager["PackedVotes"]()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=exactly_one_of("call", "review", "source_import"), name="packed_votes_source"
            ),
            models.UniqueConstraint(
                fields=["call", "aspect_block"], condition=Q(call__isnull=False), name="packed_votes_of_call"
            ),
            models.UniqueConstraint(
                fields=["review", "aspect_block"], condition=Q(review__isnull=False), name="packed_votes_of_review"
            ),
            models.UniqueConstraint(
                fields=["rater", "comparison", "sample", "shown", "source_import", "aspect_block", "decided_at_ms"],
                condition=Q(source_import__isnull=False),
                name="packed_votes_of_import",
            ),
        ]
        indexes = [
            # Everything that a report reads of a judge: it never looks at the rows themselves.
            models.Index(
                fields=["rater", "comparison", "shown", "aspect_block", "first_choices", "inconsistent_aspects"],
                name="packed_votes_of_rater",
            ),
            not_null_index("source_import", "packed_votes"),
            # For the removal of comparisons: the database looks here for each of them.
            models.Index(fields=["comparison"], name="packed_votes_of_comparison"),
        ]


class Span(Row):
    """A passage of a response that a person marked and commented.

    ``start`` and ``end`` count characters of the turn as it is shown; ``quote`` is what stands there.
    """

    review = models.ForeignKey(Review, on_delete=models.PROTECT, related_name="spans")
    response = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="spans")
    aspect = models.ForeignKey(Aspect, on_delete=models.PROTECT, null=True, related_name="spans")
    turn = models.PositiveSmallIntegerField(default=0)
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    quote = models.TextField()
    comment = models.TextField(blank=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(start__lt=F("end")), name="span_not_empty")]


class Comment(Row):
    """One contribution to the thread of a comparison. Withdrawn comments keep their position but not their text."""

    comparison = models.ForeignKey(Comparison, on_delete=models.PROTECT, related_name="comments")
    aspect = models.ForeignKey(Aspect, on_delete=models.PROTECT, null=True, related_name="comments")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="comments")
    text = models.TextField()
    withdrawn_at = models.DateTimeField(null=True)


class Mention(Row):
    """That a comment calls a person."""

    comment = models.ForeignKey(Comment, on_delete=models.PROTECT, related_name="mentions", db_index=False)
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="mentions")
    seen_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["comment", "user"], name="mention_once")]


class Adjudication(Row):
    """The decision that resolves one aspect of one comparison. Earlier decisions are in the events.

    ``batch``: shared by the decisions that one action made, and undone by it; null once the decision was changed.
    ``in_bulk``: the majority was accepted for many comparisons at once, without opening this one.
    """

    comparison = models.ForeignKey(Comparison, on_delete=models.PROTECT, related_name="adjudications", db_index=False)
    aspect = models.ForeignKey(Aspect, on_delete=models.PROTECT, related_name="adjudications")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="adjudications")
    choice = models.CharField(max_length=8, choices=enum_choices(Choice))
    category = models.CharField(max_length=40, blank=True, choices=enum_choices(DifferenceReason))
    reason = models.TextField(blank=True)
    version = models.PositiveIntegerField(default=1)
    changed_at = models.DateTimeField(auto_now=True)
    batch = models.UUIDField(null=True, blank=True)
    in_bulk = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["comparison", "aspect"], name="adjudication_once"),
            enum_constraint("choice", Choice, "adjudication_choice"),
            enum_constraint("category", DifferenceReason, "adjudication_category", or_empty=True),
        ]
        indexes = [models.Index(fields=["batch"], condition=Q(batch__isnull=False), name="adjudication_batch")]


class Disclosure(Row):
    """A person was shown what others chose on a comparison, or without one on all of an evaluation.

    A review that they save later is not blind.
    """

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="disclosures")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="disclosures", db_index=False)
    comparison = models.ForeignKey(Comparison, on_delete=models.PROTECT, null=True, related_name="disclosures")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "comparison"], name="disclosure_once"),
            models.UniqueConstraint(
                fields=["user", "evaluation"],
                condition=models.Q(comparison__isnull=True),
                name="disclosure_of_all_once",
            ),
        ]


class Label(Row):
    """The label of one aspect of one comparison by reviewers and adjudicators; derived, equal to a recount.

    Written in the transaction that changed a final verdict or an adjudication. Where no person
    voted there is no row: what judges say then is read from their verdicts. ``choice`` is empty
    where the votes are split; ``unanimous``: all votes are one choice.
    """

    comparison = models.ForeignKey(Comparison, on_delete=models.PROTECT, related_name="labels", db_index=False)
    aspect = models.ForeignKey(Aspect, on_delete=models.PROTECT, related_name="labels", db_index=False)
    choice = models.CharField(max_length=8, blank=True, choices=enum_choices(Choice))
    source = models.CharField(max_length=12, choices=enum_choices(LabelSource))
    votes = models.PositiveIntegerField()
    unanimous = models.BooleanField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["comparison", "aspect"], name="label_once"),
            enum_constraint("choice", Choice, "label_choice", or_empty=True),
            enum_constraint("source", LabelSource, "label_source"),
            models.CheckConstraint(
                condition=Q(choice="", source=LabelSource.SPLIT.value)
                | (~Q(choice="") & ~Q(source=LabelSource.SPLIT.value)),
                name="label_split_is_empty",
            ),
        ]
        indexes = [
            models.Index(fields=["aspect", "choice", "comparison"], name="label_of_choice"),
            models.Index(
                fields=["comparison", "aspect"],
                condition=Q(unanimous=False) & ~Q(source=LabelSource.ADJUDICATED.value),
                name="label_in_conflict",
            ),
        ]
