"""Accepting the majority on many disagreements at once, and undoing what one action resolved."""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Count, Max, QuerySet

from evaluations.audit.events import record_event
from evaluations.disagreements.selectors import DisagreementFilter, DisagreementKind, filter_reviewer_disagreements
from evaluations.disagreements.services import (
    AspectDecision,
    ResolutionNote,
    delete_resolution,
    refuse_archived,
    store_resolution,
)
from evaluations.domain.choices import LabelSource
from evaluations.models.evaluations import Evaluation
from evaluations.models.rubrics import RubricAspect
from evaluations.models.transactions import SHORT_TRANSACTION_ROWS, TransactionPacer, is_time_up
from evaluations.models.users import User
from evaluations.models.verdicts import Adjudication, Label
from evaluations.verdicts.votes import lock_comparisons, update_labels

# One request works this long; the rest is left for the next.
SECONDS_PER_REQUEST: Final = 8.0
LISTED_BATCHES: Final = 5


@dataclass(frozen=True)
class BulkResult:
    """``aspects``: how many were resolved or reopened. ``remaining``: how many are left for another request."""

    batch: UUID
    aspects: int
    remaining: int


@dataclass(frozen=True)
class BulkBatch:
    """One bulk action whose resolutions are still in force."""

    batch: UUID
    username: str
    aspects: int
    changed_at: datetime


def filter_majorities(filters: DisagreementFilter) -> QuerySet[Label]:
    """The open disagreements among reviewers in which one choice leads, by the filters of the list."""
    if filters.only_judge or filters.resolved or filters.kind == DisagreementKind.JUDGE:
        return Label.objects.none()
    in_rubrics = RubricAspect.objects.filter(version__rubric__evaluation=filters.evaluation).values("aspect")
    return filter_reviewer_disagreements(filters).filter(source=LabelSource.MAJORITY, aspect__in=in_rubrics)


def count_majorities(filters: DisagreementFilter) -> tuple[int, int]:
    """Numbers of aspects, and of comparisons, whose majority can be accepted."""
    counts = filter_majorities(filters).aggregate(aspects=Count("pk"), comparisons=Count("comparison", distinct=True))
    return counts["aspects"], counts["comparisons"]


def accept_majorities(filters: DisagreementFilter, *, user: User, seconds: float = SECONDS_PER_REQUEST) -> BulkResult:
    """Resolve every aspect that matches as its majority, in short transactions."""
    refuse_archived(filters.evaluation)
    batch, until, accepted, pacer = uuid4(), time.monotonic() + seconds, 0, TransactionPacer()
    for subjects in iterate_batches(filter_majorities(filters).order_by("comparison_id", "aspect_id")):
        with pacer.turn(), transaction.atomic():
            accepted += accept_some(subjects, filters, ResolutionNote(batch=batch, in_bulk=True), user)
        if is_time_up(until):
            break
    if accepted:
        after = {"aspects": accepted}
        record_event("accepted majorities", filters.evaluation, user=user, evaluation=filters.evaluation, after=after)
    return BulkResult(batch, accepted, filter_majorities(filters).count())


def iterate_batches(labels: QuerySet[Label]) -> Iterator[Sequence[int]]:
    """Ids of labels, as many at a time as one transaction changes; read before anything is changed."""
    ids = iter(list(labels.values_list("pk", flat=True)))
    while some := list(islice(ids, SHORT_TRANSACTION_ROWS)):
        yield some


def accept_some(label_ids: Sequence[int], filters: DisagreementFilter, note: ResolutionNote, user: User) -> int:
    """Resolve those of the labels whose majority is still open, once their comparisons are locked."""
    labels = filter_majorities(filters).filter(pk__in=label_ids)
    lock_comparisons(sorted(set(labels.values_list("comparison_id", flat=True))))
    changed = list(labels.select_related("comparison__evaluation", "aspect").order_by("comparison_id", "aspect_id"))
    for label in changed:
        store_resolution(label.comparison, AspectDecision(label.aspect, label.choice), note, user)
    update_labels(label.comparison_id for label in changed)
    return len(changed)


def undo_resolutions(
    evaluation: Evaluation, batch: UUID, *, user: User, seconds: float = SECONDS_PER_REQUEST
) -> BulkResult:
    """Reopen what one action resolved, except for what was changed since, in short transactions."""
    refuse_archived(evaluation)
    resolutions = Adjudication.objects.filter(comparison__evaluation=evaluation, batch=batch)
    until, reopened, pacer = time.monotonic() + seconds, 0, TransactionPacer()
    by_comparison: dict[int, list[int]] = defaultdict(list)
    for pk, comparison in resolutions.order_by("comparison_id", "pk").values_list("pk", "comparison_id"):
        by_comparison[comparison].append(pk)
    comparisons = iter(by_comparison)
    while some := list(islice(comparisons, SHORT_TRANSACTION_ROWS)):
        with pacer.turn(), transaction.atomic():
            lock_comparisons(some)
            reopened += reopen_some(resolutions.filter(comparison__in=some), user)
            update_labels(some)
        if is_time_up(until):
            break
    return BulkResult(batch, reopened, resolutions.count())


def reopen_some(resolutions: QuerySet[Adjudication], user: User) -> int:
    rows = list(resolutions.select_related("comparison__evaluation", "user", "aspect").order_by("pk"))
    for resolution in rows:
        delete_resolution(resolution, resolution.comparison, user)
    return len(rows)


def list_bulk_batches(evaluation: Evaluation) -> list[BulkBatch]:
    """The last bulk actions that can be undone, newest first."""
    rows = Adjudication.objects.filter(comparison__evaluation=evaluation, in_bulk=True, batch__isnull=False)
    grouped = rows.values("batch", "user__username").annotate(aspects=Count("pk"), last=Max("changed_at"))
    return [
        BulkBatch(row["batch"], row["user__username"], row["aspects"], row["last"])
        for row in grouped.order_by("-last")[:LISTED_BATCHES]
        if row["batch"] is not None
    ]
