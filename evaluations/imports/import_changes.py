"""Changes of how a file is read before it is stored: each checks the file again."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import BinaryIO, Final, cast

from django.db import transaction

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import FileFormat, ImportState
from evaluations.domain.imports import ImportOptions, ImportRequest
from evaluations.imports.imported_rubrics import refuse_invalid_margin
from evaluations.imports.lifecycle import IMPORT_JOB, NOTHING_STORED, refuse_archived_evaluation
from evaluations.imports.preview import check_file, is_quick_to_check, rank_models, write_check_result
from evaluations.imports.waiting_files import find_waiting_imports
from evaluations.jobs.queue import enqueue_job
from evaluations.models.imports import Import
from evaluations.models.users import User

MAPPABLE_STATES: Final = (ImportState.MAPPING, ImportState.PREVIEWED)
CHECKED_COLUMNS: Final = (
    *("state", "format", "brings", "options_json", "summary_json", "bad_rows", "rows_read"),
    *NOTHING_STORED,
)
MAX_CHECKED_AT_ONCE: Final = 3  # waiting files, while a person waits


def check_again(
    importing: Import, options: ImportOptions, *, user: User | None, after: Mapping[str, object], at_once: bool = True
) -> None:
    """Check a file that is not stored yet by other options: a short one at once, a long one in the background.

    Raises InputRefused, and changes nothing, if a short file cannot be read so.
    """
    refuse_archived_evaluation(importing.evaluation)
    changed = copy(importing)
    changed.options, changed.format = options, options.request.reading.format
    changed.state, changed.brings, changed.rows_read = ImportState.PREVIEWED, "", 0
    changed.summary_json, changed.bad_rows = {}, []
    for column, value in NOTHING_STORED.items():
        setattr(changed, column, value)
    with importing.file.open("rb") as opened:
        file = cast(BinaryIO, opened)
        if at_once and is_quick_to_check(file, find_waiting_imports(changed)):
            write_check_result(changed, check_file(changed, file))
        else:
            changed.state = ImportState.CHECKING
    with transaction.atomic():
        open_rows = Import.objects.filter(pk=importing.pk, state__in=MAPPABLE_STATES, queued_by__isnull=True)
        if not open_rows.update(**{column: getattr(changed, column) for column in CHECKED_COLUMNS}):
            raise InputRefused(f"{importing.file_name} was already imported or discarded.")
        if changed.state == ImportState.CHECKING:
            enqueue_job(IMPORT_JOB, importing.pk, evaluation=importing.evaluation)
        if after:
            record_event("mapped", importing, user=user, evaluation=importing.evaluation, after=dict(after))
    importing.refresh_from_db()


def change_import(importing: Import, request: ImportRequest, *, user: User | None) -> None:
    """Read a waiting file by another request. What somebody mapped stays, unless the format changes."""
    refuse_invalid_margin(request.tie_margin)
    options = importing.options
    before = options.request.reading
    reading = request.reading
    if reading.format == before.format or (reading.format == FileFormat.AUTO and not before.is_mapped):
        reading = replace(
            reading, mapping=before.mapping, constants=without_typed(before.constants, reading), choices=before.choices
        )
    reading = replace(reading, as_it_is=before.as_it_is)
    changed = replace(
        options,
        request=replace(request, reading=reading, brings=options.request.brings),
        ranking=rank_models(importing.evaluation, request.pairing),
        is_mapped=True,
    )
    if changed.request == options.request:
        return
    after = {
        "format": reading.format,
        "candidate": reading.candidate,
        "rater": reading.rater,
        "new_response": reading.new_response,
        "pair": str(request.pairing),
    }
    check_again(importing, changed, user=user, after=after)
    check_waiting_again(importing)


def without_typed(constants: Mapping[str, str], reading: object) -> dict[str, str]:
    """Values for all rows, without those for which a name is typed."""
    return {field: value for field, value in constants.items() if not getattr(reading, field, "")}


def check_waiting_again(importing: Import) -> None:
    """Check the files again that wait after this one, because what is stored before them has changed."""
    others = Import.objects.filter(evaluation=importing.evaluation, user=importing.user_id, pk__gt=importing.pk)
    waiting = others.filter(state=ImportState.PREVIEWED, queued_by__isnull=True).select_related("evaluation")
    in_batch = [other for other in waiting.order_by("pk") if other.options.in_batch]
    for number, other in enumerate(in_batch):
        try:
            check_again(other, other.options, user=None, after={}, at_once=number < MAX_CHECKED_AT_ONCE)
        except InputRefused as refused:
            Import.objects.filter(pk=other.pk).update(reason=str(refused))
