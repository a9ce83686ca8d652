"""MT-bench: questions of two turns, answers of models, judgments of pairs, scores.

The first turn of question 81 is the query ``81``, both turns together are the query ``81-2``; they share the cluster.
The response to the second turn is the whole rest of the conversation.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.files import (
    FOLLOW_UPS_KEY,
    FileFormat,
    FileRow,
    Notice,
    NoticeKind,
    QueryPart,
    QueryRow,
    ReadOptions,
    ResponseRow,
    ScoreRow,
    VerdictRow,
)
from evaluations.domain.judges import CallState
from evaluations.domain.roles import RaterKind
from evaluations.domain.texts import Message
from evaluations.formats.candidate_names import candidate_of_record
from evaluations.formats.chat_messages import text_of_content
from evaluations.formats.conversations import assistant_turn, make_query, unread_column_notices, user_turn
from evaluations.formats.import_format import COMPARISONS, SCORES, VERDICTS, ImportFormat
from evaluations.formats.native_rows import DEFAULT_ASPECT, prefix_key
from evaluations.formats.record_streams import Record
from evaluations.formats.values import (
    MAX_CATEGORY,
    MAX_KEY,
    NUMBER,
    RowRefused,
    iso_time,
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
GAMES: Final = (("g1", ShownOrder.AS_STORED), ("g2", ShownOrder.SWAPPED))
API_ERROR: Final = "$ERROR$"  # in place of an answer after a failed request
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


def mt_bench_question_key(question: str, turn: int) -> str:
    """The query id of a turn: for turn 1, the id of the question itself."""
    return question if turn <= 1 else f"{question}-{turn}"


def mt_bench_turn(values: Mapping[str, Any]) -> int:
    return whole_number(values, "turn", MAX_TURNS) or 1


def mt_bench_question_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    values = record.values
    question = required_text(values, "question_id").strip()
    texts = mt_bench_turn_texts(values.get("turns"), "turns")
    references = mt_bench_turn_texts(values["reference"], "reference") if values.get("reference") else []
    queries = (
        QueryRow(
            record.line,
            make_query(
                user_turn(texts[0]),
                options,
                key=mt_bench_question_key(question, turn),
                cluster=question,
                reference="\n\n".join(references[:turn]),
                category=optional_text(values, "category", MAX_CATEGORY),
                metadata={FOLLOW_UPS_KEY: texts[1:turn]} if turn > 1 else {},
            ),
        )
        for turn in range(1, len(texts) + 1)
    )
    return *queries, *unread_column_notices(values, OF_QUESTION, record.line)


def mt_bench_answer_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """A model's answer to each turn. Of several samples the first is kept, as the judgments are about it."""
    values = record.values
    question = required_text(values, "question_id").strip()
    choices = values.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise RowRefused("choices must be a list of objects")
    texts = mt_bench_turn_texts(choices[0].get("turns"), "turns")
    name, other = candidate_of_record(record, options, "model_id")
    others = [Notice(record.line, NoticeKind.NOT_STORED, "further samples of an answer")] * (len(choices) - 1)
    responses = (
        ResponseRow(
            line=record.line,
            query=query_without_text(question, turn, options),
            candidate=name,
            overruled=other,
            response=interleave_turns(texts[:turn]),
            lacks_questions=turn > 1,
        )
        for turn in range(1, len(texts) + 1)
    )
    return *responses, *others, *unread_column_notices(values, OF_ANSWER, record.line)


def query_without_text(question: str, turn: int, options: ReadOptions) -> QueryPart:
    key = prefix_key(mt_bench_question_key(question, turn), options)
    return QueryPart(key=key, cluster=prefix_key(question, options), messages=[], is_stand_in=True)


def interleave_turns(answers: Sequence[str]) -> list[Message]:
    """The answers of a candidate as a conversation, with empty turns of the user in between."""
    messages = [*assistant_turn(answers[0])]
    for text in answers[1:]:
        messages += [*user_turn(""), *assistant_turn(text)]
    return messages


def mt_bench_turn_texts(value: object, field: str) -> list[str]:
    if not isinstance(value, list) or not value:
        raise RowRefused(f"{field} must be a list with a text for each turn")
    # Turns of Arena-Hard are objects.
    return [text_of_content(turn, f"{field}, turn {number}") for number, turn in enumerate(value, 1)]


def mt_bench_pair_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """A judge's two games: in the second model_2 stood first. The winner is named in both."""
    return *mt_bench_games(record, options), *unread_column_notices(record.values, OF_PAIR, record.line)


def mt_bench_games(record: Record, options: ReadOptions) -> Iterator[VerdictRow]:
    values = record.values
    question = required_text(values, "question_id").strip()
    key = optional_text(values, "query_id").strip() or mt_bench_question_key(question, mt_bench_turn(values))
    for game, shown in GAMES:
        judgment = optional_text(values, f"{game}_judgment")
        yield VerdictRow(
            line=record.line,
            query_key=prefix_key(key, options),
            candidate_a=required_name(values, "model_1"),
            candidate_b=required_name(values, "model_2"),
            rater=mt_bench_judge(values, options),
            rater_kind=options.rater_kind or RaterKind.JUDGE,
            aspect=DEFAULT_ASPECT,
            choice=judgment_failure(judgment) if judgment == API_ERROR else mt_bench_winner(values, f"{game}_winner"),
            shown=shown,
            rationale="" if judgment == API_ERROR else judgment,
            created_at=iso_timestamp(values),
        )


def mt_bench_winner(values: Mapping[str, Any], field: str) -> str:
    winner = required_text(values, field).strip()
    if winner not in WINNERS:
        raise RowRefused(f"{field} is “{winner[:40]}”; expected model_1, model_2, tie or error")
    return WINNERS[winner]


def mt_bench_score_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """A judge's score of one answer; without a readable score, a failure of the judge."""
    values = record.values
    value = required_number(values, "score")
    judgment = optional_text(values, "judgment")
    has_failed = value == NO_SCORE
    question = required_text(values, "question_id").strip()
    name, other = candidate_of_record(record, options, "model")
    score = ScoreRow(
        line=record.line,
        query_key=prefix_key(mt_bench_question_key(question, mt_bench_turn(values)), options),
        candidate=name,
        overruled=other,
        rater=mt_bench_judge(values, options),
        rater_kind=options.rater_kind or RaterKind.JUDGE,
        aspect=DEFAULT_ASPECT,
        value=None if has_failed else value,
        rationale="" if judgment == API_ERROR else judgment,
        failure=judgment_failure(judgment) if has_failed else "",
    )
    return score, *unread_column_notices(values, OF_SINGLE, record.line)


def judgment_failure(judgment: str) -> str:
    return CallState.FAILED if judgment == API_ERROR else CallState.UNREADABLE


def mt_bench_judge(values: Mapping[str, Any], options: ReadOptions) -> str:
    """The judge's model; the name of its prompt, which varies by category and turn, is ignored."""
    judge = values.get("judge")
    name = judge[0] if isinstance(judge, list) and judge else judge
    rater = options.rater or (name if isinstance(name, str) else "")
    if not rater.strip() or len(rater) > MAX_KEY:
        raise RowRefused("the judge’s name is missing or too long. Set one for the whole file")
    return rater


def iso_timestamp(values: Mapping[str, Any], field: str = "tstamp") -> str | None:
    """A time in seconds or milliseconds since 1970, or spelled out, as ISO 8601; None where it is none of these."""
    moment = values.get(field)
    if isinstance(moment, bool) or not isinstance(moment, (int, float, str)):
        return None
    if isinstance(moment, str) and not NUMBER.fullmatch(moment.strip()):
        try:
            return iso_time(values, field)
        except RowRefused:
            return None
    seconds = float(moment)
    seconds = seconds / 1_000 if seconds >= MILLISECONDS else seconds
    return datetime.fromtimestamp(seconds, UTC).isoformat() if 0 < seconds < MILLISECONDS else None


MT_BENCH_FORMATS: Final = (
    ImportFormat(FileFormat.MT_BENCH, (COMPARISONS,), ("question_id", "category", "turns"), mt_bench_question_rows),
    ImportFormat(
        FileFormat.MT_BENCH,
        (COMPARISONS,),
        ("question_id", "model_id", "choices"),
        mt_bench_answer_rows,
        needs_pairing=True,
    ),
    ImportFormat(
        FileFormat.MT_BENCH,
        (VERDICTS,),
        ("question_id", "model_1", "model_2", "g1_winner", "g2_winner"),
        mt_bench_pair_rows,
    ),
    ImportFormat(FileFormat.MT_BENCH, (SCORES,), ("question_id", "model", "score", "judgment"), mt_bench_score_rows),
)
