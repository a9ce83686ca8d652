"""What is said about a disagreement, how it was settled, and the label that stands in the end."""

from django.db import models
from django.db.models import F, Q

from evaluations.domain import Choice, LabelSource
from evaluations.models.material import Comparison, Response
from evaluations.models.people import User
from evaluations.models.row import Row, closed_list, closed_or_empty, one_of
from evaluations.models.rubrics import Aspect
from evaluations.models.verdicts import Review


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

    def __str__(self) -> str:
        return f"{self.start} to {self.end} of response {self.response_id}"


class Comment(Row):
    """One contribution to the thread of a comparison. Withdrawn ones keep their place, not their words on pages."""

    comparison = models.ForeignKey(Comparison, on_delete=models.PROTECT, related_name="comments")
    aspect = models.ForeignKey(Aspect, on_delete=models.PROTECT, null=True, related_name="comments")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="comments")
    text = models.TextField()
    withdrawn_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"comment by {self.user_id} on comparison {self.comparison_id}"


class Mention(Row):
    """That a comment calls a person."""

    comment = models.ForeignKey(Comment, on_delete=models.PROTECT, related_name="mentions", db_index=False)
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="mentions")
    seen_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["comment", "user"], name="mention_once")]

    def __str__(self) -> str:
        return f"{self.user_id} in comment {self.comment_id}"


class Adjudication(Row):
    """The decision that settles one aspect of one comparison. Earlier ones stand in the Events."""

    comparison = models.ForeignKey(Comparison, on_delete=models.PROTECT, related_name="adjudications", db_index=False)
    aspect = models.ForeignKey(Aspect, on_delete=models.PROTECT, related_name="adjudications")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="adjudications")
    choice = models.CharField(max_length=8, choices=one_of(Choice))
    reason = models.TextField()
    version = models.PositiveIntegerField(default=1)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["comparison", "aspect"], name="adjudication_once"),
            closed_list("choice", Choice, "adjudication_choice"),
        ]

    def __str__(self) -> str:
        return f"{self.choice} for {self.aspect_id} of {self.comparison_id}"


class Label(Row):
    """What people and adjudicators say of one aspect of one comparison: derived, and equal to a recount.

    Written in the transaction that changed a final verdict or an adjudication. Where no person
    voted there is no row: what judges say then is read from their verdicts. ``choice`` is empty
    where the votes are split; ``unanimous``: all votes are one choice.
    """

    comparison = models.ForeignKey(Comparison, on_delete=models.PROTECT, related_name="labels", db_index=False)
    aspect = models.ForeignKey(Aspect, on_delete=models.PROTECT, related_name="labels", db_index=False)
    choice = models.CharField(max_length=8, blank=True, choices=one_of(Choice))
    source = models.CharField(max_length=12, choices=one_of(LabelSource))
    votes = models.PositiveIntegerField()
    unanimous = models.BooleanField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["comparison", "aspect"], name="label_once"),
            closed_or_empty("choice", Choice, "label_choice"),
            closed_list("source", LabelSource, "label_source"),
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

    def __str__(self) -> str:
        return f"{self.choice or 'no label'} for {self.aspect_id} of {self.comparison_id}"
