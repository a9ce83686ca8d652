"""Exports that a worker writes, those that a killed process left behind, and old files that are to go."""

from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from evaluations.domain import ExportState, InputRefused
from evaluations.models import Comparison, Evaluation, Export, User
from evaluations.services.exporting.exporting import Handed, Stopped, remove_file, write
from evaluations.services.recording import record

ATTEMPTS: Final = 2
DEAD_AFTER: Final = timedelta(minutes=2)
# Whoever is sent a file while it is written may be slow to take it, and nothing is said meanwhile.
SENT_DEAD_AFTER: Final = timedelta(hours=1)
GIVEN_UP: Final = (
    f"Whoever wrote it stopped {ATTEMPTS} times before the end. Look at the worker's log, then export anew."
)
INTERRUPTED: Final = "Whoever wrote it was stopped before the end. Export anew."
OPEN: Final = (ExportState.WAITING, ExportState.UNFINISHED)


def go_on(export: Export) -> bool:
    """Write an export that waits, to its end. True where it must be begun again, by another worker.

    It is one task for all its length: the bytes of a file depend on all before them, and a million comparisons take
    about a minute. Meanwhile it says every second that it is at it.
    """
    waiting = Export.objects.filter(pk=export.pk, state=ExportState.WAITING)
    if not waiting.update(state=ExportState.UNFINISHED, seen_at=Now(), reached=0, attempts=F("attempts") + 1):
        return False
    export.refresh_from_db()
    comparisons = Comparison.objects.filter(evaluation=export.evaluation)
    try:
        for _ in write(export, comparisons):
            pass
    except Handed:  # told to leave in good order: that is no failed attempt
        Export.objects.filter(pk=export.pk).update(attempts=F("attempts") - 1)
        return put_back(export)
    except Stopped:
        remove_file(export)
    except InputRefused as refused:
        fail(export, str(refused))
    except BaseException:
        put_back(export)
        raise
    return False


def put_back(export: Export) -> bool:
    """Somebody else is to begin it again; not for ever."""
    export.refresh_from_db()
    if export.attempts >= ATTEMPTS:
        fail(export, GIVEN_UP)
        return False
    mine = Export.objects.filter(pk=export.pk, state=ExportState.UNFINISHED)
    return bool(mine.update(state=ExportState.WAITING, seen_at=None, reached=0))


def fail(export: Export, reason: str) -> None:
    with transaction.atomic():
        failed = Export.objects.filter(pk=export.pk, state__in=OPEN)
        if failed.update(state=ExportState.FAILED, reason=reason, finished_at=Now()):
            record("failed", export, user=None, evaluation=export.evaluation, after={"reason": reason})
    remove_file(export)


def cancel(export: Export, *, user: User | None) -> None:
    """Stop an export that is waiting or being written: no file of it stays."""
    with transaction.atomic():
        cancelled = Export.objects.filter(pk=export.pk, state__in=OPEN)
        if not cancelled.update(state=ExportState.CANCELLED, reason="Cancelled.", finished_at=Now()):
            raise InputRefused("This export is over already.")
        record("cancelled", export, user=user, evaluation=export.evaluation)
    remove_file(export)
    export.refresh_from_db()


def remove(export: Export, *, user: User) -> None:
    """Delete the file of a finished export. Its record and manifest stay."""
    with transaction.atomic():
        standing = Export.objects.filter(pk=export.pk, state=ExportState.DONE, removed_at__isnull=True)
        if not standing.update(removed_at=Now()):
            raise InputRefused("This export has no file that could be removed.")
        record("removed file", export, user=user, evaluation=export.evaluation, before={"sha256": export.sha256})
    remove_file(export)
    export.refresh_from_db()


def sweep_exports(evaluation: Evaluation | None = None) -> list[int]:
    """Give up what a killed process left half written, and its file with it. Returns what waits for a worker."""
    exports = Export.objects.filter(evaluation=evaluation) if evaluation else Export.objects.all()
    writing = exports.filter(state=ExportState.UNFINISHED)
    for dead in writing.filter(in_background=True, seen_at__lt=Now() - DEAD_AFTER):
        remove_file(dead)
        put_back(dead)
    silent = Q(seen_at__lt=Now() - SENT_DEAD_AFTER) | Q(seen_at__isnull=True, created_at__lt=Now() - SENT_DEAD_AFTER)
    for dead in writing.filter(silent, in_background=False):
        fail(dead, INTERRUPTED)
    for over in exports.filter(state__in=(ExportState.FAILED, ExportState.CANCELLED)).exclude(file=""):
        remove_file(over)
    return list(exports.filter(state=ExportState.WAITING).values_list("pk", flat=True))
