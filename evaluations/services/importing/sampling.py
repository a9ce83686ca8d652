"""The first rows of a file, as the page shows them before they are stored."""

from typing import Any, Final

from evaluations.domain import Choice, ComparisonRow, QueryRow, ResponseRow, Row, ScoreRow, VerdictRow, text_of
from evaluations.formats.reading import Entry

SAMPLE_LETTERS: Final = 400
SAMPLE_SCORES: Final = 6  # of a row that brings many


def sample(entry: Entry) -> dict[str, Any]:
    """A row as the page shows it before it is stored."""
    told: dict[str, Any] = {"line": entry.line, "verdicts": [], "scores": []}
    for row in entry.rows:
        if isinstance(row, VerdictRow):
            told["verdicts"].append(sample_verdict(row))
        elif isinstance(row, ScoreRow):
            told["scores"] += [sample_score(row)] if len(told["scores"]) < SAMPLE_SCORES else []
        else:
            told.update(sample_of(row))
    return told


def sample_of(row: Row) -> dict[str, Any]:
    if isinstance(row, ComparisonRow):
        sides = [(row.candidate_a, row.response_a), (row.candidate_b, row.response_b)]
    elif isinstance(row, ResponseRow):
        sides = [(row.candidate, row.response)]
    elif isinstance(row, QueryRow):
        sides = []
    else:
        return {}
    return {
        "key": row.query.key,
        "query": shortened(text_of(row.query.messages)),
        "responses": [{"candidate": name, "text": shortened(text_of(messages))} for name, messages in sides],
    }


def sample_verdict(row: VerdictRow) -> dict[str, Any]:
    """In the words of the file, before it is turned round."""
    sides = {Choice.A: row.candidate_a, Choice.B: row.candidate_b}
    return {
        "key": row.query_key,
        "candidates": [row.candidate_a, row.candidate_b] if row.candidate_a else [],
        "rater": row.rater,
        "kind": row.rater_kind,
        "aspect": row.aspect,
        "choice": row.choice,
        "chosen": sides.get(Choice(row.choice)) if row.choice in tuple(Choice) else None,
    }


def sample_score(row: ScoreRow) -> dict[str, Any]:
    return {
        "key": row.query_key,
        "candidate": row.candidate,
        "rater": row.rater,
        "kind": row.rater_kind,
        "aspect": row.aspect,
        "value": row.value,
        "failure": row.failure,
    }


def shortened(text: str) -> str:
    return text if len(text) <= SAMPLE_LETTERS else f"{text[:SAMPLE_LETTERS]}…"
