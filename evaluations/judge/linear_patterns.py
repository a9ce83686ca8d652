"""Patterns that users write, matched in time linear in the text.

Python's own engine can take exponential time, and whoever writes such a pattern stops every worker that reads a reply
with it. A pattern is parsed as Python's, written anew for RE2 with the same meaning, and matched there. RE2 knows ASCII
classes and word boundaries alone: classes are spelled out as the characters that Python counts, and before a text that
is not ASCII is matched, each of its word boundaries gets a mark, which ``\\b`` then is.

What RE2 cannot express, such as look-arounds and backreferences, runs in a child process that is killed after a second.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from re import _constants as ops
from re import _parser as parser
from typing import Any, Final, NamedTuple

import re2

MARK: Final = "\U0010fffe"  # no character, so that no text has it
REPLACEMENT: Final = "�"
LAST: Final = 0x10FFFF
SURROGATES: Final = (0xD800, 0xDFFF)
MOST_MATCHES: Final = 1_000
MOST_MEMORY: Final = 64 << 20
CHILD_SECONDS: Final = 1.0
FLAGS: Final = re.MULTILINE

Ranges = Sequence[tuple[int, int]]

CURES: Final = {
    "ASSERT": "a look-ahead or look-behind, (?=…) or (?<=…): write what is before and after the label as part of the "
    "pattern, and the label as its one group",
    "ASSERT_NOT": "a negative look-around, (?!…) or (?<!…): list the labels that count instead",
    "GROUPREF": "a backreference: write the repeated text out",
    "GROUPREF_EXISTS": "a conditional, (?(1)…): write both cases with |",
    "ATOMIC_GROUP": "an atomic group, (?>…): use (?:…)",
    "POSSESSIVE_REPEAT": "a possessive quantifier, such as *+: leave out the last +",
    "AT_NON_BOUNDARY": r"\B: say which characters may be beside the label",
}


class PatternRefused(ValueError):
    """The pattern is no regular expression, or RE2 cannot express it; the sentence says why and what to write."""


class PatternTimedOut(Exception):
    """The pattern took too long on this text, or found too much; the sentence is for people."""


class Match(NamedTuple):
    """One match: its text and where it is, and the label in it: the one group, or all of the match.

    ``label`` is empty where the group took no part, and ``span``, its place, (0, 0).
    """

    text: str
    start: int
    end: int
    label: str
    span: tuple[int, int]


def refuse_pattern(pattern: str) -> None:
    """PatternRefused where the pattern cannot be matched in linear time."""
    try:
        compiled(pattern, False)
        compiled(pattern, True)
    except PatternRefused:
        raise
    except re2.error as error:
        raise PatternRefused(f"it is too large to be matched: {error}") from None


def find_matches(pattern: str, text: str) -> list[Match]:
    """All matches of Python's pattern in the text, ``^`` and ``$`` at every line, as ``re.finditer`` has them.

    PatternTimedOut where it takes too long or finds more than 1,000.
    """
    try:
        linear = compiled(pattern, not text.isascii())
    except (PatternRefused, re2.error):
        return matches_in_child(pattern, text)
    return linear.matches(text)


# ---- RE2 -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Linear:
    """A pattern for RE2. ``marks``: whether texts get a mark at each word boundary first."""

    expression: Any
    marks: bool

    def matches(self, text: str) -> list[Match]:
        prepared = encodable(text)
        offsets: Callable[[int], int] = int
        if self.marks:
            prepared, offsets = with_marks(prepared)
        found: list[Match] = []
        for start, end, label in self.spans(prepared):
            if len(found) == MOST_MATCHES:
                raise PatternTimedOut(f"The rubric's pattern matches more than {MOST_MATCHES:,} times in the reply.")
            span = (start, end) if label is None else (0, 0) if label == NOWHERE else label
            found.append(match_in(text, (offsets(start), offsets(end)), (offsets(span[0]), offsets(span[1]))))
        return found

    def spans(self, text: str) -> Iterator[tuple[int, int, tuple[int, int] | None]]:
        """Start, end and the group's span of each match, in characters of the prepared text."""
        groups = self.expression.groups
        if not self.marks:
            for one in self.expression.finditer(text):
                yield one.start(), one.end(), one.span(1) if groups else None
            return
        encoded = text.encode()
        to_characters = characters_of(encoded)
        at = 0
        while one := self.expression.search(encoded, at):
            start, end = one.span()
            label = one.span(1) if groups else None
            if label and label != NOWHERE:
                label = (to_characters[label[0]], to_characters[label[1]])
            yield to_characters[start], to_characters[end], label
            # The mark that ends a match also begins the next.
            end = end - len(ENCODED_MARK) if encoded[start:end].endswith(ENCODED_MARK) and end > start else end
            at = max(end, at + 1) if end <= at else end
            if at > len(encoded):
                return


def match_in(text: str, span: tuple[int, int], label: tuple[int, int]) -> Match:
    return Match(text[slice(*span)], *span, text[slice(*label)], label)


NOWHERE: Final = (-1, -1)
ENCODED_MARK: Final = MARK.encode()


def characters_of(encoded: bytes) -> list[int]:
    """The number of characters before each byte."""
    return [0, *accumulate(1 if byte & 0xC0 != 0x80 else 0 for byte in encoded)]


def encodable(text: str) -> str:
    """The text without lone surrogates and marks, each replaced by one character that is no letter either."""
    return re.sub(f"[\ud800-\udfff{MARK}]", REPLACEMENT, text)


def with_marks(text: str) -> tuple[str, Callable[[int], int]]:
    """The text with a mark at each word boundary, and what turns a place in it into one in the text."""
    before, parts, marks = False, [], []
    for character in text:
        is_word = character.isalnum() or character == "_"
        if is_word != before:
            parts.append(MARK)
            marks.append(1)
        parts.append(character)
        marks.append(0)
        before = is_word
    if before:
        parts.append(MARK)
        marks.append(1)
    marks_before = [0, *accumulate(marks)]
    return "".join(parts), lambda place: place - marks_before[place]


@lru_cache(maxsize=256)
def compiled(pattern: str, is_unicode: bool) -> Linear:
    """The pattern for RE2, for texts of ASCII alone or for any. PatternRefused or re2.error where there is none."""
    try:
        tree = parser.parse(pattern, FLAGS)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternRefused(f"it is not a regular expression: {error}") from None
    if tree.getwidth()[0] == 0:
        raise PatternRefused("it can match the empty text: write it so that a match always has a label")
    has_boundary = places_in(tree).any_boundary
    marks = is_unicode and has_boundary and not tree.state.flags & re.ASCII
    options = re2.Options()
    options.max_mem, options.log_errors = MOST_MEMORY, False
    try:
        written = Writer(is_unicode, marks, tree.state.flags).sequence(tree)
    except RecursionError:
        raise PatternRefused("it is nested too deep") from None
    expression = re2.compile(written.encode() if marks else written, options)
    return Linear(expression, marks)


@dataclass(frozen=True)
class Places:
    r"""Whether a part of a pattern has a \b, and may begin or end with a place at which a mark may be."""

    any_boundary: bool = False
    begins: bool = False
    ends: bool = False


def places_in(nodes: Any) -> Places:
    """PatternRefused where two boundaries may meet, which have one mark in a text, or a repetition may be empty."""
    so_far, at_start = Places(), True
    for op, given in nodes:
        here = places_of(op, given)
        if so_far.ends and here.begins:
            raise PatternRefused(r"it has two of \b, ^, $, \A and \Z side by side: leave one of them out")
        is_empty = width_of(op, given) == 0
        so_far = Places(
            so_far.any_boundary or here.any_boundary,
            so_far.begins or (at_start and here.begins),
            here.ends or (is_empty and so_far.ends),
        )
        at_start = at_start and is_empty
    return so_far


def places_of(op: Any, given: Any) -> Places:
    if op is ops.AT:
        is_boundary = given is ops.AT_BOUNDARY
        is_begin, is_end = str(given).startswith("AT_BEGINNING"), str(given).startswith("AT_END")
        return Places(is_boundary, is_boundary or is_begin, is_boundary or is_end)
    if op is ops.BRANCH:
        found = [places_in(branch) for branch in given[1]]
        return Places(*(any(getattr(one, name) for one in found) for name in ("any_boundary", "begins", "ends")))
    if op is ops.SUBPATTERN:
        return places_in(given[3])
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT):
        if given[2].getwidth()[0] == 0:
            raise PatternRefused("it repeats something that may be empty: write the repetition around what is not")
        return places_in([*given[2], *given[2]] if given[1] > 1 else given[2])
    return Places()


def width_of(op: Any, given: Any) -> int:
    """The fewest characters that this part of a pattern takes."""
    if op is ops.BRANCH:
        return min(int(branch.getwidth()[0]) for branch in given[1])
    if op is ops.SUBPATTERN:
        return int(given[3].getwidth()[0])
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT):
        return int(given[0] * given[2].getwidth()[0])
    return 0 if op is ops.AT else 1


class Writer:
    """Writes a parsed pattern in RE2's syntax."""

    def __init__(self, is_unicode: bool, marks: bool, flags: int) -> None:
        self.is_unicode, self.marks, self.flags = is_unicode, marks, flags

    def sequence(self, nodes: Any) -> str:
        return "".join(self.node(*node) for node in nodes)

    def node(self, op: Any, given: Any) -> str:
        name = str(op)
        if name in CURES:
            raise PatternRefused(f"it has {CURES[name]}")
        return str(getattr(self, f"write_{name.lower()}", self.write_unknown)(given))

    def write_unknown(self, given: Any) -> str:
        raise PatternRefused("it has a construct that cannot be matched in linear time")

    # -- single characters

    def one_of(self, written: str) -> str:
        """A character, after the mark that may be before it."""
        if self.flags & re.IGNORECASE and self.flags & re.ASCII:
            return self.write_unknown(None)  # RE2 folds more than ASCII
        cased = f"(?i:{written})" if self.flags & re.IGNORECASE else written
        return f"(?:{escaped(ord(MARK))}?{cased})" if self.marks else cased

    def write_literal(self, code: int) -> str:
        return self.one_of(escaped(code))

    def write_not_literal(self, code: int) -> str:
        return self.one_of(f"[^{escaped(code)}{self.mark_in_class}]")

    def write_any(self, _: None) -> str:
        if self.flags & re.DOTALL and not self.marks:
            return "(?s:.)"
        line_end = "" if self.flags & re.DOTALL else escaped(ord("\n"))
        return self.one_of(f"[^{line_end}{self.mark_in_class}]")

    @property
    def mark_in_class(self) -> str:
        return escaped(ord(MARK)) if self.marks else ""

    def write_in(self, items: Sequence[tuple[Any, Any]]) -> str:
        negated = bool(items) and items[0][0] is ops.NEGATE
        inside = "".join(self.item(*item) for item in items[negated:])
        if negated:
            return self.one_of(f"[^{inside}{self.mark_in_class}]")
        return self.one_of(f"[{inside}]") if inside else self.write_unknown(None)

    def item(self, op: Any, given: Any) -> str:
        if op is ops.LITERAL:
            return escaped(given)
        if op is ops.RANGE:
            return f"{escaped(given[0])}-{escaped(given[1])}"
        _, is_not, kind = str(given).removeprefix("CATEGORY_").rpartition("NOT_")
        of_ascii = self.flags & re.ASCII
        ranges = ASCII_RANGES[kind] if of_ascii else class_ranges(kind, LAST if self.is_unicode else 127)
        return in_class(others(ranges, self.marks) if is_not else ranges)

    # -- places

    def write_at(self, place: Any) -> str:
        name = str(place)
        if name in CURES:
            raise PatternRefused(f"it has {CURES[name]}")
        if name == "AT_BOUNDARY":
            if self.is_unicode and self.marks == bool(self.flags & re.ASCII):
                return self.write_unknown(None)  # only a part of the pattern is about ASCII
            return escaped(ord(MARK)) if self.marks else r"\b"
        before_end = f"{escaped(ord(MARK))}?" if self.marks else ""
        places = {
            "AT_BEGINNING": "(?m:^)",
            "AT_BEGINNING_STRING": r"\A",
            "AT_END": f"{before_end}(?m:$)",
            "AT_END_STRING": rf"{before_end}\z",
        }
        return places[name]

    # -- structure

    def write_branch(self, given: Any) -> str:
        return f"(?:{'|'.join(self.sequence(branch) for branch in given[1])})"

    def write_subpattern(self, given: Any) -> str:
        group, added, removed, nodes = given
        if removed & re.MULTILINE:
            return self.write_unknown(None)
        before, self.flags = self.flags, (self.flags | added) & ~removed
        inside = self.sequence(nodes)
        self.flags = before
        return f"({inside})" if group is not None else f"(?:{inside})"

    def write_max_repeat(self, given: Any) -> str:
        low, high, nodes = given
        most = "" if high is ops.MAXREPEAT else str(high)
        return f"(?:{self.sequence(nodes)}){{{low},{most}}}"

    def write_min_repeat(self, given: Any) -> str:
        return f"{self.write_max_repeat(given)}?"


def escaped(code: int) -> str:
    return chr(code) if chr(code).isascii() and chr(code).isalnum() else f"\\x{{{code:x}}}"


def in_class(ranges: Ranges) -> str:
    return "".join(escaped(low) if low == high else f"{escaped(low)}-{escaped(high)}" for low, high in ranges)


# ---- classes -------------------------------------------------------------------------------

CLASSES: Final[dict[str, Callable[[str], bool]]] = {
    "WORD": lambda character: character.isalnum() or character == "_",
    "DIGIT": str.isdecimal,
    "SPACE": str.isspace,
}


# The same in a pattern with the flag (?a).
ASCII_RANGES: Final[dict[str, Ranges]] = {
    "WORD": [(48, 57), (65, 90), (95, 95), (97, 122)],
    "DIGIT": [(48, 57)],
    "SPACE": [(9, 13), (32, 32)],
}


@lru_cache
def class_ranges(kind: str, last: int) -> Ranges:
    r"""The code points of Python's \w, \d or \s up to the last one asked for."""
    ranges: list[tuple[int, int]] = []
    for code in filter(lambda code: CLASSES[kind](chr(code)), range(last + 1)):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return ranges


@lru_cache
def others_of(ranges: tuple[tuple[int, int], ...]) -> Ranges:
    edges = [-1, *(edge for pair in ranges for edge in pair), LAST + 1]
    return [(low + 1, high - 1) for low, high in zip(edges[::2], edges[1::2], strict=True) if low + 1 <= high - 1]


def others(ranges: Ranges, without_mark: bool) -> Ranges:
    """Every code point that is in none of the ranges; in a class of a marked text the mark is none."""
    found = others_of(tuple(ranges))
    if not without_mark:
        return found
    mark = ord(MARK)
    pieces = [((low, min(high, mark - 1)), (max(low, mark + 1), high)) for low, high in found]
    return [piece for pair in pieces for piece in pair if piece[0] <= piece[1]]


# ---- the child -----------------------------------------------------------------------------

CHILD: Final = """
import json, re, sys
pattern, text, most = json.load(sys.stdin)
found = []
for one in re.finditer(pattern, text, re.MULTILINE):
    found.append([*one.span(), *(one.span(1) if one.re.groups else one.span())])
    if len(found) > most:
        break
json.dump(found, sys.stdout)
"""


def matches_in_child(pattern: str, text: str) -> list[Match]:
    """The same by Python's own engine, in a process that is killed when it takes too long."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", CHILD],
            input=json.dumps([pattern, text, MOST_MATCHES]),
            capture_output=True,
            text=True,
            timeout=CHILD_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise PatternTimedOut(
            f"The rubric's pattern takes more than {CHILD_SECONDS:g} second on this reply: write the next version "
            "without nested repetitions, look-arounds and backreferences."
        ) from None
    except subprocess.CalledProcessError:
        raise PatternTimedOut("The rubric's pattern cannot be matched on this reply.") from None
    spans = json.loads(done.stdout)
    if len(spans) > MOST_MATCHES:
        raise PatternTimedOut(f"The rubric's pattern matches more than {MOST_MATCHES:,} times in the reply.")
    return [match_in(text, (start, end), (max(first, 0), max(last, 0))) for start, end, first, last in spans]
