"""Patterns that users write, matched in time linear in the text.

Python's own engine can take exponential time, and such a pattern stops every worker that reads a reply
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from re import _parser as parser
from time import thread_time
from typing import Any, Final, NamedTuple

import re2

from evaluations.replies.re2_translation import (
    BOUNDARY_MARK,
    TOO_LARGE,
    PatternRefused,
    RE2Writer,
    find_boundary_places,
)

REPLACEMENT: Final = "�"
MAX_MATCHES: Final = 1_000
MAX_MEMORY: Final = 16 << 20
MAX_INSTRUCTIONS: Final = 200_000  # of RE2, which takes the time of the text times these at worst
SUBPROCESS_SECONDS: Final = 1.0
FLAGS: Final = re.MULTILINE
# What Python raises for a pattern that is no regular expression: ValueError for flags that exclude each other.
PATTERN_FAULTS: Final = (re.error, OverflowError, RecursionError, ValueError)


class PatternTimedOut(Exception):
    """The pattern took too long on this text, or matched too often; the message is for people."""


class PatternMatch(NamedTuple):
    """One match with its place, and its label: the only group, or the whole match.

    If the group took no part, ``label`` is "" and ``span``, its place, (0, 0).
    """

    text: str
    start: int
    end: int
    label: str
    span: tuple[int, int]


def refuse_pattern(pattern: str) -> None:
    """PatternRefused if the pattern cannot be matched in linear time."""
    try:
        compile_pattern(pattern, False)
        compile_pattern(pattern, True)
    except re2.error:
        raise PatternRefused(TOO_LARGE) from None


def find_matches(pattern: str, text: str) -> list[PatternMatch]:
    """All matches of a Python pattern in the text, as ``re.finditer`` finds them with MULTILINE.

    PatternTimedOut if it takes too long or matches more than 1,000 times.
    """
    try:
        linear = compile_pattern(pattern, not text.isascii())
    except (PatternRefused, re2.error):
        return match_in_subprocess(pattern, text)
    return linear.matches(text)


@dataclass(frozen=True)
class LinearPattern:
    """A compiled RE2 pattern. ``marks``: whether texts first get a mark at each word boundary."""

    expression: Any
    marks: bool

    def matches(self, text: str) -> list[PatternMatch]:
        prepared = replace_unencodable(text)
        offsets: Callable[[int], int] = int
        if self.marks:
            prepared, offsets = mark_boundaries(prepared)
        matches: list[PatternMatch] = []
        stop = thread_time() + SUBPROCESS_SECONDS
        for start, end, label in self.spans(prepared):
            if thread_time() > stop:
                raise PatternTimedOut(TOO_SLOW.format(SUBPROCESS_SECONDS))
            if len(matches) == MAX_MATCHES:
                raise PatternTimedOut(TOO_MANY_MATCHES)
            span = (start, end) if label is None else (0, 0) if label == NOWHERE else label
            matches.append(make_match(text, (offsets(start), offsets(end)), (offsets(span[0]), offsets(span[1]))))
        return matches

    def spans(self, text: str) -> Iterator[tuple[int, int, tuple[int, int] | None]]:
        """Start, end and group span of each match, in characters of the prepared text."""
        groups = self.expression.groups
        if not self.marks:
            for match in self.expression.finditer(text):
                yield match.start(), match.end(), match.span(1) if groups else None
            return
        encoded = text.encode()
        to_characters = character_offsets(encoded)
        at = 0
        while match := self.expression.search(encoded, at):
            start, end = match.span()
            label = match.span(1) if groups else None
            if label and label != NOWHERE:
                label = (to_characters[label[0]], to_characters[label[1]])
            yield to_characters[start], to_characters[end], label
            # The mark that ends a match also begins the next.
            if end > start and encoded[start:end].endswith(ENCODED_BOUNDARY_MARK):
                end -= len(ENCODED_BOUNDARY_MARK)
            at = max(end, at + 1)
            if at > len(encoded):
                return


def make_match(text: str, span: tuple[int, int], label: tuple[int, int]) -> PatternMatch:
    return PatternMatch(text[slice(*span)], *span, text[slice(*label)], label)


TOO_SLOW: Final = (
    "The rubric's pattern takes more than {:g} second on this reply: write the next version without nested "
    "repetitions, look-arounds and backreferences."
)
TOO_MANY_MATCHES: Final = f"The rubric's pattern matches more than {MAX_MATCHES:,} times in the reply."
NOWHERE: Final = (-1, -1)
ENCODED_BOUNDARY_MARK: Final = BOUNDARY_MARK.encode()


def character_offsets(encoded: bytes) -> list[int]:
    """The number of characters before each byte."""
    return [0, *accumulate(1 if byte & 0xC0 != 0x80 else 0 for byte in encoded)]


def replace_unencodable(text: str) -> str:
    """The text with lone surrogates and marks replaced by a character that is no letter."""
    return re.sub(f"[\ud800-\udfff{BOUNDARY_MARK}]", REPLACEMENT, text)


def mark_boundaries(text: str) -> tuple[str, Callable[[int], int]]:
    """The text with a mark at each word boundary, and a function from its offsets to those of the text."""
    before, parts, marks = False, [], []
    for character in text:
        is_word = character.isalnum() or character == "_"
        if is_word != before:
            parts.append(BOUNDARY_MARK)
            marks.append(1)
        parts.append(character)
        marks.append(0)
        before = is_word
    if before:
        parts.append(BOUNDARY_MARK)
        marks.append(1)
    marks_before = [0, *accumulate(marks)]
    return "".join(parts), lambda place: place - marks_before[place]


@lru_cache(maxsize=64)
def compile_pattern(pattern: str, is_unicode: bool) -> LinearPattern:
    """The RE2 pattern for ASCII texts or for any. PatternRefused or re2.error if there is none."""
    try:
        tree = parser.parse(pattern, FLAGS)
    except PATTERN_FAULTS as error:
        raise PatternRefused(f"it is not a regular expression: {error}") from None
    if tree.getwidth()[0] == 0:
        raise PatternRefused("it can match the empty text: write it so that a match always has a label")
    has_boundary = find_boundary_places(tree).any_boundary
    marks = is_unicode and has_boundary and not tree.state.flags & re.ASCII
    options = re2.Options()
    options.max_mem, options.log_errors = MAX_MEMORY, False
    try:
        written = RE2Writer(is_unicode, marks, tree.state.flags).sequence(tree)
    except RecursionError:
        raise PatternRefused("it is nested too deep") from None
    expression = re2.compile(written.encode() if marks else written, options)
    if expression.programsize > MAX_INSTRUCTIONS:
        raise PatternRefused(TOO_LARGE)
    return LinearPattern(expression, marks)


# The limit is of the child's processor time: a busy machine does not shorten it, and if the worker is killed the child
# still ends.
SUBPROCESS_SOURCE: Final = """
import json, re, signal, sys
pattern, text, most, seconds = json.load(sys.stdin)
signal.setitimer(signal.ITIMER_PROF, seconds)
spans = []
for match in re.finditer(pattern, text, re.MULTILINE):
    spans.append([*match.span(), *match.span(1 if match.re.groups else 0)])
    if len(spans) > most:
        break
json.dump(spans, sys.stdout)
"""


def match_in_subprocess(pattern: str, text: str) -> list[PatternMatch]:
    """All matches by Python's own engine, in a process that is killed if it takes too long."""
    try:
        process = subprocess.run(
            [sys.executable, "-I", "-S", "-c", SUBPROCESS_SOURCE],
            input=json.dumps([pattern, text, MAX_MATCHES, SUBPROCESS_SECONDS]),
            capture_output=True,
            text=True,
            timeout=SUBPROCESS_SECONDS * 10,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise PatternTimedOut(TOO_SLOW.format(SUBPROCESS_SECONDS)) from None
    except subprocess.CalledProcessError as error:
        if error.returncode == -signal.SIGPROF:
            raise PatternTimedOut(TOO_SLOW.format(SUBPROCESS_SECONDS)) from None
        raise PatternTimedOut("The rubric's pattern cannot be matched on this reply.") from None
    spans = json.loads(process.stdout)
    if len(spans) > MAX_MATCHES:
        raise PatternTimedOut(TOO_MANY_MATCHES)
    return [make_match(text, (start, end), (max(first, 0), max(last, 0))) for start, end, first, last in spans]
