"""Files are received, stored and discarded."""

import dataclasses
from typing import BinaryIO

from django.db import transaction
from django.db.models import Q

from evaluations.audit.events import record_event
from evaluations.domain.errors import ColumnsUnknown, InputRefused
from evaluations.domain.files import ImportState, ReadOptions
from evaluations.domain.json_values import JsonDict
from evaluations.imports.lifecycle import BEGAN_STORING, BUSY_STATES, IMPORT_JOB, refuse_concurrent_import, work_here
from evaluations.imports.options import PairOptions, refuse_archived_evaluation
from evaluations.imports.preview import (
    build_import,
    is_quick_to_check,
    keep_for_check,
    preview_file,
    save_import_with_file,
)
from evaluations.imports.source_files import read_sheet
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
            state=ImportState.CANCELLED, reason="Cancelled. Nothing of the file was stored."
        )
        if not cancelled:
            raise InputRefused(f"{importing.file_name} was stored or discarded already.")
        record_event("cancelled", importing, user=user, evaluation=importing.evaluation)
    importing.refresh_from_db()


def start_storing(importing: Import, *, skip_bad: bool, user: User | None) -> None:
    """Enqueue a checked file to be stored; a worker stores it with `continue_storing`."""
    if not importing.is_checked:
        raise InputRefused(f"{importing.file_name} is not checked yet.")
    if importing.rows_bad and not skip_bad:
        rows = "row" if importing.rows_bad == 1 else "rows"
        raise InputRefused(
            f"{importing.file_name} has {importing.rows_bad:,} bad {rows}: mend the file, or store it without."
        )
    refuse_archived_evaluation(importing.evaluation)
    refuse_concurrent_import(importing.evaluation)
    ready = Q(state=ImportState.PREVIEWED) | Q(state=ImportState.FAILED, finished_at__isnull=False)
    with transaction.atomic():
        begun = Import.objects.filter(ready, pk=importing.pk).update(
            state=ImportState.STORING,
            options={**importing.options, "skip_bad": skip_bad},
            summary={**importing.summary, "new": {}, "made": {}, "paired": 0},
            rows_stored=0,
            rows_unchanged=0,
            rows_bad=0,
            rows_skipped=0,
            reason="",
            finished_at=None,
        )
        if not begun:
            raise InputRefused(f"{importing.file_name} was stored or discarded already.")
        enqueue_job(IMPORT_JOB, importing.pk, evaluation=importing.evaluation)
        record_event(BEGAN_STORING, importing, user=user, evaluation=importing.evaluation, after={"skip_bad": skip_bad})
    importing.refresh_from_db()


def continue_import(importing: Import, *, seconds: float | None = None) -> bool:
    """Check the file, or store it for a while. Returns whether work is left."""
    return work_here(importing, IMPORT_JOB, seconds=seconds)


def receive_upload(
    evaluation: Evaluation,
    file: BinaryIO,
    size: int,
    *,
    file_name: str,
    reading: ReadOptions,
    user: User | None,
    pair: str,
    derive_pairs: float | None,
) -> Import:
    """Check a short file at once, and leave a long one to a worker, as its state shows.

    One whose columns are not known is kept until somebody says what they mean. Raises InputRefused.
    """
    said: JsonDict = {"file_name": file_name, "reading": reading, "user": user, "pair": pair}
    said["derive_pairs"] = derive_pairs
    try:
        if is_quick_to_check(file, size):
            return preview_file(evaluation, file, **said)
        return keep_for_check(evaluation, file, **said)
    except ColumnsUnknown as unknown:
        return keep_unmapped(evaluation, file, why=str(unknown), **said)


def keep_unmapped(
    evaluation: Evaluation,
    file: BinaryIO,
    *,
    file_name: str,
    reading: ReadOptions,
    user: User | None,
    pair: str,
    derive_pairs: float | None,
    why: str,
) -> Import:
    """Keep a file with unknown columns until somebody maps them."""
    try:
        read_sheet(file, file_name)
    except InputRefused:  # there is nothing that a mapping could be tried on
        raise InputRefused(why) from None
    asked = dataclasses.replace(reading, as_it_is=True)
    importing = build_import(evaluation, file, file_name, asked, user, PairOptions(pair, derive_pairs), brings="")
    importing.state, importing.reason = ImportState.MAPPING, why
    save_import_with_file(importing, file)
    return importing
