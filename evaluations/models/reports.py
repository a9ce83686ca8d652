"""The last result of each question to a report, which is served while a newer one is made."""

from django.db import models

from evaluations.domain.reports import ReportPart
from evaluations.domain.roles import Role
from evaluations.models.base import Row, enum_choices, enum_constraint
from evaluations.models.evaluations import Evaluation


class ServedReport(Row):
    """The page of one part of a report by one query, as a role sees it.

    In the database and not in a file, so that every web process serves the same one. ``state``: as
    `served_reports.read_report_state` reads it; empty if it changed while the report was made. ``body``: compressed
    HTML.
    """

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, db_index=False, related_name="served_reports")
    key = models.CharField(max_length=64)
    part = models.CharField(max_length=12, choices=enum_choices(ReportPart))
    query = models.TextField(blank=True)
    role = models.CharField(max_length=12, choices=enum_choices(Role))
    state = models.CharField(max_length=64, blank=True)
    body = models.BinaryField()
    made_at = models.DateTimeField()
    asked_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "key"], name="served_report_once"),
            enum_constraint("part", ReportPart, "served_report_part"),
            enum_constraint("role", Role, "served_report_role"),
        ]
