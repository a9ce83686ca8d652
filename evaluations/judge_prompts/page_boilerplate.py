"""Menus, buttons, line numbers and footers in a text that was copied from a web page.

Nothing is removed without a person's decision.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import dedent
from typing import Final

from evaluations.judge_prompts.placeholders import find_placeholders

MAX_LINE_LENGTH: Final = 300
MIN_NUMBERED_LINES: Final = 3
MIN_WEAK_NUMBERED_LINES: Final = 5
MIN_WEAK_LINES: Final = 3
# 12 | text, 12→text and 12<tab>text are numbers of lines. 12 text and 12: text may be items of a list or a scale.
GUTTER: Final = re.compile(r"[ \t]{0,8}(\d{1,4})(?:[ ]?[|│┃→][ ]?|\t)(.*)")
WEAK_GUTTER: Final = re.compile(r"[ \t]{0,8}(\d{1,4})(?::(?=[ \t]|$))?((?:[ \t].*)?)")
NUMBER: Final = re.compile(r"\s{0,8}(\d{1,4})\s{0,8}")
FILE_NAME: Final = re.compile(r"[\w./-]{1,80}\.\w{1,5}")
LANGUAGE: Final = r"(?:python|jsonc?|ya?ml|xml|html|markdown|plaintext|text|txt|bash|shell|javascript|typescript)"
# A line that is only one of these is a page's button or link, anywhere in the text.
CERTAIN_LINE: Final = re.compile(
    "|".join(
        (
            r"skip to (?:the )?(?:main )?(?:content|navigation|footer|search)",
            r"jump to (?:content|navigation)",
            rf"{LANGUAGE}?\s?copy(?: code| page| prompt| link| snippet)?",
            r"copy (?:to|as|for) (?:clipboard|markdown|llms?)|copied",
            r"(?:edit|suggest edits? to|view) (?:this page|this file|page|source)(?: (?:on|in) \w+)?",
            r"(?:edit|view|open|run|fork|star) (?:on|in) (?:github|gitlab|(?:google )?colab|kaggle|playground)",
            r"suggest edits?|on this page|(?:back|return|scroll) to top|table of contents|toggle \w+(?: \w+)?",
            r"(?:open|close|toggle) (?:main )?(?:menu|navigation|sidebar)",
            r"expand (?:all|code|menu)|show (?:more|less)|read more",
            r"(?:accept|reject|allow|decline)(?: all)? cookies|(?:accept|reject) all|only necessary(?: cookies)?",
            r"(?:cookie|privacy|consent) (?:settings|preferences|policy|notice|choices)",
            r"manage (?:cookies|preferences|consent)|do not sell my (?:personal )?info(?:rmation)?",
            r"terms of (?:service|use)|terms (?:and|&) conditions",
            r"sign (?:in|up)|log ?in|create (?:an )?account|get started(?: for free)?|book a demo|contact sales",
            r"(?:ctrl|cmd|⌘)\s?\+?\s?k|search(?: the)? docs|search documentation|ask ai",
            r"(?:was|is|did) (?:this|the) (?:page|article|doc|section)\b[\w ]{0,20}(?:helpful|useful)"
            r"(?:\W{0,3}yes\W{0,3}no)?",
            r"(?:give|send|share) (?:your )?feedback|report (?:an? )?(?:issue|problem|bug)",
            r"share (?:this )?(?:page|article|on \w+)|subscribe to (?:our |the )?newsletter|follow us(?: on \w+)?",
            r"leave a comment|\d{1,3} min(?:ute)?s? (?:read|to read)|\d{1,6} (?:views|likes|stars|forks|claps)",
            r"all rights reserved|(?:(?:preview )?code )?(?:raw )?blame(?: history)?|download raw file",
            r"latest commit|file metadata and controls|navigation menu|provide feedback",
            r"pull requests(?: \d+)?|dismiss alert|reload to refresh your session",
            r"\d{1,6} lines? \(\d{1,6} s?loc\)(?: · [\d.]{1,8} (?:bytes|kb|mb))?",
        )
    )
)
# Notices of a page by how they begin.
NOTICE: Final = re.compile(
    "|".join(
        (
            r"(?:we|this (?:web)?site|our (?:web)?site)(?: and our partners)? (?:also )?uses? (?:\w+ )?cookies\b.*",
            r"by (?:clicking|continuing|using)\b.{0,120}\b(?:cookies?|site|website)\b.*",
            r"(?:copyright )?(?:©|\(c\)) ?(?:copyright )?\d{4}\b.*|copyright \d{4}\b.*",
            r"(?:last |page )(?:updated|modified|edited)\b.{0,40}",
            r"(?:updated|published)(?: on|:)? (?:\w{3,9} \d{1,2},? \d{4}|\d{1,4}[-./]\d{1,2}[-./]\d{1,4})",
            r"(?:powered by|built with|made with) [\w ♥❤.-]{2,40}",
            r"(?:home|docs|documentation)(?: ?[>›»/] ?[\w &.-]{1,40}){1,6}",
        )
    )
)
# Words of menus that may also be words of a prompt: they count next to a certain line, or three of them at an end.
MENU_WORD: Final = re.compile(
    "|".join(
        (
            r"home|docs|documentation|guides?|tutorials?|api|api reference|blog|pricing|products?|solutions?|resources",
            r"support|community|company|careers|about(?: us)?|contact(?: us)?|changelog|release notes|status",
            r"github|discord|slack|twitter|linkedin|youtube|search|menu|navigation|share|raw|history",
            r"next|previous|prev|next page|previous page|download|print|register|privacy|terms|security|legal|imprint",
            r"english|light|dark|yes|no|faq|quick ?start|enterprise|customers|newsletter",
            r"issues(?: \d+)?|insights|discussions|wiki|notifications|branches|tags|footer(?: navigation)?",
            r"[\w./-]{1,80}\.(?:md|txt|py|json|ya?ml|jinja2?|j2|prompt)",
            LANGUAGE,
        )
    )
)
HEADING_ANCHOR: Final = re.compile(r"(.*\S)\s{0,3}[¶🔗]\s{0,3}")
LINE_ORNAMENTS: Final = " \t.!…→←↑↓›»‹«|•·*-–—✓✕×☰🔍📋👍👎"


@dataclass(frozen=True)
class Boilerplate:
    """A line that is not wholly part of the prompt. ``number`` counts from 1; ``kept``: None if the line is removed."""

    number: int
    line: str
    kept: str | None = None


def find_boilerplate(text: str) -> list[Boilerplate]:
    """The lines of the text that seem to come from the page around the prompt, in order."""
    lines = text.replace("\r\n", "\n").split("\n")
    contents = strip_line_numbers(lines)
    listed = find_listed_lines(contents)
    removed = {place for place, line in enumerate(contents) if place not in listed and is_certain_line(line)}
    removed |= find_menu_lines(contents, removed, listed)
    removed |= find_number_lines(contents, removed)
    boilerplate = []
    for place, (line, content) in enumerate(zip(lines, contents, strict=True)):
        anchored = HEADING_ANCHOR.fullmatch(content)
        kept = None if place in removed else anchored[1] if anchored else content
        if kept != line:
            boilerplate.append(Boilerplate(place + 1, line, kept))
    return boilerplate


def remove_boilerplate(text: str) -> str:
    """The text without its boilerplate, and without blank lines at its ends."""
    replaced = {boilerplate.number: boilerplate.kept for boilerplate in find_boilerplate(text)}
    if not replaced:
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    kept = [replaced.get(number, line) for number, line in enumerate(lines, start=1)]
    kept_lines = [line for line in kept if line is not None]
    written = [place for place, line in enumerate(kept_lines) if line.strip()]
    return "\n".join(kept_lines[written[0] : written[-1] + 1]) if written else ""


def plain_words(line: str) -> str:
    """The words of a line in lower case, without ornaments."""
    return " ".join(line.strip(LINE_ORNAMENTS).casefold().split()).rstrip("?!: ")


def is_prompt_line(line: str) -> bool:
    """Whether a line is too long for a button, has a placeholder, or is a numbered item."""
    return len(line) > MAX_LINE_LENGTH or bool(find_placeholders(line)) or bool(re.match(r"\s*\(?\d{1,3}[.)]\s", line))


def is_certain_line(line: str) -> bool:
    words = plain_words(line)
    return bool(CERTAIN_LINE.fullmatch(words) or NOTICE.fullmatch(words)) and not is_prompt_line(line)


def is_menu_word(line: str) -> bool:
    return bool(MENU_WORD.fullmatch(plain_words(line))) and not is_prompt_line(line)


def find_listed_lines(contents: Sequence[str]) -> set[int]:
    """The lines that a prompt lists after a colon, such as labels, up to a blank line."""
    listed, is_open = set(), False
    for place, line in enumerate(contents):
        if is_open and line.strip():
            listed.add(place)
        is_open = bool(line.strip()) and (is_open or (line.strip().endswith(":") and not is_certain_line(line)))
    return listed


def find_menu_lines(contents: Sequence[str], certain: set[int], listed: set[int]) -> set[int]:
    """Menu words in a row with a certain line, or in a long row at an end of the text."""
    menu: set[int] = set()
    written = [place for place, line in enumerate(contents) if line.strip()]
    for row in find_menu_rows(contents, certain, listed):
        weak = [place for place in row if place not in certain]
        at_end = row[0] == written[0] or row[-1] == written[-1]
        if len(weak) < len(row) or (at_end and len(weak) >= MIN_WEAK_LINES):
            menu |= set(weak)
    return menu


def find_menu_rows(contents: Sequence[str], certain: set[int], listed: set[int]) -> Iterator[list[int]]:
    """The rows of lines, blank ones aside, that are each certain or a menu word."""
    row: list[int] = []
    for place, line in enumerate(contents):
        if place in certain or (place not in listed and is_menu_word(line)):
            row.append(place)
        elif row and line.strip():
            yield row
            row = []
    if row:
        yield row


def strip_line_numbers(lines: Sequence[str]) -> list[str]:
    """The lines without consecutive line numbers, if most lines have them."""
    written = sum(bool(line.strip()) for line in lines)
    for pattern, share, accepts in ((GUTTER, 0.6, is_long_enough_menu), (WEAK_GUTTER, 0.8, is_numbered_text)):
        block = longest_numbered_block(lines, pattern)
        numbered = [match[2] for place in block if (match := pattern.fullmatch(lines[place]))]
        contents = dedent("\n".join(numbered)).split("\n")
        if len(block) >= share * written and accepts(contents):
            inside = dict(zip(block, contents, strict=True))
            return [inside.get(place, line) for place, line in enumerate(lines)]
    return list(lines)


def is_long_enough_menu(contents: Sequence[str]) -> bool:
    return len(contents) >= MIN_NUMBERED_LINES


def is_numbered_text(contents: Sequence[str]) -> bool:
    """Whether numbered lines are a text: unlike list items, some are blank or indented."""
    lines_with_text = sum(bool(content.strip()) for content in contents)
    is_text = any(not content.strip() or content.startswith((" ", "\t")) for content in contents)
    return len(contents) >= MIN_WEAK_NUMBERED_LINES and is_text and lines_with_text >= len(contents) / 3


def longest_numbered_block(lines: Sequence[str], pattern: re.Pattern[str]) -> range:
    """The longest run of lines with consecutive numbers."""
    best, start, before = range(0), 0, None
    for place, line in enumerate(lines):
        match = pattern.fullmatch(line)
        number = int(match[1]) if match else None
        if number is None or before is None or number != before + 1:
            start = place
        before = number
        if number is not None and place + 1 - start > len(best):
            best = range(start, place + 1)
    return best


def find_number_lines(contents: Sequence[str], removed: set[int]) -> set[int]:
    """Line numbers that were copied apart from their lines: before all of them, or each before its own."""
    places = [place for place, line in enumerate(contents) if place not in removed and line.strip()]
    if places and FILE_NAME.fullmatch(contents[places[0]].strip()):
        places.pop(0)
    if not places:
        return set()
    places = [place for place in range(places[0], len(contents)) if place not in removed]
    return find_leading_numbers(contents, places) or find_interleaved_numbers(contents, places)


def find_leading_numbers(contents: Sequence[str], places: Sequence[int]) -> set[int]:
    """1, 2, 3 and so on, for about as many lines as follow."""
    count, taken = 0, []
    for place in places:
        words = contents[place].split()
        if words and words != list(map(str, range(count + 1, count + len(words) + 1))):
            break
        count += len(words)
        taken.append(place)
    following = [contents[place] for place in places[len(taken) :]]
    while following and not following[-1].strip():
        following.pop()
    written = sum(bool(line.strip()) for line in following)
    if count < MIN_NUMBERED_LINES or not written - 1 <= count <= len(following) + 2:
        return set()
    return {place for place in taken if contents[place].strip()}


def find_interleaved_numbers(contents: Sequence[str], places: Sequence[int]) -> set[int]:
    """1, a line, 2, a line, and so on to the end."""
    written = [place for place in places if contents[place].strip()]
    numbers = written[::2]
    counted = [match[1] if (match := NUMBER.fullmatch(contents[place])) else "" for place in numbers]
    if len(numbers) < MIN_NUMBERED_LINES or counted != list(map(str, range(1, len(numbers) + 1))):
        return set()
    return set(numbers)
