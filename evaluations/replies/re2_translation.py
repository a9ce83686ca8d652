"""Translation of Python's regular expressions to RE2, which matches in linear time."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from re import _constants as ops
from typing import Any, Final, TypeAlias

# A part of Python's own parse tree of a pattern, which has no types.
ParseNode: TypeAlias = Any
BOUNDARY_MARK: Final = "\U0010fffe"  # no character, so that no text has it
LAST_CODE_POINT: Final = 0x10FFFF
# The code points that a text for RE2 may have.
SCALAR_RANGES: Final = ((0, 0xD7FF), (0xE000, ord(BOUNDARY_MARK) - 1), (LAST_CODE_POINT, LAST_CODE_POINT))
MAX_REPEATS: Final = 1_000  # RE2 reads a higher count as plain text

Ranges = Sequence[tuple[int, int]]

REWRITE_ADVICE: Final = {
    "ASSERT": "a look-ahead or look-behind, (?=…) or (?<=…): write what is before and after the label as part of the "
    "pattern, and the label as its one group",
    "ASSERT_NOT": "a negative look-around, (?!…) or (?<!…): list the labels that count instead",
    "GROUPREF": "a backreference: write the repeated text out",
    "GROUPREF_EXISTS": "a conditional, (?(1)…): write both cases with |",
    "ATOMIC_GROUP": "an atomic group, (?>…): use (?:…)",
    "POSSESSIVE_REPEAT": "a possessive quantifier, such as *+: leave out the last +",
    "AT_NON_BOUNDARY": r"\B: list the characters that may be next to the label",
}


SIDE_BY_SIDE: Final = r"it has two of \b, ^, $, \A and \Z side by side: leave one of them out"
TOO_LARGE: Final = (
    f"it is too large: repeat a part {MAX_REPEATS:,} times at most, a class such as \\w less often, or write * or + "
    "instead of a number"
)


class PatternRefused(ValueError):
    """The pattern is no regular expression, or RE2 cannot express it; the message says why and what to write."""


@dataclass(frozen=True)
class BoundaryPlaces:
    r"""Whether a part of a pattern has a \b, and may begin or end with a place at which a mark may be."""

    any_boundary: bool = False
    begins: bool = False
    ends: bool = False


def find_boundary_places(nodes: ParseNode) -> BoundaryPlaces:
    """PatternRefused if two boundaries may meet (a text has one mark there), or a repetition may be empty."""
    total, at_start = BoundaryPlaces(), True
    for op, argument in nodes:
        places = boundary_places_of(op, argument)
        if total.ends and places.begins:
            raise PatternRefused(SIDE_BY_SIDE)
        is_empty = min_width(op, argument) == 0
        total = BoundaryPlaces(
            total.any_boundary or places.any_boundary,
            total.begins or (at_start and places.begins),
            places.ends or (is_empty and total.ends),
        )
        at_start = at_start and is_empty
    return total


def boundary_places_of(op: ParseNode, argument: ParseNode) -> BoundaryPlaces:
    if op is ops.AT:
        is_boundary = argument is ops.AT_BOUNDARY
        is_begin, is_end = str(argument).startswith("AT_BEGINNING"), str(argument).startswith("AT_END")
        return BoundaryPlaces(is_boundary, is_boundary or is_begin, is_boundary or is_end)
    if op is ops.BRANCH:
        branches = [find_boundary_places(branch) for branch in argument[1]]
        names = ("any_boundary", "begins", "ends")
        return BoundaryPlaces(*(any(getattr(branch, name) for branch in branches) for name in names))
    if op is ops.SUBPATTERN:
        return find_boundary_places(argument[3])
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT):
        if argument[2].getwidth()[0] == 0:
            raise PatternRefused("it repeats something that may be empty: write the repetition around what is not")
        inside = find_boundary_places(argument[2])
        if argument[1] > 1 and inside.begins and inside.ends:
            raise PatternRefused(SIDE_BY_SIDE)
        return inside
    return BoundaryPlaces()


def min_width(op: ParseNode, argument: ParseNode) -> int:
    """The minimum length of a match of this part."""
    if op is ops.BRANCH:
        return min(int(branch.getwidth()[0]) for branch in argument[1])
    if op is ops.SUBPATTERN:
        return int(argument[3].getwidth()[0])
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT):
        return int(argument[0] * argument[2].getwidth()[0])
    return 0 if op is ops.AT else 1


class RE2Writer:
    """Writes a parsed pattern in RE2's syntax."""

    def __init__(self, is_unicode: bool, marks: bool, flags: int) -> None:
        self.is_unicode, self.marks, self.flags = is_unicode, marks, flags

    def sequence(self, nodes: ParseNode) -> str:
        return "".join(self.node(*node) for node in nodes)

    def node(self, op: ParseNode, argument: ParseNode) -> str:
        name = str(op)
        if name in REWRITE_ADVICE:
            raise PatternRefused(f"it has {REWRITE_ADVICE[name]}")
        return str(getattr(self, f"write_{name.lower()}", self.write_unknown)(argument))

    def write_unknown(self, argument: ParseNode) -> str:
        raise PatternRefused("it has a construct that cannot be matched in linear time")

    # -- single characters

    def one_of(self, characters: str) -> str:
        """A character, after an optional boundary mark."""
        return f"(?:{escape_code_point(ord(BOUNDARY_MARK))}?{characters})" if self.marks else characters

    def write_class(self, source: str) -> str:
        """The characters that Python matches with this source, spelled out."""
        ranges = matching_ranges(source, self.flags & (re.IGNORECASE | re.ASCII | re.DOTALL), self.is_unicode)
        if [low == high for low, high in ranges] == [True, True]:
            # RE2 takes [Kk] for k of either case, and in alternatives adds its third one, the Kelvin sign.
            return self.one_of(f"(?:{'|'.join(escape_code_point(low) for low, _ in ranges)})")
        return self.one_of(f"[{format_class_ranges(ranges)}]" if ranges else EMPTY_CLASS)

    def write_literal(self, code: int) -> str:
        is_cased = self.flags & re.IGNORECASE and chr(code) in cased_characters()
        return self.write_class(f"[\\U{code:08x}]") if is_cased else self.one_of(escape_code_point(code))

    def write_not_literal(self, code: int) -> str:
        return self.write_class(f"[^\\U{code:08x}]")

    def write_any(self, _: None) -> str:
        return self.write_class(".")

    def write_in(self, items: Sequence[tuple[ParseNode, ParseNode]]) -> str:
        return self.write_class(f"[{''.join(format_class_item(*item) for item in items)}]")

    # -- places

    def write_at(self, position: ParseNode) -> str:
        name = str(position)
        if name in REWRITE_ADVICE:
            raise PatternRefused(f"it has {REWRITE_ADVICE[name]}")
        if name == "AT_BOUNDARY":
            if self.is_unicode and self.marks == bool(self.flags & re.ASCII):
                return self.write_unknown(None)  # only a part of the pattern is about ASCII
            return escape_code_point(ord(BOUNDARY_MARK)) if self.marks else r"\b"
        before_end = f"{escape_code_point(ord(BOUNDARY_MARK))}?" if self.marks else ""
        places = {
            "AT_BEGINNING": "(?m:^)",
            "AT_BEGINNING_STRING": r"\A",
            "AT_END": f"{before_end}(?m:$)",
            "AT_END_STRING": rf"{before_end}\z",
        }
        return places[name]

    # -- structure

    def write_branch(self, argument: ParseNode) -> str:
        return f"(?:{'|'.join(self.sequence(branch) for branch in argument[1])})"

    def write_subpattern(self, argument: ParseNode) -> str:
        group, added, removed, nodes = argument
        if removed & re.MULTILINE:
            return self.write_unknown(None)
        before, self.flags = self.flags, (self.flags | added) & ~removed
        inside = self.sequence(nodes)
        self.flags = before
        return f"({inside})" if group is not None else f"(?:{inside})"

    def write_max_repeat(self, argument: ParseNode) -> str:
        low, high, nodes = argument
        if low > MAX_REPEATS or (high is not ops.MAXREPEAT and high > MAX_REPEATS):
            raise PatternRefused(TOO_LARGE)
        most = "" if high is ops.MAXREPEAT else str(high)
        return f"(?:{self.sequence(nodes)}){{{low},{most}}}"

    def write_min_repeat(self, argument: ParseNode) -> str:
        return f"{self.write_max_repeat(argument)}?"


def escape_code_point(code: int) -> str:
    return chr(code) if chr(code).isascii() and chr(code).isalnum() else f"\\x{{{code:x}}}"


def format_class_ranges(ranges: Ranges) -> str:
    return "".join(
        escape_code_point(low) if low == high else f"{escape_code_point(low)}-{escape_code_point(high)}"
        for low, high in ranges
    )


EMPTY_CLASS: Final = r"[^\x{0}-\x{10ffff}]"
CATEGORIES: Final = {
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
}


def format_class_item(op: ParseNode, argument: ParseNode) -> str:
    if op is ops.NEGATE:
        return "^"
    if op is ops.CATEGORY:
        return CATEGORIES[str(argument)]
    if op is ops.LITERAL:
        return f"\\U{argument:08x}"
    return f"\\U{argument[0]:08x}-\\U{argument[1]:08x}"


@lru_cache(maxsize=1024)
def matching_ranges(source: str, flags: int, is_unicode: bool) -> Ranges:
    """The code points that Python's engine matches with this single character."""
    run = re.compile(f"(?:{source})+", flags)
    parts = SCALAR_RANGES if is_unicode else ((0, 127),)
    ranges = ((low, run.finditer(character_range(low, high))) for low, high in parts)
    return [(low + match.start(), low + match.end() - 1) for low, matches in ranges for match in matches]


@lru_cache
def character_range(low: int, high: int) -> str:
    return "".join(map(chr, range(low, high + 1)))


@lru_cache
def cased_characters() -> frozenset[str]:
    characters = (character for low, high in SCALAR_RANGES for character in character_range(low, high))
    return frozenset(character for character in characters if character.lower() != character.upper())
