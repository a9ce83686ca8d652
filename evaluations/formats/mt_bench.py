"""MT-bench: questions of two turns, models' answers, GPT-4's judgments in both orders, and its scores.

The first turn of question 81 is the query ``81``, both turns together are the query ``81-2``; they share the cluster.
To the second turn a response is the whole rest of the conversation.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from evaluations.domain import (
    FOLLOW_UPS,
    CallState,
    Choice,
    Message,
    Notice,
    NoticeKind,
    QueryPart,
    QueryRow,
    RaterKind,
    Reading,
    ResponseRow,
    Row,
    ScoreRow,
    Shown,
    VerdictRow,
)
from evaluations.formats.candidates import candidate_of
from evaluations.formats.conversing import answered, asked, query_of, unread
from evaluations.formats.messages import words
from evaluations.formats.rows import DEFAULT_ASPECT, prefixed
from evaluations.formats.streams import Record
from evaluations.formats.values import (
    MAX_CATEGORY,
    MAX_KEY,
    NUMBER,
    RowRefused,
    moment,
    optional_text,
    required_name,
    required_number,
    required_text,
    whole_number,
)

WINNERS: Final[Mapping[str, str]] = {
    "model_1": Choice.A,
    "model_2": Choice.B,
    "tie": Choice.TIE,
    "error": CallState.UNREADABLE,
}
GAMES: Final = (("g1", Shown.AS_STORED), ("g2", Shown.SWAPPED))
API_ERROR: Final = "$ERROR$"  # what stands for an answer that never came
NO_SCORE: Final = -1
OF_QUESTION: Final = ("question_id", "category", "turns", "reference")
OF_ANSWER: Final = ("question_id", "model_id", "choices", "answer_id", "tstamp")
OF_JUDGMENT: Final = ("question_id", "judge", "turn", "tstamp")
OF_PAIR: Final = (
    *(*OF_JUDGMENT, "model_1", "model_2", "g1_winner", "g2_winner", "g1_judgment", "g2_judgment"),
    "query_id",  # of our own files
)
OF_SINGLE: Final = (*OF_JUDGMENT, "model", "score", "judgment")
MAX_TURNS: Final = 1_000
MILLISECONDS: Final = 1e11  # seconds since 1970 in the year 5138: a larger number counts milliseconds


def question_key(question: str, turn: int) -> str:
    """Turn 1 of a question has the question's own id."""
    return question if turn <= 1 else f"{question}-{turn}"


def turn_of(values: Mapping[str, Any]) -> int:
    return whole_number(values, "turn", MAX_TURNS) or 1


def question_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    values = record.values
    question = required_text(values, "question_id").strip()
    said = texts(values.get("turns"), "turns")
    references = texts(values["reference"], "reference") if values.get("reference") else []
    queries = (
        QueryRow(
            record.line,
            query_of(
                asked(said[0]),
                reading,
                key=question_key(question, turn),
                cluster=question,
                reference="\n\n".join(references[:turn]),
                category=optional_text(values, "category", MAX_CATEGORY),
                metadata={FOLLOW_UPS: said[1:turn]} if turn > 1 else {},
            ),
        )
        for turn in range(1, len(said) + 1)
    )
    return *queries, *unread(values, OF_QUESTION, record.line)


def answer_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    """A model's answer to each turn. Of several samples the first is kept, as the judgments are about it."""
    values = record.values
    question = required_text(values, "question_id").strip()
    choices = values.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise RowRefused("choices must be a list of objects")
    said = texts(choices[0].get("turns"), "turns")
    name, other = candidate_of(record, reading, "model_id")
    others = [Notice(record.line, NoticeKind.NOT_STORED, "further samples of an answer")] * (len(choices) - 1)
    responses = (
        ResponseRow(
            line=record.line,
            query=asked_elsewhere(question, turn, reading),
            candidate=name,
            overruled=other,
            response=interleaved(said[:turn]),
            lacks_questions=turn > 1,
        )
        for turn in range(1, len(said) + 1)
    )
    return *responses, *others, *unread(values, OF_ANSWER, record.line)


def asked_elsewhere(question: str, turn: int, reading: Reading) -> QueryPart:
    """The words stand in question.jsonl alone."""
    key = prefixed(question_key(question, turn), reading)
    return QueryPart(key=key, cluster=prefixed(question, reading), messages=[], is_stand_in=True)


def interleaved(said: Sequence[str]) -> list[Message]:
    """A candidate's turns, with room for the user's between them."""
    messages = [*answered(said[0])]
    for text in said[1:]:
        messages += [*asked(""), *answered(text)]
    return messages


def texts(value: object, field: str) -> list[str]:
    if not isinstance(value, list) or not value:
        raise RowRefused(f"{field} must be a list with a text for each turn")
    return [words(one, f"{field}, turn {number}") for number, one in enumerate(value, 1)]  # Arena-Hard's are objects


def pair_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    """A judge's two games: in the second model_2 stood first. The winner is named in both."""
    return *games(record, reading), *unread(record.values, OF_PAIR, record.line)


def games(record: Record, reading: Reading) -> Iterator[VerdictRow]:
    values = record.values
    question = required_text(values, "question_id").strip()
    key = optional_text(values, "query_id").strip() or question_key(question, turn_of(values))
    for game, shown in GAMES:
        judgment = optional_text(values, f"{game}_judgment")
        yield VerdictRow(
            line=record.line,
            query_key=prefixed(key, reading),
            candidate_a=required_name(values, "model_1"),
            candidate_b=required_name(values, "model_2"),
            rater=judge_of(values, reading),
            rater_kind=reading.rater_kind or RaterKind.JUDGE,
            aspect=DEFAULT_ASPECT,
            choice=failure(judgment) if judgment == API_ERROR else winner(values, f"{game}_winner"),
            shown=shown,
            rationale="" if judgment == API_ERROR else judgment,
            created_at=when(values),
        )


def winner(values: Mapping[str, Any], field: str) -> str:
    given = required_text(values, field).strip()
    if given not in WINNERS:
        raise RowRefused(f"{field} is “{given[:40]}” where model_1, model_2, tie or error is expected")
    return WINNERS[given]


def single_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    """A judge's score of one answer. Where none could be read the judge has failed."""
    values = record.values
    value = required_number(values, "score")
    judgment = optional_text(values, "judgment")
    has_failed = value == NO_SCORE
    question = required_text(values, "question_id").strip()
    name, other = candidate_of(record, reading, "model")
    score = ScoreRow(
        line=record.line,
        query_key=prefixed(question_key(question, turn_of(values)), reading),
        candidate=name,
        overruled=other,
        rater=judge_of(values, reading),
        rater_kind=reading.rater_kind or RaterKind.JUDGE,
        aspect=DEFAULT_ASPECT,
        value=None if has_failed else value,
        rationale="" if judgment == API_ERROR else judgment,
        failure=failure(judgment) if has_failed else "",
    )
    return score, *unread(values, OF_SINGLE, record.line)


def failure(judgment: str) -> str:
    return CallState.FAILED if judgment == API_ERROR else CallState.UNREADABLE


def judge_of(values: Mapping[str, Any], reading: Reading) -> str:
    """The model. The prompt named beside it, another for mathematics and for two turns, makes no other judge."""
    given = values.get("judge")
    name = given[0] if isinstance(given, list) and given else given
    rater = reading.rater or (name if isinstance(name, str) else "")
    if not rater.strip() or len(rater) > MAX_KEY:
        raise RowRefused("the judge has no name, or too long a one: give it one for the whole file")
    return rater


def when(values: Mapping[str, Any], field: str = "tstamp") -> str | None:
    """A time in seconds or milliseconds since 1970, or spelled out, as ISO 8601; None where it is none of these."""
    given = values.get(field)
    if isinstance(given, bool) or not isinstance(given, (int, float, str)):
        return None
    if isinstance(given, str) and not NUMBER.fullmatch(given.strip()):
        try:
            return moment(values, field)
        except RowRefused:
            return None
    seconds = float(given)
    seconds = seconds / 1_000 if seconds >= MILLISECONDS else seconds
    return datetime.fromtimestamp(seconds, UTC).isoformat() if 0 < seconds < MILLISECONDS else None
