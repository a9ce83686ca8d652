"""How far each comparison is judged and reviewed, kept as counters, and the changes that are not counted yet."""

from django.db import models

from evaluations.models.base import Row
from evaluations.models.comparisons import Comparison, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater


class VerdictChange(Row):
    """A rater's verdicts, scores, reviews or calls changed on a comparison or a response, or somewhere if neither.

    Appended in the transaction of the change, so that no row is shared by all who write, and deleted once the sweep has
    counted it. Rows that it names may be deleted before: it has no foreign keys in the database.
    """

    evaluation = models.ForeignKey(
        Evaluation, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="uncounted_changes"
    )
    rater = models.ForeignKey(Rater, on_delete=models.DO_NOTHING, db_constraint=False, related_name="uncounted_changes")
    comparison = models.ForeignKey(
        Comparison, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, null=True, related_name="+"
    )
    response = models.ForeignKey(
        Response, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, null=True, related_name="+"
    )

    class Meta:
        indexes = [models.Index(fields=["evaluation", "id"], name="verdict_change_in_order")]


class ComparisonProgress(models.Model):
    """What is counted of one comparison; without a row it is neither judged nor reviewed.

    ``reviews``: saved by the rubric version that reviews use. The comparison may be deleted before this row is.
    """

    comparison = models.OneToOneField(
        Comparison, on_delete=models.DO_NOTHING, db_constraint=False, primary_key=True, related_name="progress"
    )
    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, db_index=False, related_name="+")
    is_judged = models.BooleanField()
    is_reviewed = models.BooleanField()
    reviews = models.PositiveIntegerField()

    class Meta:
        indexes = [models.Index(fields=["evaluation", "comparison"], name="progress_in_order")]

    def __str__(self) -> str:
        return f"progress of comparison {self.comparison_id}"


class ProgressCounters(models.Model):
    """The sums of an evaluation's rows of ComparisonProgress, and the numbers of its queries and comparisons.

    ``basis``: the settings and imports that were counted by, as `progress_counters.read_bases` has it; if it is
    another by now, all is counted again. ``next_basis``: that of the recount in progress. ``version`` grows with every
    change of the sums. They may be negative while they are wrong, so that nothing stops counting before a recount.
    """

    evaluation = models.OneToOneField(
        Evaluation, on_delete=models.CASCADE, primary_key=True, related_name="progress_counters"
    )
    queries = models.IntegerField(default=0)
    comparisons = models.IntegerField(default=0)
    judged = models.IntegerField(default=0)
    reviewed = models.IntegerField(default=0)
    reviews = models.IntegerField(default=0)
    basis = models.CharField(max_length=200, blank=True)
    next_basis = models.CharField(max_length=200, blank=True)
    version = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"counters of evaluation {self.evaluation_id}"
