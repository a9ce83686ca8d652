"""Verdicts as AlpacaEval's annotations: one JSON array, a record for each rater of a comparison.

``output_1`` is the baseline and ``output_2`` the model that is measured: AlpacaEval's win rate is the mean of
``preference`` − 1. ``preference`` is 1 for the first output, 2 for the second, 1.5 for a tie, or between them where an
imported annotation says how strong it is; null where an annotator failed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from evaluations.domain import Choice, text_of
from evaluations.formats.alpaca_eval import TIE, AnnotationNote, note_read
from evaluations.formats.counted_votes import WITHOUT_VOTE, counted_votes
from evaluations.formats.exported import ExportedRow, Judge, Raters
from evaluations.formats.jsonl_out import encode
from evaluations.formats.layouts import prompt_of, turns_of
from evaluations.formats.leaving import Leaving, Needs, Options, Rows, Setting, Tally
from evaluations.formats.preferred import Account

FIRST, SECOND = 1.0, 2.0
NO_NOTE: Final = AnnotationNote()
BASELINE: Final = Setting(
    name="baseline",
    label="Baseline (output_1)",
    values={"": "As in the imported file, else by name"},
    initial="",
    of_candidates=True,
)


@dataclass(frozen=True)
class Annotation:
    """What one rater says of a comparison. ``choice``: None where it failed; ``in_file``: what its import noted."""

    annotator: str
    choice: Choice | None
    words: str
    in_file: AnnotationNote


def lines(rows: Iterable[ExportedRow], aspect: str, baseline: str, account: Account) -> Iterator[bytes]:
    """An array that is written a record at a time, in the order of the comparisons; judges, then people, then gold."""
    yield b"["
    between = b"\n"
    for row in rows:
        if baseline and baseline not in (row["candidate_a"], row["candidate_b"]):
            account.excluded["without_baseline"] += 1
            continue
        for one in annotations(row, aspect, account):
            account.rows += 1
            account.noted["both_bad_as_tie"] += one.choice == Choice.BOTH_BAD
            yield between + encode(record(row, one, baseline)).encode()
            between = b",\n"
    yield b"\n]\n"


def record(row: ExportedRow, one: Annotation, baseline: str) -> dict[str, Any]:
    """The annotation with the baseline first: the one asked for, else the file's, else A."""
    swapped = row["candidate_b"] == (baseline or one.in_file.output_1)
    first, second = ("b", "a") if swapped else ("a", "b")
    return {
        "dataset": row["category"],
        "query_id": row["query_id"],
        "instruction": text_of(prompt_of(row)),
        "output_1": text_of(turns_of(row[f"response_{first}"])),  # type: ignore[literal-required]
        "generator_1": row[f"candidate_{first}"],  # type: ignore[literal-required]
        "output_2": text_of(turns_of(row[f"response_{second}"])),  # type: ignore[literal-required]
        "generator_2": row[f"candidate_{second}"],  # type: ignore[literal-required]
        "annotator": one.annotator,
        "preference": None if one.choice is None else preference(one.choice, one.in_file.preference, swapped),
        "raw_completion": one.words or None,
    }


def preference(choice: Choice, strength: float | None, swapped: bool) -> float:
    """``strength``: a preference between 1 and 2, whichever output it is for; the choice says which."""
    if choice not in (Choice.A, Choice.B):
        return TIE
    is_second = (choice == Choice.B) != swapped
    if strength is None or strength == TIE:
        return SECOND if is_second else FIRST
    return strength if is_second == (strength > TIE) else FIRST + SECOND - strength


def annotations(row: ExportedRow, aspect: str, account: Account) -> Iterator[Annotation]:
    for judge in row["judges"]:
        said = judge["choices"].get(aspect)
        if said is None and not judge["failures"]:
            account.excluded["judge_said_nothing"] += 1
            continue
        choice = Choice(said["choice"]) if said and said["choice"] else None
        account.noted["failed"] += choice is None
        notes = [note for texts in said.get("notes", {}).values() for note in texts] if said else []
        in_file = note_read(notes[0]) if len(notes) == 1 else NO_NOTE
        yield Annotation(judge["judge"], choice, rationale_of(judge, aspect), in_file)
    for person, given in counted_votes(row["people"], aspect, account):
        in_file = note_read(given["note"])
        words = in_file.rest or given.get("rationale", "")
        yield Annotation(person["rater"], Choice(str(given["final"])), words, in_file)
    for gold in row["gold"]:
        if aspect in gold["choices"]:
            yield Annotation(gold["rater"], Choice(gold["choices"][aspect]), "", NO_NOTE)


def rationale_of(judge: Judge, aspect: str) -> str:
    """What it wrote, an order after the other."""
    said = judge["choices"].get(aspect)
    told: Mapping[str, Sequence[str]] = (said.get("rationales") if said else None) or judge["rationales"]
    return "\n\n".join(text for order in sorted(told) for text in told[order])


def written(rows: Rows, raters: Raters, options: Options, tally: Tally) -> Iterator[bytes]:
    return lines(cast("Iterable[ExportedRow]", rows), options.aspect, options.settings.get("baseline", ""), tally)


FORMAT: Final = Leaving(
    name="alpaca-eval",
    title="AlpacaEval annotations",
    purpose="one JSON array, a record for each rater's preference",
    ending="json",
    content_type="application/json",
    write=written,
    needs=Needs.EVERYTHING,
    wants_choice=True,
    one_aspect=True,
    settings=(BASELINE,),
    reasons={
        "judge_said_nothing": "a judge has not spoken of this aspect",
        "without_baseline": "the baseline has no response in the comparison",
        **WITHOUT_VOTE,
    },
)
