"""Conversations of files of others: turns as we have them, the question apart from what was said to it, and ids."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from evaluations.domain import Messages, Notice, NoticeKind, QueryPart, Reading, content_sha256
from evaluations.formats.messages import answer_in, optional_messages
from evaluations.formats.rows import prefixed
from evaluations.formats.values import MAX_CATEGORY, MAX_KEY, RowRefused, from_json, optional_text

HASHED: Final = 24  # letters of a sum that stand for a text: two texts of a billion share them with a chance of 1e-11
# What two responses are called that the file has no names for. Their texts say which is which, never a label.
UNNAMED: Final = ("response 1", "response 2")
WITHOUT_NAMES: Final = (
    f"Where the file does not name its two candidates they are {UNNAMED[0]} and {UNNAMED[1]}, by their texts alone: "
    "the names say nothing about who was preferred."
)


def asked(text: str) -> Messages:
    return [{"role": "user", "content": text}]


def answered(text: str) -> Messages:
    return [{"role": "assistant", "content": text}]


def key_of(content: object) -> str:
    """The id of what has none: the same words have the same in every file."""
    return content_sha256(content)[:HASHED]


def query_of(
    messages: Messages,
    reading: Reading,
    *,
    key: str = "",
    cluster: str = "",
    reference: str | None = None,
    category: str = "",
    metadata: Mapping[str, Any] | None = None,
) -> QueryPart:
    """A query under the file's own id, or under one made of its words."""
    if not any(turn["content"].strip() for turn in messages):
        raise RowRefused("the query is empty")
    full = prefixed(key or key_of(messages), reading)
    return QueryPart(
        key=full,
        cluster=cluster_of(reading.id_prefix + cluster) if cluster else full,
        messages=messages,
        reference=reference or None,
        category=category[:MAX_CATEGORY],
        metadata=metadata or {},
    )


def cluster_of(text: str) -> str:
    """A cluster's name, or its checksum where it is too long: two clusters never become one."""
    return text if len(text) <= MAX_KEY else hashlib.sha256(text.encode(errors="replace")).hexdigest()


def turns(value: object, field: str) -> Messages:
    """A list of turns: of role and content, or of from and value; JSON in a cell of a table."""
    return optional_messages(from_json(value, field), field)


def first_question(messages: Messages, field: str) -> int:
    """How many turns make the query: up to the user's first."""
    for number, one in enumerate(messages):
        if one["role"] == "user":
            return number + 1
    raise RowRefused(f"{field} has no turn of the user")


def up_to_turn(messages: Messages, number: int) -> Messages:
    """A conversation as it was when the user had spoken so often and was answered."""
    spoken = 0
    for place, one in enumerate(messages):
        spoken += one["role"] == "user"
        if spoken > number:
            return messages[:place]
    return messages


def shared_beginning(one: Messages, other: Messages) -> int:
    """How many turns both begin with, the last of them the user's."""
    shared = 0
    for number, (first, second) in enumerate(zip(one, other, strict=False)):
        if first != second:
            break
        if first["role"] == "user":
            shared = number + 1
    return shared


def said(messages: Messages, where: str) -> Messages:
    """What a candidate said. A conversation that ends with the question has no response, not an empty one."""
    if not messages:
        raise RowRefused(f'{where} has no response after the question (an empty one is a turn with the content "")')
    return answer_in(messages, where)


def named_by_text(first: Messages, second: Messages) -> tuple[str, str]:
    """What two responses without names are called: the same two always the same, however they were labelled."""
    one, other = content_sha256(first), content_sha256(second)
    return UNNAMED if one <= other else (UNNAMED[1], UNNAMED[0])


def candidate(values: Mapping[str, Any], *fields: str) -> str:
    """The first name that stands in one of these columns, or ""."""
    for field in fields:
        if name := optional_text(values, field, MAX_KEY).strip():
            return name
    return ""


def left_out(values: Mapping[str, Any], columns: Iterable[str], line: int) -> Iterator[Notice]:
    """A notice for each of these columns that holds something."""
    for column in columns:
        if values.get(column) not in (None, "", [], {}):
            yield Notice(line, NoticeKind.COLUMN, column)


def unread(values: Mapping[str, Any], known: Collection[str], line: int) -> Iterator[Notice]:
    """A notice for each column that holds something, and that the format does not read."""
    return left_out(values, (column for column in values if column not in known), line)


def remainder(values: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """What the format has no place for."""
    return {column: value for column, value in values.items() if column not in known and value is not None}
