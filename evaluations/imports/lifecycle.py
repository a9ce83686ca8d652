"""Claims on imports, with the removal of what failed ones stored."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Final

from django.db import models, transaction
from django.db.models import ProtectedError
from django.db.models.functions import Now

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ImportState
from evaluations.models.batch_sizes import min_bulk_rows, next_bulk_rows
from evaluations.models.bulk import delete_of_import
from evaluations.models.comparisons import Candidate, Comparison, Query, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.jobs import IMPORT_LEASE
from evaluations.models.judges import Judge, Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.runs import Call
from evaluations.models.transactions import TransactionPacer, is_time_up
from evaluations.models.verdicts import Ballot, Score, Verdict

BUSY_STATES: Final = (ImportState.CHECKING, ImportState.STORING)

WORKING_STATES: Final = (*BUSY_STATES, ImportState.UNDOING)

ABANDONED_STATES: Final = (ImportState.CANCELLED, ImportState.FAILED)

INTERRUPTED_REASON: Final = "The work on it was interrupted. Nothing of the file was stored."

MAX_CHECKS: Final = 2  # times, where whoever checks a file is killed

# In the order in which rows lean on each other: those first that nothing else points at.
OWNED_MODELS: Final = (Ballot, Verdict, Score, Call, Comparison, Response, Query)

# Under which name an import's summary keeps the versions of rubrics that came with it.
VERSIONS_KEY: Final = "version"

NAMED_MODELS: Final[Mapping[str, type[models.Model]]] = {
    "rater": Rater,
    "judge": Judge,
    "aspect": Aspect,
    "candidate": Candidate,
}


class ImportStopped(Exception):
    """The import was cancelled or given up, so its work must stop."""


def claim_import(importing: Import, state: ImportState) -> bool:
    """Claim an import for this worker alone. Returns whether the claim succeeded."""
    waiting = Import.objects.filter(pk=importing.pk, state=state, seen_at__isnull=True)
    claimed = waiting.update(seen_at=Now())
    importing.refresh_from_db()
    return bool(claimed)


def renew_import_claim(importing: Import, expected: ImportState, **columns: object) -> None:
    """Renew the claim, or raise ImportStopped where the import is no longer wanted."""
    if not Import.objects.filter(pk=importing.pk, state=expected).update(seen_at=Now(), **columns):
        raise ImportStopped


def release_import_claim(importing: Import) -> None:
    """Release the claim so that another worker can continue."""
    Import.objects.filter(pk=importing.pk, state__in=WORKING_STATES).update(seen_at=None)


def fail_import(importing: Import, reason: str, until: float | None = None) -> None:
    with transaction.atomic():
        failed = Import.objects.filter(pk=importing.pk, state__in=BUSY_STATES).update(
            state=ImportState.FAILED, reason=reason
        )
        if failed:
            record_event("failed", importing, user=None, evaluation=importing.evaluation, after={"reason": reason})
    clean_up_import(importing, until)


def sweep_imports(evaluation: Evaluation | None = None, *, seconds: float | None = None) -> list[int]:
    """Fail imports whose worker died, and remove the rows that they stored.

    What was only being checked is put back. Returns the ids of those that wait for somebody to go on with them.
    """
    imports = Import.objects.filter(evaluation=evaluation) if evaluation else Import.objects.all()
    until = None if seconds is None else monotonic() + seconds
    for dead in imports.filter(state__in=BUSY_STATES, seen_at__lt=Now() - IMPORT_LEASE):
        if may_check_again(dead):
            reset_check(dead)
        else:
            fail_import(dead, INTERRUPTED_REASON, until)
    for left in imports.filter(state__in=ABANDONED_STATES, finished_at__isnull=True):
        clean_up_import(left, until)
    imports.filter(state=ImportState.UNDOING, seen_at__lt=Now() - IMPORT_LEASE).update(seen_at=None)
    return list(imports.filter(state__in=WORKING_STATES, seen_at__isnull=True).values_list("pk", flat=True))


def may_check_again(dead: Import) -> bool:
    """Whether an interrupted check may run again: it stores nothing, unless the file kills its worker each time."""
    return dead.state == ImportState.CHECKING and dead.options.get("cut_off", 0) + 1 < MAX_CHECKS


def reset_check(dead: Import) -> None:
    mine = Import.objects.filter(pk=dead.pk, state=ImportState.CHECKING, seen_at=dead.seen_at)
    mine.update(seen_at=None, rows_read=0, options={**dead.options, "cut_off": dead.options.get("cut_off", 0) + 1})


def clean_up_import(importing: Import, until: float | None = None) -> None:
    """Remove the rows of an import that will never be done. A call that runs out of time is continued by the next."""
    pace = TransactionPacer()
    for model in OWNED_MODELS:
        if not delete_rows_of_import(model, importing, pace, until):
            return
    pace.rest()
    importing.refresh_from_db()
    delete_unused_names(importing)
    if importing.file and (importing.state == ImportState.CANCELLED or not importing.is_checked):
        importing.file.delete(save=True)
    Import.objects.filter(pk=importing.pk, finished_at__isnull=True).update(finished_at=Now())
    importing.refresh_from_db()


def delete_rows_of_import(
    model: type[models.Model], importing: Import, pace: TransactionPacer, until: float | None
) -> bool:
    """Delete rows of one table until time is up. Returns whether none is left."""
    most = min_bulk_rows()
    while True:
        with pace.turn(), transaction.atomic():
            removed = delete_of_import(model, importing.pk, most)
        if removed and is_time_up(until):
            return False
        if removed < most:
            return True
        most = next_bulk_rows(most, pace.seconds)


def delete_unused_names(importing: Import) -> None:
    """Delete an import's unused candidates, raters, judges and aspects, on record, so that reports are made again."""
    made = importing.summary.get("made", {})
    if not any(made.values()):
        return  # without a transaction: on SQLite even one that only reads keeps all writers waiting
    with transaction.atomic():
        removed = {name: delete_if_unused(named, made.get(name, [])) for name, named in NAMED_MODELS.items()}
        if any(removed.values()):
            after = {f"{name}s": number for name, number in removed.items() if number}
            record_event("removed names", importing, user=None, evaluation=importing.evaluation, after=after)


def delete_if_unused(model: type[models.Model], ids: Sequence[int]) -> int:
    """Delete the rows that nothing refers to. Returns how many were deleted."""
    removed = 0
    for row in model._default_manager.filter(pk__in=ids):
        with suppress(ProtectedError):  # somebody else uses it by now
            row.delete()
            removed += 1
    return removed


BEGAN_STORING: Final = "began storing"

CLEANUP_SECONDS: Final = 5


def refuse_concurrent_import(evaluation: Evaluation) -> None:
    """Refuse to store an import while another one of the evaluation is stored, undone or cleaned up."""
    sweep_imports(evaluation, seconds=CLEANUP_SECONDS)
    others = Import.objects.filter(evaluation=evaluation)
    if others.filter(state=ImportState.STORING).exists():
        raise InputRefused("Another import of this evaluation is being stored: wait until it is done.")
    if others.filter(state=ImportState.UNDOING).exists():
        raise InputRefused("Another import of this evaluation is being undone: try again in a moment.")
    if others.filter(state__in=ABANDONED_STATES, finished_at__isnull=True).exists():
        raise InputRefused("What another import left behind is still being cleared away: try again in a moment.")


def find_raters_of_import(importing: Import) -> set[int]:
    """The raters whose verdicts, scores or failures the import brought."""
    verdicts, scores = (model.all_rows.filter(source_import=importing).order_by() for model in (Verdict, Score))
    failures = Call.all_rows.filter(source_import=importing).order_by()
    found = set(verdicts.values_list("rater", flat=True).distinct())
    found.update(scores.values_list("rater", flat=True).distinct())
    return found | {pk for pk in failures.values_list("judge__raters", flat=True).distinct() if pk}
