"""Verdicts as the annotations of AlpacaEval: one JSON array.

``output_1`` is the baseline and ``output_2`` the model that is measured: AlpacaEval's win rate is the mean of
``preference`` − 1. ``preference`` is 1 for the first output, 2 for the second, 1.5 for a tie, a value in between where
an imported annotation gives a strength, and null where an annotator failed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.judges import JudgeKind
from evaluations.domain.texts import messages_to_text
from evaluations.formats.alpaca_eval import TIE, AnnotationNote, parse_annotation_note
from evaluations.formats.export_format import ExportFormat, FormatSetting, RowKind
from evaluations.formats.exported_rows import ExportedJudge, ExportedRow, prompt_messages, response_messages
from evaluations.formats.jsonl_export import fast_encode
from evaluations.formats.preferences import WITHOUT_VOTE, ExportCounts, counted_votes

FIRST, SECOND = 1.0, 2.0
NO_NOTE: Final = AnnotationNote()
BASELINE: Final = FormatSetting(
    name="baseline",
    label="Baseline (output_1)",
    values={"": "as in the imported file, otherwise by name"},
    initial="",
    of_candidates=True,
)


@dataclass(frozen=True)
class Annotation:
    """The verdict of one rater. ``choice``: None where the rater failed; ``imported_note``: parsed from its note."""

    annotator: str
    choice: Choice | None
    rationale: str
    imported_note: AnnotationNote


def alpaca_eval_lines(rows: Iterable[ExportedRow], aspect: str, baseline: str, counts: ExportCounts) -> Iterator[bytes]:
    """A JSON array, written one record at a time: for each comparison judges, then people, then gold."""
    yield b"["
    between = b"\n"
    first_models: set[str] = set()
    for row in rows:
        if baseline and baseline not in (row["candidate_a"], row["candidate_b"]):
            counts.excluded["without_baseline"] += 1
            continue
        for annotation in row_annotations(row, aspect, counts):
            counts.rows += 1
            counts.noted["both_bad_as_tie"] += annotation.choice == Choice.BOTH_BAD
            first = baseline or imported_first_model(row, annotation)
            first_models.add(first)
            yield between + fast_encode(annotation_record(row, annotation, first)).encode()
            between = b",\n"
    if len(first_models) > 1:
        counts.noted["baselines"] = len(first_models)
    yield b"\n]\n"


def imported_first_model(row: ExportedRow, annotation: Annotation) -> str:
    """The model that is output_1 in the imported file, by this annotation or by another one of the comparison."""
    if annotation.imported_note.output_1:
        return annotation.imported_note.output_1
    if annotation.imported_note.preference is not None:
        return row["candidate_a"]  # a note names output_1 unless it is A
    return next((note.output_1 for note in imported_notes(row) if note.output_1), row["candidate_a"])


def imported_notes(row: ExportedRow) -> Iterator[AnnotationNote]:
    """The parsed notes of imported annotations, on any aspect."""
    for judge in row["judges"]:
        for judged in judge["choices"].values():
            yield from (parse_annotation_note(note) for texts in judged.get("notes", {}).values() for note in texts)
    for person in row["people"]:
        if person["rubric"] is None:
            yield from (parse_annotation_note(choice["note"]) for choice in person["choices"].values())


def annotation_record(row: ExportedRow, annotation: Annotation, first_model: str) -> dict[str, Any]:
    swapped = row["candidate_b"] == first_model
    first, second = ("b", "a") if swapped else ("a", "b")
    return {
        "dataset": row["category"],
        "query_id": row["query_id"],
        "instruction": messages_to_text(prompt_messages(row)),
        "output_1": messages_to_text(response_messages(row[f"response_{first}"])),  # type: ignore[literal-required]
        "generator_1": row[f"candidate_{first}"],  # type: ignore[literal-required]
        "output_2": messages_to_text(response_messages(row[f"response_{second}"])),  # type: ignore[literal-required]
        "generator_2": row[f"candidate_{second}"],  # type: ignore[literal-required]
        "annotator": annotation.annotator,
        "preference": None
        if annotation.choice is None
        else preference_value(annotation.choice, annotation.imported_note.preference, swapped),
        "raw_completion": annotation.rationale or None,
    }


def preference_value(choice: Choice, strength: float | None, swapped: bool) -> float:
    """AlpacaEval's preference of a choice. ``strength``: an imported preference from 1 to 2, on either side of 1.5."""
    if choice not in (Choice.A, Choice.B):
        return TIE
    is_second = (choice == Choice.B) != swapped
    if strength is None or strength == TIE:
        return SECOND if is_second else FIRST
    return strength if is_second == (strength > TIE) else FIRST + SECOND - strength


def row_annotations(row: ExportedRow, aspect: str, counts: ExportCounts) -> Iterator[Annotation]:
    for judge in row["judges"]:
        judged = judge["choices"].get(aspect)
        if judged is None and not judge["failures"]:
            counts.excluded["judge_said_nothing"] += 1
            continue
        for annotation in judge_annotations(judge, aspect):
            counts.noted["failed"] += annotation.choice is None
            yield annotation
    for person, vote in counted_votes(row["people"], aspect, counts):
        in_file = parse_annotation_note(vote["note"]) if person["rubric"] is None else AnnotationNote(rest=vote["note"])
        words = in_file.rest or vote.get("rationale", "")
        yield Annotation(person["rater"], Choice(str(vote["final"])), words, in_file)
    for gold in row["gold"]:
        if aspect in gold["choices"]:
            yield Annotation(gold["rater"], Choice(gold["choices"][aspect]), "", NO_NOTE)


def judge_annotations(judge: ExportedJudge, aspect: str) -> Iterator[Annotation]:
    """The judge's one verdict; each single one of an imported judge whose verdicts have no order shown."""
    judged = judge["choices"].get(aspect)
    if judged is None or judge["kind"] != JudgeKind.IMPORTED or set(judged["orders"]) != {ShownOrder.UNKNOWN}:
        choice = Choice(judged["choice"]) if judged and judged["choice"] else None
        yield Annotation(judge["judge"], choice, judge_rationale(judge, aspect), NO_NOTE)
        return
    notes, rationales = (
        texts.get(ShownOrder.UNKNOWN, ()) for texts in (judged.get("notes", {}), judged.get("rationales", {}))
    )
    for choice_text, note, words in zip_longest(judged["orders"][ShownOrder.UNKNOWN], notes, rationales, fillvalue=""):
        if choice_text:
            yield Annotation(judge["judge"], Choice(choice_text), words or "", parse_annotation_note(note or ""))
    for _ in range(sum(judge["failures"].values())):
        yield Annotation(judge["judge"], None, "", NO_NOTE)


def judge_rationale(judge: ExportedJudge, aspect: str) -> str:
    """The rationales of a judge on an aspect, order by order."""
    judged = judge["choices"].get(aspect)
    rationales: Mapping[str, Sequence[str]] = (judged.get("rationales") if judged else None) or judge["rationales"]
    return "\n\n".join(text for order in sorted(rationales) for text in rationales[order] if text)


ALPACA_EVAL_FORMAT: Final = ExportFormat(
    name="alpaca-eval",
    title="AlpacaEval annotations",
    purpose="JSON array with each rater’s preferences",
    ending="json",
    write=lambda rows, raters, options, tally: alpaca_eval_lines(
        rows, options.aspect, options.settings.get("baseline", ""), tally
    ),
    needs=RowKind.EVERYTHING,
    wants_choice=True,
    one_aspect=True,
    settings=(BASELINE,),
    reasons={
        "judge_said_nothing": "verdicts without this aspect",
        "without_baseline": "comparisons without the baseline",
        **WITHOUT_VOTE,
    },
)
