"""Arena-Hard: a judge's two games of a model against the baseline, and from its second version questions and answers.

The baseline stands first in game 1 and second in game 2, as its own report of results reads them. The first version's
questions and answers have MT-bench's columns.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluations.domain import (
    FLIPPED,
    CallState,
    Choice,
    Notice,
    NoticeKind,
    QueryRow,
    RaterKind,
    Reading,
    ResponseRow,
    Row,
    Shown,
    VerdictRow,
)
from evaluations.formats.candidates import candidate_of
from evaluations.formats.conversing import asked, query_of, remainder, unread
from evaluations.formats.file_sample import FileSample
from evaluations.formats.messages import optional_messages
from evaluations.formats.mt_bench import judge_of, when
from evaluations.formats.rows import DEFAULT_ASPECT, prefixed
from evaluations.formats.streams import Record
from evaluations.formats.values import MAX_CATEGORY, MAX_KEY, RowRefused, optional_text, required_name, required_text
from evaluations.formats.wording import parse_label, with_strength

ORDERS: Final = (Shown.AS_STORED, Shown.SWAPPED)
KNOWN_JUDGMENTS: Final = frozenset({"question_id", "uid", "category", "model", "judge", "baseline", "games", "tstamp"})
KNOWN_QUESTIONS: Final = frozenset({"uid", "category", "subcategory", "prompt", "language"})
KNOWN_ANSWERS: Final = frozenset({"uid", "ans_id", "model", "messages", "tstamp", "metadata"})


def judgment_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    """A verdict from each game. Where the row does not name the baseline, the query must have one comparison."""
    rows = list(games(record, reading))
    return *rows, *odd_scores(record), *unread(record.values, KNOWN_JUDGMENTS, record.line)


def odd_scores(record: Record) -> Iterator[Notice]:
    """Scores that are there and are not understood: their verdicts are unreadable."""
    for game in record.values["games"]:
        score = optional_text(game, "score").strip() if isinstance(game, dict) else ""
        if score and parse_label(score) is None:
            yield Notice(record.line, NoticeKind.NOT_UNDERSTOOD, score, "score")


def games(record: Record, reading: Reading) -> Iterator[VerdictRow]:
    values = record.values
    given = values.get("games")
    if not isinstance(given, list) or not 1 <= len(given) <= len(ORDERS):
        raise RowRefused("games must be a list of one game or two")
    key = prefixed(required_text(values, id_column(values)), reading)
    for game, shown in zip(given, ORDERS, strict=False):
        choice, strength = outcome(game)
        yield VerdictRow(
            line=record.line,
            query_key=key,
            candidate_a=optional_text(values, "baseline", MAX_KEY).strip() or None,
            candidate_b=required_name(values, "model"),
            rater=judge_of(values, reading),
            rater_kind=reading.rater_kind or RaterKind.JUDGE,
            aspect=DEFAULT_ASPECT,
            choice=FLIPPED[Choice(choice)] if shown == Shown.SWAPPED and choice in tuple(Choice) else choice,
            shown=shown,
            rationale=judgment_in(game),
            note=with_strength("", strength),
            created_at=when(values),
        )


def id_column(values: Mapping[str, Any]) -> str:
    return "uid" if "uid" in values else "question_id"


def outcome(game: object) -> tuple[str, str]:
    """What the judge chose of the two as it saw them, and how strongly. A game that is missing has failed."""
    if not isinstance(game, dict):
        return CallState.FAILED, ""
    label = parse_label(optional_text(game, "score"))
    return (label.choice, label.strength) if label else (CallState.UNREADABLE, "")


def judgment_in(game: object) -> str:
    """The judge's words: a text, or in the second version the answer beside its reasoning."""
    given = game.get("judgment") if isinstance(game, dict) else None
    answer = given.get("answer") if isinstance(given, dict) else given
    return answer if isinstance(answer, str) else ""


def has_no_other_columns(sample: FileSample) -> bool:
    """Whether it is a file of questions: one of responses has their columns too."""
    return KNOWN_QUESTIONS.issuperset(sample.columns)


def question_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    values = record.values
    key = required_text(values, "uid")
    category = optional_text(values, "subcategory", MAX_CATEGORY) or optional_text(values, "category", MAX_CATEGORY)
    return (
        QueryRow(record.line, query_of(asked(required_text(values, "prompt")), reading, key=key, category=category)),
    )


def answer_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    """A model's answer. Beside its text an answer may hold reasoning, which the judge was not shown either."""
    values = record.values
    given = values.get("messages")
    if not isinstance(given, list):
        raise RowRefused("messages must be a list of chat messages")
    messages = optional_messages([with_answer(one) for one in given], "messages")
    place = max((number for number, one in enumerate(messages, 1) if one["role"] == "user"), default=0)
    if not 0 < place < len(messages):
        raise RowRefused("messages must hold a question and an answer")
    name, other = candidate_of(record, reading, "model")
    return (
        ResponseRow(
            line=record.line,
            query=query_of(messages[:place], reading, key=required_text(values, "uid")),
            candidate=name,
            overruled=other,
            response=messages[place:],
            metadata=remainder(values, KNOWN_ANSWERS),
        ),
    )


def with_answer(turn: object) -> object:
    """A turn whose content is an object with the answer in it, with the answer alone."""
    content = turn.get("content") if isinstance(turn, dict) else None
    is_answer = isinstance(content, dict) and isinstance(content.get("answer"), str)
    return {**turn, "content": content["answer"]} if is_answer else turn  # type: ignore[dict-item,index]
