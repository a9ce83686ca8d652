"""The texts that are judged, with their hashes, near-duplicate keys and Markdown kinds."""

import hashlib
import json
import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntFlag, StrEnum
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Final, TypedDict


class Markup(IntFlag):
    """Kinds of Markdown, of which a response may have several. The bits are stored and must never change."""

    LIST = 1
    HEADING = 2
    EMPHASIS = 4
    TABLE = 8
    CODE = 16


# Every pattern begins with a literal character, which is found quickly, and never backtracks: linear time on any text.
FENCE: Final = re.compile(r"\n[ \t]*+(`{3,}+|~{3,}+)([^\n]*+)")
CODE_SPAN: Final = re.compile(r"`[^`\n]++`")
RULE: Final = r"(?:[-*_][ \t]*+){3,}+(?:\n|\Z)"
LIST_ITEM: Final = re.compile(rf"\n[ \t]*+(?!{RULE})(?:[-*+•]|\d{{1,3}}[.)])[ \t]++[^\s]")
HEADING: Final = re.compile(r"\n {0,3}#{1,6}[ \t]++[^\s]")

# Not inside a word of Latin letters or digits: 2**3**4 and snake_case are no emphasis, 很**重要**的 is.
EMPHASIS: Final = (
    ("*", re.compile(r"\*(?<![A-Za-z0-9*\\]\*)(\*{0,2}+)(?!\s)[^*\n]++(?<!\s)\*\1(?![A-Za-z0-9*])")),
    ("_", re.compile(r"_(?<![A-Za-z0-9_\\]_)(_{0,2}+)(?!\s)[^_\n]++(?<!\s)_\1(?![A-Za-z0-9_])")),
)

CELL: Final = r"[ \t]*+:?-++:?[ \t]*+"
BELOW_TABLE_HEAD: Final = re.compile(rf"\n[ \t]*+\|?{CELL}(?:\|{CELL})++\|?[ \t]*+(?=\n|\Z)")


def detect_markup(text: str) -> Markup:
    """The kinds of Markdown in the text by the rules of CommonMark and GitHub, applied line by line, outside code."""
    lines = "\n" + (text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text)
    prose = remove_code(lines)
    kinds = Markup.CODE.value if prose != lines else 0
    if LIST_ITEM.search(prose):
        kinds |= Markup.LIST.value
    if "#" in prose and HEADING.search(prose):
        kinds |= Markup.HEADING.value
    if any(sign in prose and pattern.search(prose) for sign, pattern in EMPHASIS):
        kinds |= Markup.EMPHASIS.value
    if "|" in prose and has_table(prose):
        kinds |= Markup.TABLE.value
    return Markup(kinds)


def remove_code(lines: str) -> str:
    """Fenced blocks taken out, code within a line made one letter."""
    if "~~~" in lines or "```" in lines:
        lines = remove_fenced_code(lines)
    return CODE_SPAN.sub("x", lines) if "`" in lines else lines


def remove_fenced_code(lines: str) -> str:
    """A block ends with a fence at least as long as the one that opened it; one never closed runs to the end."""
    kept, start, opened = [], 0, ""
    for fence in FENCE.finditer(lines):
        marks, after = fence[1], fence[2].strip()
        if not opened and not ("`" in marks and "`" in after):
            kept.append(lines[start : fence.start()])
            opened = marks
        elif opened and not after and marks.startswith(opened):
            start, opened = fence.end(), ""
    return "".join(kept if opened else [*kept, lines[start:]])


def has_table(prose: str) -> bool:
    """Two columns or more: a line of dashes and bars below one with a bar."""
    for match in BELOW_TABLE_HEAD.finditer(prose):
        head = prose.rfind("\n", 0, match.start()) + 1
        if "|" in prose[head : match.start()]:
            return True
    return False


class ComparisonOrigin(StrEnum):
    """Where a comparison comes from. A single one holds one response, which reviewers score by itself."""

    IMPORTED = "imported"
    PAIRED = "paired"
    BY_HAND = "by_hand"
    SINGLE = "single"


class Flag(StrEnum):
    """Why a text is suspect: it addresses the judge, or imitates a verdict or a delimiter of the prompt."""

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
    """The checksum of any JSON value, independent of formatting and of the order of keys."""
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def messages_sha256(messages: Messages) -> str:
    """`content_sha256` of messages, computed faster."""
    return hashlib.sha256(canonical_messages_json(messages).encode()).hexdigest()


def query_sha256(messages: Messages, context: str | None, reference: str | None) -> str:
    """`content_sha256` of [messages, context, reference]."""
    parts = (
        canonical_messages_json(messages),
        *("null" if text is None else encode_basestring(text) for text in (context, reference)),
    )
    return hashlib.sha256(f"[{','.join(parts)}]".encode()).hexdigest()


def canonical_messages_json(messages: Messages) -> str:
    if len(messages) == 1:
        (message,) = messages
        return f'[{{"content":{encode_basestring(message["content"])},"role":{encode_basestring(message["role"])}}}]'
    return f"[{','.join(canonical_messages_json([message])[1:-1] for message in messages)}]"


def messages_to_json(messages: Messages) -> str:
    """The same text as `json.dumps`, computed faster."""
    pairs = ((encode_basestring_ascii(turn["role"]), encode_basestring_ascii(turn["content"])) for turn in messages)
    return "[" + ", ".join(f'{{"role": {role}, "content": {content}}}' for role, content in pairs) + "]"


def cluster_number(cluster: str) -> int:
    """A 63-bit hash of a name: among a million names, two share one with a chance of one in ten million."""
    return int.from_bytes(hashlib.sha256(cluster.encode()).digest()[:8], "big") >> 1


# Removed for the comparison of near-duplicates.
PUNCTUATION: Final = str.maketrans("", "", string.punctuation)


def near_duplicate_key(text: str, context: str | None = None) -> int:
    """A 63-bit hash that ignores case, white space and ASCII punctuation, except in a text of punctuation alone."""
    words = " ".join(text.lower().translate(PUNCTUATION).split()) or text
    if context:
        words += "\0" + " ".join(context.lower().translate(PUNCTUATION).split())
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8], "big") >> 1


def messages_to_text(messages: Messages) -> str:
    """A conversation as one text; of a single turn, its content alone."""
    if len(messages) == 1:
        return messages[0]["content"]
    return "\n\n".join(f"{message['role']}: {message['content']}" for message in messages)


def normalize_lines(text: str) -> str:
    """The text with plain line ends, which browsers send as CRLF, and without space around it."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def find_free_name(name: str, taken: Iterable[str]) -> str:
    """The name, or the first of “name 2”, “name 3”, … that is not taken."""
    names = set(taken)
    return next(free for free in (name, *(f"{name} {n}" for n in range(2, len(names) + 3))) if free not in names)


def replace_unstorable(text: str) -> str:
    """The text as every database takes it: NUL and lone surrogates become the replacement character."""
    return text.replace("\x00", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


CHARACTERS_PER_TOKEN: Final = 4  # of ASCII; every other character counts as one token


def estimate_tokens_by_rule(text: str) -> float:
    """The approximate number of tokens of a text: servers count 20 % fewer to 25 % more."""
    ascii_only = len(text.encode("ascii", "ignore"))
    return ascii_only / CHARACTERS_PER_TOKEN + len(text) - ascii_only
