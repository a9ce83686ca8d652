"""Imports that will never be done: cancelled, failed or left half stored. Nothing of them stays."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from typing import Any, Final

from django.db import connection, models, transaction
from django.db.models import ProtectedError
from django.db.models.functions import Now

from evaluations.domain import ImportState, InputRefused
from evaluations.models import (
    Aspect,
    Ballot,
    Call,
    Candidate,
    Comparison,
    Evaluation,
    Import,
    Judge,
    Query,
    Rater,
    Response,
    Score,
    User,
    Verdict,
)
from evaluations.models.many import delete_of_import
from evaluations.services.importing.knowing import Tally
from evaluations.services.pacing import Pace, time_is_up
from evaluations.services.recording import record

AT_ONCE: Final = {"sqlite": 64, "postgresql": 512}  # rows in one transaction
# Where rows are stored or removed without the ORM: how many at least, and how long it may take to write more.
LEAST_AT_ONCE: Final = {"sqlite": 256, "postgresql": 2_048}
SECONDS: Final = {"sqlite": 0.012, "postgresql": 0.2}
MOST_AT_ONCE: Final = 4_096
# For how many rows it is looked up at once what is there. On SQLite the next ones are read during the pauses.
LOOKED_UP_AT_ONCE: Final = {"sqlite": 512, "postgresql": 4_096}
STILL_STORING: Final = """
UPDATE evaluations_import SET seen_at = CURRENT_TIMESTAMP, rows_stored = rows_stored + %s,
rows_unchanged = rows_unchanged + %s, rows_skipped = rows_skipped + %s, rows_bad = rows_bad + %s, summary = %s
WHERE id = %s AND state = %s
"""
BUSY: Final = (ImportState.CHECKING, ImportState.STORING)
AT_WORK: Final = (*BUSY, ImportState.UNDOING)
ABANDONED: Final = (ImportState.CANCELLED, ImportState.FAILED)
INTERRUPTED: Final = "The work on it was interrupted. Nothing of the file was stored."
DEAD_AFTER: Final = timedelta(minutes=1)
CHECKED_AT_MOST: Final = 2  # times, where whoever checks a file is killed
# In the order in which rows lean on each other: those first that nothing else points at.
OWNED: Final = (Ballot, Verdict, Score, Call, Comparison, Response, Query)
# Under which name an import's summary keeps the versions of rubrics that came with it.
VERSIONS: Final = "version"
NAMED: Final[Mapping[str, type[models.Model]]] = {
    "rater": Rater,
    "judge": Judge,
    "aspect": Aspect,
    "candidate": Candidate,
}


class Stopped(Exception):
    """Somebody cancelled the import, or it was given up for dead: do no more of it."""


def claim(importing: Import, state: ImportState) -> bool:
    """Whoever claims an import works at it alone, until it is handed over or given up for dead."""
    waiting = Import.objects.filter(pk=importing.pk, state=state, seen_at__isnull=True)
    claimed = waiting.update(seen_at=Now())
    importing.refresh_from_db()
    return bool(claimed)


def still_at_it(importing: Import, expected: ImportState, **columns: Any) -> None:
    """Say that the work goes on; raise Stopped where it is no longer wanted."""
    if not Import.objects.filter(pk=importing.pk, state=expected).update(seen_at=Now(), **columns):
        raise Stopped


def still_storing(importing: Import, counted: Tally, summary: Mapping[str, Any]) -> None:
    """`still_at_it` of each transaction that stores rows, past the ORM: that took as long as writing fifty of them."""
    told = counted.stored, counted.unchanged, counted.skipped, counted.bad, json.dumps(summary)
    with connection.cursor() as cursor:
        cursor.execute(STILL_STORING, (*told, importing.pk, ImportState.STORING.value))
        if not cursor.rowcount:
            raise Stopped


def hand_over(importing: Import) -> None:
    """The next one who is told of it goes on."""
    Import.objects.filter(pk=importing.pk, state__in=AT_WORK).update(seen_at=None)


def cancel(importing: Import, *, user: User | None) -> None:
    """Discard a checked file, or stop one that is being stored: nothing of it stays."""
    open_states = (*BUSY, ImportState.PREVIEWED, ImportState.MAPPING)
    with transaction.atomic():
        cancelled = Import.objects.filter(pk=importing.pk, state__in=open_states).update(
            state=ImportState.CANCELLED, reason="Cancelled. Nothing of the file was stored."
        )
        if not cancelled:
            raise InputRefused(f"{importing.file_name} was stored or discarded already.")
        record("cancelled", importing, user=user, evaluation=importing.evaluation)
    importing.refresh_from_db()


def give_up(importing: Import, reason: str, until: float | None = None) -> None:
    with transaction.atomic():
        failed = Import.objects.filter(pk=importing.pk, state__in=BUSY).update(state=ImportState.FAILED, reason=reason)
        if failed:
            record("failed", importing, user=None, evaluation=importing.evaluation, after={"reason": reason})
    sweep(importing, until)


def sweep_imports(evaluation: Evaluation | None = None, *, seconds: float | None = None) -> list[int]:
    """Give up imports that a killed process left half stored, and remove what they left behind.

    What was only being checked is put back. Returns the ids of those that wait for somebody to go on with them.
    """
    imports = Import.objects.filter(evaluation=evaluation) if evaluation else Import.objects.all()
    until = None if seconds is None else monotonic() + seconds
    for dead in imports.filter(state__in=BUSY, seen_at__lt=Now() - DEAD_AFTER):
        if may_be_checked_again(dead):
            check_anew(dead)
        else:
            give_up(dead, INTERRUPTED, until)
    for left in imports.filter(state__in=ABANDONED, finished_at__isnull=True):
        sweep(left, until)
    imports.filter(state=ImportState.UNDOING, seen_at__lt=Now() - DEAD_AFTER).update(seen_at=None)
    return list(imports.filter(state__in=AT_WORK, seen_at__isnull=True).values_list("pk", flat=True))


def may_be_checked_again(dead: Import) -> bool:
    """A check stores nothing, and the file is here: unless it kills whoever checks it, nobody need send it again."""
    return dead.state == ImportState.CHECKING and dead.options.get("cut_off", 0) + 1 < CHECKED_AT_MOST


def check_anew(dead: Import) -> None:
    mine = Import.objects.filter(pk=dead.pk, state=ImportState.CHECKING, seen_at=dead.seen_at)
    mine.update(seen_at=None, rows_read=0, options={**dead.options, "cut_off": dead.options.get("cut_off", 0) + 1})


def sweep(importing: Import, until: float | None = None) -> None:
    """Remove what an import that will never be done has stored. Ends early, and goes on next time."""
    pace = Pace()
    for model in OWNED:
        if not remove_all(model, importing, pace, until):
            return
    pace.rest()
    importing.refresh_from_db()
    remove_names(importing)
    if importing.file and (importing.state == ImportState.CANCELLED or not importing.is_checked):
        importing.file.delete(save=True)
    Import.objects.filter(pk=importing.pk, finished_at__isnull=True).update(finished_at=Now())
    importing.refresh_from_db()


def remove_all(model: type[models.Model], importing: Import, pace: Pace, until: float | None) -> bool:
    """Whether nothing of this is left."""
    most = least_at_once()
    while True:
        with pace.turn(), transaction.atomic():
            removed = delete_of_import(model, importing.pk, most)
        if removed and time_is_up(until):
            return False
        if removed < most:
            return True
        most = fitting(most, pace.seconds)


def remove_names(importing: Import) -> None:
    """It is on the record, so that a report that was made while the names stood is made anew."""
    made = importing.summary.get("made", {})
    if not any(made.values()):
        return  # without a transaction: on SQLite even one that only reads keeps all writers waiting
    with transaction.atomic():
        removed = {name: remove_unused(named, made.get(name, [])) for name, named in NAMED.items()}
        if any(removed.values()):
            after = {f"{name}s": number for name, number in removed.items() if number}
            record("removed names", importing, user=None, evaluation=importing.evaluation, after=after)


def remove_unused(model: type[models.Model], ids: Sequence[int]) -> int:
    """How many of these were removed."""
    removed = 0
    for row in model._default_manager.filter(pk__in=ids):
        with suppress(ProtectedError):  # somebody else uses it by now
            row.delete()
            removed += 1
    return removed


def rows_at_once() -> int:
    """How many rows one transaction writes through the ORM."""
    return AT_ONCE[connection.vendor]


def least_at_once() -> int:
    """How many rows one transaction writes past the ORM, where nothing is known yet of how long that takes."""
    return LEAST_AT_ONCE[connection.vendor]


def looked_up_at_once() -> int:
    return LOOKED_UP_AT_ONCE[connection.vendor]


def fitting(rows: int, seconds: float) -> int:
    """How many rows the next transaction is to write, after one of so many that took so long."""
    if seconds > SECONDS[connection.vendor]:
        return max(least_at_once(), rows // 2)
    return min(MOST_AT_ONCE, rows * 2) if seconds * 2 < SECONDS[connection.vendor] else rows
