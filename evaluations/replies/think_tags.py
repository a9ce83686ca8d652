"""The marks that chat templates leave in a reply: around the model's reasoning, and at the reply's end.

They are those of the chat templates and model cards of reasoning models and of the parsers of inference servers.
A mark counts in any case, with spaces or attributes in it, escaped for HTML or JSON.
"""

import re
from dataclasses import dataclass
from typing import Final

REASONING_WORDS: Final = (
    r"(?:think|thought|reason|reflect|analysis|scratch[_-]?pad|monologue|deliberat|contemplat|chain[_-]of[_-]thought)"
)
# Names that mean thoughts only as a whole: a planet is no plan.
WHOLE_TAG_NAMES: Final = (
    r"(?:cot|plan(?:ning)?|ponder(?:ing)?s?|brainstorm(?:ing)?|drafts?|internal|critique|rationale|notes|scratch"
    r"|mus(?:e|ings?)|work(?:ings?)?|considerations?|introspection|self[_-]talk|step[_-]by[_-]step)"
)
# Behind an opening bracket: the rest of a tag, and of a token of a chat template.
TAG: Final = (
    rf"\s{{0,3}}(?P<tag>\\?/?\s{{0,3}}(?:[\w.:-]{{0,40}}?{REASONING_WORDS}[\w.:-]{{0,60}}|{WHOLE_TAG_NAMES}))"
    r"(?:\s[^<>]{0,100})?(?:[>＞▷]|&gt;|\\u003e)"
)
TOKEN: Final = (
    rf"[|｜]\s?(?P<token>/?[\w:▁ -]{{0,40}}?(?:{REASONING_WORDS}|inner_(?:pre|suf)fix)[\w:▁ -]{{0,40}})[|｜]>"
    r"|\|channel\|>\s{0,3}(?P<channel>\w{1,20})[^<>\n]{0,80}(?:<\|constrain\|>[^<>\n]{0,40})?(?:<\|message\|>)?"
    r"|\|(?P<named>(?:open|close)\|>think|open\|>response)[^<>\n]{0,80}<\|sep\|>"
    r"|(?P<message>\|message\|>)"
    r"|(?P<opens>\|channel>|ctrl(?:94|3347)>|\|content_thinking\|>)"
    r"|(?P<closes>channel\|>|ctrl(?:95|3348)>|\|content_text\|>|\|(?:begin_of_solution|start_response)\|>)"
    r"|(?P<details>details\s[^<>]{0,60}type=[\"']?reasoning[^<>]{0,100}>)|(?P<summary>/details>)"
)
BRACKET_MARK: Final = (
    r"(?P<bracketed>/\s?(?:think|thought|reason|reflect|analysis)\w{0,10}|think(?:ing)?)\]"
    r"|(?P<opens2>unused16\])|(?P<closes2>unused17\]|begin final response\])"
)
MARK: Final = re.compile(
    r"[<＜◁&\\\[]"
    rf"(?:(?:(?<=&)lt;|(?<=\\)u003c|(?<=[<＜◁])){TAG}|(?<=<)(?:{TOKEN})|(?<=\[)(?:{BRACKET_MARK}))",
    re.IGNORECASE,
)
# Marks in words, which are searched for only if one of the anchors is in the reply.
SPOKEN_MARKS: Final = re.compile(
    r"(?P<opens>\A(?:analysis|commentary)(?=(?-i:[A-Z{\[])))"
    r"|(?P<closes>assistantfinal(?=\W|\Z|(?-i:[A-Z]))|^\.\.\.\s?done thinking\.$)"
    r"|(?P<begins>\A\s{0,9}(?:thinking\.\.\.$|thinking process:\s{0,9}$"
    r"|here(?: is|'s|’s) my thought process:|here are my reasoning steps:))"
    r"|(?P<answers>\bhere(?: is|'s|’s) my response:)",
    re.IGNORECASE | re.MULTILINE,
)
# What ends a reply after its words: tokens of chat templates, and closing tags.
END_MARK: Final = re.compile(
    r"[<\[](?:(?<=<)(?:/?s>|eos>|pad>|end_of_turn>|turn\|>|\|[\w:/ ]{1,40}\|>|｜[^｜<>]{1,40}｜>"
    r"|\|close\|>response<\|sep\|>|/(?:answer|output|solution|response|final|final_answer|conclusion|verdict|result)>"
    r"|\|start_header_id\|>\w{1,12}<\|end_header_id\|>|\|im_start\|>assistant|start_of_turn>model)"
    r"|(?<=\[)(?:/?INST|EOS|end final response|end of text|\|\w{1,40}\|)\])\Z",
    re.IGNORECASE,
)
MAX_MARK_LENGTH: Final = 60
CLOSING_WORDS: Final = {"end", "close", "stop", "suffix"}
DIRECTIONS: Final = CLOSING_WORDS | {"begin", "start", "open", "prefix", "of"}
ANCHORS: Final = ("assistantfinal", "thinking.", "thought process:", "thinking process:", "reasoning steps:")
QUOTES: Final = tuple("`\"'“”‘’")
MAX_REMAINDERS: Final = 8
ANY_NAME: Final = ""  # the name of what closes all that is open
# Words that end reasoning only if their counterpart opened it.
PROSE: Final = "prose"
DETAILS: Final = "details"


@dataclass(frozen=True)
class ReasoningMark:
    """The start or end of reasoning, and the name that both marks share."""

    start: int
    end: int
    name: str
    closes: bool


@dataclass(frozen=True)
class SplitReply:
    """A reply split at its marks.

    ``before``: the text before the first mark; ``is_opened``: whether that mark opens reasoning; ``spoken``: the text
    after the last closing mark, "" if reasoning never ends; ``remainders``: the text after each mark that ends all
    reasoning, the longest first.
    """

    spoken: str
    before: str = ""
    remainders: tuple[str, ...] = ()
    is_cut: bool = False
    is_opened: bool = False


def split_reasoning(text: str) -> SplitReply:
    """A closing mark without an opening one ends all reasoning: a server may open it in its prompt."""
    marks = find_marks(text)
    if not marks:
        return SplitReply(text)
    opened: list[str] = []
    ends: list[int] = []
    for mark in marks:
        if not mark.closes:
            opened.append(mark.name)
            continue
        del opened[opened.index(mark.name) if mark.name in opened else 0 :]
        if not opened:
            ends.append(mark.end)
    return SplitReply(
        "" if opened else text[ends[-1] :],
        text[: marks[0].start],
        tuple(text[end:] for end in ends[-MAX_REMAINDERS:]),
        is_cut=True,
        is_opened=not marks[0].closes,
    )


def extract_reasoning(text: str) -> str:
    """The model's reasoning in its reply; "" if there are no marks."""
    parts = split_reasoning(text)
    return text[: len(text) - len(parts.spoken)].strip() if parts.is_cut else ""


def has_reasoning_end(text: str) -> bool:
    return any(mark.closes for mark in find_marks(text))


def find_marks(text: str) -> list[ReasoningMark]:
    marks = [mark for match in MARK.finditer(text) if (mark := parse_mark(match)) and not is_mark_mention(text, mark)]
    lower = text.lower()
    if lower.startswith(("analysis", "commentary")) or any(anchor in lower for anchor in ANCHORS):
        spoken_marks = filter(None, map(parse_mark, SPOKEN_MARKS.finditer(text)))
        marks = sorted([*marks, *spoken_marks], key=lambda mark: mark.start)
    names = {mark.name for mark in marks if not mark.closes}
    return [mark for mark in marks if not mark.closes or mark.name not in (PROSE, DETAILS) or mark.name in names]


def parse_mark(match: re.Match[str]) -> ReasoningMark | None:
    """The mark that was found; None for a message header without reasoning."""
    kind = (match.lastgroup or "").rstrip("2")
    words = match[match.lastgroup or 0].casefold()
    name, closes = kind, kind in ("closes", "answers", "summary")
    if kind in ("tag", "token", "bracketed"):
        closes = "/" in words or not CLOSING_WORDS.isdisjoint(mark_parts(words))
        name = " ".join(part for part in mark_parts(words) if part not in DIRECTIONS)
    elif kind == "message":
        recipient = re.search(r"\bto=(self|user)\s{0,3}\Z", match.string[max(match.start() - 12, 0) : match.start()])
        if recipient is None:
            return None
        closes, name = recipient[1] == "user", ANY_NAME if recipient[1] == "user" else "channel"
    elif kind == "channel":
        closes, name = words == "final", ANY_NAME if words == "final" else "channel"
    elif kind == "named":
        closes, name = not words.startswith("open|>think"), "think" if "think" in words else ANY_NAME
    elif kind in ("opens", "closes"):
        name = "channel" if kind == "opens" else ANY_NAME
    elif kind in ("begins", "answers"):
        name = PROSE
    else:
        name = DETAILS
    return ReasoningMark(*match.span(), name, closes)


def mark_parts(words: str) -> list[str]:
    return re.findall(r"[^\W_▁]+", words)


def is_mark_mention(text: str, mark: ReasoningMark) -> bool:
    """Whether an opening mark is only mentioned, between quotes."""
    return not mark.closes and text[mark.start - 1 : mark.start] in QUOTES and text[mark.end : mark.end + 1] in QUOTES


def strip_end_marks(text: str) -> str:
    """The reply without end tokens and tags, and without a byte order mark."""
    text = text.strip("\ufeff\u200b").strip()
    end = len(text)
    while mark := find_end_mark(text, end):
        end = mark.start()
        while text[end - 1 : end].isspace():
            end -= 1
    return text[:end]


def find_end_mark(text: str, end: int) -> re.Match[str] | None:
    """The mark that ends the text at ``end``; marks that end reasoning do not count, since a reply may end so."""
    if text[end - 1 : end] not in (">", "]", "t", "l"):
        return None
    mark = END_MARK.search(text, max(end - MAX_MARK_LENGTH, 0), end)
    return None if mark and MARK.match(mark[0]) else mark
