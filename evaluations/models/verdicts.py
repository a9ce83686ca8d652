"""What raters say: reviews by people, and the verdicts and scores of every rater."""

from django.db import models
from django.db.models import Q

from evaluations.domain import Choice, PickedBy, Reason, Reveal, ReviewState, Shown, Stage
from evaluations.models.judges import Judge, Rater
from evaluations.models.material import Comparison, FinishedManager, Import, Response
from evaluations.models.rounds import Round
from evaluations.models.row import Row, closed_list, closed_or_empty, exactly_one_of, filled_index, one_of
from evaluations.models.rubrics import Aspect, RubricVersion
from evaluations.models.runs import Call, CountedManager


class Review(Row):
    """One human's pass over one comparison.

    ``picked_by``, ``round`` and ``probability`` are fixed at the first save, as the assignment has
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
    shown = models.CharField(max_length=10, choices=one_of(Shown))
    state = models.CharField(max_length=8, default=ReviewState.DRAFT.value, choices=one_of(ReviewState))
    version = models.PositiveIntegerField(default=0)
    blind = models.BooleanField(default=True)
    judge_first = models.BooleanField(default=False)
    reveal = models.CharField(max_length=12, blank=True, choices=one_of(Reveal))
    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, null=True, related_name="reviews", db_index=False)
    picked_by = models.CharField(max_length=20, default=PickedBy.BY_HAND.value, choices=one_of(PickedBy))
    round = models.ForeignKey(Round, on_delete=models.PROTECT, null=True, related_name="reviews")
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
            closed_list("state", ReviewState, "review_state"),
            closed_list("shown", Shown, "review_shown"),
            closed_list("picked_by", PickedBy, "review_picked_by"),
            closed_or_empty("reveal", Reveal, "review_reveal"),
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

    def __str__(self) -> str:
        return f"review {self.pk}"


class Verdict(Row):
    """One rater's choice for one aspect of one comparison, in terms of A and B as stored."""

    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="verdicts", db_index=False)
    comparison = models.ForeignKey(Comparison, on_delete=models.PROTECT, related_name="verdicts", db_index=False)
    aspect = models.ForeignKey(Aspect, on_delete=models.PROTECT, related_name="verdicts")
    sample = models.PositiveSmallIntegerField(default=0)
    stage = models.CharField(max_length=5, default=Stage.FIRST.value, choices=one_of(Stage))
    shown = models.CharField(max_length=10, choices=one_of(Shown))
    choice = models.CharField(max_length=8, choices=one_of(Choice))
    inconsistent = models.BooleanField(default=False)
    call = models.ForeignKey(Call, on_delete=models.PROTECT, null=True, related_name="verdicts", db_index=False)
    review = models.ForeignKey(Review, on_delete=models.PROTECT, null=True, related_name="verdicts", db_index=False)
    source_import = models.ForeignKey(
        Import, on_delete=models.PROTECT, null=True, related_name="verdicts", db_index=False
    )
    rationale = models.TextField(blank=True)
    note = models.TextField(blank=True)
    reason = models.CharField(max_length=40, blank=True, choices=one_of(Reason))
    confidence = models.FloatField(null=True)
    # From the model's own probabilities of the labels: A is 1, tie a half, B is 0. Beside the choice, never instead.
    weighted = models.FloatField(null=True)

    objects = CountedManager["Verdict"]()
    all_rows = models.Manager["Verdict"]()

    class Meta:
        constraints = [
            closed_list("choice", Choice, "verdict_choice"),
            closed_list("shown", Shown, "verdict_shown"),
            closed_list("stage", Stage, "verdict_stage"),
            closed_or_empty("reason", Reason, "verdict_reason"),
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
            filled_index("source_import", "verdict"),
        ]

    def __str__(self) -> str:
        return f"{self.choice} for {self.aspect_id} by {self.rater_id}"


class Score(Row):
    """One rater's number for one aspect of one response."""

    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="scores", db_index=False)
    response = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="scores")
    aspect = models.ForeignKey(Aspect, on_delete=models.PROTECT, related_name="scores")
    value = models.FloatField()
    # From the model's own probabilities of the scale's values: their mean. Beside the value, never instead.
    weighted = models.FloatField(null=True)
    sample = models.PositiveSmallIntegerField(default=0)
    stage = models.CharField(max_length=5, default=Stage.FIRST.value, choices=one_of(Stage))
    call = models.ForeignKey(Call, on_delete=models.PROTECT, null=True, related_name="scores", db_index=False)
    review = models.ForeignKey(Review, on_delete=models.PROTECT, null=True, related_name="scores", db_index=False)
    source_import = models.ForeignKey(
        Import, on_delete=models.PROTECT, null=True, related_name="scores", db_index=False
    )
    rationale = models.TextField(blank=True)
    note = models.TextField(blank=True)
    reason = models.CharField(max_length=40, blank=True, choices=one_of(Reason))

    objects = CountedManager["Score"]()
    all_rows = models.Manager["Score"]()

    class Meta:
        indexes = [
            models.Index(fields=["rater", "response"], name="score_of_rater"),
            filled_index("source_import", "score"),
        ]
        constraints = [
            closed_list("stage", Stage, "score_stage"),
            closed_or_empty("reason", Reason, "score_reason"),
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

    def __str__(self) -> str:
        return f"{self.value} for {self.aspect_id} by {self.rater_id}"
