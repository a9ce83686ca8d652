"""JudgeBench: pairs of responses with a known better one, and the decisions of a judge in both orders."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from evaluations.domain.choices import FLIPPED_CHOICES, ShownOrder
from evaluations.domain.files import FileFormat, FileRow, Notice, NoticeKind, ReadOptions, VerdictRow
from evaluations.domain.judges import CallState
from evaluations.domain.roles import RaterKind
from evaluations.formats.chat_messages import parse_response
from evaluations.formats.conversations import (
    first_candidate_name,
    make_comparison,
    make_query,
    make_verdict,
    remaining_metadata,
    user_turn,
)
from evaluations.formats.import_format import COMPARISONS, VERDICTS, ImportFormat
from evaluations.formats.label_parser import note_with_strength, parse_label
from evaluations.formats.record_streams import Record
from evaluations.formats.values import MAX_CATEGORY, MAX_KEY, RowRefused, optional_text, required_text

SIDES: Final = ("response_A", "response_B")
ORDERS: Final = (ShownOrder.AS_STORED, ShownOrder.SWAPPED)
GOLD: Final = "gold"
KNOWN: Final = frozenset(
    {"pair_id", "original_id", "source", "question", "label", "judge_name", "judge_model", "judgments", *SIDES}
)


def judgebench_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """A comparison, its gold verdict, and the judge's decisions where the row has some."""
    values = record.values
    source, original = optional_text(values, "source", MAX_CATEGORY), optional_text(values, "original_id")
    query = make_query(
        user_turn(required_text(values, "question")),
        options,
        key=required_text(values, "pair_id"),
        cluster=f"{source} {original}".strip() if original else "",
        category=source,
    )
    responses = [parse_response(values, side) for side in SIDES]
    comparison = make_comparison(record, query, SIDES, responses, remaining_metadata(values, KNOWN))
    label = parse_label(required_text(values, "label"))
    if label is None:
        raise RowRefused(f"label is “{str(values['label'])[:40]}”; expected A>B, B>A or A=B")
    gold = make_verdict(comparison, GOLD, RaterKind.GOLD, label.choice, strength=label.strength)
    return comparison, gold, *judgebench_decisions(values, gold, options)


def judgebench_decisions(
    values: Mapping[str, Any], gold: VerdictRow, options: ReadOptions
) -> Iterator[VerdictRow | Notice]:
    """A judge's verdict on each order; in the second it saw response B first. What is missing there has failed."""
    judgments = values.get("judgments")
    if judgments is None:
        return
    if not isinstance(judgments, list) or len(judgments) > len(ORDERS):
        raise RowRefused("judgments must be a list of at most two")
    rater = judge_in(values, judgments, options)
    for game, shown in zip(judgments, ORDERS, strict=False):
        word = optional_text(game, "decision").strip() if isinstance(game, dict) else ""
        label = parse_label(word)
        if word and label is None:
            yield Notice(gold.line, NoticeKind.NOT_UNDERSTOOD, word, "decision")
        choice = label.choice if label else CallState.UNREADABLE if game is not None else CallState.FAILED
        judgment = game.get("judgment") if isinstance(game, dict) else None
        yield replace(
            gold,
            rater=rater,
            rater_kind=options.rater_kind or RaterKind.JUDGE,
            choice=FLIPPED_CHOICES[label.choice] if label and shown == ShownOrder.SWAPPED else choice,
            shown=shown,
            note=note_with_strength("", label.strength if label else ""),
            rationale=optional_text(judgment, "response") if isinstance(judgment, dict) else "",
        )


def judge_in(values: Mapping[str, Any], judgments: list[Any], options: ReadOptions) -> str:
    """The judge's model and, as another prompt makes another judge here, the name of its prompt."""
    if options.rater:
        return options.rater
    details = [
        game["judgment"] for game in judgments if isinstance(game, dict) and isinstance(game.get("judgment"), dict)
    ]
    model = first_candidate_name(values, "judge_model") or next(
        (first_candidate_name(judgment, "judge_model") for judgment in details), ""
    )
    prompt = first_candidate_name(values, "judge_name")
    name = f"{model} ({prompt})" if model and prompt else model or prompt
    if not name or len(name) > MAX_KEY:
        raise RowRefused("the judge’s name is missing or too long. Set one for the whole file")
    return name


JUDGEBENCH_FORMATS: Final = (
    ImportFormat(
        FileFormat.JUDGEBENCH,
        (COMPARISONS, VERDICTS),
        ("pair_id", "question", "response_A", "response_B", "label"),
        judgebench_rows,
    ),
)
