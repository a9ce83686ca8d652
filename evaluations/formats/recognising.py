"""Which format a file has: the one whose columns are there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from evaluations.domain import ColumnsUnknown, FileFormat, InputRefused, Reading, Row
from evaluations.formats import (
    alpaca_eval,
    arena,
    argilla,
    auto_arena,
    chosen_rejected,
    just_eval,
    label_studio,
    llm_comparator,
    llmbar,
    mt_bench,
    pandalm,
    squality,
)
from evaluations.formats.conversing import WITHOUT_NAMES
from evaluations.formats.rows import comparison_row, response_row, score_row, verdict_row
from evaluations.formats.streams import Record

Meaning = Callable[[Record, Reading], tuple[Row, ...]]
COMPARISONS: Final = "comparisons"
VERDICTS: Final = "verdicts"
SCORES: Final = "scores"


@dataclass(frozen=True)
class Format:
    """``name`` is what a person asks for; several formats of one name differ by their columns.

    ``needs``: the columns by which it is known; one that begins with ``*`` stands for all that end so. ``also``: what
    it brings beside ``brings``. ``pairs``: responses of which pairs are to be made. ``sure``: how much it says that
    all columns are there, where that is not as much as there are columns. ``note``: what is said to whoever brings it.
    ``model``: the column that names whose response a row holds. Of responses it may be absent: the name comes from
    the form, or from the file's own.
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

    def holds(self, material: str) -> bool:
        return material in (self.brings, *self.also)


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
    Format(FileFormat.PANDALM, VERDICTS, ("idx", "*_result"), pandalm.result_rows),
    Format(FileFormat.LLMBAR, VERDICTS, ("input", "output_1", "output_2", "results"), llmbar.result_rows, sure=5),
    Format(
        FileFormat.LLMBAR,
        COMPARISONS,
        ("input", "output_1", "output_2", "label"),
        llmbar.dataset_rows,
        also=(VERDICTS,),
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
        arena.table_rows,
        also=(VERDICTS,),
    ),
    Format(
        FileFormat.ALPACA_EVAL,
        COMPARISONS,
        ("instruction", "output_1", "output_2", "preference"),
        alpaca_eval.annotation_rows,
        also=(VERDICTS,),
        note=WITHOUT_NAMES,
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
    ),
    Format(
        FileFormat.AUTO_ARENA, COMPARISONS, ("prompt", "response"), auto_arena.response_rows, pairs=True, model="model"
    ),
    Format(
        FileFormat.AUTO_ARENA,
        COMPARISONS,
        ("prompt", "response_a", "response_b", "history"),
        auto_arena.head_to_head_rows,
        also=(VERDICTS,),
        note=WITHOUT_NAMES,
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
SAY_WHICH: Final = "Say which column is which, as COLUMN=FIELD: --map, or on the page of imports."
# Of the product's own rows a bad one says what it lacks.
OWN: Final = (FileFormat.COMPARISONS, FileFormat.RESPONSES, FileFormat.VERDICTS, FileFormat.SCORES)
# What stands instead of a needed column.
INSTEAD: Final = {"query": "messages"}


def detect(columns: tuple[str, ...], asked: str, name: str, brings: str = "") -> Format:
    """The format whose needed columns are there; of those asked for, the one that fits best.

    Of those that fit alike first what brings what is wanted (scores may stand beside their responses), then what
    needs more columns. Where even then two are left a person must say which is meant.
    """
    allowed = [form for form in FORMATS if asked in (FileFormat.AUTO, form.name)]
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
