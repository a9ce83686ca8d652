"""Verdicts and scores in long form, a row each, under the names by which they are imported.

Importing such a file as verdicts (or as scores) skips the columns that no verdict row has.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypedDict

from evaluations.formats.export_format import ExportFormat, ExportOptions, ExportRow, ExportRows, ExportTally, RowKind
from evaluations.formats.exported_rows import EXECUTED, NEUTRALISED, ExportedRaters
from evaluations.formats.jsonl_export import encode_line


class ExportedRater(TypedDict):
    """``rubric`` is the one that a person reviewed by, or that a judge was asked by; of files null."""

    rater: str
    rater_kind: str
    rubric: str | None
    judge_kind: str | None
    model: str | None


class ExportedVerdict(ExportedRater):
    """One rater's verdict in terms of the row's candidates. ``choice`` may be a judge's failure.

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


class ExportedScore(ExportedRater):
    """One rater's score of a response; where a judge failed, null with the failure.

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


def verdict_jsonl_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    yield from map(encode_line, rows)


def verdict_csv_lines(rows: Iterable[Mapping[str, Any]], columns: tuple[str, ...]) -> Iterator[bytes]:
    """RFC 4180. A cell that a spreadsheet would execute gets an apostrophe; ``neutralised`` names such cells."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow((*columns, NEUTRALISED))
    for row in rows:
        yield drain_buffer(buffer)
        writer.writerow(verdict_cells(row, columns))
    yield drain_buffer(buffer)


def drain_buffer(buffer: io.StringIO) -> bytes:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text.encode()


def verdict_cells(row: Mapping[str, Any], columns: tuple[str, ...]) -> list[str]:
    told = [verdict_cell(row.get(column)) for column in columns]
    marked = [column for column, cell in zip(columns, told, strict=True) if cell.startswith(EXECUTED)]
    if marked:
        # Numbers are none of them: a negative one is written as it is.
        marked = [column for column in marked if isinstance(row[column], str)]
        told = ["'" + cell if column in marked else cell for column, cell in zip(columns, told, strict=True)]
    return [*told, "\n".join(marked)]


def verdict_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def count_verdict_rows(rows: ExportRows, tally: ExportTally) -> Iterator[ExportRow]:
    for row in rows:
        tally.rows += 1
        yield row


def write_verdicts_jsonl(
    rows: ExportRows, raters: ExportedRaters, options: ExportOptions, tally: ExportTally
) -> Iterator[bytes]:
    return verdict_jsonl_lines(count_verdict_rows(rows, tally))


def write_verdicts_csv(
    rows: ExportRows, raters: ExportedRaters, options: ExportOptions, tally: ExportTally
) -> Iterator[bytes]:
    return verdict_csv_lines(count_verdict_rows(rows, tally), VERDICT_COLUMNS)


def write_scores_csv(
    rows: ExportRows, raters: ExportedRaters, options: ExportOptions, tally: ExportTally
) -> Iterator[bytes]:
    return verdict_csv_lines(count_verdict_rows(rows, tally), SCORE_COLUMNS)


REASONS: Final = {
    "calibration": "given in a calibration round, which counts nowhere",
    "replaced_by_newer_review": "the same person reviewed the comparison again",
    "judge_archived": "the judge is archived",
    "undone_meanwhile": "the review was undone while the file was written",
    "given_as_scores": "given as scores, which are in the scores export",
}
JSONL: Final = "application/x-ndjson"
CSV: Final = "text/csv; charset=utf-8"
VERDICT_FORMATS: Final = (
    ExportFormat(
        name="verdicts",
        title="Verdicts",
        purpose="a line for each choice of each rater, to import or to analyse elsewhere",
        ending="jsonl",
        content_type=JSONL,
        write=write_verdicts_jsonl,
        needs=RowKind.VERDICTS,
        reasons=REASONS,
    ),
    ExportFormat(
        name="verdicts-csv",
        title="Verdicts as CSV",
        purpose="the same as a table",
        ending="csv",
        content_type=CSV,
        write=write_verdicts_csv,
        needs=RowKind.VERDICTS,
        reasons=REASONS,
    ),
    ExportFormat(
        name="scores",
        title="Scores",
        purpose="a line for each score that a rater gave a response",
        ending="jsonl",
        content_type=JSONL,
        write=write_verdicts_jsonl,
        needs=RowKind.SCORES,
        reasons=REASONS,
    ),
    ExportFormat(
        name="scores-csv",
        title="Scores as CSV",
        purpose="the same as a table",
        ending="csv",
        content_type=CSV,
        write=write_scores_csv,
        needs=RowKind.SCORES,
        reasons=REASONS,
    ),
)
