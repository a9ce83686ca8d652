"""An evaluation whole: no layout of labels, but every row of every table, as it is restored elsewhere."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, cast

from evaluations.domain import BACKUP
from evaluations.formats.exported import Raters
from evaluations.formats.leaving import Leaving, Needs, Options, Rows, Tally
from evaluations.formats.zipped import zipped


def written(rows: Rows, raters: Raters, options: Options, tally: Tally) -> Iterator[bytes]:
    return zipped(cast("Iterable[tuple[str, Path | bytes]]", rows))


FORMAT: Final = Leaving(
    name=BACKUP,
    title="Backup",
    purpose="everything that this evaluation holds, to restore it here or elsewhere",
    ending="zip",
    content_type="application/zip",
    write=written,
    needs=Needs.TABLES,
)
