"""Claims on imports, with the removal of what failed ones stored."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Final

from django.db import models, transaction
from django.db.models import ProtectedError
from django.db.models.functions import Now

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ImportState
from evaluations.domain.imports import CreatedIds
from evaluations.domain.jobs import COUNT_LABELS, FILL_QUEUE, INDEX_IMPORT, RENDER_AHEAD, JobState
from evaluations.jobs.claims import claim_job
from evaluations.jobs.kinds import LeaseLost
from evaluations.jobs.queue import JobProgress, enqueue_jobs, find_job, measure_progress
from evaluations.jobs.runner import run_step
from evaluations.jobs.sweeper import put_back_lost_jobs
from evaluations.models.bulk import delete_of_import
from evaluations.models.comparisons import Candidate, Comparison, Query, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import COUNTED_ROWS, Import
from evaluations.models.jobs import Job
from evaluations.models.judges import Judge, Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.runs import Call
from evaluations.models.transactions import TransactionPacer, is_time_up, min_bulk_rows, next_bulk_rows
from evaluations.models.verdicts import PackedVotes, Score, Verdict

BUSY_STATES: Final = (ImportState.CHECKING, ImportState.STORING)
WORKING_STATES: Final = (*BUSY_STATES, ImportState.UNDOING)
ABANDONED_STATES: Final = (ImportState.CANCELLED, ImportState.FAILED)
INTERRUPTED_REASON: Final = "The import was interrupted. Nothing was imported."
BEGAN_STORING: Final = "began storing"
CLEANUP_SECONDS: Final = 5
# The kinds of jobs: one checks a file and stores it or cleans up, the other removes the rows of a stored file.
IMPORT_JOB: Final = "import"
UNDO_JOB: Final = "undo_import"
# Tables that refer to others come first.
OWNED_MODELS: Final = (PackedVotes, Verdict, Score, Call, Comparison, Response, Query)
SHARED_MODELS: Final[Mapping[str, type[models.Model]]] = {
    "raters": Rater,
    "judges": Judge,
    "aspects": Aspect,
    "candidates": Candidate,
}
# The columns of an import that is checked or stored again.
NOTHING_STORED: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("rows_stored", "rows_unchanged", "rows_bad", "rows_skipped"), 0),
    **{f"new_{kind}": 0 for kind in COUNTED_ROWS},
    "reason": "",
}


class ImportsBusy(InputRefused):
    """Another import of the evaluation is at work: try again later."""


def continue_import(importing: Import, *, seconds: float | None = None) -> bool:
    """Check the file, or store it for a while, unless another process does. Returns whether work is left."""
    job = find_job(IMPORT_JOB, importing.pk)
    claim = claim_job(job.pk, until=None if seconds is None else monotonic() + seconds) if job else None
    try:
        return claim is not None and run_step(claim)
    finally:
        importing.refresh_from_db()


def enqueue_follow_ups(importing: Import) -> None:
    """Enqueue the jobs for visible rows: count votes, index and render texts, fill queues."""
    subjects = dict.fromkeys((COUNT_LABELS, INDEX_IMPORT), importing.pk)
    subjects |= dict.fromkeys((FILL_QUEUE, RENDER_AHEAD), importing.evaluation_id)
    jobs = [Job(kind=kind, subject=pk, evaluation_id=importing.evaluation_id) for kind, pk in subjects.items()]
    enqueue_jobs(jobs, retry=False)


def renew_import_claim(importing: Import, expected: ImportState, **columns: object) -> None:
    """Renew the claim and update columns, or raise LeaseLost if the import is in another state by now."""
    if importing.lease:
        importing.lease.heartbeat()
    if columns and not Import.objects.filter(pk=importing.pk, state=expected).update(**columns):
        raise LeaseLost(f"{importing} is no longer {expected}.")


def fail_import(importing: Import, reason: str) -> None:
    mark_failed(importing, reason)
    clean_up_import(importing)


@transaction.atomic
def mark_failed(importing: Import, reason: str) -> None:
    failed = Import.objects.filter(pk=importing.pk, state__in=BUSY_STATES).update(
        state=ImportState.FAILED, reason=reason
    )
    if failed:
        record_event("failed", importing, user=None, evaluation=importing.evaluation, after={"reason": reason})


def put_back_import(job: Job) -> None:
    """Repeat an interrupted check; fail an interrupted storage, whose rows the next worker removes."""
    importing = Import.objects.select_related("evaluation").get(pk=job.subject)
    if importing.state == ImportState.CHECKING:
        Import.objects.filter(pk=importing.pk).update(rows_read=0)
    elif importing.state == ImportState.STORING:
        mark_failed(importing, INTERRUPTED_REASON)


def give_up_import(job: Job, reason: str) -> None:
    fail_import(Import.objects.select_related("evaluation").get(pk=job.subject), INTERRUPTED_REASON)


def sweep_imports(evaluation: Evaluation | None = None, *, seconds: float | None = None) -> list[int]:
    """Fail imports whose worker died, and remove the rows that they stored. Interrupted checks are repeated.

    Returns the ids of imports that wait for a worker.
    """
    imports = Import.objects.filter(evaluation=evaluation) if evaluation else Import.objects.all()
    until = None if seconds is None else monotonic() + seconds
    for kind in (IMPORT_JOB, UNDO_JOB):
        put_back_lost_jobs(kind)
    for abandoned in imports.filter(state__in=ABANDONED_STATES, finished_at__isnull=True):
        clean_up_import(abandoned, until)
    waiting = Job.objects.filter(kind__in=(IMPORT_JOB, UNDO_JOB), state=JobState.WAITING).values("subject")
    return list(imports.filter(state__in=WORKING_STATES, pk__in=waiting).values_list("pk", flat=True))


def clean_up_import(importing: Import, until: float | None = None) -> None:
    """Remove the rows of a failed or cancelled import. If time runs out, the next call continues."""
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
    limit = min_bulk_rows()
    while True:
        with pace.turn(), transaction.atomic():
            removed = delete_of_import(model, importing.pk, limit)
        if removed and is_time_up(until):
            return False
        if removed < limit:
            return True
        limit = next_bulk_rows(limit, pace.seconds)


def delete_unused_names(importing: Import) -> None:
    """Delete an import's unused candidates, raters, judges and aspects, and record it, so that reports change."""
    created = importing.created
    if created == CreatedIds():
        return  # without a transaction: on SQLite even one that only reads keeps all writers waiting
    with transaction.atomic():
        removed = {name: delete_if_unused(model, getattr(created, name)) for name, model in SHARED_MODELS.items()}
        if any(removed.values()):
            after = {name: number for name, number in removed.items() if number}
            record_event("removed names", importing, user=None, evaluation=importing.evaluation, after=after)


def delete_if_unused(model: type[models.Model], ids: Sequence[int]) -> int:
    """Delete the rows that nothing refers to. Returns how many were deleted."""
    removed = 0
    for row in model._default_manager.filter(pk__in=ids):
        with suppress(ProtectedError):  # used by other rows
            row.delete()
            removed += 1
    return removed


def refuse_archived_evaluation(evaluation: Evaluation) -> None:
    if evaluation.archived_at is not None:
        raise InputRefused("This evaluation is archived. Restore it to import files.")


def refuse_concurrent_import(evaluation: Evaluation) -> None:
    """Refuse to store an import while another one of the evaluation is stored, undone or cleaned up."""
    sweep_imports(evaluation, seconds=CLEANUP_SECONDS)
    others = Import.objects.filter(evaluation=evaluation)
    if others.filter(state=ImportState.STORING).exists():
        raise ImportsBusy("Another import is in progress. Try again when it is done.")
    if others.filter(state=ImportState.UNDOING).exists():
        raise ImportsBusy("Another import is being undone. Try again in a moment.")
    if others.filter(state__in=ABANDONED_STATES, finished_at__isnull=True).exists():
        raise ImportsBusy("A canceled import is still being cleaned up. Try again in a moment.")


def find_raters_of_import(importing: Import) -> set[int]:
    """The raters whose verdicts, scores or failures the import brought."""
    verdicts, scores = (model.all_rows.filter(source_import=importing).order_by() for model in (Verdict, Score))
    raters = {pk for rows in (verdicts, scores) for pk in rows.values_list("rater", flat=True).distinct()}
    failures = Call.all_rows.filter(source_import=importing).order_by()
    return raters | {pk for pk in failures.values_list("judge__raters", flat=True).distinct() if pk}


def get_import_progress(importing: Import) -> JobProgress:
    """The progress of an import in rows. The total is unknown while the file is checked."""
    job = find_job(IMPORT_JOB, importing.pk)
    if job is None or importing.state == ImportState.CHECKING:
        return JobProgress(importing.rows_read, None, None, None)
    return measure_progress(job, importing.rows_done, importing.rows_read)
