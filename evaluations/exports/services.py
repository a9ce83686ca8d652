"""Starting, writing in the background, cancelling or deleting exports."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from evaluations.access import require_maker_or_manager
from evaluations.audit.events import record_event
from evaluations.backups.selectors import refuse_if_busy
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ExportState
from evaluations.domain.jobs import SENT_EXPORT_JOB
from evaluations.exports.failures import (
    EXPORT_JOB,
    OPEN,
    fail_export,
    give_up_export,
    put_back_export,
    remove_file,
)
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
    count_export_subjects,
    stream_export,
)
from evaluations.jobs.kinds import JobClaim, JobKind, register_job_kind
from evaluations.jobs.queue import cancel_job, enqueue_job, find_job, find_jobs, start_claimed_job
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from evaluations.models.free_space import require_room
from evaluations.models.jobs import Job
from evaluations.models.users import User
from evaluations.visibility import record_download, visible_comparisons


@dataclass(frozen=True)
class RequestedExport:
    """``blocks``: the bytes of the file, written as they are read; None if a worker writes it."""

    record: Export
    blocks: Iterator[bytes] | None


def request_export(evaluation: Evaluation, *, written_as: str, user: User, request: ExportRequest) -> RequestedExport:
    """Start an export of the comparisons that this person may see. A long one is written by a worker.

    Raises DiskFull if there is no room for files.
    """
    require_room()
    comparisons = visible_comparisons(user, evaluation)
    is_long = needs_background(evaluation, written_as, comparisons, request)
    export = start_export(evaluation, written_as=written_as, user=user, request=request, in_background=is_long)
    if is_long:
        return RequestedExport(export, None)
    record_download(user, export)
    return RequestedExport(export, stream_export(export, comparisons))


@transaction.atomic
def start_export(
    evaluation: Evaluation,
    *,
    written_as: str,
    user: User | None,
    request: ExportRequest = DEFAULT_REQUEST,
    in_background: bool = False,
) -> Export:
    """Create the record of an export and its job."""
    export_format = get_export_format(written_as)
    request = complete_request(evaluation, export_format, request)
    assert request.policy is not None
    if export_format.is_backup:
        refuse_if_busy(evaluation)
    everything = Comparison.objects.filter(evaluation=evaluation)
    number = count_export_subjects(evaluation, export_format.needs, everything, request)
    export = Export.objects.create(
        evaluation=evaluation,
        user=user,
        format=written_as,
        extension=export_format.ending,
        label_policy=request.policy,
        filters=serialize_filters(request),
        options=serialize_options(request),
        state=ExportState.WAITING if in_background else ExportState.UNFINISHED,
        in_background=in_background,
    )
    if in_background:
        expected = None if export_format.is_backup else number
        enqueue_job(EXPORT_JOB, export.pk, evaluation=evaluation, total=expected)
    else:
        start_claimed_job(SENT_EXPORT_JOB, export.pk, evaluation=evaluation)
    details = {
        "format": written_as,
        "policy": export.label_policy,
        "filters": export.filters,
        "options": export.options,
    }
    record_event("began", export, user=user, evaluation=evaluation, after=details)
    return export


def needs_background(
    evaluation: Evaluation, written_as: str, comparisons: "QuerySet[Comparison]", request: ExportRequest
) -> bool:
    """Whether the export is so long that a worker must write it."""
    if get_export_format(written_as).is_backup:
        return True
    needs = get_export_format(written_as).needs
    return count_export_subjects(evaluation, needs, comparisons, request) > settings.EXPORT_SENT_ROWS


LEASE: Final = timedelta(minutes=2)


def write_export(claim: JobClaim) -> bool:
    """Write an export to its end. Returns False if another worker must start it again.

    The whole export is one step, because the bytes of a file depend on all before them: a million comparisons take
    about a minute. A heartbeat is sent every second.
    """
    export = Export.objects.select_related("evaluation").get(pk=claim.job.subject)
    if not Export.objects.filter(pk=export.pk, state__in=OPEN).update(state=ExportState.UNFINISHED):
        return True
    export.refresh_from_db()
    try:
        for _ in stream_export(export, Comparison.objects.filter(evaluation=export.evaluation), claim):
            pass
    except ExportHandedOver:  # not a failed attempt
        put_back_export(claim.job)
        return False
    except InputRefused as refused:
        fail_export(export, str(refused))
        raise
    return True


register_job_kind(
    JobKind(
        EXPORT_JOB,
        write_export,
        lease=LEASE,
        starts_over=True,
        counts_faults=True,
        on_loss=put_back_export,
        on_give_up=give_up_export,
    )
)


def stop_export(export: Export, *, user: User | None) -> None:
    """Cancel an export that is waiting or being written, and delete its file.

    Only its maker and managers may; a command (no user) may too.
    """
    if user is not None:
        require_maker_or_manager(user, export.user_id, export.evaluation, "cancel this export")
    with transaction.atomic():
        cancel_job(get_export_job_kind(export), export.pk)  # lock the job before its row, as the writer does
        cancelled = Export.objects.filter(pk=export.pk, state__in=OPEN)
        if not cancelled.update(state=ExportState.CANCELLED, reason="Canceled.", finished_at=Now()):
            raise InputRefused("This export has already ended.")
        record_event("cancelled", export, user=user, evaluation=export.evaluation)
    remove_file(export)
    export.refresh_from_db()


def delete_export_file(export: Export, *, user: User) -> None:
    """Delete the file of a finished export. Its record and manifest stay."""
    with transaction.atomic():
        finished = Export.objects.filter(pk=export.pk, state=ExportState.DONE, removed_at__isnull=True)
        if not finished.update(removed_at=Now()):
            raise InputRefused("This export has no file to delete.")
        record_event("removed file", export, user=user, evaluation=export.evaluation, before={"sha256": export.sha256})
    remove_file(export)
    export.refresh_from_db()


def get_export_job_kind(export: Export) -> str:
    return EXPORT_JOB if export.in_background else SENT_EXPORT_JOB


def get_export_job(export: Export) -> Job | None:
    return find_job(get_export_job_kind(export), export.pk)


def get_jobs_of_exports(exports: list[Export]) -> dict[int, Job]:
    return find_jobs((EXPORT_JOB, SENT_EXPORT_JOB), [export.pk for export in exports])


def remove_files_left_over() -> None:
    """Remove files of cancelled or failed exports whose worker was killed before it could do so."""
    over = Export.objects.filter(state__in=(ExportState.FAILED, ExportState.CANCELLED)).exclude(file="")
    for export in over:
        remove_file(export)
