"""Which format a file has: the one whose columns are there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from evaluations.domain import ColumnsUnknown, FileFormat, InputRefused, Reading, Row
from evaluations.formats import (
    alpaca_eval,
    arena,
    arena_hard,
    argilla,
    auto_arena,
    chosen_rejected,
    judgebench,
    just_eval,
    kto,
    label_studio,
    llm_comparator,
    llmbar,
    mt_bench,
    pandalm,
    squality,
)
from evaluations.formats.conversing import WITHOUT_NAMES
from evaluations.formats.file_sample import FileSample
from evaluations.formats.rows import comparison_row, response_row, score_row, verdict_row
from evaluations.formats.streams import Record

Meaning = Callable[[Record, Reading], tuple[Row, ...]]
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
class Format:
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
    meaning: Meaning
    also: tuple[str, ...] = ()
    pairs: bool = False
    sure: int = 0
    note: str = ""
    model: str = ""
    only: Callable[[FileSample], bool] = is_any_file
    common: bool = False
    learn: Callable[[FileSample], Meaning] | None = None

    def holds(self, material: str) -> bool:
        return material in (self.brings, *self.also)

    def of(self, sample: FileSample) -> "Format":
        return replace(self, meaning=self.learn(sample)) if self.learn else self


FORMATS: Final[Sequence[Format]] = (
    Format(
        FileFormat.COMPARISONS,
        COMPARISONS,
        ("query_id", "query", "candidate_a", "response_a", "candidate_b", "response_b"),
        comparison_row,
    ),
    Format(  # as a data set for the hub has them: see `exported.material`
        FileFormat.COMPARISONS,
        COMPARISONS,
        ("query_id", "prompt", "candidate_a", "response_a", "candidate_b", "response_b", "choice", "labels", "split"),
        comparison_row,
    ),
    Format(
        FileFormat.RESPONSES,
        COMPARISONS,
        ("query_id", "query", "candidate", "response"),
        response_row,
        pairs=True,
        model="candidate",
    ),
    Format(FileFormat.VERDICTS, VERDICTS, ("query_id", "candidate_a", "candidate_b", "choice"), verdict_row),
    Format(FileFormat.SCORES, SCORES, ("query_id", "candidate", "value"), score_row),
    Format(
        FileFormat.PANDALM,
        COMPARISONS,
        ("idx", "cmp_key", "instruction", "response1", "response2"),
        pandalm.testset_rows,
        also=(VERDICTS,),
    ),
    Format(FileFormat.PANDALM, VERDICTS, ("idx", "*_result"), pandalm.result_rows, only=pandalm.has_results),
    Format(FileFormat.LLMBAR, VERDICTS, ("input", "output_1", "output_2", "results"), llmbar.result_rows, sure=5),
    Format(
        FileFormat.LLMBAR,
        COMPARISONS,
        ("input", "output_1", "output_2", "label"),
        llmbar.dataset_rows,
        also=(VERDICTS,),
        only=llmbar.has_labels,
    ),
    Format(FileFormat.SQUALITY, SCORES, ("passage-id", "questions"), squality.passage_rows, also=(COMPARISONS,)),
    Format(FileFormat.SQUALITY, COMPARISONS, ("metadata", "document", "questions"), squality.question_rows),
    Format(FileFormat.MT_BENCH, COMPARISONS, ("question_id", "category", "turns"), mt_bench.question_rows),
    Format(FileFormat.MT_BENCH, COMPARISONS, ("question_id", "model_id", "choices"), mt_bench.answer_rows, pairs=True),
    Format(
        FileFormat.MT_BENCH,
        VERDICTS,
        ("question_id", "model_1", "model_2", "g1_winner", "g2_winner"),
        mt_bench.pair_rows,
    ),
    Format(FileFormat.MT_BENCH, SCORES, ("question_id", "model", "score", "judgment"), mt_bench.single_rows),
    Format(
        FileFormat.ARENA,
        COMPARISONS,
        ("model_a", "model_b", "winner", "conversation_a", "conversation_b"),
        arena.battle_rows,
        also=(VERDICTS,),
    ),
    Format(
        FileFormat.ARENA,
        COMPARISONS,
        ("model_a", "model_b", "prompt", "response_a", "response_b", *(column for column, _ in arena.WON)),
        arena.rows_of_texts,
        also=(VERDICTS,),
        learn=arena.rows_of_table,
    ),
    Format(
        FileFormat.ARENA,
        COMPARISONS,
        ("model_a", "model_b", "prompt", "response_a", "response_b", "winner"),
        arena.rows_of_texts,
        also=(VERDICTS,),
        learn=arena.rows_of_table,
        common=True,
    ),
    Format(
        FileFormat.ALPACA_EVAL,
        COMPARISONS,
        ("instruction", "output_1", "output_2", "preference"),
        alpaca_eval.annotation_rows,
        also=(VERDICTS,),
        note=WITHOUT_NAMES,
        only=alpaca_eval.has_preferences,
    ),
    Format(
        FileFormat.ALPACA_EVAL,
        COMPARISONS,
        ("instruction", "output", "generator"),
        alpaca_eval.output_rows,
        pairs=True,
    ),
    Format(
        FileFormat.PREFERENCES,
        COMPARISONS,
        ("chosen", "rejected"),
        chosen_rejected.preference_rows,
        also=(VERDICTS,),
        note=WITHOUT_NAMES,
        only=chosen_rejected.has_texts,
        learn=chosen_rejected.rows_of_file,
    ),
    Format(
        FileFormat.PREFERENCES,
        COMPARISONS,
        chosen_rejected.RESPONSES,
        chosen_rejected.response_rows,
        also=(VERDICTS,),
        note=WITHOUT_NAMES,
    ),
    Format(
        FileFormat.PREFERENCES,
        COMPARISONS,
        ("input", "preferred_output", "non_preferred_output"),
        chosen_rejected.fine_tuning_rows,
        also=(VERDICTS,),
        note=WITHOUT_NAMES,
    ),
    *(
        Format(
            FileFormat.KTO,
            COMPARISONS,
            (*columns, label),
            kto.labelled_rows,
            also=(SCORES,),
            pairs=True,
            model="model",
            only=only,
            common=True,
            learn=kto.rows_of_file,
        )
        for columns, label, only in (
            (("prompt", "completion"), "label", kto.has_labels),
            (("instruction", "output"), "kto_tag", kto.has_tags),
            (("conversations",), "kto_tag", kto.has_tags),
            (("messages",), "kto_tag", kto.has_tags),
        )
    ),
    Format(FileFormat.ARENA_HARD, VERDICTS, ("question_id", "model", "judge", "games"), arena_hard.judgment_rows),
    Format(FileFormat.ARENA_HARD, VERDICTS, ("uid", "model", "judge", "games"), arena_hard.judgment_rows),
    Format(
        FileFormat.ARENA_HARD,
        COMPARISONS,
        ("uid", "category", "prompt"),
        arena_hard.question_rows,
        only=arena_hard.has_no_other_columns,
        common=True,
    ),
    Format(
        FileFormat.ARENA_HARD,
        COMPARISONS,
        ("uid", "ans_id", "model", "messages"),
        arena_hard.answer_rows,
        pairs=True,
    ),
    Format(
        FileFormat.JUDGEBENCH,
        COMPARISONS,
        ("pair_id", "question", "response_A", "response_B", "label"),
        judgebench.pair_rows,
        also=(VERDICTS,),
    ),
    Format(
        FileFormat.AUTO_ARENA,
        COMPARISONS,
        ("prompt", "response"),
        auto_arena.response_rows,
        pairs=True,
        model="model",
        only=auto_arena.has_no_other_columns,
    ),
    Format(
        FileFormat.AUTO_ARENA,
        COMPARISONS,
        ("prompt", "response_a", "response_b", "history"),
        auto_arena.head_to_head_rows,
        also=(VERDICTS,),
        note=WITHOUT_NAMES,
        only=auto_arena.has_histories,
    ),
    Format(
        FileFormat.LLM_COMPARATOR,
        COMPARISONS,
        ("input_text", "output_text_a", "output_text_b"),
        llm_comparator.example_rows,
        also=(VERDICTS,),
        note=WITHOUT_NAMES,
    ),
    Format(
        FileFormat.JUST_EVAL,
        VERDICTS,
        ("input", "output_A", "output_B", "generator_A", "generator_B", "eval_config"),
        just_eval.pair_rows,
        also=(COMPARISONS,),
    ),
    Format(
        FileFormat.JUST_EVAL,
        SCORES,
        ("input", "output_cand", "generator_cand", "eval_config"),
        just_eval.score_rows,
        also=(COMPARISONS,),
    ),
    Format(
        FileFormat.JUST_EVAL,
        COMPARISONS,
        ("id", "instruction", "source_id", "output", "generator"),
        just_eval.response_rows,
        pairs=True,
    ),
    Format(FileFormat.LABEL_STUDIO, COMPARISONS, ("data", "annotations"), label_studio.task_rows, also=(VERDICTS,)),
    Format(
        FileFormat.LABEL_STUDIO,
        COMPARISONS,
        ("annotation_id", "annotator", "lead_time"),
        label_studio.min_rows,
        also=(VERDICTS,),
        sure=9,  # the columns of the tasks stand beside them, whatever they are called
    ),
    Format(FileFormat.ARGILLA, COMPARISONS, ("fields", "responses"), argilla.record_rows, also=(VERDICTS,)),
    Format(
        FileFormat.ARGILLA,
        COMPARISONS,
        ("*.responses", "*.responses.users"),
        argilla.flat_rows,
        also=(VERDICTS,),
        sure=9,  # the fields stand beside them, whatever they are called
    ),
    Format(
        FileFormat.ARGILLA,
        COMPARISONS,
        ("*-suggestion", f"*{argilla.SUGGESTED}", "external_id"),
        argilla.first_flat_rows,
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


def detect(sample: FileSample, asked: str, name: str, brings: str = "") -> Format:
    """The format whose needed columns are there; of those asked for, the one that fits best.

    Of those that fit alike first what brings what is wanted (scores may stand beside their responses), then what
    needs more columns. Where even then two are left a person must say which is meant.
    """
    columns = sample.columns
    if asked == FileFormat.AUTO:
        refuse_unsupported(columns, name)
    named = [form for form in FORMATS if asked in (FileFormat.AUTO, form.name)]
    allowed = [form for form in named if may_be(form, sample)] or named
    ranked = sorted(allowed, key=lambda form: rank(form, columns, brings), reverse=True)
    best = ranked[0]
    if not columns:
        raise InputRefused(f"{name} begins with an empty object: nothing in it is a row.")
    if fit(best, columns) <= 0.5:
        raise ColumnsUnknown(unknown(columns, name) if asked == FileFormat.AUTO else without(best, columns, name))
    if asked == FileFormat.AUTO and fit(best, columns) < 1 and best.name not in OWN:
        # What only looks like another's file is mapped, not read.
        raise ColumnsUnknown(f"{without(best, columns, name)} {SAY_WHICH}")
    alike = [form.name for form in ranked if rank(form, columns, brings) == rank(best, columns, brings)]
    if len(set(alike)) > 1 and fit(best, columns) == 1:
        raise InputRefused(f"{name} may be {' or '.join(alike)}: it has the columns of both. Say which it is.")
    return best


def may_be(form: Format, sample: FileSample) -> bool:
    return form.only(sample) if fit(form, sample.columns) == 1 else not form.common


def refuse_unsupported(columns: tuple[str, ...], name: str) -> None:
    for needed, what in UNSUPPORTED:
        if set(needed) <= set(columns):
            raise InputRefused(f"{name} holds {what}: they cannot be imported so far. {WRITE_ROWS}")


def rank(form: Format, columns: tuple[str, ...], brings: str) -> tuple[float, bool, int]:
    fits = fit(form, columns)
    return fits, form.holds(brings), (form.sure or len(form.needs)) if fits == 1 else 0


def fit(form: Format, columns: tuple[str, ...]) -> float:
    lacks = missing(form, columns)
    return 1 - len(lacks) / len(form.needs)


def has(columns: tuple[str, ...], needed: str) -> bool:
    if needed.startswith("*"):
        return any(column.endswith(needed[1:]) for column in columns)
    return needed in columns or INSTEAD.get(needed) in columns


def missing(form: Format, columns: tuple[str, ...]) -> list[str]:
    """The needed columns that are not there; nothing else may be missing where the model's name is."""
    lacks = [column for column in form.needs if not has(columns, column)]
    return [] if lacks == [form.model] else lacks


def unknown(columns: tuple[str, ...], name: str) -> str:
    return (
        f"The columns of {name} ({listed(columns)}) fit no known format. A comparison row needs "
        f"{', '.join(FORMATS[0].needs)}. {SAY_WHICH}"
    )


def without(form: Format, columns: tuple[str, ...], name: str) -> str:
    lacks = " and no column ".join(f"“{column}”" for column in missing(form, columns))
    return f"{name} has no column {lacks}, which the format {form.name} needs."


def listed(columns: tuple[str, ...]) -> str:
    shown = ", ".join(column[:40] for column in columns[:12])
    return f"{shown}, …" if len(columns) > 12 else shown


def refuse_other_material(found: Format, brings: str, name: str) -> None:
    if brings and not found.holds(brings):
        raise InputRefused(f"{name} holds {found.brings}, not {brings}: import it as {found.brings}.")


def refuse_missing_columns(found: Format, columns: tuple[str, ...], name: str) -> None:
    if missing(found, columns):
        raise ColumnsUnknown(without(found, columns, name))
