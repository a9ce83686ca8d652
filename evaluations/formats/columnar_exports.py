"""The formats of Parquet files. Only a process that writes one loads pyarrow, which takes 40 MB."""

from collections.abc import Iterable, Iterator
from typing import Final

from evaluations.domain.files import FOLDER_FORMAT
from evaluations.formats.export_format import ExportFormat, ExportOptions, RowKind
from evaluations.formats.exported_rows import ExportedRaters, ExportedRow, LabelledRow
from evaluations.formats.preferences import EXCLUSION_REASONS, ExportCounts


def write_parquet(
    rows: Iterable[ExportedRow], _: ExportedRaters, __: ExportOptions, tally: ExportCounts
) -> Iterator[bytes]:
    from evaluations.formats.parquet_export import parquet_bytes  # noqa: PLC0415 - pyarrow

    return parquet_bytes(rows, tally)


def write_dataset_folder(
    rows: Iterable[LabelledRow], raters: ExportedRaters, options: ExportOptions, tally: ExportCounts
) -> Iterator[bytes]:
    from evaluations.formats.hugging_face_export import dataset_folder_zip  # noqa: PLC0415 - pyarrow

    rule = options.preference_rule(raters)
    return dataset_folder_zip(rows, raters.aspects, rule, tally, options.facts, options.manifest)


PARQUET_FORMAT: Final = ExportFormat(
    name="parquet",
    title="Parquet",
    purpose="everything in typed columns, for pandas, polars and datasets",
    ending="parquet",
    write=write_parquet,
    needs=RowKind.EVERYTHING,
)
HUGGING_FACE_FORMAT: Final = ExportFormat(
    name=FOLDER_FORMAT,
    title="Hugging Face data set",
    purpose="a folder with a card and Parquet files, as ZIP, to publish or to load",
    ending="zip",
    write=write_dataset_folder,
    wants_choice=True,
    reasons=EXCLUSION_REASONS,
)
