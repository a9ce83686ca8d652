"""Verdicts as the annotations of AlpacaEval: one JSON array.

``output_1`` is the baseline and ``output_2`` the model that is measured: AlpacaEval's win rate is the mean of
``preference`` − 1. ``preference`` is 1 for the first output, 2 for the second, 1.5 for a tie, a value in between where
an imported annotation gives a strength, and null where an annotator failed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, cast

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.judges import JudgeKind
from evaluations.domain.texts import messages_to_text
from evaluations.formats.alpaca_eval import TIE, AnnotationNote, parse_annotation_note
from evaluations.formats.export_format import (
    ExportFormat,
    ExportOptions,
    ExportRows,
    ExportTally,
    FormatSetting,
    RowKind,
)
from evaluations.formats.exported_rows import ExportedJudge, ExportedRaters, ExportedRow
from evaluations.formats.jsonl_export import fast_encode
from evaluations.formats.preferences import WITHOUT_VOTE, ExportCounts, counted_votes
from evaluations.formats.prompt_layouts import prompt_messages, response_messages

FIRST, SECOND = 1.0, 2.0
NO_NOTE: Final = AnnotationNote()
BASELINE: Final = FormatSetting(
    name="baseline",
    label="Baseline (output_1)",
    values={"": "As in the imported file, else by name"},
    initial="",
    of_candidates=True,
)


@dataclass(frozen=True)
class Annotation:
    """The verdict of one rater. ``choice``: None where it failed; ``in_file``: the note of its import."""

    annotator: str
    choice: Choice | None
    words: str
    in_file: AnnotationNote


def alpaca_eval_lines(
    rows: Iterable[ExportedRow], aspect: str, baseline: str, account: ExportCounts
) -> Iterator[bytes]:
    """An array that is written a record at a time, in the order of the comparisons; judges, then people, then gold."""
    yield b"["
    between = b"\n"
    first_models: set[str] = set()
    for row in rows:
        if baseline and baseline not in (row["candidate_a"], row["candidate_b"]):
            account.excluded["without_baseline"] += 1
            continue
        for one in row_annotations(row, aspect, account):
            account.rows += 1
            account.noted["both_bad_as_tie"] += one.choice == Choice.BOTH_BAD
            first = baseline or imported_first_model(row, one)
            first_models.add(first)
            yield between + fast_encode(annotation_record(row, one, first)).encode()
            between = b",\n"
    if len(first_models) > 1:
        account.noted["baselines"] = len(first_models)
    yield b"\n]\n"


def imported_first_model(row: ExportedRow, one: Annotation) -> str:
    """The model that an imported file has as output_1: said of this annotation, else of another of the comparison."""
    if one.in_file.output_1:
        return one.in_file.output_1
    if one.in_file.preference is not None:
        return row["candidate_a"]  # a note names output_1 unless it is A
    return next((note.output_1 for note in imported_notes(row) if note.output_1), row["candidate_a"])


def imported_notes(row: ExportedRow) -> Iterator[AnnotationNote]:
    """What imported annotations noted, on any aspect."""
    for judge in row["judges"]:
        for said in judge["choices"].values():
            yield from (parse_annotation_note(note) for texts in said.get("notes", {}).values() for note in texts)
    for person in row["people"]:
        if person["rubric"] is None:
            yield from (parse_annotation_note(given["note"]) for given in person["choices"].values())


def annotation_record(row: ExportedRow, one: Annotation, first_model: str) -> dict[str, Any]:
    """The annotation with this model as output_1."""
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
        "annotator": one.annotator,
        "preference": None if one.choice is None else preference_value(one.choice, one.in_file.preference, swapped),
        "raw_completion": one.words or None,
    }


def preference_value(choice: Choice, strength: float | None, swapped: bool) -> float:
    """``strength``: a preference between 1 and 2, whichever output it is for; the choice says which."""
    if choice not in (Choice.A, Choice.B):
        return TIE
    is_second = (choice == Choice.B) != swapped
    if strength is None or strength == TIE:
        return SECOND if is_second else FIRST
    return strength if is_second == (strength > TIE) else FIRST + SECOND - strength


def row_annotations(row: ExportedRow, aspect: str, account: ExportCounts) -> Iterator[Annotation]:
    for judge in row["judges"]:
        said = judge["choices"].get(aspect)
        if said is None and not judge["failures"]:
            account.excluded["judge_said_nothing"] += 1
            continue
        for one in judge_annotations(judge, aspect):
            account.noted["failed"] += one.choice is None
            yield one
    for person, given in counted_votes(row["people"], aspect, account):
        in_file = (
            parse_annotation_note(given["note"]) if person["rubric"] is None else AnnotationNote(rest=given["note"])
        )
        words = in_file.rest or given.get("rationale", "")
        yield Annotation(person["rater"], Choice(str(given["final"])), words, in_file)
    for gold in row["gold"]:
        if aspect in gold["choices"]:
            yield Annotation(gold["rater"], Choice(gold["choices"][aspect]), "", NO_NOTE)


def judge_annotations(judge: ExportedJudge, aspect: str) -> Iterator[Annotation]:
    """The judge's one verdict; of an imported one that names no order, as annotations do, each by itself."""
    said = judge["choices"].get(aspect)
    if said is None or judge["kind"] != JudgeKind.IMPORTED or set(said["orders"]) != {ShownOrder.UNKNOWN}:
        choice = Choice(said["choice"]) if said and said["choice"] else None
        yield Annotation(judge["judge"], choice, judge_rationale(judge, aspect), NO_NOTE)
        return
    notes, rationales = (
        texts.get(ShownOrder.UNKNOWN, ()) for texts in (said.get("notes", {}), said.get("rationales", {}))
    )
    for told, note, words in zip_longest(said["orders"][ShownOrder.UNKNOWN], notes, rationales, fillvalue=""):
        if told:
            yield Annotation(judge["judge"], Choice(told), words or "", parse_annotation_note(note or ""))
    for _ in range(sum(judge["failures"].values())):
        yield Annotation(judge["judge"], None, "", NO_NOTE)


def judge_rationale(judge: ExportedJudge, aspect: str) -> str:
    """What it wrote, an order after the other."""
    said = judge["choices"].get(aspect)
    told: Mapping[str, Sequence[str]] = (said.get("rationales") if said else None) or judge["rationales"]
    return "\n\n".join(text for order in sorted(told) for text in told[order] if text)


def write_alpaca_eval(
    rows: ExportRows, raters: ExportedRaters, options: ExportOptions, tally: ExportTally
) -> Iterator[bytes]:
    return alpaca_eval_lines(
        cast("Iterable[ExportedRow]", rows), options.aspect, options.settings.get("baseline", ""), tally
    )


ALPACA_EVAL_FORMAT: Final = ExportFormat(
    name="alpaca-eval",
    title="AlpacaEval annotations",
    purpose="one JSON array, a record for each rater's preference",
    ending="json",
    content_type="application/json",
    write=write_alpaca_eval,
    needs=RowKind.EVERYTHING,
    wants_choice=True,
    one_aspect=True,
    settings=(BASELINE,),
    reasons={
        "judge_said_nothing": "a judge has not spoken of this aspect",
        "without_baseline": "the baseline has no response in the comparison",
        **WITHOUT_VOTE,
    },
)
