"""AutoArena: prompts and responses of a model, and head-to-heads with the words of judges."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluations.domain.choices import Choice
from evaluations.domain.files import ComparisonRow, FileFormat, FileRow, ReadOptions, VerdictRow
from evaluations.domain.roles import RaterKind
from evaluations.formats.chat_messages import parse_response
from evaluations.formats.conversations import (
    WITHOUT_NAMES,
    first_candidate_name,
    make_comparison,
    make_query,
    make_response,
    make_verdict,
    names_from_texts,
    remaining_metadata,
    user_turn,
)
from evaluations.formats.import_format import COMPARISONS, VERDICTS, ImportFormat
from evaluations.formats.label_parser import ParsedLabel, parse_label
from evaluations.formats.record_streams import FileSample, Record, fits_mostly
from evaluations.formats.values import RowRefused, parse_structured_value, required_text

TIE: Final = "-"
HUMAN: Final = "Human"  # the name under which AutoArena keeps the votes of people
KNOWN_RESPONSES: Final = frozenset({"prompt", "response", "model"})
KNOWN: Final = frozenset(
    {"prompt", "response_a", "response_b", "history", "model_a", "model_b"}
    | {f"{what}_{side}_id" for what in ("model", "response") for side in "ab"}
)


def has_histories(sample: FileSample) -> bool:
    """Whether the history is one of verdicts, and not of a chat."""
    return fits_mostly(
        '"winner"' in history if isinstance(history, str) else has_winners(history)
        for history in sample.values("history")
    )


def has_winners(history: object) -> bool:
    return isinstance(history, list) and all(isinstance(entry, dict) and "winner" in entry for entry in history)


def auto_arena_response_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    query = make_query(user_turn(required_text(record.values, "prompt")), options)
    response = parse_response(record.values, "response")
    return (make_response(record, options, query, "model", response, KNOWN_RESPONSES),)


def auto_arena_head_to_head_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    values = record.values
    first, second = parse_response(values, "response_a"), parse_response(values, "response_b")
    names = first_candidate_name(values, "model_a"), first_candidate_name(values, "model_b")
    if not all(names) or names[0] == names[1]:
        names = names_from_texts(first, second)
    query = make_query(user_turn(required_text(values, "prompt")), options)
    comparison = make_comparison(record, query, names, (first, second), remaining_metadata(values, KNOWN))
    return comparison, *auto_arena_verdicts(values, comparison, options)


def auto_arena_verdicts(
    values: Mapping[str, Any], comparison: ComparisonRow, options: ReadOptions
) -> Iterator[VerdictRow]:
    """The verdicts of judges; the order shown is unknown, because each judge shuffles the responses."""
    history = parse_structured_value(values.get("history"), "history") or []
    if not isinstance(history, list) or not all(isinstance(entry, dict) for entry in history):
        raise RowRefused("history must be a list of objects")
    for entry in history:
        winner = required_text(entry, "winner").strip()
        names = (comparison.candidate_a,), (comparison.candidate_b,)
        label = ParsedLabel(Choice.TIE) if winner == TIE else parse_label(winner, *names)
        if label is None:
            raise RowRefused(f"winner is “{winner[:40]}”; expected A, B or -")
        name = first_candidate_name(entry, "judge_name") or options.rater
        if not name:
            raise RowRefused("judge_name is missing. Set one rater for the whole file")
        kind = RaterKind.HUMAN if name == HUMAN else options.rater_kind or RaterKind.JUDGE
        yield make_verdict(comparison, name, kind, label.choice, strength=label.strength)


AUTO_ARENA_FORMATS: Final = (
    ImportFormat(
        FileFormat.AUTO_ARENA,
        (COMPARISONS,),
        ("prompt", "response"),
        auto_arena_response_rows,
        needs_pairing=True,
        model="model",
        is_match=lambda sample: KNOWN_RESPONSES.issuperset(sample.columns),  # many formats have these and further ones
    ),
    ImportFormat(
        FileFormat.AUTO_ARENA,
        (COMPARISONS, VERDICTS),
        ("prompt", "response_a", "response_b", "history"),
        auto_arena_head_to_head_rows,
        note=WITHOUT_NAMES,
        is_match=has_histories,
    ),
)
