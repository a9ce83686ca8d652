"""Verdicts as AlpacaEval's annotations: one JSON array, a record for each rater of a comparison.

``preference`` is 1 for the first output, 2 for the second, 1.5 for a tie, and null where an annotator failed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from evaluations.domain import Choice, text_of
from evaluations.formats.counted_votes import WITHOUT_VOTE, counted_votes
from evaluations.formats.exported import ExportedRow, Judge, Raters
from evaluations.formats.jsonl_out import encode
from evaluations.formats.layouts import prompt_of, turns_of
from evaluations.formats.leaving import Leaving, Needs, Options, Rows, Tally
from evaluations.formats.preferred import Account

PREFERENCE: Final = {Choice.A: 1.0, Choice.B: 2.0, Choice.TIE: 1.5, Choice.BOTH_BAD: 1.5}


def lines(rows: Iterable[ExportedRow], aspect: str, account: Account) -> Iterator[bytes]:
    """An array that is written a record at a time, in the order of the comparisons; judges, then people, then gold."""
    yield b"["
    between = b"\n"
    for row in rows:
        shared = material(row)
        for annotator, choice, rationale in said_of(row, aspect, account):
            account.rows += 1
            account.noted["both_bad_as_tie"] += choice == Choice.BOTH_BAD
            record = {
                **shared,
                "annotator": annotator,
                "preference": PREFERENCE[Choice(choice)] if choice else None,
                "raw_completion": rationale or None,
            }
            yield between + encode(record).encode()
            between = b",\n"
    yield b"\n]\n"


def material(row: ExportedRow) -> dict[str, Any]:
    return {
        "dataset": row["category"],
        "query_id": row["query_id"],
        "instruction": text_of(prompt_of(row)),
        "output_1": text_of(turns_of(row["response_a"])),
        "generator_1": row["candidate_a"],
        "output_2": text_of(turns_of(row["response_b"])),
        "generator_2": row["candidate_b"],
    }


def said_of(row: ExportedRow, aspect: str, account: Account) -> Iterator[tuple[str, str | None, str]]:
    """Annotator, choice (None: failed) and rationale."""
    for judge in row["judges"]:
        said = judge["choices"].get(aspect)
        if said is None and not judge["failures"]:
            account.excluded["judge_said_nothing"] += 1
            continue
        choice = said["choice"] if said else None
        account.noted["failed"] += choice is None
        yield judge["judge"], choice, rationale_of(judge, aspect)
    for person, given in counted_votes(row["people"], aspect, account):
        yield person["rater"], given["final"], given["note"] or given.get("rationale", "")
    for gold in row["gold"]:
        if aspect in gold["choices"]:
            yield gold["rater"], gold["choices"][aspect], ""


def rationale_of(judge: Judge, aspect: str) -> str:
    """What it wrote, an order after the other."""
    said = judge["choices"].get(aspect)
    told: Mapping[str, Sequence[str]] = (said.get("rationales") if said else None) or judge["rationales"]
    return "\n\n".join(text for order in sorted(told) for text in told[order])


def written(rows: Rows, raters: Raters, options: Options, tally: Tally) -> Iterator[bytes]:
    return lines(cast("Iterable[ExportedRow]", rows), options.aspect, tally)


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
    reasons={"judge_said_nothing": "a judge has not spoken of this aspect", **WITHOUT_VOTE},
)
