"""What raters said, packed: one narrow row where Verdict has one for each aspect, so that reports can read it whole."""

from django.db import models
from django.db.models import Q

from evaluations.models.judges import Rater
from evaluations.models.material import Comparison, FinishedManager, Import
from evaluations.models.row import Row, exactly_one_of, filled_index
from evaluations.models.runs import Call
from evaluations.models.verdicts import Review


class Ballot(Row):
    """All that one rater chose on one comparison in one go: in one call, one review, or one sample of an import.

    Derived from Verdicts in the transaction that writes them; `domain.ballots` says how ``first`` and ``final`` (of
    people who saved final choices) are packed. ``shown``: the order's place in ORDERS. ``inconsistent``:
    a bit for each aspect. ``moment``: when it was given, or came in with a file that does not say, in
    milliseconds since 1970-01-01 UTC. Choices of an import that were given at different moments have a row each.
    """

    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="ballots", db_index=False)
    comparison = models.ForeignKey(Comparison, on_delete=models.PROTECT, related_name="ballots", db_index=False)
    shown = models.PositiveSmallIntegerField()
    sample = models.PositiveSmallIntegerField(default=0)
    call = models.ForeignKey(Call, on_delete=models.PROTECT, null=True, related_name="ballots", db_index=False)
    review = models.ForeignKey(Review, on_delete=models.PROTECT, null=True, related_name="ballots", db_index=False)
    source_import = models.ForeignKey(
        Import, on_delete=models.PROTECT, null=True, related_name="ballots", db_index=False
    )
    block = models.PositiveSmallIntegerField(default=0)
    first = models.BigIntegerField(default=0)
    final = models.BigIntegerField(default=0)
    inconsistent = models.BigIntegerField(default=0)
    moment = models.BigIntegerField(default=0)

    objects = FinishedManager["Ballot"]()
    all_rows = models.Manager["Ballot"]()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=exactly_one_of("call", "review", "source_import"), name="ballot_source"),
            models.UniqueConstraint(fields=["call", "block"], condition=Q(call__isnull=False), name="ballot_of_call"),
            models.UniqueConstraint(
                fields=["review", "block"], condition=Q(review__isnull=False), name="ballot_of_review"
            ),
            models.UniqueConstraint(
                fields=["rater", "comparison", "sample", "shown", "source_import", "block", "moment"],
                condition=Q(source_import__isnull=False),
                name="ballot_of_import",
            ),
        ]
        indexes = [
            # Everything that a report reads of a judge: it never looks at the rows themselves.
            models.Index(
                fields=["rater", "comparison", "shown", "block", "first", "inconsistent"], name="ballot_of_rater"
            ),
            filled_index("source_import", "ballot"),
            # For the removal of comparisons: the database looks here for each of them.
            models.Index(fields=["comparison"], name="ballot_of_comparison"),
        ]

    def __str__(self) -> str:
        return f"ballot {self.pk} of {self.rater_id}"
