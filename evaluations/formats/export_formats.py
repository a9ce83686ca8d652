"""The registry of export formats, in the order in which they are offered."""

from collections.abc import Mapping
from typing import Final

from evaluations.formats.alpaca_eval_export import ALPACA_EVAL_FORMAT
from evaluations.formats.backup_export import BACKUP_FORMAT
from evaluations.formats.csv_export import CSV_FORMAT
from evaluations.formats.dpo_export import DPO_FORMAT
from evaluations.formats.export_format import ExportFormat
from evaluations.formats.hugging_face_export import HUGGING_FACE_FORMAT
from evaluations.formats.jsonl_export import JSONL_FORMAT
from evaluations.formats.kto_export import KTO_FORMAT
from evaluations.formats.llm_comparator_export import LLM_COMPARATOR_FORMAT
from evaluations.formats.messages_export import MESSAGES_FORMAT
from evaluations.formats.mt_bench_export import MT_BENCH_FORMATS
from evaluations.formats.parquet_export import PARQUET_FORMAT
from evaluations.formats.verdicts_export import VERDICT_FORMATS

EXPORT_FORMATS: Final[Mapping[str, ExportFormat]] = {
    one.name: one
    for one in (
        JSONL_FORMAT,
        CSV_FORMAT,
        PARQUET_FORMAT,
        DPO_FORMAT,
        KTO_FORMAT,
        MESSAGES_FORMAT,
        HUGGING_FACE_FORMAT,
        *VERDICT_FORMATS,
        *MT_BENCH_FORMATS,
        ALPACA_EVAL_FORMAT,
        LLM_COMPARATOR_FORMAT,
        BACKUP_FORMAT,
    )
}
