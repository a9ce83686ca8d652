"""What an import format is: its name, the columns by which it is recognised, its reader.

A format is one value of ImportFormat, made in a separate module and listed in `import_formats.IMPORT_FORMATS`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from evaluations.domain.files import FileRow, ReadOptions
from evaluations.formats.record_streams import FileSample, Record

RowReader = Callable[[Record, ReadOptions], tuple[FileRow, ...]]


# What the rows of a file bring.
COMPARISONS: Final = "comparisons"
VERDICTS: Final = "verdicts"
SCORES: Final = "scores"


@dataclass(frozen=True)
class ImportFormat:
    """An import format, recognised by its columns; several formats may share a ``name``.

    ``brings``: the kinds of material in its rows, the main one first. ``needs``: the columns by which it is
    recognised; ``*x`` matches any column that ends in x. ``read_rows``: reads the rows of a record;
    ``learn_reader``: makes it from a sample, where it depends on the values of a column. ``is_match``: whether the
    values of a sample fit the format, since other files may have columns of these names. ``has_common_columns``:
    whether its columns occur in many files, so that a file without some of them is not reported as nearly of this
    format. ``certainty``: how much a complete match counts, if not as much as the number of columns.
    ``needs_pairing``: whether its responses have to be paired. ``model``: the column with the model name of a
    response; where it is missing, the name comes from the form or from the file name. ``note``: a sentence for the
    user.
    """

    name: str
    brings: tuple[str, ...]  # of comparisons, verdicts and scores
    needs: tuple[str, ...]
    read_rows: RowReader
    needs_pairing: bool = False
    certainty: int = 0
    note: str = ""
    model: str = ""
    is_match: Callable[[FileSample], bool] = lambda sample: True
    has_common_columns: bool = False
    learn_reader: Callable[[FileSample], RowReader] | None = None

    def for_sample(self, sample: FileSample) -> "ImportFormat":
        return replace(self, read_rows=self.learn_reader(sample)) if self.learn_reader else self
