"""The registry of export formats, in the order in which they are offered."""

from collections.abc import Mapping
from typing import Final

from evaluations.domain.files import BACKUP_FORMAT_NAME
from evaluations.formats.alpaca_eval_export import ALPACA_EVAL_FORMAT
from evaluations.formats.columnar_exports import HUGGING_FACE_FORMAT, PARQUET_FORMAT
from evaluations.formats.csv_export import CSV_FORMAT
from evaluations.formats.export_format import ExportFormat, RowKind
from evaluations.formats.jsonl_export import JSONL_FORMAT
from evaluations.formats.llm_comparator_export import LLM_COMPARATOR_FORMAT
from evaluations.formats.mt_bench_export import MT_BENCH_FORMATS
from evaluations.formats.trainer_exports import TRAINER_FORMATS
from evaluations.formats.verdicts_export import VERDICT_FORMATS
from evaluations.formats.zip_stream import stream_zip

BACKUP_FORMAT: Final = ExportFormat(
    name=BACKUP_FORMAT_NAME,
    title="Backup",
    purpose="everything that this evaluation holds, to restore it here or elsewhere",
    ending="zip",
    write=lambda rows, raters, options, tally: stream_zip(rows),
    needs=RowKind.TABLES,
)

EXPORT_FORMATS: Final[Mapping[str, ExportFormat]] = {
    one.name: one
    for one in (
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
