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
    """``name`` is what a person asks for; several formats of one name differ by their columns.

    ``needs``: the columns by which it is known; one that begins with ``*`` stands for all that end so. ``also``: what
    it brings beside ``brings``. ``pairs``: responses of which pairs are to be made. ``sure``: how much it says that
    all columns are there, where that is not as much as there are columns. ``note``: what is said to whoever brings it.
    ``model``: the column that names whose response a row holds. Of responses it may be absent: the name comes from
    the form, or from the file's own.
    ``only``: whether rows of the file hold what this format has there; another file may have columns of these names.
    ``common``: its columns are called as in many files, so that one which lacks some of them is not said to be near it.
    ``learn``: what the records of this very file mean, where that depends on what its columns hold throughout.
    """

    name: str
    brings: str  # comparisons, verdicts or scores
    needs: tuple[str, ...]
    meaning: RowReader
    also: tuple[str, ...] = ()
    pairs: bool = False
    sure: int = 0
    note: str = ""
    model: str = ""
    only: Callable[[FileSample], bool] = is_any_file
    common: bool = False
    learn: Callable[[FileSample], RowReader] | None = None

    def holds(self, material: str) -> bool:
        return material in (self.brings, *self.also)

    def of(self, sample: FileSample) -> "ImportFormat":
        return replace(self, meaning=self.learn(sample)) if self.learn else self


IMPORT_FORMATS: Final[Sequence[ImportFormat]] = (
    ImportFormat(
        FileFormat.COMPARISONS,
        COMPARISONS,
        ("query_id", "query", "candidate_a", "response_a", "candidate_b", "response_b"),
        native_comparison_row,
    ),
    ImportFormat(  # as a data set for the hub has them: see `exported.material`
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
        pairs=True,
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
        also=(VERDICTS,),
    ),
    ImportFormat(FileFormat.PANDALM, VERDICTS, ("idx", "*_result"), pandalm_result_rows, only=has_pandalm_results),
    ImportFormat(FileFormat.LLMBAR, VERDICTS, ("input", "output_1", "output_2", "results"), llmbar_result_rows, sure=5),
    ImportFormat(
        FileFormat.LLMBAR,
        COMPARISONS,
        ("input", "output_1", "output_2", "label"),
        llmbar_dataset_rows,
        also=(VERDICTS,),
        only=has_llmbar_labels,
    ),
    ImportFormat(FileFormat.SQUALITY, SCORES, ("passage-id", "questions"), squality_passage_rows, also=(COMPARISONS,)),
    ImportFormat(FileFormat.SQUALITY, COMPARISONS, ("metadata", "document", "questions"), squality_question_rows),
    ImportFormat(FileFormat.MT_BENCH, COMPARISONS, ("question_id", "category", "turns"), mt_bench_question_rows),
    ImportFormat(
        FileFormat.MT_BENCH, COMPARISONS, ("question_id", "model_id", "choices"), mt_bench_answer_rows, pairs=True
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
        also=(VERDICTS,),
    ),
    ImportFormat(
        FileFormat.ARENA,
        COMPARISONS,
        ("model_a", "model_b", "prompt", "response_a", "response_b", *(column for column, _ in WON)),
        arena_text_rows,
        also=(VERDICTS,),
        learn=arena_table_reader,
    ),
    ImportFormat(
        FileFormat.ARENA,
        COMPARISONS,
        ("model_a", "model_b", "prompt", "response_a", "response_b", "winner"),
        arena_text_rows,
        also=(VERDICTS,),
        learn=arena_table_reader,
        common=True,
    ),
    ImportFormat(
        FileFormat.ALPACA_EVAL,
        COMPARISONS,
        ("instruction", "output_1", "output_2", "preference"),
        alpaca_annotation_rows,
        also=(VERDICTS,),
        note=WITHOUT_NAMES,
        only=has_alpaca_preferences,
    ),
    ImportFormat(
        FileFormat.ALPACA_EVAL,
        COMPARISONS,
        ("instruction", "output", "generator"),
        alpaca_output_rows,
        pairs=True,
    ),
    ImportFormat(
        FileFormat.PREFERENCES,
        COMPARISONS,
        ("chosen", "rejected"),
        preference_rows,
        also=(VERDICTS,),
        note=WITHOUT_NAMES,
        only=has_texts,
        learn=preference_rows_reader,
    ),
    ImportFormat(
        FileFormat.PREFERENCES,
        COMPARISONS,
        RESPONSES,
        chosen_response_rows,
        also=(VERDICTS,),
        note=WITHOUT_NAMES,
    ),
    ImportFormat(
        FileFormat.PREFERENCES,
        COMPARISONS,
        ("input", "preferred_output", "non_preferred_output"),
        fine_tuning_rows,
        also=(VERDICTS,),
        note=WITHOUT_NAMES,
    ),
    *(
        ImportFormat(
            FileFormat.KTO,
            COMPARISONS,
            (*columns, label),
            kto_rows,
            also=(SCORES,),
            pairs=True,
            model="model",
            only=only,
            common=True,
            learn=kto_rows_reader,
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
        only=has_only_question_columns,
        common=True,
    ),
    ImportFormat(
        FileFormat.ARENA_HARD,
        COMPARISONS,
        ("uid", "ans_id", "model", "messages"),
        arena_hard_answer_rows,
        pairs=True,
    ),
    ImportFormat(
        FileFormat.JUDGEBENCH,
        COMPARISONS,
        ("pair_id", "question", "response_A", "response_B", "label"),
        judgebench_rows,
        also=(VERDICTS,),
    ),
    ImportFormat(
        FileFormat.AUTO_ARENA,
        COMPARISONS,
        ("prompt", "response"),
        auto_arena_response_rows,
        pairs=True,
        model="model",
        only=has_only_response_columns,
    ),
    ImportFormat(
        FileFormat.AUTO_ARENA,
        COMPARISONS,
        ("prompt", "response_a", "response_b", "history"),
        auto_arena_head_to_head_rows,
        also=(VERDICTS,),
        note=WITHOUT_NAMES,
        only=has_histories,
    ),
    ImportFormat(
        FileFormat.LLM_COMPARATOR,
        COMPARISONS,
        ("input_text", "output_text_a", "output_text_b"),
        llm_comparator_rows,
        also=(VERDICTS,),
        note=WITHOUT_NAMES,
    ),
    ImportFormat(
        FileFormat.JUST_EVAL,
        VERDICTS,
        ("input", "output_A", "output_B", "generator_A", "generator_B", "eval_config"),
        just_eval_pair_rows,
        also=(COMPARISONS,),
    ),
    ImportFormat(
        FileFormat.JUST_EVAL,
        SCORES,
        ("input", "output_cand", "generator_cand", "eval_config"),
        just_eval_score_rows,
        also=(COMPARISONS,),
    ),
    ImportFormat(
        FileFormat.JUST_EVAL,
        COMPARISONS,
        ("id", "instruction", "source_id", "output", "generator"),
        just_eval_response_rows,
        pairs=True,
    ),
    ImportFormat(
        FileFormat.LABEL_STUDIO, COMPARISONS, ("data", "annotations"), label_studio_task_rows, also=(VERDICTS,)
    ),
    ImportFormat(
        FileFormat.LABEL_STUDIO,
        COMPARISONS,
        ("annotation_id", "annotator", "lead_time"),
        label_studio_min_rows,
        also=(VERDICTS,),
        sure=9,  # the columns of the tasks stand beside them, whatever they are called
    ),
    ImportFormat(FileFormat.ARGILLA, COMPARISONS, ("fields", "responses"), argilla_record_rows, also=(VERDICTS,)),
    ImportFormat(
        FileFormat.ARGILLA,
        COMPARISONS,
        ("*.responses", "*.responses.users"),
        argilla_flat_rows,
        also=(VERDICTS,),
        sure=9,  # the fields stand beside them, whatever they are called
    ),
    ImportFormat(
        FileFormat.ARGILLA,
        COMPARISONS,
        ("*-suggestion", f"*{SUGGESTED}", "external_id"),
        argilla_v1_flat_rows,
        also=(VERDICTS,),
        sure=9,
    ),
)
# Files that are known, and hold nothing that can be imported as it is: what they are, by their columns.
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
# Of the product's own rows a bad one says what it lacks.
OWN: Final = (FileFormat.COMPARISONS, FileFormat.RESPONSES, FileFormat.VERDICTS, FileFormat.SCORES)
# What stands instead of a needed column.
INSTEAD: Final = {"query": "messages"}


def detect_format(sample: FileSample, asked: str, name: str, brings: str = "") -> ImportFormat:
    """The format whose needed columns are there; of those asked for, the one that fits best.

    Of those that fit alike first what brings what is wanted (scores may stand beside their responses), then what
    needs more columns. Where even then two are left a person must say which is meant.
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
        # What only looks like another's file is mapped, not read.
        raise ColumnsUnknown(f"{missing_columns_sentence(best, columns, name)} {SAY_WHICH}")
    alike = [form.name for form in ranked if rank_format(form, columns, brings) == rank_format(best, columns, brings)]
    if len(set(alike)) > 1 and column_fit(best, columns) == 1:
        raise InputRefused(f"{name} may be {' or '.join(alike)}: it has the columns of both. Say which it is.")
    return best


def may_be_format(form: ImportFormat, sample: FileSample) -> bool:
    return form.only(sample) if column_fit(form, sample.columns) == 1 else not form.common


def refuse_unsupported(columns: tuple[str, ...], name: str) -> None:
    for needed, what in UNSUPPORTED:
        if set(needed) <= set(columns):
            raise InputRefused(f"{name} holds {what}: they cannot be imported so far. {WRITE_ROWS}")


def rank_format(form: ImportFormat, columns: tuple[str, ...], brings: str) -> tuple[float, bool, int]:
    fits = column_fit(form, columns)
    return fits, form.holds(brings), (form.sure or len(form.needs)) if fits == 1 else 0


def column_fit(form: ImportFormat, columns: tuple[str, ...]) -> float:
    lacks = missing_columns(form, columns)
    return 1 - len(lacks) / len(form.needs)


def has_column(columns: tuple[str, ...], needed: str) -> bool:
    if needed.startswith("*"):
        return any(column.endswith(needed[1:]) for column in columns)
    return needed in columns or INSTEAD.get(needed) in columns


def missing_columns(form: ImportFormat, columns: tuple[str, ...]) -> list[str]:
    """The needed columns that are not there; nothing else may be missing where the model's name is."""
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
