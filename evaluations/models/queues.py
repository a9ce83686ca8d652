"""Queues with their items, assignments and progress."""

from typing import Final

from django.db import models
from django.db.models import F, Q

from evaluations.domain.reviews import AssignmentState, QueueKind, SelectionMethod, StratifyBy
from evaluations.models.base import Row, enum_choices, enum_constraint
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.rubrics import RubricVersion
from evaluations.models.users import User


class DefaultQueue(Row):
    """The default queue of one rubric version, as it was last filled.

    ``imports`` and ``last_comparison`` are from that time: if they differ now, comparisons may be missing. The row is
    locked while slots are released or added, so that nobody's progress passes these.
    """

    rubric_version = models.OneToOneField(RubricVersion, on_delete=models.PROTECT, related_name="default_queue")
    items = models.PositiveIntegerField(default=0)
    wanted = models.PositiveSmallIntegerField(default=1)
    imports = models.PositiveIntegerField(default=0)
    last_comparison = models.BigIntegerField(default=0)


class QueueItem(Row):
    """One comparison in the queues of one rubric version.

    ``position`` is the comparison's ``random_order``. ``taken`` counts the assignments that take a slot: those
    RESERVED, ASSIGNED and DONE, from any queue. ``drawn``: the random order has reached it, or a queue drew it at
    random; the drawn items together are a simple random sample.
    """

    rubric_version = models.ForeignKey(
        RubricVersion, on_delete=models.PROTECT, related_name="queue_items", db_index=False
    )
    comparison = models.ForeignKey(Comparison, on_delete=models.PROTECT, related_name="queue_items")
    position = models.BigIntegerField()
    wanted = models.PositiveSmallIntegerField()
    taken = models.PositiveIntegerField(default=0)
    drawn = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rubric_version", "comparison"], name="queue_item_once"),
            models.CheckConstraint(condition=Q(wanted__gte=1), name="queue_item_wanted"),
        ]
        indexes = [
            models.Index(fields=["rubric_version", "position"], name="queue_item_in_order"),
            models.Index(
                fields=["rubric_version", "position"], condition=Q(taken__lt=F("wanted")), name="queue_item_open"
            ),
            models.Index(fields=["rubric_version", "position"], condition=Q(drawn=False), name="queue_item_undrawn"),
        ]


class Queue(Row):
    """Comparisons that are reviewed first, selected by a strategy.

    ``random_percent`` of a review queue are drawn uniformly at random with any strategy. Calibration queues have
    known labels.
    """

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="queues")
    rubric_version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="queues")
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="queues")
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=12, default=QueueKind.REVIEW.value, choices=enum_choices(QueueKind))
    strategy = models.CharField(max_length=20, choices=enum_choices(SelectionMethod))
    strata = models.CharField(max_length=16, blank=True, choices=enum_choices(StratifyBy))
    random_percent = models.PositiveSmallIntegerField(default=100)
    reviews_wanted = models.PositiveSmallIntegerField(default=1)
    # How many comparisons there were when it was drawn: what its probabilities are shares of.
    population = models.PositiveIntegerField(default=0)
    seed = models.BigIntegerField(default=0)
    # Whether only people who were given its comparisons by name meet them.
    assigned_only = models.BooleanField(default=False)
    closed_at = models.DateTimeField(null=True)  # when it was archived

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "name"], name="queue_name"),
            enum_constraint("kind", QueueKind, "queue_kind"),
            enum_constraint("strategy", SelectionMethod, "queue_strategy"),
            enum_constraint("strata", StratifyBy, "queue_strata", or_empty=True),
            models.CheckConstraint(condition=Q(random_percent__lte=100), name="queue_random_percent"),
            models.CheckConstraint(condition=Q(reviews_wanted__gte=1), name="queue_reviews_wanted"),
        ]

    @property
    def is_outdated(self) -> bool:
        """Whether it was made for another rubric version than the current one, so that reviewers do not get it."""
        return self.rubric_version_id != self.evaluation.review_rubric_id


class QueueSlot(Row):
    """A comparison in a queue: its position, how it was selected and with what probability.

    ``probability``: the design probability that it was drawn by the time the queue was made: for the random share the
    share of all comparisons drawn so far, for a stratum the share of that stratum; None for deterministic strategies.
    """

    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="slots", db_index=False)
    item = models.ForeignKey(QueueItem, on_delete=models.PROTECT, related_name="slots")
    position = models.PositiveIntegerField()
    selection_method = models.CharField(max_length=20, choices=enum_choices(SelectionMethod))
    probability = models.FloatField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["queue", "item"], name="queue_slot_once"),
            models.UniqueConstraint(fields=["queue", "position"], name="queue_slot_position"),
            enum_constraint("selection_method", SelectionMethod, "queue_slot_selection_method"),
            models.CheckConstraint(
                condition=Q(probability__isnull=True) | Q(probability__gt=0, probability__lte=1),
                name="queue_slot_probability",
            ),
        ]


class Assignment(Row):
    """The assignment of a comparison to a reviewer, and how it was selected.

    ``slot`` is None if it came from the default queue or by hand. ``reserved_until`` is set while RESERVED.
    ``probability`` is that of the slot; in the default queue it is 1, because the random order reaches every item.
    """

    item = models.ForeignKey(QueueItem, on_delete=models.PROTECT, related_name="assignments", db_index=False)
    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="assignments", db_index=False)
    slot = models.ForeignKey(QueueSlot, on_delete=models.PROTECT, null=True, related_name="assignments")
    selection_method = models.CharField(max_length=20, choices=enum_choices(SelectionMethod))
    probability = models.FloatField(null=True)
    state = models.CharField(max_length=8, choices=enum_choices(AssignmentState))
    reserved_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["item", "rater"], name="assignment_once"),
            enum_constraint("state", AssignmentState, "assignment_state"),
            enum_constraint("selection_method", SelectionMethod, "assignment_selection_method"),
            models.CheckConstraint(
                condition=Q(state=AssignmentState.RESERVED.value, reserved_until__isnull=False)
                | (~Q(state=AssignmentState.RESERVED.value) & Q(reserved_until__isnull=True)),
                name="assignment_reserved_until",
            ),
        ]
        indexes = [
            models.Index(fields=["rater", "-state", "id"], name="assignment_of_rater"),
            models.Index(
                fields=["reserved_until"],
                condition=Q(state=AssignmentState.RESERVED.value),
                name="assignment_to_expire",
            ),
        ]


# A rater's progress in a queue that has nothing left for them, until a slot opens and moves it back.
END_OF_QUEUE: Final = 2**62


class QueueProgress(Row):
    """The progress of a rater in the default queue or another one.

    The rater has had every open item before ``reached``: code that opens one of these moves the progress back.
    ``done`` counts their saved reviews by the version. ``drawn_at``: when they last were the first to reach an item of
    the random order.
    """

    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="queue_progress", db_index=False)
    rubric_version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="queue_progress")
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, null=True, related_name="queue_progress")
    reached = models.BigIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    drawn_at = models.DateTimeField(null=True)
    # When the rater opened the result of a calibration: it is offered once, and its choices are final from then on.
    result_seen_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["rater", "rubric_version"],
                condition=Q(queue__isnull=True),
                name="queue_progress_in_default_queue",
            ),
            models.UniqueConstraint(
                fields=["rater", "queue"], condition=Q(queue__isnull=False), name="queue_progress_in_queue"
            ),
            models.CheckConstraint(
                condition=Q(result_seen_at__isnull=True) | Q(queue__isnull=False), name="queue_progress_result_of_queue"
            ),
        ]
