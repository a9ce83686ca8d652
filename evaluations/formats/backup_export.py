"""An evaluation whole, as a backup that can be restored elsewhere."""

from collections.abc import Iterator
from typing import Final

from evaluations.domain.files import BACKUP_FORMAT_NAME
from evaluations.formats.export_format import ExportFormat, ExportOptions, ExportRows, ExportTally, RowKind
from evaluations.formats.exported_rows import ExportedRaters
from evaluations.formats.zip_stream import stream_zip


def write_backup(
    rows: ExportRows, raters: ExportedRaters, options: ExportOptions, tally: ExportTally
) -> Iterator[bytes]:
    return stream_zip(rows)


BACKUP_FORMAT: Final = ExportFormat(
    name=BACKUP_FORMAT_NAME,
    title="Backup",
    purpose="everything that this evaluation holds, to restore it here or elsewhere",
    ending="zip",
    write=write_backup,
    needs=RowKind.TABLES,
)
