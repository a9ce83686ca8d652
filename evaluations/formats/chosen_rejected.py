"""Preference data: a prompt, a chosen and a rejected response.

Reads plain text and chat messages; the prompt apart, as the common beginning of both responses, or as a transcript.
Nothing but the verdict may reveal which response was chosen, and A is the candidate whose name sorts first: two
responses without names are therefore named by their texts.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, Final

from evaluations.domain.choices import Choice
from evaluations.domain.files import FileFormat, FileRow, QueryPart, ReadOptions
from evaluations.domain.roles import RaterKind
from evaluations.domain.texts import Message, Messages
from evaluations.formats.chat_messages import (
    ROLE_KEYS,
    TEXT_KEYS,
    parse_message,
    parse_optional_messages,
    refuse_media_columns,
)
from evaluations.formats.conversations import (
    UNNAMED,
    WITHOUT_NAMES,
    assistant_turn,
    first_candidate_name,
    left_out_notices,
    make_comparison,
    make_query,
    make_verdict,
    names_from_texts,
    remaining_metadata,
    require_response,
    shared_beginning,
    user_turn,
)
from evaluations.formats.import_format import COMPARISONS, VERDICTS, ImportFormat
from evaluations.formats.native_rows import content_hash_key
from evaluations.formats.record_streams import FileSample, Record, fits_mostly
from evaluations.formats.values import (
    MAX_CATEGORY,
    RowRefused,
    json_or_none,
    optional_text,
    parse_structured_value,
    value_as_text,
)

CHOSEN_NAMES: Final = ("chosen_model", "chosen-model", "model_chosen")
REJECTED_NAMES: Final = ("rejected_model", "rejected-model", "model_rejected")
IDS: Final = ("query_id", "id")
INPUT: Final = "input.messages"
PROMPTS: Final = ("prompt", "question", "instruction", "query", "conversations", INPUT, "input")
OF_QUERY: Final = ("cluster", "category", "subset", "context", "reference", "system")
# Columns that belong to an instruction in LLaMA-Factory and Alpaca.
OF_INSTRUCTION: Final = ("input", "history")
# Further columns that repeat the responses, or reveal in other words which was chosen.
OF_EXPORTS: Final = ("votes", "agreement", "label_by", "label_source", "split")
TELLING: Final = ("messages", "margin", *OF_EXPORTS)
SIDES: Final = ("chosen", "rejected")
RESPONSES: Final = ("chosen_response", "rejected_response")
OUTPUTS: Final = ("preferred_output", "non_preferred_output")
KNOWN: Final = frozenset({*IDS, *SIDES, *OUTPUTS, *CHOSEN_NAMES, *REJECTED_NAMES, *OF_QUERY, *TELLING})
TRANSCRIPT: Final = re.compile(r"(?:\A|\n\n)(Human|Assistant): ?")
SPEAKER: Final = {"Human": "user", "Assistant": "assistant"}
# Where both texts begin with the prompt, other columns hold only names and numbers.
NAME_OF_SOMETHING: Final = re.compile(r"[\w./:+-]+", re.ASCII)
QUESTIONS: Final = frozenset(
    {"text", "question", "user", "context", "task", "problem", "frage", "pregunta", "pergunta", "domanda"}
)
NO_PROMPT: Final = (
    "has no prompt, and chosen and rejected begin with different questions. Map the prompt column, as COLUMN=prompt"
)
GOLD: Final = "gold"


def has_texts(sample: FileSample) -> bool:
    """Whether both columns contain responses instead of numbers of responses or scores."""
    return fits_mostly(not isinstance(value, (int, float)) for field in SIDES for value in sample.values(field))


def preference_rows_reader(sample: FileSample) -> Callable[[Record, ReadOptions], tuple[FileRow, ...]]:
    """A reader that decodes columns of JSON chat messages; a single text that is JSON stays a text."""
    encoded = encoded_columns(sample, (*PROMPTS, *SIDES))
    return partial(preference_rows, encoded=encoded if encoded.issuperset(SIDES) else encoded.difference(SIDES))


def encoded_columns(sample: FileSample, columns: Sequence[str]) -> set[str]:
    """The columns whose cells are chat messages as JSON."""
    cells = {field: sample.values(field) for field in columns}
    return {field for field, values in cells.items() if values and fits_mostly(map(is_encoded_turns, values))}


def decode_turn_columns(values: Mapping[str, Any], encoded: Set[str]) -> Mapping[str, Any]:
    return {**values, **{field: parse_structured_value(values.get(field), field) for field in encoded}}


def is_encoded_turns(value: object) -> bool:
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return False
    parsed = json_or_none(value)
    turns = parsed if isinstance(parsed, list) else [parsed]
    return bool(turns) and all(
        isinstance(turn, dict) and not turn.keys().isdisjoint(ROLE_KEYS) and not turn.keys().isdisjoint(TEXT_KEYS)
        for turn in turns
    )


def preference_rows(record: Record, options: ReadOptions, encoded: Set[str] = frozenset()) -> tuple[FileRow, ...]:
    values = decode_turn_columns(record.values, encoded)
    rows = (row for pair in pairs_of_row(values) for row in preference_pair_rows(record, pair, options))
    return *rows, *left_out_notices(values, unread_preference_columns(values), record.line)


def chosen_response_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """Rows of preference files with Axolotl's column names."""
    standard_names = dict(zip(RESPONSES, SIDES, strict=True))
    return preference_rows(
        replace(record, values={standard_names.get(name, name): value for name, value in record.values.items()}),
        options,
    )


def fine_tuning_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """The preferences that OpenAI's models are fine-tuned with: an input, and one output preferred to another."""
    messages = record.values.get("input")
    if isinstance(messages, dict):
        refuse_media_columns(messages)
        messages = messages.get("messages")
    if not isinstance(messages, list):
        raise RowRefused("input must hold messages")
    values = {**{column: value for column, value in record.values.items() if column != "input"}, INPUT: messages}
    return *preference_pair_rows(record, values, options, OUTPUTS), *left_out_notices(
        values, unread_preference_columns(values), record.line
    )


def pairs_of_row(values: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The pairs of a row: of a list of texts each chosen one with each rejected one, all of one cluster."""
    chosen, rejected = list_of_texts(values.get("chosen")), list_of_texts(values.get("rejected"))
    if chosen is None or rejected is None:
        yield values
        return
    others = {column: value for column, value in values.items() if column not in (*IDS, *CHOSEN_NAMES, *REJECTED_NAMES)}
    for chosen_text, rejected_text in product(chosen, rejected):
        yield {**others, "chosen": chosen_text, "rejected": rejected_text}


def list_of_texts(value: object) -> list[str] | None:
    return value if isinstance(value, list) and value and all(isinstance(text, str) for text in value) else None


def preference_pair_rows(
    record: Record, values: Mapping[str, Any], options: ReadOptions, sides: tuple[str, str] = SIDES
) -> tuple[FileRow, ...]:
    prompt, chosen, rejected = split_prompt_and_responses(values, *sides)
    names = first_candidate_name(values, *CHOSEN_NAMES), first_candidate_name(values, *REJECTED_NAMES)
    if not all(names) or names[0] == names[1]:
        names = names_from_texts(chosen, rejected)
    pair = [prompt, *sorted((content_hash_key(chosen), content_hash_key(rejected)))]
    query = preference_query(values, options, prompt, content_hash_key(pair) if names[0] in UNNAMED else "")
    # The sides are sorted by name, so that their order does not reveal the choice.
    choice = Choice.A if names[0] < names[1] else Choice.B
    responses = (chosen, rejected) if choice == Choice.A else (rejected, chosen)
    comparison = make_comparison(record, query, (min(names), max(names)), responses, preference_metadata(values))
    rater, kind = options.rater or GOLD, options.rater_kind or RaterKind.GOLD
    margin = values.get("margin")  # by how much the chosen response is better
    strength = value_as_text(margin, "margin") if isinstance(margin, (str, int, float)) else ""
    return comparison, make_verdict(comparison, rater, kind, choice, strength=strength)


def preference_metadata(values: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata: columns that do not reveal the choice, with a split that is not one of our exports."""
    used = KNOWN | prompt_columns(values) if "label_source" in values else (KNOWN | prompt_columns(values)) - {"split"}
    return {
        column: value
        for column, value in remaining_metadata(values, used).items()
        if not reveals_choice(column, values)
    }


def prompt_columns(values: Mapping[str, Any]) -> Set[str]:
    field = prompt_field(values)
    return {field or "", *(OF_INSTRUCTION if field == "instruction" and isinstance(values[field], str) else ())}


def unread_preference_columns(values: Mapping[str, Any]) -> list[str]:
    """Columns that are not kept: those that reveal the choice, and for lists of texts also ids and names."""
    of_lists = (*IDS, *CHOSEN_NAMES, *REJECTED_NAMES) if list_of_texts(values.get("chosen")) else ()
    unread = {*of_lists, *(OF_EXPORTS if "label_source" in values else ())}
    used = KNOWN | prompt_columns(values)
    return [column for column in values if column in unread or (column not in used and reveals_choice(column, values))]


def reveals_choice(column: str, values: Mapping[str, Any]) -> bool:
    """Whether a column reveals the choice, by its name, its words or by repeating one of the texts."""
    if any(word in column for word in (*SIDES, "preferred")):
        return True
    value = values[column]
    if isinstance(value, list):
        return any(word in SIDES for word in value if isinstance(word, str))
    if not isinstance(value, str) or not value.strip():
        return False
    texts = [last_text(values.get(field)) for field in (*SIDES, *OUTPUTS)]
    return value.strip().lower() in SIDES or texts.count(value.strip()) == 1


def last_text(value: object) -> str:
    last = value[-1] if isinstance(value, list) and value else value
    text = last.get("content") if isinstance(last, dict) else last
    return text.strip() if isinstance(text, str) else ""


def preference_query(values: Mapping[str, Any], options: ReadOptions, prompt: Messages, pair: str = "") -> QueryPart:
    """The query, by the file's id or a hash. ``pair``: a hash with the responses, where these have no model names."""
    words = content_hash_key(prompt)
    return make_query(
        prompt,
        options,
        key=first_candidate_name(values, *IDS) or pair or words,
        cluster=first_candidate_name(values, "cluster") or words,
        context=optional_text(values, "context"),
        reference=optional_text(values, "reference"),
        category=optional_text(values, "category", MAX_CATEGORY) or optional_text(values, "subset", MAX_CATEGORY),
    )


def split_prompt_and_responses(
    values: Mapping[str, Any], chosen_in: str, rejected_in: str
) -> tuple[Messages, Messages, Messages]:
    prompt = preference_prompt(values)
    chosen, rejected = preference_side(values, chosen_in, prompt), preference_side(values, rejected_in, prompt)
    if not prompt or repeats_prompt(prompt, chosen, rejected):
        shared = shared_beginning(chosen, rejected)
        if not shared:
            return split_common_beginning(values, chosen_in, rejected_in)
        # The separate prompt may hold more than both responses repeat, such as a system message.
        is_longer = list(prompt[-shared:]) == list(chosen[:shared])
        prompt = prompt if is_longer else prepend_system(values, chosen[:shared])
        chosen, rejected = chosen[shared:], rejected[shared:]
    if prompt[-1]["role"] != "user":
        raise RowRefused("prompt must end with a user turn")
    return prompt, require_response(chosen, chosen_in), require_response(rejected, rejected_in)


def prompt_field(values: Mapping[str, Any]) -> str | None:
    return next((name for name in PROMPTS if values.get(name) not in (None, "", [])), None)


def preference_prompt(values: Mapping[str, Any]) -> Messages:
    """The question from one of several columns, with system message and history; empty where there is none."""
    field = prompt_field(values)
    if field is None:
        return prepend_system(values, question_in_messages(values.get("messages")))
    value = values[field]
    if isinstance(value, (list, dict)):
        return prepend_system(values, read_turns_or_text(value, field))
    text = value_as_text(value, field)
    if field != "instruction":
        return prepend_system(values, turns_of_text(text, "user"))
    parts = [text, optional_text(values, "input")]
    return prepend_system(
        values, [*conversation_history(values), *turns_of_text("\n".join(filter(None, parts)), "user")]
    )


def prepend_system(values: Mapping[str, Any], messages: Messages) -> Messages:
    system = optional_text(values, "system")
    if system.strip() and messages and messages[0]["role"] != "system":
        return [{"role": "system", "content": system}, *messages]
    return messages


def question_in_messages(value: object) -> Messages:
    """The column of messages if it ends with the question; empty if it repeats one of the answers."""
    messages = parse_optional_messages(value, "messages") if isinstance(value, list) and value else []
    return messages if messages and messages[-1]["role"] == "user" else []


def conversation_history(values: Mapping[str, Any]) -> Messages:
    """Earlier rounds of a conversation, as pairs of what was asked and answered."""
    pairs = parse_structured_value(values.get("history"), "history") or []
    if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise RowRefused("history must be a list of pairs of a question and an answer")
    rounds = ((value_as_text(question, "history"), value_as_text(answer, "history")) for question, answer in pairs)
    return [turn for question, answer in rounds for turn in (*user_turn(question), *assistant_turn(answer))]


def repeats_prompt(prompt: Messages, chosen: Messages, rejected: Messages) -> bool:
    """Whether both responses are whole conversations that repeat the prompt."""
    return any(turn["role"] == "user" and turn["content"] == prompt[-1]["content"] for turn in chosen) and bool(
        shared_beginning(chosen, rejected)
    )


def preference_side(values: Mapping[str, Any], field: str, prompt: Messages) -> Messages:
    value = values.get(field)
    if value is None:
        raise RowRefused(f"{field} is missing")
    if isinstance(value, (list, dict)):
        return read_turns_or_text(value, field)
    text = value_as_text(value, field)
    turns = turns_of_text(text, "assistant")
    # With a prompt, a transcript that neither continues nor repeats it is itself the answer.
    repeats = not prompt or len(prompt) > 1 or turns[0]["role"] == "assistant" or prompt[-1] in turns
    return turns if repeats else assistant_turn(text)


def read_turns_or_text(value: object, field: str) -> Messages:
    return [parse_message(value, field)] if isinstance(value, dict) else parse_optional_messages(value, field)


def split_common_beginning(
    values: Mapping[str, Any], chosen_in: str, rejected_in: str
) -> tuple[Messages, Messages, Messages]:
    """Prompt and responses of two texts with a common beginning, which is the prompt, split as TRL does."""
    chosen, rejected = values.get(chosen_in), values.get(rejected_in)
    others = [value for column, value in preference_metadata(values).items() if may_be_prompt(column, value)]
    if not isinstance(chosen, str) or not isinstance(rejected, str) or others:
        raise RowRefused(NO_PROMPT)
    end = next(
        (place for place, (sign, other_sign) in enumerate(zip(chosen, rejected, strict=False)) if sign != other_sign),
        None,
    )
    if end is None:
        raise RowRefused("has no prompt, and one text starts with all of the other. Put the prompt in its own column")
    if not chosen[:end].strip():
        raise RowRefused(NO_PROMPT)
    end -= chosen[end - 1] == " "
    return prepend_system(values, user_turn(chosen[:end])), assistant_turn(chosen[end:]), assistant_turn(rejected[end:])


def may_be_prompt(column: str, value: object) -> bool:
    """Whether a value may be the prompt: it is more than a name or a number."""
    if not isinstance(value, str) or not value.strip():
        return False
    return column.lower() in QUESTIONS or not NAME_OF_SOMETHING.fullmatch(value.strip())


def turns_of_text(text: str, role: str) -> Messages:
    """A text as one turn; a transcript as the turns that it is made of."""
    parts = TRANSCRIPT.split(text)
    if len(parts) < 3 or parts[0].strip():
        return user_turn(text) if role == "user" else assistant_turn(text)
    spoken: list[Message] = [
        {"role": SPEAKER[speaker], "content": words.strip()}
        for speaker, words in zip(parts[1::2], parts[2::2], strict=True)
    ]
    if role == "user" and spoken[-1] == {"role": "assistant", "content": ""}:
        spoken.pop()  # a prompt that ends where the assistant is to go on
    return spoken


PREFERENCE_FORMATS: Final = (
    ImportFormat(
        FileFormat.PREFERENCES,
        (COMPARISONS, VERDICTS),
        ("chosen", "rejected"),
        preference_rows,
        note=WITHOUT_NAMES,
        is_match=has_texts,
        learn_reader=preference_rows_reader,
    ),
    ImportFormat(FileFormat.PREFERENCES, (COMPARISONS, VERDICTS), RESPONSES, chosen_response_rows, note=WITHOUT_NAMES),
    ImportFormat(
        FileFormat.PREFERENCES,
        (COMPARISONS, VERDICTS),
        ("input", "preferred_output", "non_preferred_output"),
        fine_tuning_rows,
        note=WITHOUT_NAMES,
    ),
)
