"""Verdicts and scores in long form, a row each, under the names by which they are imported.

Importing such a file as verdicts (or as scores) skips the columns that no verdict row has.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypedDict

from evaluations.formats.csv_export import csv_line
from evaluations.formats.export_format import ExportFormat, RowKind, count_rows
from evaluations.formats.exported_rows import EXECUTED, NEUTRALISED
from evaluations.formats.jsonl_export import write_jsonl


class ExportedRater(TypedDict):
    """The rater of a row. ``rubric``: of a person's review or of a judge; null for imported rows."""

    rater: str
    rater_kind: str
    rubric: str | None
    judge_kind: str | None
    model: str | None


class ExportedVerdict(ExportedRater):
    """One rater's verdict in terms of the row's candidates. ``choice`` may be a judge's failure.

    ``stage`` is ``first`` in a review: ``final_choice`` is the confirmed choice, null where there is none. Other
    verdicts have one stage. ``shown_swapped``: true, false, ``folded``, or null where it is unknown.
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

    An import takes ``lower_is_better`` and ``margin`` as options of the whole file.
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


def verdict_csv_lines(rows: Iterable[Mapping[str, Any]], columns: tuple[str, ...]) -> Iterator[bytes]:
    """RFC 4180. A cell that a spreadsheet would execute gets an apostrophe; ``neutralised`` names such cells."""
    yield csv_line((*columns, NEUTRALISED))
    for row in rows:
        yield csv_line(verdict_cells(row, columns))


def verdict_cells(row: Mapping[str, Any], columns: tuple[str, ...]) -> list[str]:
    # Only texts are neutralised: a negative number is written unchanged.
    marked = [column for column in columns if isinstance(row.get(column), str) and row[column].startswith(EXECUTED)]
    cells = (verdict_cell(row.get(column)) for column in columns)
    safe = ["'" + cell if column in marked else cell for column, cell in zip(columns, cells, strict=True)]
    return [*safe, "\n".join(marked)]


def verdict_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


REASONS: Final = {
    "calibration": "calibration reviews",
    "replaced_by_newer_review": "reviews replaced by a newer one",
    "judge_archived": "verdicts of archived judges",
    "undone_meanwhile": "reviews undone during the export",
    "given_as_scores": "scores (see the scores export)",
}


def make_csv_format(jsonl_format: ExportFormat, columns: tuple[str, ...]) -> ExportFormat:
    """The CSV twin of a format in JSON Lines, with these columns."""
    return replace(
        jsonl_format,
        name=f"{jsonl_format.name}-csv",
        title=f"{jsonl_format.title} as CSV",
        purpose="the same as CSV",
        ending="csv",
        write=lambda rows, raters, options, tally: verdict_csv_lines(count_rows(rows, tally), columns),
    )


VERDICTS_FORMAT: Final = ExportFormat(
    name="verdicts",
    title="Verdicts",
    purpose="every choice of every rater, one per line",
    ending="jsonl",
    write=write_jsonl,
    needs=RowKind.VERDICTS,
    reasons=REASONS,
)
SCORES_FORMAT: Final = replace(
    VERDICTS_FORMAT,
    name="scores",
    title="Scores",
    purpose="every score of every rater, one per line",
    needs=RowKind.SCORES,
)
VERDICT_FORMATS: Final = (
    VERDICTS_FORMAT,
    make_csv_format(VERDICTS_FORMAT, VERDICT_COLUMNS),
    SCORES_FORMAT,
    make_csv_format(SCORES_FORMAT, SCORE_COLUMNS),
)
