"""The formats in which labels leave, in the order in which they are offered."""

from collections.abc import Mapping
from typing import Final

from evaluations.formats import (
    alpaca_eval_out,
    backup_out,
    csv_out,
    dpo_out,
    hugging_face_out,
    jsonl_out,
    kto_out,
    llm_comparator_out,
    messages_out,
    mt_bench_out,
    parquet_out,
    verdicts_out,
)
from evaluations.formats.leaving import Leaving

LEAVING: Final[Mapping[str, Leaving]] = {
    one.name: one
    for one in (
        jsonl_out.FORMAT,
        csv_out.FORMAT,
        parquet_out.FORMAT,
        dpo_out.FORMAT,
        kto_out.FORMAT,
        messages_out.FORMAT,
        hugging_face_out.FORMAT,
        *verdicts_out.FORMATS,
        *mt_bench_out.FORMATS,
        alpaca_eval_out.FORMAT,
        llm_comparator_out.FORMAT,
        backup_out.FORMAT,
    )
}
