"""Conversations in the files of other tools: turns, the question before the answer, ids."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from evaluations.domain.choices import ShownOrder
from evaluations.domain.files import ComparisonRow, Notice, NoticeKind, QueryPart, ReadOptions, ResponseRow, VerdictRow
from evaluations.domain.roles import RaterKind
from evaluations.domain.texts import Messages, content_sha256
from evaluations.formats.candidate_names import candidate_of_record
from evaluations.formats.chat_messages import parse_optional_messages, require_answer
from evaluations.formats.label_parser import note_with_strength
from evaluations.formats.native_rows import DEFAULT_ASPECT, content_hash_key, prefix_key
from evaluations.formats.record_streams import Record
from evaluations.formats.values import MAX_CATEGORY, MAX_KEY, RowRefused, optional_text, parse_structured_value

# Names of two responses without model names, assigned by their texts, never by a label.
UNNAMED: Final = ("response 1", "response 2")
WITHOUT_NAMES: Final = (
    f"If the file does not name its two models, they are called {UNNAMED[0]} and {UNNAMED[1]} by their texts. "
    "The names do not depend on which was preferred."
)


def user_turn(text: str) -> Messages:
    return [{"role": "user", "content": text}]


def assistant_turn(text: str) -> Messages:
    return [{"role": "assistant", "content": text}]


def make_query(
    messages: Messages,
    options: ReadOptions,
    *,
    key: str = "",
    cluster: str = "",
    context: str = "",
    reference: str | None = None,
    category: str = "",
    metadata: Mapping[str, Any] | None = None,
) -> QueryPart:
    """A query with the file's own id, or with a hash of its text."""
    if not any(turn["content"].strip() for turn in messages):
        raise RowRefused("the query is empty")
    full = prefix_key(key or content_hash_key(messages), options)
    return QueryPart(
        key=full,
        cluster=cluster_name(options.id_prefix + cluster) if cluster else full,
        messages=messages,
        context=context or None,
        reference=reference or None,
        category=category[:MAX_CATEGORY],
        metadata=metadata or {},
    )


def make_comparison(
    record: Record,
    query: QueryPart,
    names: tuple[str, str],
    responses: Sequence[Messages],
    metadata: Mapping[str, Any] | None = None,
) -> ComparisonRow:
    first, second = responses
    return ComparisonRow(record.line, query, names[0], first, names[1], second, metadata or {})


def make_verdict(
    comparison: ComparisonRow,
    rater: str,
    rater_kind: RaterKind,
    choice: str,
    *,
    aspect: str = DEFAULT_ASPECT,
    strength: str = "",
    shown: ShownOrder = ShownOrder.UNKNOWN,
    rationale: str = "",
    created_at: str | None = None,
) -> VerdictRow:
    return VerdictRow(
        line=comparison.line,
        query_key=comparison.query.key,
        candidate_a=comparison.candidate_a,
        candidate_b=comparison.candidate_b,
        rater=rater,
        rater_kind=rater_kind,
        aspect=aspect,
        choice=choice,
        shown=shown,
        rationale=rationale,
        note=note_with_strength("", strength),
        created_at=created_at,
    )


def make_response(
    record: Record,
    options: ReadOptions,
    query: QueryPart,
    model_column: str,
    response: Messages,
    used: frozenset[str] | None = None,
) -> ResponseRow:
    """The response of the model that a column, the form or the file names. ``known``: columns that are not metadata."""
    name, overruled = candidate_of_record(record, options, model_column)
    metadata = {} if used is None else remaining_metadata(record.values, used)
    return ResponseRow(record.line, query, name, response, metadata, overruled=overruled)


def cluster_name(text: str) -> str:
    """A cluster's name, or its checksum where it is too long: two clusters never become one."""
    return text if len(text) <= MAX_KEY else hashlib.sha256(text.encode(errors="replace")).hexdigest()


def parse_turns(value: object, field: str) -> Messages:
    """A list of turns: of role and content, or of from and value; JSON in a cell of a table."""
    return parse_optional_messages(parse_structured_value(value, field), field)


def first_question_length(messages: Messages, field: str) -> int:
    """The number of turns of the query: up to the first turn of the user."""
    for number, message in enumerate(messages):
        if message["role"] == "user":
            return number + 1
    raise RowRefused(f"{field} has no user turn")


def conversation_until_turn(messages: Messages, number: int) -> Messages:
    """The conversation up to and including the answer to the user's turn of this number."""
    spoken = 0
    for place, message in enumerate(messages):
        spoken += message["role"] == "user"
        if spoken > number:
            return messages[:place]
    return messages


def shared_beginning(messages: Messages, others: Messages) -> int:
    """The number of turns that both begin with, up to the last common turn of the user."""
    shared = 0
    for number, (first, second) in enumerate(zip(messages, others, strict=False)):
        if first != second:
            break
        if first["role"] == "user":
            shared = number + 1
    return shared


def require_response(messages: Messages, where: str) -> Messages:
    """The messages of a response; refused if there are none."""
    if not messages:
        raise RowRefused(
            f'{where} has no response after the question. Write an empty one as a turn with the content ""'
        )
    return require_answer(messages, where)


def names_from_texts(first: Messages, second: Messages) -> tuple[str, str]:
    """Names for two unnamed responses, which depend on their texts alone."""
    hash_1, hash_2 = content_sha256(first), content_sha256(second)
    return UNNAMED if hash_1 <= hash_2 else (UNNAMED[1], UNNAMED[0])


def first_candidate_name(values: Mapping[str, Any], *fields: str) -> str:
    for field in fields:
        if name := optional_text(values, field, MAX_KEY).strip():
            return name
    return ""


def left_out_notices(values: Mapping[str, Any], columns: Iterable[str], line: int) -> Iterator[Notice]:
    """A notice for each of these columns that is not empty."""
    for column in columns:
        if values.get(column) not in (None, "", [], {}):
            yield Notice(line, NoticeKind.COLUMN, column)


def unread_column_notices(values: Mapping[str, Any], used: Collection[str], line: int) -> Iterator[Notice]:
    """A notice for each column that is not empty and that the format does not read."""
    return left_out_notices(values, (column for column in values if column not in used), line)


def remaining_metadata(values: Mapping[str, Any], used: frozenset[str]) -> dict[str, Any]:
    """Columns that the format does not use."""
    return {column: value for column, value in values.items() if column not in used and value is not None}
