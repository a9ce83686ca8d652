"""Imported files and remembered column mappings."""

from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Final, Protocol, TypeVar

from django.db import models
from django.db.models import Q

from evaluations.domain.files import ImportState
from evaluations.domain.imports import CandidateNaming, CreatedIds, ImportOptions, ImportRequest, ImportSummary
from evaluations.domain.pairing import Pairing
from evaluations.models.base import Row, enum_choices, enum_constraint
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User


def finished_imports(prefix: str = "") -> Q:
    """Rows that came in no import, or in one whose last step is done."""
    column = f"{prefix}source_import"
    return Q(**{f"{column}__isnull": True}) | Q(**{f"{column}__state": ImportState.DONE})


ImportedRow = TypeVar("ImportedRow", bound=models.Model)


class FinishedManager(models.Manager[ImportedRow]):
    """Hides the rows of an import that is not done; `all_rows` shows them to the importer alone."""

    def get_queryset(self) -> models.QuerySet[ImportedRow]:
        return self.shown_rows.using(self._db)

    @cached_property
    def shown_rows(self) -> models.QuerySet[ImportedRow]:
        """All rows that it shows. Queries begin with a copy: to build the condition takes longer."""
        return self.filter_rows(super().get_queryset())

    def filter_rows(self, rows: models.QuerySet[ImportedRow]) -> models.QuerySet[ImportedRow]:
        return rows.filter(finished_imports())


COUNTED_ROWS: Final = ("queries", "responses", "comparisons", "verdicts", "scores", "failures")

# As pages call them.
PLURAL_NAMES: Final = {kind: "prompts" if kind == "queries" else kind for kind in COUNTED_ROWS}

MAX_MODELS_LISTED: Final = 8

MODEL_NAME_SOURCES: Final = {
    CandidateNaming.FILE: " (from the file name)",
    CandidateNaming.FORM: " (set for the whole file)",
    CandidateNaming.COLUMN: "",
}


def describe_row_count(kind: str, number: int) -> str:
    name = PLURAL_NAMES[kind]
    return f"{number:,} {name.removesuffix('s') if number == 1 else name}"


class LeaseHolder(Protocol):
    """Whoever works on a row, and must say so while the work goes on."""

    def heartbeat(self, position: int | None = None) -> None: ...


class Import(Row):
    """``new_…``: how many rows of each kind it adds. ``pairs_cursor``: how far the making of pairs is, in rows of the
    file or as the last query's id. ``labels_cursor`` and ``rows_cursor``: how far its undoing is, by comparison.
    ``queued_by``: who wants it stored, or undone if it is stored, as soon as no other import is at work.
    """

    # Not a column: in the process that works on it, its hold on the job.
    lease: LeaseHolder | None = None

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="imports")
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="imports")
    file = models.FileField(upload_to="uploads/%Y/%m/", blank=True)
    file_name = models.CharField(max_length=255)
    sha256 = models.CharField(max_length=64)
    format = models.CharField(max_length=40)
    brings = models.CharField(max_length=12, blank=True)
    options_json = models.JSONField(default=dict)
    skip_bad = models.BooleanField(default=False)
    queued_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    state = models.CharField(max_length=12, default=ImportState.PREVIEWED.value, choices=enum_choices(ImportState))
    rows_read = models.PositiveBigIntegerField(default=0)
    rows_stored = models.PositiveBigIntegerField(default=0)
    rows_unchanged = models.PositiveBigIntegerField(default=0)
    rows_bad = models.PositiveBigIntegerField(default=0)
    rows_skipped = models.PositiveBigIntegerField(default=0)
    bad_rows = models.JSONField(default=list)
    summary_json = models.JSONField(default=dict)
    new_queries = models.PositiveBigIntegerField(default=0)
    new_responses = models.PositiveBigIntegerField(default=0)
    new_comparisons = models.PositiveBigIntegerField(default=0)
    new_verdicts = models.PositiveBigIntegerField(default=0)
    new_scores = models.PositiveBigIntegerField(default=0)
    new_failures = models.PositiveBigIntegerField(default=0)
    created_json = models.JSONField(default=dict)
    pairs_cursor = models.PositiveBigIntegerField(default=0)
    is_removing = models.BooleanField(default=False)
    labels_cursor = models.PositiveBigIntegerField(default=0)
    rows_cursor = models.PositiveBigIntegerField(default=0)
    reason = models.TextField(blank=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            enum_constraint("state", ImportState, "import_state"),
            models.UniqueConstraint(
                fields=["evaluation"], condition=Q(state=ImportState.STORING.value), name="import_one_at_a_time"
            ),
        ]

    def __str__(self) -> str:
        return self.file_name

    @property
    def options(self) -> ImportOptions:
        return ImportOptions.from_json(self.options_json)

    @options.setter
    def options(self, options: ImportOptions) -> None:
        self.options_json = options.to_json()

    @property
    def summary(self) -> ImportSummary:
        return ImportSummary.from_json(self.summary_json)

    @summary.setter
    def summary(self, summary: ImportSummary) -> None:
        self.summary_json = summary.to_json()

    @property
    def created(self) -> CreatedIds:
        return CreatedIds.from_json(self.created_json)

    @property
    def request(self) -> ImportRequest:
        """The request, with the format that the file turned out to have."""
        request = self.options.request
        return replace(request, reading=replace(request.reading, format=self.format))

    @property
    def pairs_scored_responses(self) -> bool:
        """Whether storing it pairs the responses that it scores."""
        return bool(self.summary.scales) and self.options.request.tie_margin is not None

    @property
    def changes_anything(self) -> bool:
        """Whether storing it adds a row or a comparison."""
        return bool(self.rows_stored or self.pairs_scored_responses or self.summary.pairs_expected)

    @property
    def is_retryable(self) -> bool:
        """Whether storing it failed and can be repeated."""
        return self.state == ImportState.FAILED and self.is_checked and self.finished_at is not None

    @property
    def is_ready(self) -> bool:
        """Whether it waits for nothing but to be stored: no response of it needs a decision."""
        return self.state == ImportState.PREVIEWED and self.changes_anything and not self.needs_decision

    @property
    def needs_decision(self) -> bool:
        """Whether a person must decide what to do with responses that differ from ones of the same model."""
        return bool(self.summary.conflicts)

    @property
    def pairing(self) -> Pairing | None:
        """The way of pairing that storing it uses; None if it makes no pairs."""
        if self.summary.needs_pairing:
            return self.options.request.pairing
        return Pairing() if self.pairs_scored_responses else None

    @property
    def is_checked(self) -> bool:
        """Whether the effect of storing the file is known."""
        return bool(self.brings)

    @property
    def stored_at(self) -> datetime:
        """When its rows became visible, or came in where that is not known."""
        return self.finished_at or self.created_at

    @property
    def rows_done(self) -> int:
        """How many rows of the file were reached."""
        return self.rows_stored + self.rows_unchanged + self.rows_skipped + self.rows_bad

    @property
    def models_in_words(self) -> str:
        """The models, where their names come from, and how many rows are about each."""
        summary = self.summary
        if not summary.models:
            return ""
        names = [
            f"{model.name} ({', '.join(describe_row_count(kind, number) for kind, number in model.rows.items())})"
            for model in summary.models[:MAX_MODELS_LISTED]
        ]
        if summary.models_number > len(names):
            names.append(f"{summary.models_number - len(names):,} more")
        plural = "Model" if summary.models_number == 1 else "Models"
        return f"{plural}{MODEL_NAME_SOURCES[summary.named_by]}: {', '.join(names)}."

    @property
    def new_rows(self) -> dict[str, int]:
        """How many rows of each kind it adds."""
        counts = {kind: getattr(self, f"new_{kind}") for kind in COUNTED_ROWS}
        return {kind: number for kind, number in counts.items() if number}

    @property
    def new_rows_in_words(self) -> str:
        return ", ".join(describe_row_count(kind, number) for kind, number in self.new_rows.items())


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
    mapped_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["evaluation", "signature"], name="column_mapping_once")]
