"""Chatbot Arena: two conversations with the same beginning, and the winner.

Published in this layout: the conversations of the Arena, its preferences (chat messages, or lists of prompts and
responses in the cells of a table), and the votes of people and of GPT-4 on MT-bench.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, Final

from evaluations.domain.choices import INCONSISTENT, ShownOrder
from evaluations.domain.files import ComparisonRow, FileFormat, FileRow, ReadOptions
from evaluations.domain.roles import RaterKind
from evaluations.domain.texts import Messages
from evaluations.formats.chat_messages import parse_response, text_of_content
from evaluations.formats.conversations import (
    assistant_turn,
    conversation_until_turn,
    first_candidate_name,
    first_question_length,
    left_out_notices,
    make_comparison,
    make_query,
    make_verdict,
    parse_turns,
    remaining_metadata,
    require_response,
    user_turn,
)
from evaluations.formats.import_format import COMPARISONS, VERDICTS, ImportFormat
from evaluations.formats.label_parser import parse_label
from evaluations.formats.mt_bench import MAX_TURNS, iso_timestamp, mt_bench_judge, mt_bench_turn
from evaluations.formats.record_streams import FileSample, Record, fits_mostly
from evaluations.formats.values import (
    RowRefused,
    json_or_none,
    optional_text,
    parse_structured_value,
    required_name,
    required_text,
)

TIE_OF_TWO: Final = "tie (inconsistent)"  # of a judge's two orders
VOTER: Final = "arena voter"  # for files that do not identify their voters
# Beginnings of model names, with or without a maker; no letter may follow, so that Claudette is a person.
A_MODEL: Final = re.compile(
    r"(?:[\w.-]+/)*(?:(?:chat|all)?-?gpt|o[1-9](?![a-z0-9])|claude|gemini|gemma|palm|bard|(?:meta-)?llama|mistral|mixtral|ministral"
    r"|magistral|deepseek|qwen|qwq|grok|command-?[ra]|nova-(?:pro|lite|micro|premier)|phi-?\d|yi-\d+b?|glm|chatglm|kimi|minimax|hunyuan|ernie|doubao|moonshot"
    r"|nemotron|jamba|dbrx|falcon|vicuna|alpaca|reka|internlm|baichuan|judge|prometheus|pandalm|auto-?j|skywork|selene)(?![a-z])"
)
TIMES: Final = ("tstamp", "timestamp")
IDS: Final = ("question_id", "conversation_id", "id")
NOT_KEPT: Final = (  # long, or redundant
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


def arena_battle_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """A comparison and its vote, with the conversation up to ``turn``."""
    values = record.values
    turn = mt_bench_turn(values) if values.get("turn") not in (None, "") else MAX_TURNS
    both = [conversation_until_turn(parse_turns(values.get(side), side), turn) for side in CONVERSATIONS]
    ends = [first_question_length(messages, "the conversation") for messages in both]
    question = both[0][: ends[0]]
    if question != both[1][: ends[1]]:
        raise RowRefused("the two conversations begin with different questions")
    responses = [
        require_response(messages[end:], side) for side, messages, end in zip(CONVERSATIONS, both, ends, strict=True)
    ]
    winner = required_text(values, "winner").strip()
    return arena_comparison_rows(record, options, question, responses, winner)


def has_lists_of_turns(sample: FileSample) -> bool:
    """Whether prompts and both responses are lists with a text for each turn, in the rows that were looked at.

    A single text that is a JSON list is an ordinary answer and stays a text.
    """
    return fits_mostly(
        is_list_of_texts(row.get("prompt")) and all(is_list_of_texts(row.get(side)) for side in RESPONSES)
        for row in sample.rows
        if row.get("prompt") is not None
    )


def is_list_of_texts(value: object) -> bool:
    if isinstance(value, str):
        value = json_or_none(value) if value.lstrip().startswith("[") else None
    return isinstance(value, list) and bool(value) and all(isinstance(text, (str, list, NoneType)) for text in value)


def arena_table_reader(sample: FileSample) -> Callable[[Record, ReadOptions], tuple[FileRow, ...]]:
    return arena_turn_rows if has_lists_of_turns(sample) else arena_text_rows


def arena_turn_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """Rows of tables with prompts and answers as lists, and three columns for the winner."""
    values = record.values
    prompts = texts_of_turns(values, "prompt")
    responses = []
    for side in RESPONSES:
        answers = texts_of_turns(values, side)
        if len(answers) != len(prompts):
            raise RowRefused(f"{side} has {len(answers)} turns, but prompt has {len(prompts)}")
        messages = list(assistant_turn(answers[0]))
        for prompt, answer in zip(prompts[1:], answers[1:], strict=True):
            messages += [*user_turn(prompt), *assistant_turn(answer)]
        responses.append(messages)
    return arena_comparison_rows(record, options, user_turn(prompts[0]), responses, arena_winner(values))


def arena_text_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """Rows of a table with one text each for the prompt and the two answers."""
    values = record.values
    responses = [parse_response(values, side) for side in RESPONSES]
    return arena_comparison_rows(
        record, options, user_turn(required_text(values, "prompt")), responses, arena_winner(values)
    )


def arena_winner(values: Mapping[str, Any]) -> str:
    if not any(column in values for column, _ in WON):
        return required_text(values, "winner").strip()
    won = [name for column, name in WON if optional_text(values, column).strip().lower() in ("1", "true", "1.0")]
    if len(won) != 1:
        raise RowRefused("one of winner_model_a, winner_model_b and winner_tie must be 1")
    return won[0]


def arena_question_key(question: str, turn: int) -> str:
    """Turn 1 of a question has the question's own id. An id of the Arena, which is no number, is of one vote."""
    return question if turn <= 1 or not question.isdecimal() else f"{question}-{turn}"


def texts_of_turns(values: Mapping[str, Any], field: str) -> list[str]:
    turns = parse_structured_value(values.get(field), field)
    if not isinstance(turns, list) or not turns:
        raise RowRefused(f"{field} must be a list with a text for each turn, as in the rows before")
    # Published tables have null for no answer.
    return ["" if text is None else text_of_content(text, field) for text in turns]


def arena_comparison_rows(
    record: Record, options: ReadOptions, question: Messages, responses: Sequence[Messages], winner: str
) -> tuple[FileRow, ...]:
    values = record.values
    own = first_candidate_name(values, *IDS)
    # Only files that were exported here have a query_id.
    key = first_candidate_name(values, "query_id") or arena_question_key(own, mt_bench_turn(values))
    query = make_query(question, options, key=key, cluster=own)
    names = required_name(values, "model_a"), required_name(values, "model_b")
    comparison = make_comparison(record, query, names, responses, remaining_metadata(values, KNOWN))
    if comparison.candidate_a == comparison.candidate_b:
        raise RowRefused(f"both models are “{comparison.candidate_a}”, so there is nothing to compare")
    rater, kind = arena_voter(values, options)
    choice, strength = arena_choice(winner, comparison)
    moments = {column: iso_timestamp(values, column) for column in TIMES if values.get(column) not in (None, "")}
    if choice == INCONSISTENT and kind != RaterKind.JUDGE:
        raise RowRefused("only a judge can have the winner “tie (inconsistent)”")
    verdict = make_verdict(
        comparison,
        rater,
        kind,
        choice,
        strength=strength,
        shown=arena_order_shown(values, own, kind, choice),
        created_at=next(filter(None, moments.values()), None),
    )
    no_times = [column for column, moment in moments.items() if moment is None]
    return comparison, verdict, *left_out_notices(values, (*NOT_KEPT, *no_times), record.line)


def arena_choice(winner: str, comparison: ComparisonRow) -> tuple[str, str]:
    """The choice and how strongly: in the Arena's words or any others, or the name of a model."""
    if winner.lower() == TIE_OF_TWO:
        return INCONSISTENT, ""
    label = parse_label(winner, (comparison.candidate_a,), (comparison.candidate_b,))
    if label is None:
        raise RowRefused(f"winner is “{winner[:40]}”; expected model_a, model_b, tie or tie (bothbad)")
    return label.choice, label.strength


def arena_voter(values: Mapping[str, Any], options: ReadOptions) -> tuple[str, RaterKind]:
    """The rater that the row names; a judge where the name is a model's."""
    name = mt_bench_judge(values, options) if values.get("judge") else options.rater or VOTER
    looks_like = RaterKind.JUDGE if A_MODEL.match(name.lower()) else RaterKind.HUMAN
    return name, options.rater_kind or looks_like


def arena_order_shown(values: Mapping[str, Any], question: str, kind: RaterKind, choice: str) -> ShownOrder:
    """In the Arena model_a is shown on the left; for MT-bench, whose questions are numbers, the order is unknown."""
    if choice == INCONSISTENT or kind == RaterKind.JUDGE:
        return ShownOrder.FOLDED
    if "shown_swapped" in values:  # our own files: model_a was on the left if the order is known
        return ShownOrder.UNKNOWN if values["shown_swapped"] is None else ShownOrder.AS_STORED
    return ShownOrder.UNKNOWN if "turn" in values and question.isdecimal() else ShownOrder.AS_STORED


ARENA_FORMATS: Final = (
    ImportFormat(
        FileFormat.ARENA,
        (COMPARISONS, VERDICTS),
        ("model_a", "model_b", "winner", "conversation_a", "conversation_b"),
        arena_battle_rows,
    ),
    ImportFormat(
        FileFormat.ARENA,
        (COMPARISONS, VERDICTS),
        ("model_a", "model_b", "prompt", "response_a", "response_b", *(column for column, _ in WON)),
        arena_text_rows,
        learn_reader=arena_table_reader,
    ),
    ImportFormat(
        FileFormat.ARENA,
        (COMPARISONS, VERDICTS),
        ("model_a", "model_b", "prompt", "response_a", "response_b", "winner"),
        arena_text_rows,
        learn_reader=arena_table_reader,
        has_common_columns=True,
    ),
)
