"""What the columns of foreign files mean, as somebody of the evaluation once said."""

from django.db import models

from evaluations.models.evaluations import Evaluation
from evaluations.models.people import User
from evaluations.models.row import Row


class ColumnMapping(Row):
    """``signature``: the sum of the columns' names. A file with the same columns is read the same way."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="column_mappings")
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="column_mappings")
    signature = models.CharField(max_length=64)
    columns = models.JSONField()
    format = models.CharField(max_length=40)
    mapping = models.JSONField(default=dict)
    constants = models.JSONField(default=dict)
    choices = models.JSONField(default=dict)
    said_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["evaluation", "signature"], name="column_mapping_once")]

    def __str__(self) -> str:
        return f"{self.format} of {', '.join(self.columns)}"
