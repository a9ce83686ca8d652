"""Patterns that users write, matched in time linear in the text.

Python's own engine can take exponential time, and whoever writes such a pattern stops every worker that reads a reply
with it. A pattern is parsed as Python's, written anew for RE2 with the same meaning, and matched there. RE2 knows ASCII
classes and word boundaries alone, and folds other letters: classes and letters of either case are spelled out as the
characters that Python counts, and before a text that is not ASCII is matched, each of its word boundaries gets a mark,
which ``\\b`` then is.

What RE2 cannot express, such as look-arounds and backreferences, runs in a child process that is killed after a second.
"""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from re import _constants as ops
from re import _parser as parser
from time import thread_time
from typing import Any, Final, NamedTuple

import re2

MARK: Final = "\U0010fffe"  # no character, so that no text has it
REPLACEMENT: Final = "�"
LAST: Final = 0x10FFFF
SCALARS: Final = ((0, 0xD7FF), (0xE000, ord(MARK) - 1), (LAST, LAST))  # all that a text for RE2 may hold
MOST_MATCHES: Final = 1_000
MOST_MEMORY: Final = 16 << 20
MOST_INSTRUCTIONS: Final = 200_000  # of RE2, which takes the time of the text times these at worst
MOST_REPEATS: Final = 1_000  # RE2 reads a higher count as plain text
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


SIDE_BY_SIDE: Final = r"it has two of \b, ^, $, \A and \Z side by side: leave one of them out"
TOO_LARGE: Final = (
    f"it is too large: repeat a part {MOST_REPEATS:,} times at most, a class such as \\w less often, or write * or + "
    "instead of a number"
)


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
    except re2.error:
        raise PatternRefused(TOO_LARGE) from None


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
        stop = thread_time() + CHILD_SECONDS
        for start, end, label in self.spans(prepared):
            if thread_time() > stop:
                raise PatternTimedOut(TOO_SLOW.format(CHILD_SECONDS))
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


TOO_SLOW: Final = (
    "The rubric's pattern takes more than {:g} second on this reply: write the next version without nested "
    "repetitions, look-arounds and backreferences."
)
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


@lru_cache(maxsize=64)
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
    if expression.programsize > MOST_INSTRUCTIONS:
        raise PatternRefused(TOO_LARGE)
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
            raise PatternRefused(SIDE_BY_SIDE)
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
        inside = places_in(given[2])
        if given[1] > 1 and inside.begins and inside.ends:
            raise PatternRefused(SIDE_BY_SIDE)
        return inside
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

    def one_of(self, characters: str) -> str:
        """A character, after the mark that may be before it."""
        return f"(?:{escaped(ord(MARK))}?{characters})" if self.marks else characters

    def asked_of_python(self, source: str) -> str:
        ranges = ranges_of(source, self.flags & (re.IGNORECASE | re.ASCII | re.DOTALL), self.is_unicode)
        if [low == high for low, high in ranges] == [True, True]:
            # RE2 takes [Kk] for k of either case, and in alternatives adds its third one, the Kelvin sign.
            return self.one_of(f"(?:{'|'.join(escaped(low) for low, _ in ranges)})")
        return self.one_of(f"[{in_class(ranges)}]" if ranges else NOTHING)

    def write_literal(self, code: int) -> str:
        is_cased = self.flags & re.IGNORECASE and chr(code) in cased_characters()
        return self.asked_of_python(f"[{in_source(code)}]") if is_cased else self.one_of(escaped(code))

    def write_not_literal(self, code: int) -> str:
        return self.asked_of_python(f"[^{in_source(code)}]")

    def write_any(self, _: None) -> str:
        return self.asked_of_python(".")

    def write_in(self, items: Sequence[tuple[Any, Any]]) -> str:
        return self.asked_of_python(f"[{''.join(item_in_source(*item) for item in items)}]")

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
        if low > MOST_REPEATS or (high is not ops.MAXREPEAT and high > MOST_REPEATS):
            raise PatternRefused(TOO_LARGE)
        most = "" if high is ops.MAXREPEAT else str(high)
        return f"(?:{self.sequence(nodes)}){{{low},{most}}}"

    def write_min_repeat(self, given: Any) -> str:
        return f"{self.write_max_repeat(given)}?"


def escaped(code: int) -> str:
    return chr(code) if chr(code).isascii() and chr(code).isalnum() else f"\\x{{{code:x}}}"


def in_class(ranges: Ranges) -> str:
    return "".join(escaped(low) if low == high else f"{escaped(low)}-{escaped(high)}" for low, high in ranges)


# ---- classes -------------------------------------------------------------------------------

NOTHING: Final = r"[^\x{0}-\x{10ffff}]"
CATEGORIES: Final = {
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
}


def in_source(code: int) -> str:
    return f"\\U{code:08x}"


def item_in_source(op: Any, given: Any) -> str:
    if op is ops.NEGATE:
        return "^"
    if op is ops.CATEGORY:
        return CATEGORIES[str(given)]
    return in_source(given) if op is ops.LITERAL else f"{in_source(given[0])}-{in_source(given[1])}"


@lru_cache(maxsize=1024)
def ranges_of(source: str, flags: int, is_unicode: bool) -> Ranges:
    """The code points that Python's engine counts as this single character, of ASCII alone or of all."""
    run = re.compile(f"(?:{source})+", flags)
    parts = SCALARS if is_unicode else ((0, 127),)
    found = ((low, run.finditer(characters(low, high))) for low, high in parts)
    return [(low + one.start(), low + one.end() - 1) for low, matches in found for one in matches]


@lru_cache
def characters(low: int, high: int) -> str:
    return "".join(map(chr, range(low, high + 1)))


@lru_cache
def cased_characters() -> frozenset[str]:
    return frozenset(one for low, high in SCALARS for one in characters(low, high) if one.lower() != one.upper())


# ---- the child -----------------------------------------------------------------------------

# The limit is the child's own, of processor time: a busy machine shortens it for nobody, and where the worker is killed
# the child still ends.
CHILD: Final = """
import json, re, signal, sys
pattern, text, most, seconds = json.load(sys.stdin)
signal.setitimer(signal.ITIMER_PROF, seconds)
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
            input=json.dumps([pattern, text, MOST_MATCHES, CHILD_SECONDS]),
            capture_output=True,
            text=True,
            timeout=CHILD_SECONDS * 10,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise PatternTimedOut(TOO_SLOW.format(CHILD_SECONDS)) from None
    except subprocess.CalledProcessError as error:
        is_slow = error.returncode == -signal.SIGPROF
        words = TOO_SLOW.format(CHILD_SECONDS) if is_slow else "The rubric's pattern cannot be matched on this reply."
        raise PatternTimedOut(words) from None
    spans = json.loads(done.stdout)
    if len(spans) > MOST_MATCHES:
        raise PatternTimedOut(f"The rubric's pattern matches more than {MOST_MATCHES:,} times in the reply.")
    return [match_in(text, (start, end), (max(first, 0), max(last, 0))) for start, end, first, last in spans]
