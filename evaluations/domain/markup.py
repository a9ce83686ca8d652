"""Which Markdown a text holds: what makes it look worked out, whatever it says."""

import re
from enum import IntFlag
from typing import Final


class Markup(IntFlag):
    """Kinds of Markdown; a response holds any number of them. The bits are stored: they never change their meaning."""

    LIST = 1
    HEADING = 2
    EMPHASIS = 4
    TABLE = 8
    CODE = 16


# Every pattern starts with a character of its own, which is looked for quickly, and gives nothing back that it
# has read: no text takes more than linear time.
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


def markup_of(text: str) -> Markup:
    """The kinds of Markdown in the text, by the rules of CommonMark and GitHub as far as one line at a time tells.

    What stands in code is code and nothing else. A list is one item or more, with a sign or a number.
    """
    lines = "\n" + (text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text)
    prose = without_code(lines)
    found = Markup.CODE.value if prose != lines else 0
    if LIST_ITEM.search(prose):
        found |= Markup.LIST.value
    if "#" in prose and HEADING.search(prose):
        found |= Markup.HEADING.value
    if any(sign in prose and pattern.search(prose) for sign, pattern in EMPHASIS):
        found |= Markup.EMPHASIS.value
    if "|" in prose and has_table(prose):
        found |= Markup.TABLE.value
    return Markup(found)


def without_code(lines: str) -> str:
    """Fenced blocks taken out, code within a line made one letter."""
    if "~~~" in lines or "```" in lines:
        lines = without_fenced(lines)
    return CODE_SPAN.sub("x", lines) if "`" in lines else lines


def without_fenced(lines: str) -> str:
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
    for found in BELOW_TABLE_HEAD.finditer(prose):
        head = prose.rfind("\n", 0, found.start()) + 1
        if "|" in prose[head : found.start()]:
            return True
    return False
