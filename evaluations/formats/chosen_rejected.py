"""Preference data: a prompt, a chosen and a rejected response, as reward models are trained on and tested with.

Plain text and chat messages; the prompt apart, or as the beginning that both have in common, or as a transcript.
Which one was chosen must show in nothing but the verdict, and A is the candidate whose name sorts first: two responses
without names are therefore named by their texts.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
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
    turns,
)
from evaluations.formats.rows import DEFAULT_ASPECT
from evaluations.formats.streams import Record
from evaluations.formats.values import MAX_CATEGORY, RowRefused, as_text, optional_text
from evaluations.formats.wording import with_strength

CHOSEN_NAMES: Final = ("chosen_model", "chosen-model", "model_chosen")
REJECTED_NAMES: Final = ("rejected_model", "rejected-model", "model_rejected")
IDS: Final = ("query_id", "id")
PROMPTS: Final = ("prompt", "question", "instruction")
OF_QUERY: Final = ("cluster", "category", "subset", "context", "reference", "system")
# What stands beside them repeats them, or says which was chosen in other words.
OF_EXPORTS: Final = ("votes", "agreement", "label_by", "label_source", "split")
TELLING: Final = ("messages", "margin", *OF_EXPORTS)
KNOWN: Final = frozenset({*IDS, *PROMPTS, "chosen", "rejected", *CHOSEN_NAMES, *REJECTED_NAMES, *OF_QUERY, *TELLING})
TRANSCRIPT: Final = re.compile(r"(?:\A|\n\n)(Human|Assistant): ?")
SPEAKER: Final = {"Human": "user", "Assistant": "assistant"}
GOLD: Final = "gold"


def preference_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    rows = (row for values in pairs_in(record.values) for row in pair_rows(record, values, reading))
    return *rows, *left_out(record.values, unread_columns(record.values), record.line)


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


def pair_rows(record: Record, values: Mapping[str, Any], reading: Reading) -> tuple[Row, ...]:
    prompt, chosen, rejected = taken_apart(values)
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
    known = KNOWN if "label_source" in values else KNOWN - {"split"}
    return {column: value for column, value in remainder(values, known).items() if not tells(column)}


def margin_of(values: Mapping[str, Any]) -> str:
    """By how much the chosen one is better, where the file has a number for it."""
    given = values.get("margin")
    return as_text(given, "margin") if isinstance(given, (str, int, float)) else ""


def unread_columns(values: Mapping[str, Any]) -> list[str]:
    """What says in other words which was chosen; and of lists, whose pairs are queries of their own, ids and names."""
    of_lists = (*IDS, *CHOSEN_NAMES, *REJECTED_NAMES) if texts_in(values.get("chosen")) else ()
    unread = {*of_lists, *(OF_EXPORTS if "label_source" in values else ())}
    return [column for column in values if column in unread or (tells(column) and column not in KNOWN)]


def tells(column: str) -> bool:
    return "chosen" in column or "rejected" in column


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


def taken_apart(values: Mapping[str, Any]) -> tuple[Messages, Messages, Messages]:
    """The prompt and both responses, in whichever layout they stand."""
    chosen, rejected = side(values, "chosen"), side(values, "rejected")
    prompt = prompt_of(values)
    if not prompt or starts(prompt, chosen, rejected):
        shared = shared_beginning(chosen, rejected)
        if not shared:
            raise RowRefused("has no prompt, and chosen and rejected do not begin with the same question")
        prompt, chosen, rejected = chosen[:shared], chosen[shared:], rejected[shared:]
    if prompt[-1]["role"] != "user":
        raise RowRefused("prompt must end with a turn of the user")
    return prompt, said(chosen), said(rejected)


def prompt_of(values: Mapping[str, Any]) -> Messages:
    field = next((name for name in PROMPTS if values.get(name) not in (None, "")), None)
    if field is None:
        return []
    messages = as_turns(values[field], field) or spoken_by(as_text(values[field], field), "user")
    system = optional_text(values, "system")
    if system.strip() and messages[0]["role"] != "system":
        return [{"role": "system", "content": system}, *messages]
    return messages


def starts(prompt: Messages, chosen: Messages, rejected: Messages) -> bool:
    """Whether both responses are whole conversations, that repeat what the prompt says."""
    return any(one["role"] == "user" and one["content"] == prompt[-1]["content"] for one in chosen) and bool(
        shared_beginning(chosen, rejected)
    )


def side(values: Mapping[str, Any], field: str) -> Messages:
    given = values.get(field)
    if given is None:
        raise RowRefused(f"{field} is missing")
    return as_turns(given, field) or spoken_by(as_text(given, field), "assistant")


def as_turns(given: object, field: str) -> Messages:
    """Chat messages, in JSON or spelled so in a cell; none where it is text."""
    looks_like_json = isinstance(given, str) and given.startswith("[{") and '"content"' in given
    return turns(given, field) if isinstance(given, list) or looks_like_json else []


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
