"""The registry of import formats, and which of them a file has."""

from collections.abc import Sequence
from typing import Final

from evaluations.domain.errors import ColumnsUnknown, InputRefused
from evaluations.domain.files import FileFormat
from evaluations.formats.alpaca_eval import ALPACA_EVAL_FORMATS
from evaluations.formats.arena import ARENA_FORMATS
from evaluations.formats.arena_hard import ARENA_HARD_FORMATS
from evaluations.formats.argilla import ARGILLA_FORMATS
from evaluations.formats.auto_arena import AUTO_ARENA_FORMATS
from evaluations.formats.chosen_rejected import PREFERENCE_FORMATS
from evaluations.formats.import_format import ImportFormat
from evaluations.formats.judgebench import JUDGEBENCH_FORMATS
from evaluations.formats.just_eval import JUST_EVAL_FORMATS
from evaluations.formats.kto import KTO_FORMATS
from evaluations.formats.label_studio import LABEL_STUDIO_FORMATS
from evaluations.formats.llm_comparator import LLM_COMPARATOR_FORMATS
from evaluations.formats.llmbar import LLMBAR_FORMATS
from evaluations.formats.mt_bench import MT_BENCH_FORMATS
from evaluations.formats.native_rows import NATIVE_FORMATS
from evaluations.formats.pandalm import PANDALM_FORMATS
from evaluations.formats.record_streams import FileSample
from evaluations.formats.squality import SQUALITY_FORMATS

IMPORT_FORMATS: Final[Sequence[ImportFormat]] = (
    *NATIVE_FORMATS,
    *PANDALM_FORMATS,
    *LLMBAR_FORMATS,
    *SQUALITY_FORMATS,
    *MT_BENCH_FORMATS,
    *ARENA_FORMATS,
    *ALPACA_EVAL_FORMATS,
    *PREFERENCE_FORMATS,
    *KTO_FORMATS,
    *ARENA_HARD_FORMATS,
    *JUDGEBENCH_FORMATS,
    *AUTO_ARENA_FORMATS,
    *LLM_COMPARATOR_FORMATS,
    *JUST_EVAL_FORMATS,
    *LABEL_STUDIO_FORMATS,
    *ARGILLA_FORMATS,
)
OF_TRACES: Final = (
    *(("resourceSpans",), ("resource_spans",), ("scopeSpans",), ("traceId", "spanId"), ("trace_id", "span_id")),
    ("context.trace_id", "context.span_id"),
)
# Known files that cannot be imported, described by their columns.
UNSUPPORTED: Final[Sequence[tuple[tuple[str, ...], str]]] = (
    *((columns, "OpenTelemetry traces") for columns in OF_TRACES),
    (("datasetId", "input", "expectedOutput"), "Langfuse dataset items without model responses"),
    (("traceId", "projectId"), "Langfuse traces"),
    (("run_type", "inputs", "outputs"), "LangSmith runs"),
    (("item", "sample"), "OpenAI Evals results"),
    (("custom_id", "response", "error"), "OpenAI Batch API replies"),
)
WRITE_ROWS: Final = "Convert it to rows with query_id, query, candidate and response, or map its columns."
SAY_WHICH: Final = "Map the columns."
# Of the product's own formats, a row with missing columns is refused with their names.
OWN: Final = (FileFormat.COMPARISONS, FileFormat.RESPONSES, FileFormat.VERDICTS, FileFormat.SCORES)
# Columns that may replace a needed column.
INSTEAD: Final = {"query": "messages"}


def detect_format(sample: FileSample, format_name: str, name: str, brings: str = "") -> ImportFormat:
    """The format that fits the columns of a file best, among all formats or those named ``asked``.

    Among equal fits, formats that bring the material ``brings`` come first, then those that need more columns. Raises
    InputRefused where two different formats are left, ColumnsUnknown where none fits.
    """
    columns = sample.columns
    if format_name == FileFormat.AUTO:
        refuse_unsupported(columns, name)
    named = [form for form in IMPORT_FORMATS if format_name in (FileFormat.AUTO, form.name)]
    allowed = [form for form in named if may_be_format(form, sample)] or named
    ranked = sorted(allowed, key=lambda form: rank_format(form, columns, brings), reverse=True)
    best = ranked[0]
    if not columns:
        raise InputRefused(f"{name} starts with an empty object. It has no rows.")
    if column_fit(best, columns) <= 0.5:
        raise ColumnsUnknown(
            unknown_format_sentence(columns, name)
            if format_name == FileFormat.AUTO
            else missing_columns_sentence(best, columns, name)
        )
    if format_name == FileFormat.AUTO and column_fit(best, columns) < 1 and best.name not in OWN:
        # A file that only resembles a format needs a mapping.
        raise ColumnsUnknown(f"{missing_columns_sentence(best, columns, name)} {SAY_WHICH}")
    alike = [form.name for form in ranked if rank_format(form, columns, brings) == rank_format(best, columns, brings)]
    if len(set(alike)) > 1 and column_fit(best, columns) == 1:
        raise InputRefused(f"{name} may be {' or '.join(alike)}. Choose the format.")
    return best


def may_be_format(form: ImportFormat, sample: FileSample) -> bool:
    return form.is_match(sample) if column_fit(form, sample.columns) == 1 else not form.has_common_columns


def refuse_unsupported(columns: tuple[str, ...], name: str) -> None:
    for needed, what in UNSUPPORTED:
        if set(needed) <= set(columns):
            raise InputRefused(f"{name} has {what}. This format is not supported. {WRITE_ROWS}")


def rank_format(form: ImportFormat, columns: tuple[str, ...], brings: str) -> tuple[float, bool, int]:
    fits = column_fit(form, columns)
    return fits, brings in form.brings, (form.certainty or len(form.needs)) if fits == 1 else 0


def column_fit(form: ImportFormat, columns: tuple[str, ...]) -> float:
    lacks = missing_columns(form, columns)
    return 1 - len(lacks) / len(form.needs)


def has_column(columns: tuple[str, ...], needed: str) -> bool:
    if needed.startswith("*"):
        return any(column.endswith(needed[1:]) for column in columns)
    return needed in columns or INSTEAD.get(needed) in columns


def missing_columns(form: ImportFormat, columns: tuple[str, ...]) -> list[str]:
    """The needed columns that are missing; none if only the column of the model name is missing."""
    lacks = [column for column in form.needs if not has_column(columns, column)]
    return [] if lacks == [form.model] else lacks


def unknown_format_sentence(columns: tuple[str, ...], name: str) -> str:
    return f"Unknown format: the columns of {name} ({list_columns(columns)}) match none. {SAY_WHICH}"


def missing_columns_sentence(form: ImportFormat, columns: tuple[str, ...], name: str) -> str:
    lacks = " and no column ".join(f"“{column}”" for column in missing_columns(form, columns))
    return f"{name} has no column {lacks}, required by the format {form.name}."


def list_columns(columns: tuple[str, ...]) -> str:
    shown = ", ".join(column[:40] for column in columns[:12])
    return f"{shown}, …" if len(columns) > 12 else shown


def refuse_other_material(form: ImportFormat, brings: str, name: str) -> None:
    if brings and brings not in form.brings:
        raise InputRefused(f"{name} has {form.brings[0]}, not {brings}. Import it as {form.brings[0]}.")


def refuse_missing_columns(form: ImportFormat, columns: tuple[str, ...], name: str) -> None:
    if missing_columns(form, columns):
        raise ColumnsUnknown(missing_columns_sentence(form, columns, name))
