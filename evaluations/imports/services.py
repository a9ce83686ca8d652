"""Services that receive, store and discard files."""

from dataclasses import replace
from io import SEEK_END
from typing import BinaryIO

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from evaluations.audit.events import record_event
from evaluations.domain.errors import ColumnsUnknown, InputRefused
from evaluations.domain.files import ImportState
from evaluations.domain.imports import ImportRequest
from evaluations.imports.lifecycle import (
    BEGAN_STORING,
    BUSY_STATES,
    IMPORT_JOB,
    NOTHING_STORED,
    refuse_archived_evaluation,
    refuse_concurrent_import,
)
from evaluations.imports.preview import (
    build_import,
    check_file,
    is_quick_to_check,
    save_import_with_file,
    write_check_result,
)
from evaluations.imports.source_files import read_sheet
from evaluations.imports.waiting_files import find_waiting_imports
from evaluations.jobs.queue import enqueue_job
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.users import User


def discard_import(importing: Import, *, user: User | None) -> None:
    """Discard a checked file, or stop one that is being stored, so that none of it stays."""
    open_states = (*BUSY_STATES, ImportState.PREVIEWED, ImportState.MAPPING)
    with transaction.atomic():
        # Lock the job before its row, as its worker does; the remaining work is to clean up.
        enqueue_job(IMPORT_JOB, importing.pk, evaluation=importing.evaluation)
        cancelled = Import.objects.filter(pk=importing.pk, state__in=open_states).update(
            state=ImportState.CANCELLED, queued_by=None, reason="Canceled. Nothing was imported."
        )
        if not cancelled:
            raise InputRefused(f"{importing.file_name} was already imported or discarded.")
        record_event("cancelled", importing, user=user, evaluation=importing.evaluation)
    importing.refresh_from_db()


def start_storing(importing: Import, *, skip_bad: bool, user: User | None) -> None:
    """Enqueue a checked file to be stored; a worker stores it with `continue_import`."""
    if not importing.is_checked:
        raise InputRefused(f"{importing.file_name} is still being checked.")
    if importing.rows_bad and not skip_bad:
        rows = "row" if importing.rows_bad == 1 else "rows"
        raise InputRefused(
            f"{importing.file_name} has {importing.rows_bad:,} invalid {rows}. "
            "Fix the file, or import the valid rows only."
        )
    refuse_archived_evaluation(importing.evaluation)
    refuse_concurrent_import(importing.evaluation)
    ready = Q(state=ImportState.PREVIEWED) | Q(state=ImportState.FAILED, finished_at__isnull=False)
    with transaction.atomic():
        begun = Import.objects.filter(ready, pk=importing.pk).update(
            state=ImportState.STORING,
            skip_bad=skip_bad,
            queued_by=None,
            created_json={},
            pairs_cursor=0,
            **NOTHING_STORED,
            finished_at=None,
        )
        if not begun:
            raise InputRefused(f"{importing.file_name} was already imported or discarded.")
        enqueue_job(IMPORT_JOB, importing.pk, evaluation=importing.evaluation)
        record_event(BEGAN_STORING, importing, user=user, evaluation=importing.evaluation, after={"skip_bad": skip_bad})
    importing.refresh_from_db()


def receive_upload(
    evaluation: Evaluation,
    file: BinaryIO,
    file_name: str,
    request: ImportRequest,
    *,
    user: User | None,
    in_batch: bool = False,
) -> Import:
    """Check a short file at once; a worker checks a long one. ``in_batch``: after the user's other waiting files.

    A file with unknown columns is kept until somebody maps them. Raises InputRefused.
    """
    if file.seek(0, SEEK_END) > settings.MAX_UPLOAD_BYTES:
        raise InputRefused(
            f"The file is larger than {settings.MAX_UPLOAD_BYTES // 1024 // 1024:,} MB, the limit of this server. "
            "Split it, or import it on the server with manage.py import_comparisons.",
            field="file",
        )
    try:
        importing = build_import(evaluation, file, file_name, request, user, in_batch=in_batch)
        if is_quick_to_check(file, find_waiting_imports(importing)):
            write_check_result(importing, check_file(importing, file))
        else:
            importing.state = ImportState.CHECKING
        save_import_with_file(importing, file)
        return importing
    except ColumnsUnknown as unknown:
        reason = str(unknown)
    try:
        read_sheet(file, file_name)
    except InputRefused:  # no mapping could be tried on it
        raise InputRefused(reason) from None
    unmapped = replace(request, reading=replace(request.reading, as_it_is=True))
    return keep_file(evaluation, file, file_name, unmapped, ImportState.MAPPING, reason, user=user, in_batch=in_batch)


def keep_file(
    evaluation: Evaluation,
    file: BinaryIO,
    file_name: str,
    request: ImportRequest,
    state: ImportState,
    reason: str = "",
    *,
    user: User | None,
    in_batch: bool = False,
) -> Import:
    """Keep a file until a worker checks it, or somebody maps its columns."""
    importing = build_import(evaluation, file, file_name, request, user, in_batch=in_batch)
    importing.state, importing.reason = state, reason
    save_import_with_file(importing, file)
    return importing
