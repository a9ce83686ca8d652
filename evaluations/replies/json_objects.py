"""The JSON objects in a reply, including those with harmless flaws.

Accepted are raw line breaks, backslashes that escape nothing, trailing and missing commas, comments, other quotes or
none, quotes inside a string, and braces missing at the very end. Nothing is added, and every key and value is read in
its own place. The time is linear in the length of the reply; what would take more counts as broken.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from evaluations.domain.json_values import JsonDict

# A brace that may begin an object, rather than one of prose, code or a formula.
OPENING: Final = re.compile(r"\{(?=\s*(?:,?\s?[\"'“”„«‘″＂}]|//|/\*|#|[^\W\d]\w{0,60}\s*:))")
MAX_ATTEMPTS: Final = 50
MAX_OBJECTS: Final = 1000
MAX_QUOTES: Final = 20_000  # of all that are checked as the end of a string
MAX_DEPTH: Final = 12
SPACE: Final = re.compile(r"(?:\s|//[^\n]{0,300}(?=\n|\Z)|#[^\n]{0,300}(?=\n|\Z)|/\*[^*]{0,300}\*/)*")
COMMENT: Final = re.compile(r"\s(?://|#|/\*).*", re.DOTALL)
CLOSERS: Final = {'"': '"', "'": "'", "“": "”“", "”": "”", "„": "“”", "«": "»", "‘": "’", "″": "″", "＂": "＂"}
ENDS: Final = {opener: re.compile(rf"\\[\s\S]|[{closers}]") for opener, closers in CLOSERS.items()}
QUOTE: Final = "[\"'“”„«»‘’″＂]"
QUOTED_KEY: Final = rf"{QUOTE}[^\"'“”„«»‘’″＂\n]{{1,80}}{QUOTE}\s{{0,9}}[:：]"
KEY: Final = rf"(?:{QUOTED_KEY}|[^\W\d]\w{{0,60}}\s{{0,9}}[:：])"
AFTER_KEY: Final = re.compile(rf"{SPACE.pattern}[:：]")
COMMAS: Final = (",", ";", "，")
COMMA: Final = rf"[{''.join(COMMAS)}](?:\s{{0,9}}[{''.join(COMMAS)}])?"
NEXT_KEY: Final = re.compile(KEY)
AFTER_VALUE: Final = re.compile(
    rf"{SPACE.pattern}(?:[}}\]]|\Z|{COMMA}{SPACE.pattern}(?:[}}\]]|\Z|{KEY}))"
    rf"|\s{{0,200}}{QUOTED_KEY}|\s{{0,200}}\n\s{{0,200}}{KEY}"
)
AFTER_ITEM: Final = re.compile(rf"{SPACE.pattern}(?:\]|{COMMA}|\Z)")
BARE_KEY: Final = re.compile(r"[^\W\d]\w{0,60}")
BARE: Final = re.compile(r"[^\s,{}\[\]\"'“”‘’:][^,{}\[\]\"\n]{0,80}")
NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d{0,300})(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?")
NUMBER_WITHOUT_ZERO: Final = re.compile(r"-?\.\d{1,300}")
LITERAL_WORDS: Final[dict[str, object]] = {
    **dict.fromkeys(("true", "True"), True),
    **dict.fromkeys(("false", "False"), False),
    **dict.fromkeys(("null", "None"), None),
}
ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|[\s\S])")
ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'"}


class JsonMembers(JsonDict):
    """The members of an object, and the first key that occurs more than once."""

    repeated: str = ""

    @classmethod
    def of(cls, pairs: list[tuple[str, object]]) -> "JsonMembers":
        members = cls(pairs)
        if len(members) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            members.repeated = next(key for key, count in counts.items() if count > 1)
        return members


DECODER: Final = json.JSONDecoder(object_pairs_hook=JsonMembers.of, strict=False)


@dataclass(frozen=True)
class JsonObject:
    """An object, its place in the text, and whether it has a flaw."""

    members: JsonMembers
    start: int
    end: int
    is_flawed: bool = False
    comments: str = ""


class BrokenJson(Exception):
    """The object cannot be read, even with flaws."""


def parse_sole_object(text: str) -> JsonMembers | None:
    """The object that makes up the whole text, read strictly but for raw line breaks; None for anything else.

    Objects that were encoded as JSON twice, or whose quotes are all escaped, are accepted.
    """
    if text.startswith('{\\"'):
        text = f'"{text}"'
    if (text[:1], text[-1:]) not in (("{", "}"), ('"', '"')):
        return None
    try:
        value, end = DECODER.raw_decode(text)
        if isinstance(value, str) and end == len(text):
            text, (value, end) = value, DECODER.raw_decode(value)
    except (ValueError, RecursionError):  # a ValueError also for a number of thousands of digits
        return None
    return value if end == len(text) and isinstance(value, JsonMembers) else None


def find_json_objects(text: str, *, may_end_open: bool = True) -> tuple[list[JsonObject], bool]:
    """All readable top-level objects in order, and whether there are broken ones.

    ``may_end_open``: whether braces may be missing at the very end; not if the reply was cut off.
    """
    objects: list[JsonObject] = []
    flawed, position, attempts = FlawedJsonReader(text, may_end_open), 0, 0
    while opening := OPENING.search(text, position):
        json_object = decode_strictly(text, opening.start()) or flawed.object_at(opening.start())
        if json_object:
            objects.append(json_object)
        else:
            attempts += 1
        if attempts > MAX_ATTEMPTS or len(objects) > MAX_OBJECTS:
            return [], True
        position = json_object.end if json_object else opening.end()
    return objects, attempts > 0


def decode_strictly(text: str, start: int) -> JsonObject | None:
    try:
        members, end = DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return JsonObject(members, start, end)


@dataclass
class FlawedJsonReader:
    """A reader of flawed objects; ``quotes`` counts the work that all of them took."""

    text: str
    may_end_open: bool
    quotes: int = 0
    comments: list[str] = field(default_factory=list)

    def object_at(self, start: int) -> JsonObject | None:
        self.comments = []
        try:
            members, end = self.members(start, 0)
        except BrokenJson:
            return None
        return JsonObject(members, start, end, is_flawed=True, comments=" ".join(self.comments))

    def skip(self, at: int) -> int:
        match = SPACE.match(self.text, at)
        assert match is not None
        if comment := match[0].strip():
            self.comments.append(comment)
        return match.end()

    def is_over(self, at: int) -> bool:
        return self.may_end_open and at == len(self.text)

    def members(self, start: int, depth: int) -> tuple[JsonMembers, int]:
        if depth > MAX_DEPTH:
            raise BrokenJson
        pairs: list[tuple[str, object]] = []
        at = self.skip(start + 1)
        at = self.skip(at + 1) if self.text[at : at + 1] in COMMAS else at
        while not self.is_over(at) or not pairs:
            if self.text[at : at + 1] == "}":
                return JsonMembers.of(pairs), at + 1
            key, at = self.key(at)
            if self.text[at : at + 1] not in (":", "："):
                raise BrokenJson
            value, at = self.value(self.skip(at + 1), depth)
            pairs.append((key, value))
            at = self.skip_comma(at, "}")
        return JsonMembers.of(pairs), at

    def skip_comma(self, at: int, closing: str) -> int:
        """The start of the next member; the comma before it may be missing, and one at the end superfluous."""
        after = self.skip(at)
        if self.text[after : after + 1] in COMMAS:
            after = self.skip(after + 1)
            return self.skip(after + 1) if self.text[after : after + 1] in COMMAS else after
        is_end = self.text[after : after + 1] == closing or self.is_over(after)
        if not is_end and not NEXT_KEY.match(self.text, after):
            raise BrokenJson
        return after

    def key(self, at: int) -> tuple[str, int]:
        if self.text[at : at + 1] in CLOSERS:
            key, at = self.string(at, AFTER_KEY)
        elif bare := BARE_KEY.match(self.text, at):
            key, at = bare[0], bare.end()
        else:
            raise BrokenJson
        return key, self.skip(at)

    def value(self, at: int, depth: int, *, in_list: bool = False) -> tuple[object, int]:
        first = self.text[at : at + 1]
        if first == "{":
            return self.members(at, depth + 1)
        if first == "[":
            return self.items(at, depth + 1)
        after = AFTER_ITEM if in_list else AFTER_VALUE
        if first and first in CLOSERS:
            return self.string(at, after)
        if not (bare := BARE.match(self.text, at)):
            raise BrokenJson
        word = COMMENT.sub("", bare[0]).rstrip()
        if not word or not after.match(self.text, at + len(word)):
            raise BrokenJson
        if NUMBER.fullmatch(word):
            return json.loads(word), at + len(word)
        return float(word) if NUMBER_WITHOUT_ZERO.fullmatch(word) else LITERAL_WORDS.get(word, word), at + len(word)

    def items(self, start: int, depth: int) -> tuple[list[object], int]:
        if depth > MAX_DEPTH:
            raise BrokenJson
        items: list[object] = []
        at = self.skip(start + 1)
        while self.text[at : at + 1] != "]":
            value, at = self.value(at, depth, in_list=True)
            items.append(value)
            at = self.skip_comma(at, "]")
        return items, at + 1

    def string(self, start: int, after: re.Pattern[str]) -> tuple[str, int]:
        """The string that begins here: it ends at the first quote followed by what may follow a string."""
        for end in ENDS[self.text[start]].finditer(self.text, start + 1):
            self.quotes += 1
            if self.quotes > MAX_QUOTES:
                break
            if len(end[0]) == 1 and after.match(self.text, end.end()):
                return ESCAPE.sub(decode_escape, self.text[start + 1 : end.start()]), end.end()
        raise BrokenJson


def decode_escape(escape: re.Match[str]) -> str:
    """The escaped character; a backslash that escapes nothing stays."""
    if len(escape[1]) > 1:
        return chr(int(escape[1][1:], 16))
    return ESCAPED.get(escape[1], escape[0])
