"""Where a formula begins and ends in a text: between dollars, backslashed brackets or the names of an environment."""

import re
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

from evaluations.rendering.formulas import LONGEST_FORMULA

CLOSERS: Final = {"$$": "$$", "\\[": "\\]", "\\(": "\\)", "$": "$"}
ENVIRONMENTS: Final = (
    "align alignat aligned array bmatrix Bmatrix cases eqnarray equation flalign gather gathered math displaymath "
    "matrix multline pmatrix smallmatrix split vmatrix Vmatrix"
)
ENVIRONMENT: Final = re.compile(r"\\begin\{((?:" + "|".join(ENVIRONMENTS.split()) + r")\*?)\}")
# A formula of its own may be followed by the full stop of its sentence.
AFTER: Final = re.compile(r"[ \t]*[.,;:]?[ \t]*$")
SIGN: Final = re.compile(r"[\\^_={}<>+*/|!′'∈≤≥≠≈×·−→∞√]|\d\s*-|-\s*\d|[A-Za-z]\s*-\s*[A-Za-z]\b")
WORD_OF_PROSE: Final = re.compile(r"[^\W\d_A-Z]{3,}|[^\W\d_]{2,}\s+[^\W\d_]{2,}|^\s*\d.*[^\W\d_]{2,}")
# Beyond doubt a formula, even where a letter follows (“the $n$th”) or a number stands before (“2$x$”).
CERTAIN: Final = re.compile(r"[A-Za-z]|[^\d\s].*[\\^_].*|[\\^_].*")


def is_formula(content: str) -> bool:
    """Not the words between two prices, and not a bracket that was only protected by a backslash."""
    if not content.strip() or len(content) > LONGEST_FORMULA:
        return False
    return bool(SIGN.search(content)) or not WORD_OF_PROSE.search(content)


def formula(state: StateInline, silent: bool) -> bool:
    """A formula within a line, or one that begins and ends inside a paragraph."""
    found = opened(state.src, state.pos, state.posMax)
    if found is None:
        return False
    opener, end = found
    content = state.src[state.pos + len(opener) : end - len(closer_of(opener))]
    if opener == "$" and not may_stand_in_dollars(state.src, state.pos, end, content):
        return False
    if not is_formula(content):
        return False
    if not silent:
        token = state.push("formula", "math", 0)
        token.content, token.markup = content, opener
    state.pos = end
    return True


def opened(source: str, place: int, last: int) -> tuple[str, int] | None:
    """What opens here, and where what closes it ends. Not a second look at what nothing closes nearby."""
    sign = source[place]
    if sign not in "$\\":
        return None
    found = ENVIRONMENT.match(source, place) if sign == "\\" else None
    opener = found.group() if found else next((one for one in CLOSERS if source.startswith(one, place)), "")
    if not opener:
        return None
    end = closed(source, place + len(opener), min(last, place + LONGEST_FORMULA + 2 * len(opener)), closer_of(opener))
    return (opener, end) if end > 0 else None


def closer_of(opener: str) -> str:
    return CLOSERS.get(opener) or opener.replace("begin", "end", 1)


def closed(source: str, start: int, last: int, closer: str) -> int:
    """Where the closer ends; -1 where there is none."""
    place = source.find(closer, start, last)
    while place > 0 and closer[0] == "$" and source[place - 1] == "\\":
        place = source.find(closer, place + 1, last)
    return place + len(closer) if place >= 0 else -1


def may_stand_in_dollars(source: str, start: int, end: int, content: str) -> bool:
    """Close to its dollars, in one line, and nothing outside that makes them a currency: “$5 and $10” is money."""
    before, after = source[start - 1 : start] if start else "", source[end : end + 1]
    if content != content.strip() or "\n" in content or before == "$" or after == "$":
        return False
    if before.isalpha() or after.isdigit():
        return False
    return not (before.isdigit() or after.isalpha()) or bool(CERTAIN.fullmatch(content))


def formula_block(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """A formula with lines of its own: what in it looks like a list or a heading is part of it."""
    if state.is_code_block(first):
        return False
    start = state.bMarks[first] + state.tShift[first]
    found = opened(state.src, start, state.eMarks[last - 1]) if start < state.eMarks[first] else None
    if found is None or found[0] in ("$", "\\("):
        return False
    opener, end = found
    line = next(line for line in range(first, last) if end <= state.eMarks[line])
    after = AFTER.match(state.src[end : state.eMarks[line]])
    if after is None or any(is_outside(state, inner) for inner in range(first + 1, line + 1)):
        return False
    lines = state.getLines(first, line + 1, state.blkIndent, False).strip()
    content = lines[len(opener) : lines.rindex(closer_of(opener))]
    if not is_formula(content):
        return False
    if not silent:
        token = state.push("formula_block", "math", 0)
        token.content, token.markup, token.info = content, opener, after.group().strip()
        token.block, token.map = True, [first, line + 1]
    state.line = line + 1
    return True


def is_outside(state: StateBlock, line: int) -> bool:
    """Whether a line is empty or belongs to another block."""
    return state.isEmpty(line) or state.sCount[line] < state.blkIndent


def find_formulas(markdown: MarkdownIt) -> None:
    markdown.inline.ruler.before("escape", "formula", formula)
    interrupts = ["paragraph", "reference", "blockquote", "list"]
    markdown.block.ruler.before("fence", "formula_block", formula_block, {"alt": interrupts})
