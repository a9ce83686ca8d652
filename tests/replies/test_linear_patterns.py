r"""Patterns of rubrics by a linear-time engine: the same matches as Python's, and no text that holds a worker up."""

import json
import re
import signal
import subprocess
import sys
import warnings

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evaluations.replies import linear_patterns
from evaluations.replies.linear_patterns import (
    SUBPROCESS_SOURCE,
    PatternTimedOut,
    compile_pattern,
    find_matches,
    refuse_pattern,
)
from evaluations.replies.re2_translation import BOUNDARY_MARK, LAST_CODE_POINT, PatternRefused

CHARACTERS = [
    *"ABa1-_ \n[].",
    "é",
    "选",
    "٣",
    "Ⅷ",
    "²",
    "\u3000",
    "\x1c",
    "\x85",
    "\u0301",
    "ſ",
    "\u212a",
    "ı",
    "İ",
    "\u0345",
    "ι",
    "\x00",
    "🙂",
    "\ud800",
]
ATOMS = [
    *"AB1-_",
    "é",
    "选",
    r"\w",
    r"\W",
    r"\d",
    r"\D",
    r"\s",
    r"\S",
    ".",
    "[AB]",
    "[^A]",
    r"[\w-]",
    r"[^\W_]",
    "[a-z]",
]
ATOMS += [r"\[", r"\b", "^", "$", r"\A", r"\Z", "(?i:a)", "(?i:k)", "(?i:i)", "(?i:[^k])", r"(?a:\w)", "(?s:.)", "tie"]


def by_python(pattern: str, text: str) -> list[tuple[str, str, tuple[int, int]]]:
    """Text, label and the label's place of each match."""
    found = re.finditer(pattern, text, re.MULTILINE)
    return [(one[0], one[one.re.groups] or "", one.span(one.re.groups)) for one in found]


def here(pattern: str, text: str) -> list[tuple[str, str, tuple[int, int]]]:
    found = find_matches(pattern, text)
    assert all(one.text == text[one.start : one.end] for one in found)
    return [(one.text, one.label, one.span) for one in found]


def is_linear(pattern: str) -> bool:
    try:
        refuse_pattern(pattern)
    except PatternRefused:
        return False
    return True


patterns = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{1,2}", "*?", "+?", "??", "{2}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None)
@given(
    flags=st.sampled_from(["", "", "(?i)", "(?a)", "(?s)", "(?ai)"]),
    before=patterns,
    label=patterns,
    text=st.lists(st.sampled_from(CHARACTERS), max_size=9).map("".join),
)
def test_any_pattern_finds_what_python_finds(flags: str, before: str, label: str, text: str) -> None:
    pattern = f"{flags}{before}({label})"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assume(is_linear(pattern))
        assert here(pattern, text) == by_python(pattern, text)


@pytest.mark.parametrize(
    "pattern",
    [
        r"\[\[(A|B|C)\]\]",
        r"(\[\[A\]\]|\[\[B\]\])[\s.\"'*]*\Z",
        r"^(A|B|tie)$",
        r"(?i)verdict:\s*\**(\w+)\**",
        r"\b(A|B)\b",
        r"\b(A|-)\b",
        r"(\w+)\s*$",
        r"(?x) Answer : \s* (A|B)  # the label",
        r"(?P<label>A|B)!",
        "(A|[Kk])",
        "(?a)(?i)(tie|k)",
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "[[A]]",
        "选A吧",
        "A-B",
        "é A é",
        "Verdict: **B**",
        "x\nA\ny",
        "Answer: B",
        "B!",
        "[[B]].\n",
        "A\x85",
        "1A",
        "A٣ B",
        "\u212a, TİE",
    ],
)
def test_patterns_that_people_write_find_what_python_finds(pattern: str, text: str) -> None:
    assert is_linear(pattern)
    assert here(pattern, text) == by_python(pattern, text)


EVERY_CHARACTER = "".join(
    chr(code) for code in range(LAST_CODE_POINT + 1) if not 0xD800 <= code <= 0xDFFF and chr(code) != BOUNDARY_MARK
)
CLASSES = [r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", ".", "[^a]", r"[^\W\d_]", "[a-z]", "[А-Я]", *"iıİſßι"]


@pytest.mark.parametrize("flags", ["", "(?i)", "(?a)", "(?ai)", "(?s)"])
@pytest.mark.parametrize("one", CLASSES)
def test_classes_hold_exactly_what_python_counts(one: str, flags: str) -> None:
    """Its folding of case too: RE2 has İ and ı beside no i, and a mark that is no letter beside ι."""
    pattern = f"{flags}{one}+"
    assert compile_pattern(pattern, True).expression.sub("", EVERY_CHARACTER) == re.sub(pattern, "", EVERY_CHARACTER)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(a+)+$", "a" * 100_000 + "!"),
        (r"(?:a|a)*b(A)", "a" * 100_000),
        (r"(\w+\s?)*:\s(?:A)", "word " * 20_000),
        (r"(?:.*?,){11}(A)", "x," * 20_000),
        (r"\b(?:\w+é?)+\b!(A)", "é" * 50_000),
        ("(?:" * 90 + "A" + ")+" * 90, "B" * 50_000),
    ],
)
def test_a_catastrophic_pattern_takes_the_time_of_its_text(pattern: str, text: str) -> None:
    """Python's engine would not come to an end."""
    assert is_linear(pattern)
    assert find_matches(pattern, text) == []


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"(?<=Verdict: )(A|B)", "look-ahead or look-behind"),
        (r"(A|B)(?= wins)", "look-ahead or look-behind"),
        (r"(A)(?!\w)", "negative look-around"),
        (r"(?:\")(A|B)\1", "backreference"),
        (r"(A)?(?(1)B|C)", "conditional"),
        (r"(A|B)?", "empty text"),
        (r"(?:x*)*(A)", "repeats something that may be empty"),
        (r"\B(A)", r"\B"),
        (r"(A", "not a regular expression"),
        (r"(?a)(?u)(A|B)", "not a regular expression: ASCII and UNICODE flags are incompatible"),
        (r"(A){4294967295}", "not a regular expression: the repetition number is too large"),
        ("(A){" + "9" * 5_000 + "}", "not a regular expression"),  # more digits than Python converts
        ("(" * 5_000 + "A" + ")" * 5_000, "not a regular expression"),
        (r"(A){5000}", "too large"),
        (r"(A){4294967294}", "too large"),  # which RE2 reads as plain text
        (r"((A{1000}){1000})", "too large"),
        (r"(\w{1,1000})!", "too large"),  # would take a minute and 300 MB on one long reply
        (r"(?:\bA\b)+", "side by side"),
        ("(?:" * 90 + r"\bA\b" + ")+" * 90, "side by side"),
    ],
)
def test_what_cannot_be_linear_is_refused_with_the_reason(pattern: str, words: str) -> None:
    with pytest.raises(PatternRefused, match=re.escape(words)):
        refuse_pattern(pattern)


def test_a_stored_pattern_of_that_kind_still_finds_what_it_found() -> None:
    assert here(r"(?<=Verdict: )(A|B)", "Verdict: B, é") == by_python(r"(?<=Verdict: )(A|B)", "Verdict: B, é")
    assert here(r"(A)?x", "x Ax") == [("x", "", (0, 0)), ("Ax", "A", (2, 3))]


def test_a_stored_pattern_of_that_kind_is_stopped_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_patterns, "SUBPROCESS_SECONDS", 0.3)
    with pytest.raises(PatternTimedOut, match=re.escape("takes more than 0.3 second")):
        find_matches(r"(?=(a+)+$)A", "a" * 60 + "!")


def test_its_process_ends_without_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is killed leaves no process behind that goes on for ever."""
    child = [sys.executable, "-c", SUBPROCESS_SOURCE]
    given = json.dumps([r"(?=(a+)+$)A", "a" * 60 + "!", 1, 0.2])
    assert subprocess.run(child, input=given, text=True, timeout=20).returncode == -signal.SIGPROF


def test_more_matches_than_any_verdict_needs_are_too_many() -> None:
    with pytest.raises(PatternTimedOut, match="more than 1,000 times"):
        find_matches(r"(A)", "A" * 2_000)
    with pytest.raises(PatternTimedOut, match="more than 1,000 times"):
        find_matches(r"(A)(?!\d)", "A" * 2_000)


def test_a_pattern_is_compiled_once() -> None:
    compile_pattern.cache_clear()
    for text in ("A", "B", "A B"):
        find_matches(r"(A)", text)
    assert compile_pattern.cache_info().misses == 1
