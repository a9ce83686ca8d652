"""The record of every exported file."""

from django.db import models
from django.db.models import Q

from evaluations.domain.files import BACKUP_FORMAT_NAME, ExportState
from evaluations.models.base import Row, enum_choices, enum_constraint, exactly_one_of
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.users import User


class Export(Row):
    """``filters`` say which comparisons, ``options`` how they are written, ``manifest`` the sources of the file.

    ``counts``: labels by source, and what was left out by reason. ``in_background``: a worker writes it, instead of
    whoever asked for it. Its job says how far it is: comparisons gone through, of a backup rows.
    """

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="exports")
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="exports")
    format = models.CharField(max_length=20)
    extension = models.CharField(max_length=20, blank=True)
    filters = models.JSONField(default=dict)
    options = models.JSONField(default=dict)
    label_policy = models.CharField(max_length=40)
    state = models.CharField(max_length=12, default=ExportState.UNFINISHED.value, choices=enum_choices(ExportState))
    rows = models.PositiveBigIntegerField(null=True)
    sha256 = models.CharField(max_length=64, blank=True)
    file = models.FileField(upload_to="exports/%Y/%m/", blank=True)
    size_bytes = models.PositiveBigIntegerField(null=True)
    counts = models.JSONField(default=dict)
    manifest = models.JSONField(default=dict)
    in_background = models.BooleanField(default=False)
    reason = models.TextField(blank=True)
    finished_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [enum_constraint("state", ExportState, "export_state")]

    @property
    def is_done(self) -> bool:
        return self.state == ExportState.DONE

    @property
    def has_file(self) -> bool:
        return self.is_done and self.removed_at is None

    @property
    def is_backup(self) -> bool:
        return self.format == BACKUP_FORMAT_NAME

    @property
    def file_name(self) -> str:
        """The name of the downloaded file: evaluation, number of the export, format."""
        return f"{self.evaluation.slug}-{self.pk}.{self.extension or self.format}"


class ReviewerPseudonym(Row):
    """The pseudonym of a reviewer in anonymized files. ``rater``: of imported reviewers, who have no account."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="pseudonyms", db_index=False)
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="pseudonyms")
    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, null=True, related_name="pseudonyms")
    number = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "number"], name="pseudonym_number"),
            models.UniqueConstraint(
                fields=["evaluation", "user"], condition=Q(user__isnull=False), name="pseudonym_of_user"
            ),
            models.UniqueConstraint(fields=["rater"], condition=Q(rater__isnull=False), name="pseudonym_of_rater"),
            models.CheckConstraint(condition=exactly_one_of("user", "rater"), name="pseudonym_of_one"),
        ]

    @property
    def name(self) -> str:
        return f"reviewer-{self.number}"
