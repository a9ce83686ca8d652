"""The results on an overview, as they were last computed."""

from django.db import models
from django.db.models import Q

from evaluations.models.base import Row
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User


class OverviewResults(Row):
    """Who wins and how well judge and reviewers agree, for everybody who sees all verdicts, or for one reviewer.

    ``user``: the reviewer whose reviewed comparisons it is about; None for all comparisons. ``state``: as
    `served_reports.read_report_state` reads it; empty if it changed meanwhile. ``results``: as
    `overview.results.Results` shapes it.
    """

    evaluation = models.ForeignKey(
        Evaluation, on_delete=models.CASCADE, db_index=False, related_name="overview_results"
    )
    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, db_index=False, related_name="+")
    state = models.CharField(max_length=64, blank=True)
    results = models.JSONField(null=True)
    computed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "user"], name="overview_results_of_user_once"),
            models.UniqueConstraint(
                fields=["evaluation"], condition=Q(user__isnull=True), name="overview_results_of_all_once"
            ),
        ]
