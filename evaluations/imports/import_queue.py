"""The queue of an evaluation's imports: they are stored, and undone, one after another."""

from collections.abc import Callable, Sequence
from typing import Final

from django.db import IntegrityError, transaction

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ImportState
from evaluations.imports.import_changes import check_waiting_again
from evaluations.imports.lifecycle import (
    IMPORT_JOB,
    UNDO_JOB,
    ImportsBusy,
    give_up_import,
    put_back_import,
    refuse_archived_evaluation,
)
from evaluations.imports.services import discard_import, start_storing
from evaluations.imports.storage import work_on_import
from evaluations.imports.undo import refuse_undo_in_state, refuse_used_import, start_undo, work_on_undo
from evaluations.jobs.kinds import JobClaim, JobKind, register_job_kind
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.users import User

ENDED_STATES: Final = (ImportState.DONE, ImportState.FAILED, ImportState.CANCELLED, ImportState.UNDONE)
CANCELLABLE_STATES: Final = (ImportState.MAPPING, ImportState.CHECKING, ImportState.STORING)


def queue_imports(evaluation: Evaluation, imports: Sequence[Import], *, user: User) -> None:
    """Store checked files, without their invalid rows, in the order in which they came."""
    refuse_archived_evaluation(evaluation)
    if not imports:
        raise InputRefused("No file is ready to import.")
    for importing in imports:
        if importing.needs_decision:
            raise InputRefused(f"{importing.file_name} has responses that differ. Choose what to do with them.")
        if not importing.is_ready:
            raise InputRefused(f"{importing.file_name} is not ready to import.")
    with transaction.atomic():
        for importing in imports:
            waiting = Import.objects.filter(pk=importing.pk, state=ImportState.PREVIEWED, queued_by__isnull=True)
            waiting.update(queued_by=user, skip_bad=True)
    start_next_import(evaluation)


def queue_undo(evaluation: Evaluation, imports: Sequence[Import], *, user: User) -> None:
    """Undo imports, the latest first; what is not stored yet is cancelled."""
    stored = [importing for importing in imports if importing.state == ImportState.DONE]
    refuse_archived_evaluation(evaluation)
    for importing in imports:
        if importing.state not in (*CANCELLABLE_STATES, ImportState.PREVIEWED):
            refuse_undo_in_state(importing)
    for importing in stored:
        refuse_used_import(importing, undone_before={other.pk for other in stored if other.pk > importing.pk})
    for importing in imports:
        if importing.state == ImportState.PREVIEWED:
            Import.objects.filter(pk=importing.pk, state=ImportState.PREVIEWED).update(queued_by=None)
        elif importing.state in CANCELLABLE_STATES:
            discard_import(importing, user=user)
    Import.objects.filter(pk__in=[importing.pk for importing in stored], state=ImportState.DONE).update(queued_by=user)
    start_next_import(evaluation)


def start_next_import(evaluation: Evaluation) -> None:
    """Start the next import or undo that waits, if none is at work. Undos come first, the latest import before."""
    queued = Import.objects.filter(evaluation=evaluation, queued_by__isnull=False).select_related(
        "evaluation", "queued_by"
    )
    while following := (
        queued.filter(state=ImportState.DONE).order_by("-pk").first()
        or queued.filter(state=ImportState.PREVIEWED).order_by("pk").first()
    ):
        try:
            if following.state == ImportState.DONE:
                start_undo(following, user=following.queued_by)
            else:
                start_storing(following, skip_bad=following.skip_bad, user=following.queued_by)
        except (ImportsBusy, IntegrityError):  # the one at work starts the next
            return
        except InputRefused as refused:
            Import.objects.filter(pk=following.pk).update(queued_by=None, reason=str(refused))
        else:
            return


def start_queued_imports() -> None:
    """Start imports that still wait although the process that should have started them was killed."""
    for evaluation in Evaluation.objects.filter(imports__queued_by__isnull=False).distinct():
        start_next_import(evaluation)


def then_start_next(step: Callable[[JobClaim], bool]) -> Callable[[JobClaim], bool]:
    """A step of a job that starts the next import when it is done."""

    def work(claim: JobClaim) -> bool:
        is_done = step(claim)
        importing = Import.objects.select_related("evaluation").get(pk=claim.job.subject)
        if is_done and importing.state in ENDED_STATES:
            start_next_import(importing.evaluation)
            check_waiting_again(importing)
        return is_done

    return work


register_job_kind(
    JobKind(IMPORT_JOB, then_start_next(work_on_import), on_loss=put_back_import, on_give_up=give_up_import)
)
register_job_kind(JobKind(UNDO_JOB, then_start_next(work_on_undo)))
