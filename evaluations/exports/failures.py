"""Exports whose writer stopped: their files are removed, and the record keeps the reason."""

from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models.functions import Now

from evaluations.audit.events import record_event
from evaluations.domain.files import ExportState
from evaluations.domain.jobs import SENT_EXPORT_JOB
from evaluations.jobs.kinds import ATTEMPTS, JobKind, register_job_kind
from evaluations.models.exports import Export
from evaluations.models.jobs import Job

# Jobs of exports that a worker writes, and of those that are sent while they are written.
EXPORT_JOB: Final = "export"
# A client that downloads a file while it is written may be slow, and no progress is recorded meanwhile.
SENT_LEASE: Final = timedelta(hours=1)
GIVEN_UP: Final = f"The worker stopped {ATTEMPTS} times before the end. Check the worker log, then export again."
INTERRUPTED: Final = "The export was interrupted. Export again."
OPEN: Final = (ExportState.WAITING, ExportState.UNFINISHED)


def remove_file(export: Export) -> None:
    export.refresh_from_db(fields=["file"])
    if export.file:
        export.file.storage.delete(str(export.file.name))
        Export.objects.filter(pk=export.pk).update(file="")


def put_back_export(job: Job) -> None:
    Export.objects.filter(pk=job.subject, state=ExportState.UNFINISHED).update(state=ExportState.WAITING)
    remove_file(Export.objects.get(pk=job.subject))


def fail_export(export: Export, reason: str) -> None:
    with transaction.atomic():
        failed = Export.objects.filter(pk=export.pk, state__in=OPEN)
        if failed.update(state=ExportState.FAILED, reason=reason, finished_at=Now()):
            record_event("failed", export, user=None, evaluation=export.evaluation, after={"reason": reason})
    remove_file(export)


def give_up_export(job: Job, reason: str) -> None:
    words = GIVEN_UP if job.kind == EXPORT_JOB else INTERRUPTED
    fail_export(Export.objects.select_related("evaluation").get(pk=job.subject), words)


register_job_kind(JobKind(SENT_EXPORT_JOB, None, lease=SENT_LEASE, attempts=1, on_give_up=give_up_export))
