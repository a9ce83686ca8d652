"""The record of every dataset file that was written."""

from django.db import models

from evaluations.domain import ExportState
from evaluations.models.evaluations import Evaluation
from evaluations.models.people import User
from evaluations.models.row import Row, closed_list, one_of


class Export(Row):
    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="exports")
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="exports")
    format = models.CharField(max_length=20)
    filters = models.JSONField(default=dict)
    policy = models.CharField(max_length=40)
    state = models.CharField(max_length=12, default=ExportState.UNFINISHED.value, choices=one_of(ExportState))
    rows = models.PositiveBigIntegerField(null=True)
    sha256 = models.CharField(max_length=64, blank=True)
    file = models.FileField(upload_to="exports/%Y/%m/", blank=True)
    counts = models.JSONField(default=dict)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [closed_list("state", ExportState, "export_state")]

    def __str__(self) -> str:
        return f"export {self.pk} as {self.format}"

    @property
    def file_name(self) -> str:
        """What the file is called where it is saved: the study, the number of the export, the format."""
        return f"{self.evaluation.slug}-{self.pk}.{self.format}"
