"""The registry of export formats, in the order in which they are offered."""

from collections.abc import Iterator, Mapping
from typing import Final

from evaluations.domain.files import BACKUP_FORMAT_NAME, FOLDER_FORMAT
from evaluations.formats.alpaca_eval_export import ALPACA_EVAL_FORMAT
from evaluations.formats.csv_export import CSV_FORMAT
from evaluations.formats.export_format import ExportFormat, ExportOptions, ExportRows, ExportTally, RowKind
from evaluations.formats.exported_rows import ExportedRaters
from evaluations.formats.jsonl_export import JSONL_FORMAT
from evaluations.formats.llm_comparator_export import LLM_COMPARATOR_FORMAT
from evaluations.formats.mt_bench_export import MT_BENCH_FORMATS
from evaluations.formats.preferences import EXCLUSION_REASONS
from evaluations.formats.trainer_exports import TRAINER_FORMATS
from evaluations.formats.verdicts_export import VERDICT_FORMATS
from evaluations.formats.zip_stream import stream_zip


# Only a process that writes one of these loads pyarrow, which takes 40 MB.
def write_parquet(rows: ExportRows, _: ExportedRaters, __: ExportOptions, tally: ExportTally) -> Iterator[bytes]:
    from evaluations.formats.parquet_export import parquet_bytes  # noqa: PLC0415 - pyarrow

    return parquet_bytes(rows, tally)


def write_dataset_folder(
    rows: ExportRows, raters: ExportedRaters, options: ExportOptions, tally: ExportTally
) -> Iterator[bytes]:
    from evaluations.formats.hugging_face_export import dataset_folder_zip  # noqa: PLC0415 - pyarrow

    rule = options.preference_rule(raters)
    return dataset_folder_zip(rows, raters.aspects, rule, tally, options)


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
    title="Hugging Face dataset",
    purpose="dataset card and Parquet files, to publish or load (zip)",
    ending="zip",
    write=write_dataset_folder,
    wants_choice=True,
    reasons=EXCLUSION_REASONS,
)
BACKUP_FORMAT: Final = ExportFormat(
    name=BACKUP_FORMAT_NAME,
    title="Backup",
    purpose="the whole evaluation, to restore here or elsewhere",
    ending="zip",
    write=lambda rows, raters, options, tally: stream_zip(rows),
    needs=RowKind.TABLES,
)

EXPORT_FORMATS: Final[Mapping[str, ExportFormat]] = {
    form.name: form
    for form in (
        JSONL_FORMAT,
        CSV_FORMAT,
        PARQUET_FORMAT,
        *TRAINER_FORMATS,
        HUGGING_FACE_FORMAT,
        *VERDICT_FORMATS,
        *MT_BENCH_FORMATS,
        ALPACA_EVAL_FORMAT,
        LLM_COMPARATOR_FORMAT,
        BACKUP_FORMAT,
    )
}
