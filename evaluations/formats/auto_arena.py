"""AutoArena: one table of prompts and responses for each model, and the head-to-heads with all that judges said."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluations.domain import Choice, ComparisonRow, RaterKind, Reading, ResponseRow, Row, VerdictRow
from evaluations.formats.candidates import candidate_of
from evaluations.formats.conversing import asked, candidate, named_by_text, query_of, remainder
from evaluations.formats.file_sample import FileSample, mostly
from evaluations.formats.messages import response
from evaluations.formats.rows import DEFAULT_ASPECT
from evaluations.formats.streams import Record
from evaluations.formats.values import RowRefused, from_json, required_text
from evaluations.formats.wording import ParsedLabel, parse_label, with_strength

TIE: Final = "-"
HUMAN: Final = "Human"  # the name under which AutoArena keeps the votes of people
KNOWN_RESPONSES: Final = frozenset({"prompt", "response", "model"})
KNOWN: Final = frozenset(
    {"prompt", "response_a", "response_b", "history", "model_a", "model_b"}
    | {f"{what}_{side}_id" for what in ("model", "response") for side in "ab"}
)


def has_no_other_columns(sample: FileSample) -> bool:
    """Prompts and responses are in many files: one that says more of them is read by what it says."""
    return KNOWN_RESPONSES.issuperset(sample.columns)


def has_histories(sample: FileSample) -> bool:
    """Whether the history is one of verdicts, and not of a chat."""
    return mostly('"winner"' in one if isinstance(one, str) else has_winners(one) for one in sample.values("history"))


def has_winners(given: object) -> bool:
    return isinstance(given, list) and all(isinstance(one, dict) and "winner" in one for one in given)


def response_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    values = record.values
    name, other = candidate_of(record, reading, "model")
    return (
        ResponseRow(
            line=record.line,
            query=query_of(asked(required_text(values, "prompt")), reading),
            candidate=name,
            overruled=other,
            response=response(values, "response"),
            metadata=remainder(values, KNOWN_RESPONSES),
        ),
    )


def head_to_head_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    values = record.values
    first, second = response(values, "response_a"), response(values, "response_b")
    names = candidate(values, "model_a"), candidate(values, "model_b")
    if not all(names) or names[0] == names[1]:
        names = named_by_text(first, second)
    comparison = ComparisonRow(
        line=record.line,
        query=query_of(asked(required_text(values, "prompt")), reading),
        candidate_a=names[0],
        response_a=first,
        candidate_b=names[1],
        response_b=second,
        metadata=remainder(values, KNOWN),
    )
    return comparison, *verdicts(values, comparison, reading)


def verdicts(values: Mapping[str, Any], comparison: ComparisonRow, reading: Reading) -> Iterator[VerdictRow]:
    """Each judge shuffles what it is shown, and the file does not say how."""
    history = from_json(values.get("history"), "history") or []
    if not isinstance(history, list) or not all(isinstance(one, dict) for one in history):
        raise RowRefused("history must be a list of objects")
    for one in history:
        winner = required_text(one, "winner").strip()
        names = (comparison.candidate_a,), (comparison.candidate_b,)
        label = ParsedLabel(Choice.TIE) if winner == TIE else parse_label(winner, *names)
        if label is None:
            raise RowRefused(f"winner is “{winner[:40]}” where A, B or - is expected")
        name = candidate(one, "judge_name") or reading.rater
        if not name:
            raise RowRefused("judge_name is missing: name a rater for the whole file")
        yield VerdictRow(
            line=comparison.line,
            query_key=comparison.query.key,
            candidate_a=comparison.candidate_a,
            candidate_b=comparison.candidate_b,
            rater=name,
            rater_kind=RaterKind.HUMAN if name == HUMAN else reading.rater_kind or RaterKind.JUDGE,
            aspect=DEFAULT_ASPECT,
            choice=label.choice,
            note=with_strength("", label.strength),
        )
