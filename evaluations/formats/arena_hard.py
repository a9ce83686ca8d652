"""Arena-Hard: two games of a model against the baseline, questions and answers.

The baseline is shown first in game 1 and second in game 2, as its own report of results reads them. The questions and
answers of the first version have the columns of MT-bench.
"""

from collections.abc import Iterator
from typing import Final

from evaluations.domain.choices import FLIPPED_CHOICES, Choice, ShownOrder
from evaluations.domain.files import FileFormat, FileRow, Notice, NoticeKind, QueryRow, ReadOptions, VerdictRow
from evaluations.domain.judges import CallState
from evaluations.domain.roles import RaterKind
from evaluations.formats.chat_messages import parse_optional_messages
from evaluations.formats.conversations import make_query, make_response, unread_column_notices, user_turn
from evaluations.formats.import_format import COMPARISONS, VERDICTS, ImportFormat
from evaluations.formats.label_parser import note_with_strength, parse_label
from evaluations.formats.mt_bench import iso_timestamp, mt_bench_judge
from evaluations.formats.native_rows import DEFAULT_ASPECT, prefix_key
from evaluations.formats.record_streams import Record
from evaluations.formats.values import MAX_CATEGORY, MAX_KEY, RowRefused, optional_text, required_name, required_text

ORDERS: Final = (ShownOrder.AS_STORED, ShownOrder.SWAPPED)
KNOWN_JUDGMENTS: Final = frozenset({"question_id", "uid", "category", "model", "judge", "baseline", "games", "tstamp"})
KNOWN_QUESTIONS: Final = frozenset({"uid", "category", "subcategory", "prompt", "language"})
KNOWN_ANSWERS: Final = frozenset({"uid", "ans_id", "model", "messages", "tstamp", "metadata"})


def arena_hard_judgment_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """A verdict from each game. Where the row does not name the baseline, the query must have one comparison."""
    rows = list(arena_hard_games(record, options))
    return *rows, *unknown_score_notices(record), *unread_column_notices(record.values, KNOWN_JUDGMENTS, record.line)


def unknown_score_notices(record: Record) -> Iterator[Notice]:
    """Notices of scores that are not understood, whose verdicts are unreadable."""
    for game in record.values["games"]:
        score = optional_text(game, "score").strip() if isinstance(game, dict) else ""
        if score and parse_label(score) is None:
            yield Notice(record.line, NoticeKind.NOT_UNDERSTOOD, score, "score")


def arena_hard_games(record: Record, options: ReadOptions) -> Iterator[VerdictRow]:
    values = record.values
    games = values.get("games")
    if not isinstance(games, list) or not 1 <= len(games) <= len(ORDERS):
        raise RowRefused("games must be a list of one game or two")
    key = prefix_key(required_text(values, "uid" if "uid" in values else "question_id"), options)
    for game, shown in zip(games, ORDERS, strict=False):
        choice, strength = game_outcome(game)
        yield VerdictRow(
            line=record.line,
            query_key=key,
            candidate_a=optional_text(values, "baseline", MAX_KEY).strip() or None,
            candidate_b=required_name(values, "model"),
            rater=mt_bench_judge(values, options),
            rater_kind=options.rater_kind or RaterKind.JUDGE,
            aspect=DEFAULT_ASPECT,
            choice=FLIPPED_CHOICES[Choice(choice)]
            if shown == ShownOrder.SWAPPED and choice in tuple(Choice)
            else choice,
            shown=shown,
            rationale=judgment_text(game),
            note=note_with_strength("", strength),
            created_at=iso_timestamp(values),
        )


def game_outcome(game: object) -> tuple[str, str]:
    """Choice and strength of a game, in terms of the order shown; a missing game is a failure."""
    if not isinstance(game, dict):
        return CallState.FAILED, ""
    label = parse_label(optional_text(game, "score"))
    return (label.choice, label.strength) if label else (CallState.UNREADABLE, "")


def judgment_text(game: object) -> str:
    """The judge's reply: a text, or in the second version the answer without its reasoning."""
    judgment = game.get("judgment") if isinstance(game, dict) else None
    answer = judgment.get("answer") if isinstance(judgment, dict) else judgment
    return answer if isinstance(answer, str) else ""


def arena_hard_question_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    values = record.values
    key = required_text(values, "uid")
    category = optional_text(values, "subcategory", MAX_CATEGORY) or optional_text(values, "category", MAX_CATEGORY)
    return (
        QueryRow(
            record.line, make_query(user_turn(required_text(values, "prompt")), options, key=key, category=category)
        ),
    )


def arena_hard_answer_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """A model's answer, without its reasoning, which the judge was not shown either."""
    values = record.values
    turns = values.get("messages")
    if not isinstance(turns, list):
        raise RowRefused("messages must be a list of chat messages")
    messages = parse_optional_messages([answer_without_reasoning(turn) for turn in turns], "messages")
    place = max((number for number, message in enumerate(messages, 1) if message["role"] == "user"), default=0)
    if not 0 < place < len(messages):
        raise RowRefused("messages must hold a question and an answer")
    query = make_query(messages[:place], options, key=required_text(values, "uid"))
    return (make_response(record, options, query, "model", messages[place:], KNOWN_ANSWERS),)


def answer_without_reasoning(turn: object) -> object:
    """A turn whose content is an object with the answer in it, with the answer alone."""
    content = turn.get("content") if isinstance(turn, dict) else None
    is_answer = isinstance(content, dict) and isinstance(content.get("answer"), str)
    return {**turn, "content": content["answer"]} if is_answer else turn  # type: ignore[dict-item,index]


ARENA_HARD_FORMATS: Final = (
    ImportFormat(
        FileFormat.ARENA_HARD, (VERDICTS,), ("question_id", "model", "judge", "games"), arena_hard_judgment_rows
    ),
    ImportFormat(FileFormat.ARENA_HARD, (VERDICTS,), ("uid", "model", "judge", "games"), arena_hard_judgment_rows),
    ImportFormat(
        FileFormat.ARENA_HARD,
        (COMPARISONS,),
        ("uid", "category", "prompt"),
        arena_hard_question_rows,
        is_match=lambda sample: KNOWN_QUESTIONS.issuperset(sample.columns),  # a file of responses has them too
        has_common_columns=True,
    ),
    ImportFormat(
        FileFormat.ARENA_HARD,
        (COMPARISONS,),
        ("uid", "ans_id", "model", "messages"),
        arena_hard_answer_rows,
        needs_pairing=True,
    ),
)
