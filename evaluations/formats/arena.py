"""Chatbot Arena and what has its layout: two conversations that begin alike, and who won.

So are published: the conversations of the Arena, its preferences (chat messages, or lists of prompts and responses in
the cells of a table), and people's and GPT-4's votes on MT-bench.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, Final

from evaluations.domain import (
    INCONSISTENT,
    ComparisonRow,
    Messages,
    RaterKind,
    Reading,
    Row,
    Shown,
    VerdictRow,
)
from evaluations.formats.conversing import (
    answered,
    asked,
    candidate,
    first_question,
    left_out,
    query_of,
    remainder,
    said,
    turns,
    up_to_turn,
)
from evaluations.formats.file_sample import FileSample, mostly
from evaluations.formats.messages import response, words
from evaluations.formats.mt_bench import MAX_TURNS, judge_of, turn_of, when
from evaluations.formats.rows import DEFAULT_ASPECT
from evaluations.formats.streams import Record
from evaluations.formats.values import RowRefused, from_json, optional_text, required_name, required_text
from evaluations.formats.wording import parse_label, with_strength

TIE_OF_TWO: Final = "tie (inconsistent)"  # of a judge's two orders
VOTER: Final = "arena voter"  # where the file does not say which of its many voters it was
# How the names of models begin, a maker's before them or not; no letter follows, so that Claudette is a person.
A_MODEL: Final = re.compile(
    r"(?:[\w.-]+/)*(?:(?:chat|all)?-?gpt|o[1-9](?![a-z0-9])|claude|gemini|gemma|palm|bard|(?:meta-)?llama|mistral|mixtral|ministral"
    r"|magistral|deepseek|qwen|qwq|grok|command-?[ra]|nova-(?:pro|lite|micro|premier)|phi-?\d|yi-\d+b?|glm|chatglm|kimi|minimax|hunyuan|ernie|doubao|moonshot"
    r"|nemotron|jamba|dbrx|falcon|vicuna|alpaca|reka|internlm|baichuan|judge|prometheus|pandalm|auto-?j|skywork|selene)(?![a-z])"
)
TIMES: Final = ("tstamp", "timestamp")
IDS: Final = ("question_id", "conversation_id", "id")
NOT_KEPT: Final = (  # long, or said twice
    *("full_conversation", "openai_moderation", "toxic_chat_tag", "conv_metadata", "judge_hash", "dedup_tag"),
)
KNOWN: Final = frozenset(
    {*IDS, "model_a", "model_b", "winner", "judge", "conversation_a", "conversation_b", "turn", "tstamp", "timestamp"}
    | {"prompt", "response_a", "response_b", "winner_model_a", "winner_model_b", "winner_tie"}
    | {*NOT_KEPT, "query_id", "shown_swapped"}
)
RESPONSES: Final = ("response_a", "response_b")
CONVERSATIONS: Final = ("conversation_a", "conversation_b")
WON: Final = (("winner_model_a", "model_a"), ("winner_model_b", "model_b"), ("winner_tie", "tie"))


def battle_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    """A comparison and its vote. ``turn`` says how far the conversation had come when it was judged."""
    values = record.values
    turn = turn_of(values) if values.get("turn") not in (None, "") else MAX_TURNS
    both = [up_to_turn(turns(values.get(side), side), turn) for side in CONVERSATIONS]
    ends = [first_question(messages, "the conversation") for messages in both]
    question = both[0][: ends[0]]
    if question != both[1][: ends[1]]:
        raise RowRefused("the two conversations begin with different questions")
    responses = [said(messages[end:], side) for side, messages, end in zip(CONVERSATIONS, both, ends, strict=True)]
    winner = required_text(values, "winner").strip()
    return compared(record, reading, question, responses, winner)


def has_lists_of_turns(sample: FileSample) -> bool:
    """Whether prompts and both responses are lists with a text for each turn, in the rows that were looked at.

    One text that is a JSON list is an answer like any other: it stays the text that it is.
    """
    return mostly(
        is_list_of_texts(row.get("prompt")) and all(is_list_of_texts(row.get(side)) for side in RESPONSES)
        for row in sample.rows
        if row.get("prompt") is not None
    )


def is_list_of_texts(given: object) -> bool:
    if isinstance(given, str):
        if not given.lstrip().startswith("["):
            return False
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return False
    return isinstance(given, list) and bool(given) and all(isinstance(one, (str, list, NoneType)) for one in given)


def rows_of_table(sample: FileSample) -> Callable[[Record, Reading], tuple[Row, ...]]:
    return rows_of_turns if has_lists_of_turns(sample) else rows_of_texts


def rows_of_turns(record: Record, reading: Reading) -> tuple[Row, ...]:
    """The layout of tables: what the user said and what both answered as lists, and three columns for who won."""
    values = record.values
    prompts = spoken(values, "prompt")
    responses = []
    for side in RESPONSES:
        answers = spoken(values, side)
        if len(answers) != len(prompts):
            raise RowRefused(f"{side} has {len(answers)} turns where prompt has {len(prompts)}")
        messages = list(answered(answers[0]))
        for prompt, answer in zip(prompts[1:], answers[1:], strict=True):
            messages += [*asked(prompt), *answered(answer)]
        responses.append(messages)
    return compared(record, reading, asked(prompts[0]), responses, winner_of(values))


def rows_of_texts(record: Record, reading: Reading) -> tuple[Row, ...]:
    """The same with one text for the prompt and for each answer."""
    values = record.values
    responses = [response(values, side) for side in RESPONSES]
    return compared(record, reading, asked(required_text(values, "prompt")), responses, winner_of(values))


def winner_of(values: Mapping[str, Any]) -> str:
    if not any(column in values for column, _ in WON):
        return required_text(values, "winner").strip()
    won = [name for column, name in WON if optional_text(values, column).strip().lower() in ("1", "true", "1.0")]
    if len(won) != 1:
        raise RowRefused("one of winner_model_a, winner_model_b and winner_tie must be 1")
    return won[0]


def question_key(question: str, turn: int) -> str:
    """Turn 1 of a question has the question's own id. An id of the Arena, which is no number, is of one vote."""
    return question if turn <= 1 or not question.isdecimal() else f"{question}-{turn}"


def spoken(values: Mapping[str, Any], field: str) -> list[str]:
    given = from_json(values.get(field), field)
    if not isinstance(given, list) or not given:
        raise RowRefused(f"{field} must be a list with a text for each turn, as in the rows before")
    return ["" if one is None else words(one, field) for one in given]  # published tables have null for no answer


def compared(
    record: Record, reading: Reading, question: Messages, responses: Sequence[Messages], winner: str
) -> tuple[Row, ...]:
    values = record.values
    own = candidate(values, *IDS)
    key = candidate(values, "query_id") or question_key(own, turn_of(values))  # the first of our own files
    comparison = ComparisonRow(
        line=record.line,
        query=query_of(question, reading, key=key, cluster=own),
        candidate_a=required_name(values, "model_a"),
        response_a=responses[0],
        candidate_b=required_name(values, "model_b"),
        response_b=responses[1],
        metadata=remainder(values, KNOWN),
    )
    if comparison.candidate_a == comparison.candidate_b:
        raise RowRefused(f"both candidates are “{comparison.candidate_a}”: such a battle compares nothing")
    rater, kind = voter(values, reading)
    choice, strength = won_by(winner, comparison)
    moments = {column: when(values, column) for column in TIMES if values.get(column) not in (None, "")}
    if choice == INCONSISTENT and kind != RaterKind.JUDGE:
        raise RowRefused("the winner “tie (inconsistent)” can be a judge's only")
    verdict = VerdictRow(
        line=record.line,
        query_key=comparison.query.key,
        candidate_a=comparison.candidate_a,
        candidate_b=comparison.candidate_b,
        rater=rater,
        rater_kind=kind,
        aspect=DEFAULT_ASPECT,
        choice=choice,
        shown=order_shown(values, own, kind, choice),
        note=with_strength("", strength),
        created_at=next(filter(None, moments.values()), None),
    )
    no_times = [column for column, found in moments.items() if found is None]
    return comparison, verdict, *left_out(values, (*NOT_KEPT, *no_times), record.line)


def won_by(winner: str, comparison: ComparisonRow) -> tuple[str, str]:
    """The choice and how strongly: in the Arena's words or any others, or the name of a model."""
    if winner.lower() == TIE_OF_TWO:
        return INCONSISTENT, ""
    label = parse_label(winner, (comparison.candidate_a,), (comparison.candidate_b,))
    if label is None:
        raise RowRefused(f"winner is “{winner[:40]}” where model_a, model_b, tie or tie (bothbad) is expected")
    return label.choice, label.strength


def voter(values: Mapping[str, Any], reading: Reading) -> tuple[str, RaterKind]:
    """Who voted: whoever the row names, and a judge where the name is a model's."""
    name = judge_of(values, reading) if values.get("judge") else reading.rater or VOTER
    looks_like = RaterKind.JUDGE if A_MODEL.match(name.lower()) else RaterKind.HUMAN
    return name, reading.rater_kind or looks_like


def order_shown(values: Mapping[str, Any], question: str, kind: RaterKind, choice: str) -> Shown:
    """In the Arena model_a stands on the left. Of MT-bench, whose questions are numbers, it is not known."""
    if choice == INCONSISTENT or kind == RaterKind.JUDGE:
        return Shown.FOLDED
    if "shown_swapped" in values:  # our own files: model_a was on the left if the order is known
        return Shown.UNKNOWN if values["shown_swapped"] is None else Shown.AS_STORED
    return Shown.UNKNOWN if "turn" in values and question.isdecimal() else Shown.AS_STORED
