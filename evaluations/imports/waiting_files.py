"""Files that wait to be imported before another one, which is checked as if they were stored."""

from contextlib import suppress
from dataclasses import replace
from typing import BinaryIO, Final, cast

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ImportState
from evaluations.formats.seen_index import SeenIndex
from evaluations.imports.lookup import ImportContext
from evaluations.imports.pair_forecast import PairForecast
from evaluations.imports.row_resolver import CHECKED_ROWS_PER_BATCH, batch_entries, resolve_batch
from evaluations.imports.row_sketches import WAITING_LINE
from evaluations.imports.source_files import read_import_rows
from evaluations.models.imports import Import

MAX_WAITING_FILES: Final = 20


def find_waiting_imports(importing: Import) -> list[Import]:
    """The files of the same user that are stored before this one."""
    if not importing.options.in_batch:
        return []
    states = (ImportState.CHECKING, ImportState.PREVIEWED, ImportState.STORING)
    others = Import.objects.filter(evaluation=importing.evaluation, user=importing.user_id, state__in=states)
    if importing.pk:
        others = others.filter(pk__lt=importing.pk)
    listed = others.exclude(file="").select_related("evaluation").order_by("-pk")[:MAX_WAITING_FILES]
    return [other for other in reversed(listed) if other.options.in_batch]


def add_waiting_file(waiting: Import, context: ImportContext, seen: SeenIndex, forecast: PairForecast) -> None:
    """Have the rows of a waiting file count as if they were stored."""
    own = replace(
        context, new_response=waiting.request.reading.new_response, imported_aspects=set(), scales={}, importing=None
    )
    with suppress(InputRefused, OSError), waiting.file.open("rb") as file, SeenIndex() as counted:
        entries = read_import_rows(waiting, cast(BinaryIO, file), counted).entries
        for items in batch_entries(entries, CHECKED_ROWS_PER_BATCH):
            batch = resolve_batch(own, [replace(item, line=WAITING_LINE) for item in items], seen)
            forecast.add((), batch.new, is_waiting=True)
            batch.break_cycles()
