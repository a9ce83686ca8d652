"""What a backup of one evaluation holds, table by table, each after those that its rows lean on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import models
from django.db.models import Case, F, Q, QuerySet, When

from evaluations.domain import BACKUP, DOWNLOADED, ExportState, ImportState
from evaluations.models import (
    Adjudication,
    Alias,
    Announcement,
    ApiToken,
    Aspect,
    Assignment,
    Attempt,
    Ballot,
    Batch,
    Bookmark,
    Call,
    Candidate,
    ColumnMapping,
    Comment,
    Comparison,
    Delivery,
    DeliveryTry,
    Endpoint,
    Evaluation,
    Event,
    Export,
    Handshake,
    Import,
    Indexing,
    JobStart,
    Judge,
    KeptAnswer,
    Label,
    LocalServer,
    Look,
    Membership,
    Mention,
    Pick,
    Price,
    Query,
    Queue,
    QueueItem,
    Rater,
    Rendering,
    Response,
    Review,
    Round,
    Rubric,
    RubricAspect,
    RubricVersion,
    Run,
    Score,
    SignInLink,
    Slice,
    Span,
    Tag,
    Tagging,
    TagWork,
    User,
    Verdict,
    Webhook,
    Worker,
)


@dataclass(frozen=True)
class Table:
    """``path``: how its rows lead to their evaluation. ``emptied``: columns that mean nothing elsewhere, with what
    they say there."""

    model: type[models.Model]
    path: str
    emptied: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        return self.model._meta.model_name or ""

    @property
    def columns(self) -> list[str]:
        return [str(field.column) for field in self.fields]

    @property
    def fields(self) -> "Sequence[models.Field[Any, Any]]":
        return self.model._meta.concrete_fields

    def rows(self, evaluation: Evaluation) -> "QuerySet[Any, tuple[Any, ...]]":
        """All of them in the order of their ids; nothing of an import that is not done, or of an export.

        That a backup was made is left out, too: else the next one would be another.
        """
        found = whole(self.model).filter(**{self.path: evaluation.pk})
        if self.model is Import:
            found = found.filter(state=ImportState.DONE)
        elif self.model is Export:
            found = found.exclude(format=BACKUP).exclude(state__in=(ExportState.WAITING, ExportState.UNFINISHED))
        elif self.model is Event:
            backups = Export.objects.filter(evaluation=evaluation, format=BACKUP).values("pk")
            of_backups = Q(object_type="export", object_id__in=backups)
            found = found.exclude(of_backups & ~Q(verb=DOWNLOADED))  # whoever has one has seen everything
        elif any(field.name == "source_import" for field in self.fields):
            found = found.filter(Q(source_import__isnull=True) | Q(source_import__state=ImportState.DONE))
        return found.order_by("pk").values_list(*(self.read(field, evaluation) for field in self.fields))

    def read(self, field: "models.Field[Any, Any]", evaluation: Evaluation) -> Any:
        """An answer that was bought in another evaluation is here on its own."""
        if self.model is Call and field.name == "copied_from":
            return Case(When(copied_from__judge__evaluation=evaluation, then=F("copied_from_id")))
        return field.attname


def whole(model: type[models.Model]) -> "QuerySet[Any]":
    """Its rows, those that only importers see included."""
    return getattr(model, "all_rows", model._default_manager).all()


LEASE: Final = (("lease", None), ("lease_until", None), ("not_before", None))
# Users, endpoints and the evaluation itself come before these, each in its own way.
TABLES: Final = (
    Table(Rubric, "evaluation"),
    Table(RubricVersion, "rubric__evaluation"),
    Table(Aspect, "evaluation"),
    Table(RubricAspect, "version__rubric__evaluation"),
    Table(Judge, "evaluation"),
    Table(Rater, "evaluation"),
    Table(Import, "evaluation", (("seen_at", None),)),
    Table(Candidate, "evaluation"),
    Table(Query, "evaluation"),
    Table(Response, "query__evaluation"),
    Table(Comparison, "evaluation"),
    Table(Queue, "rubric_version__rubric__evaluation"),
    Table(QueueItem, "rubric_version__rubric__evaluation"),
    Table(Round, "evaluation"),
    Table(Pick, "round__evaluation"),
    Table(Run, "evaluation", (("reserved", 0),)),
    Table(Batch, "run__evaluation", LEASE),
    Table(Call, "judge__evaluation", (*LEASE, ("reserved", 0))),
    Table(Attempt, "call__judge__evaluation"),
    Table(Review, "rater__evaluation"),
    Table(Assignment, "rater__evaluation"),
    Table(Bookmark, "rater__evaluation"),
    Table(Verdict, "rater__evaluation"),
    Table(Score, "rater__evaluation"),
    Table(Span, "review__rater__evaluation"),
    Table(Comment, "comparison__evaluation"),
    Table(Mention, "comment__comparison__evaluation"),
    Table(Adjudication, "comparison__evaluation"),
    Table(Label, "comparison__evaluation"),
    Table(Ballot, "rater__evaluation"),
    Table(Tag, "evaluation"),
    Table(Tagging, "tag__evaluation"),
    Table(Slice, "evaluation"),
    Table(ColumnMapping, "evaluation"),
    Table(Export, "evaluation", (("file", ""), ("seen_at", None))),
    Table(Alias, "evaluation"),
    Table(Look, "evaluation"),
    Table(Event, "evaluation"),
)
# Of the site and not of an evaluation, made again by itself, or a secret that must not travel.
LEFT_OUT: Final = (
    *(SignInLink, ApiToken, KeptAnswer, Webhook, Announcement, Delivery, DeliveryTry),
    *(LocalServer, Handshake, Worker, JobStart, Rendering, Indexing, TagWork),
)
# These come with the manifest: they are matched with what is there already.
MATCHED: Final = (User, Endpoint, Price, Evaluation, Membership)


def references(table: Table) -> "Iterator[tuple[int, type[models.Model]]]":
    """The places of the columns that hold ids, and of which table those are. Its own id is one of them."""
    for place, field in enumerate(table.fields):
        if field.primary_key:
            yield place, table.model
        elif isinstance(field, models.ForeignKey):
            yield place, field.related_model
