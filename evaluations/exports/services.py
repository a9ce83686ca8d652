"""Starting, writing in the background, cancelling or deleting exports."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.backups.selectors import refuse_if_busy
from evaluations.domain.errors import InputRefused
from evaluations.domain.events import DOWNLOADED
from evaluations.domain.files import ExportState
from evaluations.exports.options import (
    DEFAULT_REQUEST,
    ExportRequest,
    complete_request,
    get_export_format,
    serialize_filters,
    serialize_options,
)
from evaluations.exports.writer import (
    ExportHandedOver,
    ExportStopped,
    delete_stored_file,
    filter_export_comparisons,
    stream_export,
)
from evaluations.jobs.nudges import WorkerTask, nudge
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from evaluations.models.users import User
from evaluations.visibility import visible_comparisons


@dataclass(frozen=True)
class RequestedExport:
    """``blocks``: the bytes of the file, written as they are read; None where a worker writes it."""

    record: Export
    blocks: Iterator[bytes] | None


def request_export(evaluation: Evaluation, *, written_as: str, user: User, wanted: ExportRequest) -> RequestedExport:
    """Begin an export of the comparisons that this person may see: a short one is read here, a long one by a worker."""
    comparisons = visible_comparisons(user, evaluation)
    is_long = needs_background(evaluation, written_as, comparisons, wanted)
    export = start_export(evaluation, written_as=written_as, user=user, wanted=wanted, in_background=is_long)
    if is_long:
        return RequestedExport(export, None)
    record_event(DOWNLOADED, export, user=user, evaluation=evaluation)
    return RequestedExport(export, stream_export(export, comparisons))


@transaction.atomic
def start_export(
    evaluation: Evaluation,
    *,
    written_as: str,
    user: User | None,
    wanted: ExportRequest = DEFAULT_REQUEST,
    in_background: bool = False,
) -> Export:
    """The record of an export, unfinished until its last byte was written."""
    leaving = get_export_format(written_as)
    wanted = complete_request(evaluation, leaving, wanted)
    assert wanted.policy is not None
    if leaving.is_whole:
        refuse_if_busy(evaluation)
    chosen = filter_export_comparisons(evaluation, Comparison.objects.filter(evaluation=evaluation), wanted)
    export = Export.objects.create(
        evaluation=evaluation,
        user=user,
        format=written_as,
        ending=leaving.ending,
        policy=wanted.policy,
        filters=serialize_filters(wanted),
        options=serialize_options(wanted),
        state=ExportState.WAITING if in_background else ExportState.UNFINISHED,
        in_background=in_background,
        expected=chosen.count() if in_background and not leaving.is_whole else None,
        seen_at=None if in_background else timezone.now(),
    )
    told = {"format": written_as, "policy": export.policy, "filters": export.filters, "options": export.options}
    record_event("began", export, user=user, evaluation=evaluation, after=told)
    if in_background:
        nudge(WorkerTask.WRITE_EXPORT, export.pk)
    return export


def needs_background(
    evaluation: Evaluation, written_as: str, comparisons: "QuerySet[Comparison]", wanted: ExportRequest
) -> bool:
    """Whether the export is so long that a worker must write it."""
    if get_export_format(written_as).is_whole:
        return True
    return filter_export_comparisons(evaluation, comparisons, wanted).count() > settings.EXPORT_SENT_ROWS


MAX_EXPORT_ATTEMPTS: Final = 2

DEAD_AFTER: Final = timedelta(minutes=2)

# Whoever is sent a file while it is written may be slow to take it, and nothing is said meanwhile.
SENT_DEAD_AFTER: Final = timedelta(hours=1)

GIVEN_UP_REASON: Final = (
    f"Whoever wrote it stopped {MAX_EXPORT_ATTEMPTS} times before the end. Look at the worker's log, then export anew."
)

INTERRUPTED_REASON: Final = "Whoever wrote it was stopped before the end. Export anew."

OPEN_EXPORT_STATES: Final = (ExportState.WAITING, ExportState.UNFINISHED)


def continue_export(export: Export) -> bool:
    """Write a waiting export to its end. True if another worker must start it again.

    It is one task for all its length: the bytes of a file depend on all before them, and a million comparisons take
    about a minute. Meanwhile it says every second that it is at it.
    """
    waiting = Export.objects.filter(pk=export.pk, state=ExportState.WAITING)
    if not waiting.update(state=ExportState.UNFINISHED, seen_at=Now(), reached=0, attempts=F("attempts") + 1):
        return False
    export.refresh_from_db()
    comparisons = Comparison.objects.filter(evaluation=export.evaluation)
    try:
        for _ in stream_export(export, comparisons):
            pass
    except ExportHandedOver:  # told to leave in good order: that is no failed attempt
        Export.objects.filter(pk=export.pk).update(attempts=F("attempts") - 1)
        return requeue_export(export)
    except ExportStopped:
        delete_stored_file(export)
    except InputRefused as refused:
        fail_export(export, str(refused))
    except BaseException:
        requeue_export(export)
        raise
    return False


def requeue_export(export: Export) -> bool:
    """Put an interrupted export back to wait; after too many attempts, fail it."""
    export.refresh_from_db()
    if export.attempts >= MAX_EXPORT_ATTEMPTS:
        fail_export(export, GIVEN_UP_REASON)
        return False
    mine = Export.objects.filter(pk=export.pk, state=ExportState.UNFINISHED)
    return bool(mine.update(state=ExportState.WAITING, seen_at=None, reached=0))


def fail_export(export: Export, reason: str) -> None:
    with transaction.atomic():
        failed = Export.objects.filter(pk=export.pk, state__in=OPEN_EXPORT_STATES)
        if failed.update(state=ExportState.FAILED, reason=reason, finished_at=Now()):
            record_event("failed", export, user=None, evaluation=export.evaluation, after={"reason": reason})
    delete_stored_file(export)


def stop_export(export: Export, *, user: User | None) -> None:
    """Stop an export that is waiting or being written: no file of it stays."""
    with transaction.atomic():
        cancelled = Export.objects.filter(pk=export.pk, state__in=OPEN_EXPORT_STATES)
        if not cancelled.update(state=ExportState.CANCELLED, reason="Cancelled.", finished_at=Now()):
            raise InputRefused("This export is over already.")
        record_event("cancelled", export, user=user, evaluation=export.evaluation)
    delete_stored_file(export)
    export.refresh_from_db()


def delete_export_file(export: Export, *, user: User) -> None:
    """Delete the file of a finished export. Its record and manifest stay."""
    with transaction.atomic():
        standing = Export.objects.filter(pk=export.pk, state=ExportState.DONE, removed_at__isnull=True)
        if not standing.update(removed_at=Now()):
            raise InputRefused("This export has no file that could be removed.")
        record_event("removed file", export, user=user, evaluation=export.evaluation, before={"sha256": export.sha256})
    delete_stored_file(export)
    export.refresh_from_db()


def sweep_exports(evaluation: Evaluation | None = None) -> list[int]:
    """Give up what a killed process left half written, and its file with it. Returns what waits for a worker."""
    exports = Export.objects.filter(evaluation=evaluation) if evaluation else Export.objects.all()
    writing = exports.filter(state=ExportState.UNFINISHED)
    for dead in writing.filter(in_background=True, seen_at__lt=Now() - DEAD_AFTER):
        delete_stored_file(dead)
        requeue_export(dead)
    silent = Q(seen_at__lt=Now() - SENT_DEAD_AFTER) | Q(seen_at__isnull=True, created_at__lt=Now() - SENT_DEAD_AFTER)
    for dead in writing.filter(silent, in_background=False):
        fail_export(dead, INTERRUPTED_REASON)
    for over in exports.filter(state__in=(ExportState.FAILED, ExportState.CANCELLED)).exclude(file=""):
        delete_stored_file(over)
    return list(exports.filter(state=ExportState.WAITING).values_list("pk", flat=True))
