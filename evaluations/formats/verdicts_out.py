"""Verdicts and scores in long form, a row each, under the names by which they are imported.

Reading such a file as verdicts (or as scores) leaves aside the columns that no verdict row has.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypedDict

from evaluations.formats.exported import EXECUTED, NEUTRALISED, Raters
from evaluations.formats.jsonl_out import encoded
from evaluations.formats.leaving import Leaving, Needs, Options, Row, Rows, Tally


class FromWhom(TypedDict):
    """``rubric`` is the one that a person reviewed by, or that a judge was asked by; of files null."""

    rater: str
    rater_kind: str
    rubric: str | None
    judge_kind: str | None
    model: str | None


class VerdictOut(FromWhom):
    """What one rater said, in terms of the candidates of this row. ``choice`` may be a judge's failure.

    ``stage`` is ``first`` in a review: ``final_choice`` is what the person confirmed, null where nothing was. Anything
    else is said once. ``shown_swapped``: true, false, ``folded``, or null where nobody knows.
    """

    query_id: str
    candidate_a: str
    candidate_b: str
    aspect: str
    choice: str
    shown_swapped: bool | str | None
    sample: int
    stage: str
    final_choice: str | None
    rationale: str
    note: str
    created_at: str
    blind: bool | None


class ScoreOut(FromWhom):
    """What one rater gave one response; where a judge failed a null and which failure it was.

    ``lower_is_better`` and ``margin`` are true of the whole file where it is imported: they are said there again.
    """

    query_id: str
    candidate: str
    aspect: str
    value: float | None
    failure: str | None
    sample: int
    stage: str
    final_value: float | None
    lower_is_better: bool
    margin: float
    rationale: str
    note: str
    created_at: str


OF_RATER: Final = ("rater", "rater_kind")
OF_HOW: Final = ("rubric", "judge_kind", "model")
VERDICT_COLUMNS: Final = (
    *("query_id", "candidate_a", "candidate_b", *OF_RATER, "aspect", "choice", "shown_swapped", "sample", "stage"),
    *("final_choice", "rationale", "note", "created_at", "blind", *OF_HOW, "split"),
)
SCORE_COLUMNS: Final = (
    *("query_id", "candidate", *OF_RATER, "aspect", "value", "failure", "sample", "stage", "final_value"),
    *("lower_is_better", "margin", "rationale", "note", "created_at", *OF_HOW, "split"),
)


def jsonl_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    yield from map(encoded, rows)


def csv_lines(rows: Iterable[Mapping[str, Any]], columns: tuple[str, ...]) -> Iterator[bytes]:
    """RFC 4180. A cell that a spreadsheet would execute gets an apostrophe; ``neutralised`` names such cells."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow((*columns, NEUTRALISED))
    for row in rows:
        yield emptied(buffer)
        writer.writerow(cells(row, columns))
    yield emptied(buffer)


def emptied(buffer: io.StringIO) -> bytes:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text.encode()


def cells(row: Mapping[str, Any], columns: tuple[str, ...]) -> list[str]:
    told = [cell_of(row.get(column)) for column in columns]
    marked = [column for column, cell in zip(columns, told, strict=True) if cell.startswith(EXECUTED)]
    if marked:
        # Numbers are none of them: a negative one is written as it is.
        marked = [column for column in marked if isinstance(row[column], str)]
        told = ["'" + cell if column in marked else cell for column, cell in zip(columns, told, strict=True)]
    return [*told, "\n".join(marked)]


def cell_of(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def counted(rows: Rows, tally: Tally) -> Iterator[Row]:
    for row in rows:
        tally.rows += 1
        yield row


def as_jsonl(rows: Rows, raters: Raters, options: Options, tally: Tally) -> Iterator[bytes]:
    return jsonl_lines(counted(rows, tally))


def verdicts_as_csv(rows: Rows, raters: Raters, options: Options, tally: Tally) -> Iterator[bytes]:
    return csv_lines(counted(rows, tally), VERDICT_COLUMNS)


def scores_as_csv(rows: Rows, raters: Raters, options: Options, tally: Tally) -> Iterator[bytes]:
    return csv_lines(counted(rows, tally), SCORE_COLUMNS)


REASONS: Final = {
    "calibration": "given in a calibration round, which counts nowhere",
    "replaced_by_newer_review": "the same person reviewed the comparison again",
    "judge_archived": "the judge is archived",
    "undone_meanwhile": "the review was undone while the file was written",
    "given_as_scores": "given as scores, which are in the scores export",
}
JSONL: Final = "application/x-ndjson"
CSV: Final = "text/csv; charset=utf-8"
FORMATS: Final = (
    Leaving(
        name="verdicts",
        title="Verdicts",
        purpose="a line for each choice of each rater, to import or to analyse elsewhere",
        ending="jsonl",
        content_type=JSONL,
        write=as_jsonl,
        needs=Needs.VERDICTS,
        reasons=REASONS,
    ),
    Leaving(
        name="verdicts-csv",
        title="Verdicts as CSV",
        purpose="the same as a table",
        ending="csv",
        content_type=CSV,
        write=verdicts_as_csv,
        needs=Needs.VERDICTS,
        reasons=REASONS,
    ),
    Leaving(
        name="scores",
        title="Scores",
        purpose="a line for each score that a rater gave a response",
        ending="jsonl",
        content_type=JSONL,
        write=as_jsonl,
        needs=Needs.SCORES,
        reasons=REASONS,
    ),
    Leaving(
        name="scores-csv",
        title="Scores as CSV",
        purpose="the same as a table",
        ending="csv",
        content_type=CSV,
        write=scores_as_csv,
        needs=Needs.SCORES,
        reasons=REASONS,
    ),
)
