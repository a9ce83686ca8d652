"""The registry of import formats, and which of them a file has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from evaluations.domain.errors import ColumnsUnknown, InputRefused
from evaluations.domain.files import FileFormat, FileRow, ReadOptions
from evaluations.formats.alpaca_eval import alpaca_annotation_rows, alpaca_output_rows, has_alpaca_preferences
from evaluations.formats.arena import WON, arena_battle_rows, arena_table_reader, arena_text_rows
from evaluations.formats.arena_hard import (
    arena_hard_answer_rows,
    arena_hard_judgment_rows,
    arena_hard_question_rows,
    has_only_question_columns,
)
from evaluations.formats.argilla import SUGGESTED, argilla_flat_rows, argilla_record_rows, argilla_v1_flat_rows
from evaluations.formats.auto_arena import (
    auto_arena_head_to_head_rows,
    auto_arena_response_rows,
    has_histories,
    has_only_response_columns,
)
from evaluations.formats.chosen_rejected import (
    RESPONSES,
    chosen_response_rows,
    fine_tuning_rows,
    has_texts,
    preference_rows,
    preference_rows_reader,
)
from evaluations.formats.conversations import WITHOUT_NAMES
from evaluations.formats.file_sample import FileSample
from evaluations.formats.judgebench import judgebench_rows
from evaluations.formats.just_eval import just_eval_pair_rows, just_eval_response_rows, just_eval_score_rows
from evaluations.formats.kto import has_boolean_labels, has_kto_tags, kto_rows, kto_rows_reader
from evaluations.formats.label_studio import label_studio_min_rows, label_studio_task_rows
from evaluations.formats.llm_comparator import llm_comparator_rows
from evaluations.formats.llmbar import has_llmbar_labels, llmbar_dataset_rows, llmbar_result_rows
from evaluations.formats.mt_bench import (
    mt_bench_answer_rows,
    mt_bench_pair_rows,
    mt_bench_question_rows,
    mt_bench_score_rows,
)
from evaluations.formats.native_rows import (
    native_comparison_row,
    native_response_row,
    native_score_row,
    native_verdict_row,
)
from evaluations.formats.pandalm import has_pandalm_results, pandalm_result_rows, pandalm_testset_rows
from evaluations.formats.record_streams import Record
from evaluations.formats.squality import squality_passage_rows, squality_question_rows

RowReader = Callable[[Record, ReadOptions], tuple[FileRow, ...]]
COMPARISONS: Final = "comparisons"
VERDICTS: Final = "verdicts"
SCORES: Final = "scores"


def is_any_file(sample: FileSample) -> bool:
    return True


OF_TRACES: Final = (
    *(("resourceSpans",), ("resource_spans",), ("scopeSpans",), ("traceId", "spanId"), ("trace_id", "span_id")),
    ("context.trace_id", "context.span_id"),
)


@dataclass(frozen=True)
class ImportFormat:
    """An import format, recognised by its columns; several formats may share a ``name``.

    ``brings``: the material of its rows; ``also_brings``: further material. ``needs``: the columns by which it is
    recognised; ``*x`` matches any column that ends in x. ``read_rows``: reads the rows of a record; ``learn_reader``:
    makes it from a sample, where it depends on the values of a column. ``is_match``: whether the values of a sample fit
    the format, since other files may have columns of these names. ``has_common_columns``: whether its columns occur in
    many files, so that a file without some of them is not reported as nearly of this format. ``certainty``: how much a
    complete match counts, if not as much as the number of columns. ``needs_pairing``: whether its responses have to be
    paired. ``model``: the column with the model name of a response; where it is missing, the name comes from the form
    or from the file name. ``note``: a sentence for the user.
    """

    name: str
    brings: str  # comparisons, verdicts or scores
    needs: tuple[str, ...]
    read_rows: RowReader
    also_brings: tuple[str, ...] = ()
    needs_pairing: bool = False
    certainty: int = 0
    note: str = ""
    model: str = ""
    is_match: Callable[[FileSample], bool] = is_any_file
    has_common_columns: bool = False
    learn_reader: Callable[[FileSample], RowReader] | None = None

    def holds(self, material: str) -> bool:
        return material in (self.brings, *self.also_brings)

    def for_sample(self, sample: FileSample) -> "ImportFormat":
        return replace(self, read_rows=self.learn_reader(sample)) if self.learn_reader else self


IMPORT_FORMATS: Final[Sequence[ImportFormat]] = (
    ImportFormat(
        FileFormat.COMPARISONS,
        COMPARISONS,
        ("query_id", "query", "candidate_a", "response_a", "candidate_b", "response_b"),
        native_comparison_row,
    ),
    ImportFormat(  # of a Hugging Face dataset: see `exported_rows.read_exported_material`
        FileFormat.COMPARISONS,
        COMPARISONS,
        ("query_id", "prompt", "candidate_a", "response_a", "candidate_b", "response_b", "choice", "labels", "split"),
        native_comparison_row,
    ),
    ImportFormat(
        FileFormat.RESPONSES,
        COMPARISONS,
        ("query_id", "query", "candidate", "response"),
        native_response_row,
        needs_pairing=True,
        model="candidate",
    ),
    ImportFormat(
        FileFormat.VERDICTS, VERDICTS, ("query_id", "candidate_a", "candidate_b", "choice"), native_verdict_row
    ),
    ImportFormat(FileFormat.SCORES, SCORES, ("query_id", "candidate", "value"), native_score_row),
    ImportFormat(
        FileFormat.PANDALM,
        COMPARISONS,
        ("idx", "cmp_key", "instruction", "response1", "response2"),
        pandalm_testset_rows,
        also_brings=(VERDICTS,),
    ),
    ImportFormat(FileFormat.PANDALM, VERDICTS, ("idx", "*_result"), pandalm_result_rows, is_match=has_pandalm_results),
    ImportFormat(
        FileFormat.LLMBAR, VERDICTS, ("input", "output_1", "output_2", "results"), llmbar_result_rows, certainty=5
    ),
    ImportFormat(
        FileFormat.LLMBAR,
        COMPARISONS,
        ("input", "output_1", "output_2", "label"),
        llmbar_dataset_rows,
        also_brings=(VERDICTS,),
        is_match=has_llmbar_labels,
    ),
    ImportFormat(
        FileFormat.SQUALITY, SCORES, ("passage-id", "questions"), squality_passage_rows, also_brings=(COMPARISONS,)
    ),
    ImportFormat(FileFormat.SQUALITY, COMPARISONS, ("metadata", "document", "questions"), squality_question_rows),
    ImportFormat(FileFormat.MT_BENCH, COMPARISONS, ("question_id", "category", "turns"), mt_bench_question_rows),
    ImportFormat(
        FileFormat.MT_BENCH,
        COMPARISONS,
        ("question_id", "model_id", "choices"),
        mt_bench_answer_rows,
        needs_pairing=True,
    ),
    ImportFormat(
        FileFormat.MT_BENCH,
        VERDICTS,
        ("question_id", "model_1", "model_2", "g1_winner", "g2_winner"),
        mt_bench_pair_rows,
    ),
    ImportFormat(FileFormat.MT_BENCH, SCORES, ("question_id", "model", "score", "judgment"), mt_bench_score_rows),
    ImportFormat(
        FileFormat.ARENA,
        COMPARISONS,
        ("model_a", "model_b", "winner", "conversation_a", "conversation_b"),
        arena_battle_rows,
        also_brings=(VERDICTS,),
    ),
    ImportFormat(
        FileFormat.ARENA,
        COMPARISONS,
        ("model_a", "model_b", "prompt", "response_a", "response_b", *(column for column, _ in WON)),
        arena_text_rows,
        also_brings=(VERDICTS,),
        learn_reader=arena_table_reader,
    ),
    ImportFormat(
        FileFormat.ARENA,
        COMPARISONS,
        ("model_a", "model_b", "prompt", "response_a", "response_b", "winner"),
        arena_text_rows,
        also_brings=(VERDICTS,),
        learn_reader=arena_table_reader,
        has_common_columns=True,
    ),
    ImportFormat(
        FileFormat.ALPACA_EVAL,
        COMPARISONS,
        ("instruction", "output_1", "output_2", "preference"),
        alpaca_annotation_rows,
        also_brings=(VERDICTS,),
        note=WITHOUT_NAMES,
        is_match=has_alpaca_preferences,
    ),
    ImportFormat(
        FileFormat.ALPACA_EVAL,
        COMPARISONS,
        ("instruction", "output", "generator"),
        alpaca_output_rows,
        needs_pairing=True,
    ),
    ImportFormat(
        FileFormat.PREFERENCES,
        COMPARISONS,
        ("chosen", "rejected"),
        preference_rows,
        also_brings=(VERDICTS,),
        note=WITHOUT_NAMES,
        is_match=has_texts,
        learn_reader=preference_rows_reader,
    ),
    ImportFormat(
        FileFormat.PREFERENCES,
        COMPARISONS,
        RESPONSES,
        chosen_response_rows,
        also_brings=(VERDICTS,),
        note=WITHOUT_NAMES,
    ),
    ImportFormat(
        FileFormat.PREFERENCES,
        COMPARISONS,
        ("input", "preferred_output", "non_preferred_output"),
        fine_tuning_rows,
        also_brings=(VERDICTS,),
        note=WITHOUT_NAMES,
    ),
    *(
        ImportFormat(
            FileFormat.KTO,
            COMPARISONS,
            (*columns, label),
            kto_rows,
            also_brings=(SCORES,),
            needs_pairing=True,
            model="model",
            is_match=only,
            has_common_columns=True,
            learn_reader=kto_rows_reader,
        )
        for columns, label, only in (
            (("prompt", "completion"), "label", has_boolean_labels),
            (("instruction", "output"), "kto_tag", has_kto_tags),
            (("conversations",), "kto_tag", has_kto_tags),
            (("messages",), "kto_tag", has_kto_tags),
        )
    ),
    ImportFormat(FileFormat.ARENA_HARD, VERDICTS, ("question_id", "model", "judge", "games"), arena_hard_judgment_rows),
    ImportFormat(FileFormat.ARENA_HARD, VERDICTS, ("uid", "model", "judge", "games"), arena_hard_judgment_rows),
    ImportFormat(
        FileFormat.ARENA_HARD,
        COMPARISONS,
        ("uid", "category", "prompt"),
        arena_hard_question_rows,
        is_match=has_only_question_columns,
        has_common_columns=True,
    ),
    ImportFormat(
        FileFormat.ARENA_HARD,
        COMPARISONS,
        ("uid", "ans_id", "model", "messages"),
        arena_hard_answer_rows,
        needs_pairing=True,
    ),
    ImportFormat(
        FileFormat.JUDGEBENCH,
        COMPARISONS,
        ("pair_id", "question", "response_A", "response_B", "label"),
        judgebench_rows,
        also_brings=(VERDICTS,),
    ),
    ImportFormat(
        FileFormat.AUTO_ARENA,
        COMPARISONS,
        ("prompt", "response"),
        auto_arena_response_rows,
        needs_pairing=True,
        model="model",
        is_match=has_only_response_columns,
    ),
    ImportFormat(
        FileFormat.AUTO_ARENA,
        COMPARISONS,
        ("prompt", "response_a", "response_b", "history"),
        auto_arena_head_to_head_rows,
        also_brings=(VERDICTS,),
        note=WITHOUT_NAMES,
        is_match=has_histories,
    ),
    ImportFormat(
        FileFormat.LLM_COMPARATOR,
        COMPARISONS,
        ("input_text", "output_text_a", "output_text_b"),
        llm_comparator_rows,
        also_brings=(VERDICTS,),
        note=WITHOUT_NAMES,
    ),
    ImportFormat(
        FileFormat.JUST_EVAL,
        VERDICTS,
        ("input", "output_A", "output_B", "generator_A", "generator_B", "eval_config"),
        just_eval_pair_rows,
        also_brings=(COMPARISONS,),
    ),
    ImportFormat(
        FileFormat.JUST_EVAL,
        SCORES,
        ("input", "output_cand", "generator_cand", "eval_config"),
        just_eval_score_rows,
        also_brings=(COMPARISONS,),
    ),
    ImportFormat(
        FileFormat.JUST_EVAL,
        COMPARISONS,
        ("id", "instruction", "source_id", "output", "generator"),
        just_eval_response_rows,
        needs_pairing=True,
    ),
    ImportFormat(
        FileFormat.LABEL_STUDIO, COMPARISONS, ("data", "annotations"), label_studio_task_rows, also_brings=(VERDICTS,)
    ),
    ImportFormat(
        FileFormat.LABEL_STUDIO,
        COMPARISONS,
        ("annotation_id", "annotator", "lead_time"),
        label_studio_min_rows,
        also_brings=(VERDICTS,),
        certainty=9,  # in addition to the columns of tasks, which have any names
    ),
    ImportFormat(
        FileFormat.ARGILLA, COMPARISONS, ("fields", "responses"), argilla_record_rows, also_brings=(VERDICTS,)
    ),
    ImportFormat(
        FileFormat.ARGILLA,
        COMPARISONS,
        ("*.responses", "*.responses.users"),
        argilla_flat_rows,
        also_brings=(VERDICTS,),
        certainty=9,  # in addition to the fields, which have any names
    ),
    ImportFormat(
        FileFormat.ARGILLA,
        COMPARISONS,
        ("*-suggestion", f"*{SUGGESTED}", "external_id"),
        argilla_v1_flat_rows,
        also_brings=(VERDICTS,),
        certainty=9,
    ),
)
# Known files that cannot be imported, described by their columns.
UNSUPPORTED: Final[Sequence[tuple[tuple[str, ...], str]]] = (
    *((columns, "OpenTelemetry traces") for columns in OF_TRACES),
    (("datasetId", "input", "expectedOutput"), "items of a Langfuse dataset, which have no responses of a model"),
    (("traceId", "projectId"), "traces of Langfuse"),
    (("run_type", "inputs", "outputs"), "runs of LangSmith"),
    (("item", "sample"), "results of OpenAI Evals"),
    (("custom_id", "response", "error"), "replies of the OpenAI Batch API"),
)
WRITE_ROWS: Final = "Write a row for each response (query_id, query, candidate, response), or map its columns (--map)."
SAY_WHICH: Final = "Say which column is which, as COLUMN=FIELD: --map, or on the page of imports."
# Of the product's own formats, a row with missing columns is refused with their names.
OWN: Final = (FileFormat.COMPARISONS, FileFormat.RESPONSES, FileFormat.VERDICTS, FileFormat.SCORES)
# Columns that may replace a needed column.
INSTEAD: Final = {"query": "messages"}


def detect_format(sample: FileSample, asked: str, name: str, brings: str = "") -> ImportFormat:
    """The format that fits the columns of a file best, among all formats or those named ``asked``.

    Among equal fits, formats that bring the material ``brings`` come first, then those that need more columns. Raises
    InputRefused where two different formats are left, ColumnsUnknown where none fits.
    """
    columns = sample.columns
    if asked == FileFormat.AUTO:
        refuse_unsupported(columns, name)
    named = [form for form in IMPORT_FORMATS if asked in (FileFormat.AUTO, form.name)]
    allowed = [form for form in named if may_be_format(form, sample)] or named
    ranked = sorted(allowed, key=lambda form: rank_format(form, columns, brings), reverse=True)
    best = ranked[0]
    if not columns:
        raise InputRefused(f"{name} begins with an empty object: nothing in it is a row.")
    if column_fit(best, columns) <= 0.5:
        raise ColumnsUnknown(
            unknown_format_sentence(columns, name)
            if asked == FileFormat.AUTO
            else missing_columns_sentence(best, columns, name)
        )
    if asked == FileFormat.AUTO and column_fit(best, columns) < 1 and best.name not in OWN:
        # A file that only resembles a format is to be mapped, not read as it is.
        raise ColumnsUnknown(f"{missing_columns_sentence(best, columns, name)} {SAY_WHICH}")
    alike = [form.name for form in ranked if rank_format(form, columns, brings) == rank_format(best, columns, brings)]
    if len(set(alike)) > 1 and column_fit(best, columns) == 1:
        raise InputRefused(f"{name} may be {' or '.join(alike)}: it has the columns of both. Say which it is.")
    return best


def may_be_format(form: ImportFormat, sample: FileSample) -> bool:
    return form.is_match(sample) if column_fit(form, sample.columns) == 1 else not form.has_common_columns


def refuse_unsupported(columns: tuple[str, ...], name: str) -> None:
    for needed, what in UNSUPPORTED:
        if set(needed) <= set(columns):
            raise InputRefused(f"{name} holds {what}: they cannot be imported so far. {WRITE_ROWS}")


def rank_format(form: ImportFormat, columns: tuple[str, ...], brings: str) -> tuple[float, bool, int]:
    fits = column_fit(form, columns)
    return fits, form.holds(brings), (form.certainty or len(form.needs)) if fits == 1 else 0


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
    return (
        f"The columns of {name} ({list_columns(columns)}) fit no known format. A comparison row needs "
        f"{', '.join(IMPORT_FORMATS[0].needs)}. {SAY_WHICH}"
    )


def missing_columns_sentence(form: ImportFormat, columns: tuple[str, ...], name: str) -> str:
    lacks = " and no column ".join(f"“{column}”" for column in missing_columns(form, columns))
    return f"{name} has no column {lacks}, which the format {form.name} needs."


def list_columns(columns: tuple[str, ...]) -> str:
    shown = ", ".join(column[:40] for column in columns[:12])
    return f"{shown}, …" if len(columns) > 12 else shown


def refuse_other_material(found: ImportFormat, brings: str, name: str) -> None:
    if brings and not found.holds(brings):
        raise InputRefused(f"{name} holds {found.brings}, not {brings}: import it as {found.brings}.")


def refuse_missing_columns(found: ImportFormat, columns: tuple[str, ...], name: str) -> None:
    if missing_columns(found, columns):
        raise ColumnsUnknown(missing_columns_sentence(found, columns, name))
