"""What is judged: queries and responses as texts."""

import hashlib
import json
import string
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Final, TypedDict


class ComparisonOrigin(StrEnum):
    IMPORTED = "imported"
    PAIRED = "paired"
    BY_HAND = "by_hand"


class Flag(StrEnum):
    """What makes a judged text suspect: it speaks to the judge, or imitates what only a judge or we write."""

    ADDRESSES_JUDGE = "addresses_judge"
    FORGED_VERDICT = "forged_verdict"
    FORGED_DELIMITER = "forged_delimiter"


class Message(TypedDict):
    """One chat message, as the OpenAI protocol has it."""

    role: str
    content: str


Messages = Sequence[Message]


@dataclass(frozen=True)
class PairTexts:
    """Everything a pairwise judge may read of one comparison, A and B as stored."""

    messages: Messages
    response_a: Messages
    response_b: Messages
    context: str | None = None
    reference: str | None = None


@dataclass(frozen=True)
class ResponseTexts:
    """Everything a pointwise judge may read of one response."""

    messages: Messages
    response: Messages
    context: str | None = None
    reference: str | None = None


def content_sha256(content: object) -> str:
    """The sum of any JSON value: of a response's messages, or of a query's [messages, context, reference].

    The same content gives the same sum whichever door it came through.
    """
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def messages_sha256(messages: Messages) -> str:
    """`content_sha256` of messages, without the encoder that it takes any value to pieces with."""
    return hashlib.sha256(canonical(messages).encode()).hexdigest()


def query_sha256(messages: Messages, context: str | None, reference: str | None) -> str:
    """`content_sha256` of [messages, context, reference]."""
    parts = (
        canonical(messages),
        *("null" if text is None else encode_basestring(text) for text in (context, reference)),
    )
    return hashlib.sha256(f"[{','.join(parts)}]".encode()).hexdigest()


def canonical(messages: Messages) -> str:
    if len(messages) == 1:
        (one,) = messages
        return f'[{{"content":{encode_basestring(one["content"])},"role":{encode_basestring(one["role"])}}}]'
    return f"[{','.join(canonical([one])[1:-1] for one in messages)}]"


def messages_as_json(messages: Messages) -> str:
    """As a column of JSON keeps them: what `json.dumps` gives, sooner."""
    turns = (
        f'{{"role": {encode_basestring_ascii(one["role"])}, "content": {encode_basestring_ascii(one["content"])}}}'
        for one in messages
    )
    return f"[{', '.join(turns)}]"


def cluster_number(cluster: str) -> int:
    """A name's own number, of 63 bits: two names of a million share one with a chance of one in ten million."""
    return int.from_bytes(hashlib.sha256(cluster.encode()).digest()[:8], "big") >> 1


# Taken out where texts are compared that differ in how they are written only.
PUNCTUATION: Final = str.maketrans("", "", string.punctuation)


def likeness(text: str, context: str | None = None) -> int:
    """A number of 63 bits that texts share which differ only in case, blank space and ASCII punctuation.

    A text of nothing but punctuation is like itself alone.
    """
    words = " ".join(text.lower().translate(PUNCTUATION).split()) or text
    if context:
        words += "\0" + " ".join(context.lower().translate(PUNCTUATION).split())
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8], "big") >> 1


def text_of(messages: Messages) -> str:
    """The words of a conversation as one text: a single turn is its content alone."""
    if len(messages) == 1:
        return messages[0]["content"]
    return "\n\n".join(f"{message['role']}: {message['content']}" for message in messages)


def storable(text: str) -> str:
    """The text as every database takes it: NUL and lone surrogates become the replacement character."""
    return text.replace("\x00", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


CHARACTERS_A_TOKEN: Final = 4  # of ASCII; every other character is taken for a token of its own


def tokens_by_rule(text: str) -> float:
    """About how many tokens a text is for a model that nobody has asked: servers count 20 % fewer to 25 % more."""
    ascii_only = len(text.encode("ascii", "ignore"))
    return ascii_only / CHARACTERS_A_TOKEN + len(text) - ascii_only
