"""Preference data: a prompt, a chosen and a rejected response, as reward models are trained on and tested with.

Plain text and chat messages; the prompt apart, or as the beginning that both have in common, or as a transcript.
Which one was chosen must show in nothing but the verdict, and A is the candidate whose name sorts first: two responses
without names are therefore named by their texts.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, Final

from evaluations.domain import (
    Choice,
    ComparisonRow,
    Message,
    Messages,
    QueryPart,
    RaterKind,
    Reading,
    Row,
    VerdictRow,
)
from evaluations.formats.conversing import (
    UNNAMED,
    answered,
    asked,
    candidate,
    key_of,
    left_out,
    named_by_text,
    query_of,
    remainder,
    said,
    shared_beginning,
)
from evaluations.formats.file_sample import FileSample, mostly
from evaluations.formats.messages import ROLE_KEYS, TEXT_KEYS, one_message, optional_messages, refuse_media_columns
from evaluations.formats.rows import DEFAULT_ASPECT
from evaluations.formats.streams import Record
from evaluations.formats.values import MAX_CATEGORY, RowRefused, as_text, from_json, optional_text
from evaluations.formats.wording import with_strength

CHOSEN_NAMES: Final = ("chosen_model", "chosen-model", "model_chosen")
REJECTED_NAMES: Final = ("rejected_model", "rejected-model", "model_rejected")
IDS: Final = ("query_id", "id")
INPUT: Final = "input.messages"
PROMPTS: Final = ("prompt", "question", "instruction", "query", "conversations", INPUT, "input")
OF_QUERY: Final = ("cluster", "category", "subset", "context", "reference", "system")
# What LLaMA-Factory, as Alpaca before it, has beside an instruction.
OF_INSTRUCTION: Final = ("input", "history")
# What stands beside them repeats them, or says which was chosen in other words.
OF_EXPORTS: Final = ("votes", "agreement", "label_by", "label_source", "split")
TELLING: Final = ("messages", "margin", *OF_EXPORTS)
SIDES: Final = ("chosen", "rejected")
RESPONSES: Final = ("chosen_response", "rejected_response")
OUTPUTS: Final = ("preferred_output", "non_preferred_output")
KNOWN: Final = frozenset({*IDS, *SIDES, *OUTPUTS, *CHOSEN_NAMES, *REJECTED_NAMES, *OF_QUERY, *TELLING})
TRANSCRIPT: Final = re.compile(r"(?:\A|\n\n)(Human|Assistant): ?")
SPEAKER: Final = {"Human": "user", "Assistant": "assistant"}
# Beside two texts that begin with the prompt stand names and numbers alone.
NAME_OF_SOMETHING: Final = re.compile(r"[\w./:+-]+", re.ASCII)
QUESTIONS: Final = frozenset(
    {"text", "question", "user", "context", "task", "problem", "frage", "pregunta", "pergunta", "domanda"}
)
NO_PROMPT: Final = (
    "has no prompt, and chosen and rejected do not begin with the same question: "
    "say which column is the prompt, as COLUMN=prompt"
)
GOLD: Final = "gold"


def has_texts(sample: FileSample) -> bool:
    """Whether the two are responses: in other files they are the numbers of responses, or scores."""
    return mostly(not isinstance(one, (int, float)) for field in SIDES for one in sample.values(field))


def rows_of_file(sample: FileSample) -> Callable[[Record, Reading], tuple[Row, ...]]:
    """Chat messages that are JSON in cells are so throughout a column; one text that is JSON stays a text."""
    found = encoded_columns(sample, (*PROMPTS, *SIDES))
    return partial(preference_rows, encoded=found if found.issuperset(SIDES) else found.difference(SIDES))


def encoded_columns(sample: FileSample, columns: Sequence[str]) -> set[str]:
    return {field for field in columns if holds_encoded_turns(sample.values(field))}


def with_decoded(values: Mapping[str, Any], encoded: Set[str]) -> Mapping[str, Any]:
    return {**values, **{field: from_json(values.get(field), field) for field in encoded}}


def holds_encoded_turns(values: Sequence[Any]) -> bool:
    return bool(values) and mostly(map(is_encoded_turns, values))


def is_encoded_turns(value: object) -> bool:
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return False
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return False
    turns = found if isinstance(found, list) else [found]
    return bool(turns) and all(isinstance(one, dict) and is_turn(one) for one in turns)


def is_turn(given: Mapping[str, Any]) -> bool:
    return any(key in given for key in ROLE_KEYS) and any(key in given for key in TEXT_KEYS)


def preference_rows(record: Record, reading: Reading, encoded: Set[str] = frozenset()) -> tuple[Row, ...]:
    values = with_decoded(record.values, encoded)
    rows = (row for one in pairs_in(values) for row in pair_rows(record, one, reading))
    return *rows, *left_out(values, unread_columns(values), record.line)


def response_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    """The same under other names, as Axolotl has them."""
    told = dict(zip(RESPONSES, SIDES, strict=True))
    return preference_rows(
        replace(record, values={told.get(name, name): one for name, one in record.values.items()}), reading
    )


def fine_tuning_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    """The preferences that OpenAI's models are fine-tuned with: an input, and one output preferred to another."""
    given = record.values.get("input")
    if isinstance(given, dict):
        refuse_media_columns(given)
        given = given.get("messages")
    if not isinstance(given, list):
        raise RowRefused("input must hold messages")
    values = {**{column: value for column, value in record.values.items() if column != "input"}, INPUT: given}
    return *pair_rows(record, values, reading, OUTPUTS), *left_out(values, unread_columns(values), record.line)


def pairs_in(values: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The pairs of a row: of a list of texts each chosen one with each rejected one, all of one cluster."""
    chosen, rejected = texts_in(values.get("chosen")), texts_in(values.get("rejected"))
    if chosen is None or rejected is None:
        yield values
        return
    others = {column: value for column, value in values.items() if column not in (*IDS, *CHOSEN_NAMES, *REJECTED_NAMES)}
    for one, other in product(chosen, rejected):
        yield {**others, "chosen": one, "rejected": other}


def texts_in(given: object) -> list[str] | None:
    return given if isinstance(given, list) and given and all(isinstance(one, str) for one in given) else None


def pair_rows(
    record: Record, values: Mapping[str, Any], reading: Reading, sides: tuple[str, str] = SIDES
) -> tuple[Row, ...]:
    prompt, chosen, rejected = taken_apart(values, *sides)
    names = names_of(values, chosen, rejected)
    query = query_part(values, reading, prompt, chosen, rejected, unnamed=names[0] in UNNAMED)
    comparison = ComparisonRow(
        line=record.line,
        query=query,
        # By name, so that not even the order of the columns tells.
        candidate_a=min(names),
        response_a=chosen if names[0] < names[1] else rejected,
        candidate_b=max(names),
        response_b=rejected if names[0] < names[1] else chosen,
        metadata=metadata_of(values),
    )
    return comparison, VerdictRow(
        line=record.line,
        query_key=query.key,
        candidate_a=comparison.candidate_a,
        candidate_b=comparison.candidate_b,
        rater=reading.rater or GOLD,
        rater_kind=reading.rater_kind or RaterKind.GOLD,
        aspect=DEFAULT_ASPECT,
        choice=Choice.A if names[0] < names[1] else Choice.B,
        note=with_strength("", margin_of(values)),
    )


def metadata_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """What tells nothing; of a data set with splits also which one, where that is not an export's own."""
    known = KNOWN | used_of(values) if "label_source" in values else (KNOWN | used_of(values)) - {"split"}
    return {column: value for column, value in remainder(values, known).items() if not tells(column, values)}


def used_of(values: Mapping[str, Any]) -> Set[str]:
    """The columns that the prompt is made of."""
    field = prompt_field(values)
    return {field or "", *(OF_INSTRUCTION if field == "instruction" and isinstance(values[field], str) else ())}


def margin_of(values: Mapping[str, Any]) -> str:
    """By how much the chosen one is better, where the file has a number for it."""
    given = values.get("margin")
    return as_text(given, "margin") if isinstance(given, (str, int, float)) else ""


def unread_columns(values: Mapping[str, Any]) -> list[str]:
    """What says in other words which was chosen; and of lists, whose pairs are queries of their own, ids and names."""
    of_lists = (*IDS, *CHOSEN_NAMES, *REJECTED_NAMES) if texts_in(values.get("chosen")) else ()
    unread = {*of_lists, *(OF_EXPORTS if "label_source" in values else ())}
    known = KNOWN | used_of(values)
    return [column for column in values if column in unread or (column not in known and tells(column, values))]


def tells(column: str, values: Mapping[str, Any]) -> bool:
    """Whether a column says which of the two was chosen: by its name, in these words, or by repeating the one text."""
    if any(word in column for word in (*SIDES, "preferred")):
        return True
    value = values[column]
    if isinstance(value, list):
        return any(one in SIDES for one in value if isinstance(one, str))
    if not isinstance(value, str) or not value.strip():
        return False
    texts = [last_words(values.get(field)) for field in (*SIDES, *OUTPUTS)]
    return value.strip().lower() in SIDES or texts.count(value.strip()) == 1


def last_words(given: object) -> str:
    last = given[-1] if isinstance(given, list) and given else given
    text = last.get("content") if isinstance(last, dict) else last
    return text.strip() if isinstance(text, str) else ""


def names_of(values: Mapping[str, Any], chosen: Messages, rejected: Messages) -> tuple[str, str]:
    """The models where the row names two, else names made of the texts."""
    names = candidate(values, *CHOSEN_NAMES), candidate(values, *REJECTED_NAMES)
    return names if all(names) and names[0] != names[1] else named_by_text(chosen, rejected)


def query_part(
    values: Mapping[str, Any], reading: Reading, prompt: Messages, chosen: Messages, rejected: Messages, unnamed: bool
) -> QueryPart:
    """Under the file's id, or one of its words. Without names a prompt may have many pairs: each is a query then."""
    words = key_of(prompt)
    pair = key_of([prompt, *sorted((key_of(chosen), key_of(rejected)))])
    query = query_of(
        prompt,
        reading,
        key=candidate(values, *IDS) or (pair if unnamed else words),
        cluster=candidate(values, "cluster") or words,
        reference=optional_text(values, "reference"),
        category=optional_text(values, "category", MAX_CATEGORY) or optional_text(values, "subset", MAX_CATEGORY),
    )
    return replace(query, context=optional_text(values, "context") or None)


def taken_apart(values: Mapping[str, Any], chosen_in: str, rejected_in: str) -> tuple[Messages, Messages, Messages]:
    """The prompt and both responses, in whichever layout they stand."""
    prompt = prompt_of(values)
    chosen, rejected = side(values, chosen_in, prompt), side(values, rejected_in, prompt)
    if not prompt or starts(prompt, chosen, rejected):
        shared = shared_beginning(chosen, rejected)
        if not shared:
            return begun_alike(values, chosen_in, rejected_in)
        # The prompt apart may say more than what both repeat of it, such as the system's words.
        is_longer = list(prompt[-shared:]) == list(chosen[:shared])
        prompt = prompt if is_longer else with_system(values, chosen[:shared])
        chosen, rejected = chosen[shared:], rejected[shared:]
    if prompt[-1]["role"] != "user":
        raise RowRefused("prompt must end with a turn of the user")
    return prompt, said(chosen, chosen_in), said(rejected, rejected_in)


def prompt_field(values: Mapping[str, Any]) -> str | None:
    return next((name for name in PROMPTS if values.get(name) not in (None, "", [])), None)


def prompt_of(values: Mapping[str, Any]) -> Messages:
    """The question in one of several columns, with what the row says went before it; nothing where there is none."""
    field = prompt_field(values)
    if field is None:
        return with_system(values, question_in_messages(values.get("messages")))
    given = values[field]
    if isinstance(given, (list, dict)):
        return with_system(values, as_turns(given, field))
    text = as_text(given, field)
    if field != "instruction":
        return with_system(values, spoken_by(text, "user"))
    parts = [text, optional_text(values, "input")]
    return with_system(values, [*history_of(values), *spoken_by("\n".join(filter(None, parts)), "user")])


def with_system(values: Mapping[str, Any], messages: Messages) -> Messages:
    system = optional_text(values, "system")
    if system.strip() and messages and messages[0]["role"] != "system":
        return [{"role": "system", "content": system}, *messages]
    return messages


def question_in_messages(given: object) -> Messages:
    """The messages beside two answers, where they end with the question; else they repeat one of the answers."""
    messages = optional_messages(given, "messages") if isinstance(given, list) and given else []
    return messages if messages and messages[-1]["role"] == "user" else []


def history_of(values: Mapping[str, Any]) -> Messages:
    """Earlier rounds of a conversation, as pairs of what was asked and answered."""
    given = from_json(values.get("history"), "history") or []
    if not isinstance(given, list) or not all(isinstance(one, list) and len(one) == 2 for one in given):
        raise RowRefused("history must be a list of pairs of a question and an answer")
    rounds = ((as_text(one, "history"), as_text(other, "history")) for one, other in given)
    return [turn for question, answer in rounds for turn in (*asked(question), *answered(answer))]


def starts(prompt: Messages, chosen: Messages, rejected: Messages) -> bool:
    """Whether both responses are whole conversations, that repeat what the prompt says."""
    return any(one["role"] == "user" and one["content"] == prompt[-1]["content"] for one in chosen) and bool(
        shared_beginning(chosen, rejected)
    )


def side(values: Mapping[str, Any], field: str, prompt: Messages) -> Messages:
    given = values.get(field)
    if given is None:
        raise RowRefused(f"{field} is missing")
    if isinstance(given, (list, dict)):
        return as_turns(given, field)
    text = as_text(given, field)
    turns = spoken_by(text, "assistant")
    # Beside a prompt a transcript is one where it goes on with it or repeats it; else it is what was answered.
    repeats = not prompt or len(prompt) > 1 or turns[0]["role"] == "assistant" or prompt[-1] in turns
    return turns if repeats else answered(text)


def as_turns(given: object, field: str) -> Messages:
    return [one_message(given, field)] if isinstance(given, dict) else optional_messages(given, field)


def begun_alike(values: Mapping[str, Any], chosen_in: str, rejected_in: str) -> tuple[Messages, Messages, Messages]:
    """Two texts of which the prompt is what both begin with, parted where TRL parts them."""
    chosen, rejected = values.get(chosen_in), values.get(rejected_in)
    others = [value for column, value in metadata_of(values).items() if may_be_prompt(column, value)]
    if not isinstance(chosen, str) or not isinstance(rejected, str) or others:
        raise RowRefused(NO_PROMPT)
    end = next((place for place, (one, other) in enumerate(zip(chosen, rejected, strict=False)) if one != other), None)
    if end is None:
        raise RowRefused(
            "has no prompt, and one text is the whole beginning of the other: give the prompt a column of its own"
        )
    if not chosen[:end].strip():
        raise RowRefused(NO_PROMPT)
    end -= chosen[end - 1] == " "
    return with_system(values, asked(chosen[:end])), answered(chosen[end:]), answered(rejected[end:])


def may_be_prompt(column: str, value: object) -> bool:
    """Whether it is more than the name or the number of something: then it may be what was asked."""
    if not isinstance(value, str) or not value.strip():
        return False
    return column.lower() in QUESTIONS or not NAME_OF_SOMETHING.fullmatch(value.strip())


def spoken_by(text: str, role: str) -> Messages:
    """A text as one turn; a transcript as the turns that it is made of."""
    parts = TRANSCRIPT.split(text)
    if len(parts) < 3 or parts[0].strip():
        return asked(text) if role == "user" else answered(text)
    spoken: list[Message] = [
        {"role": SPEAKER[speaker], "content": words.strip()}
        for speaker, words in zip(parts[1::2], parts[2::2], strict=True)
    ]
    if role == "user" and spoken[-1] == {"role": "assistant", "content": ""}:
        spoken.pop()  # a prompt that ends where the assistant is to go on
    return spoken
