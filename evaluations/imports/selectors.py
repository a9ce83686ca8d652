"""How far an import is."""

from dataclasses import dataclass

from django.utils import timezone

from evaluations.domain.files import ImportState
from evaluations.imports.lifecycle import BEGAN_STORING
from evaluations.models.evaluations import Event
from evaluations.models.imports import Import


@dataclass(frozen=True)
class ImportProgress:
    """The progress of an import. ``of`` is None while the file is checked, because its length is not known yet."""

    rows: int
    of: int | None
    rows_per_second: float | None
    seconds_left: float | None


def get_import_progress(importing: Import) -> ImportProgress:
    if importing.state == ImportState.CHECKING:
        return ImportProgress(importing.rows_read, None, None, None)
    rows = importing.rows_done
    begun = Event.objects.filter(object_type="import", object_id=importing.pk, verb=BEGAN_STORING).last()
    seconds = (timezone.now() - begun.created_at).total_seconds() if begun else 0
    if not rows or not seconds:
        return ImportProgress(rows, importing.rows_read, None, None)
    return ImportProgress(rows, importing.rows_read, rows / seconds, (importing.rows_read - rows) * seconds / rows)
