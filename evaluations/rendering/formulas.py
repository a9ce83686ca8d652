"""LaTeX formulas in a text, found by their delimiters and rendered as MathML."""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import accumulate, compress
from typing import Final
from xml.etree.ElementTree import Element

from latex2mathml import exceptions
from latex2mathml.converter import Converter
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

# Longer formulas are shown as written: parsing takes about a millisecond for each hundred characters.
MAX_FORMULA_CHARACTERS: Final = 2_000
# Nested braces: the parser recurses for each.
DEEPEST: Final = 40

# The number of children of each of these elements. With fewer, the formula was not parsed to its end.
PARTS: Final[Mapping[str, int]] = {
    "mfrac": 2,
    "mover": 2,
    "mroot": 2,
    "msub": 2,
    "msubsup": 3,
    "msup": 2,
    "munder": 2,
    "munderover": 3,
}

# In a display formula, sub- and superscripts of these operators are set below and above them.
LIMITS: Final[Mapping[str, str]] = {"msub": "munder", "msup": "mover", "msubsup": "munderover"}

LIMITED: Final = frozenset(
    (
        *"∑∏∐⋃⋂⨆⨅⋁⋀⨁⨂⨀",
        *("lim", "max", "min", "sup", "inf", "argmax", "argmin"),
        *("lim\u2006sup", "lim\u2006inf", "arg\u2009max", "arg\u2009min"),
    )
)

FORMULA_TAG_NAMES: Final = (
    "math menclose mfrac mi mn mo mover mpadded mphantom mroot mrow mspace msqrt mstyle msub msubsup msup mtable mtd "
    "mtext mtr munder munderover"
)

FORMULA_TAGS: Final = frozenset(FORMULA_TAG_NAMES.split())
# Allowed attributes of elements, with their values. No colors and no free lengths, which could hide or cover text.
TRUTH: Final = frozenset({"true", "false"})
SIZES: Final = frozenset({"1.2em", "1.623em", "2.047em", "2.470em"})
STRIKES: Final = ("updiagonalstrike", "downdiagonalstrike")
RULED: Final = ("ruled-right", "ruled-below")

VALUES: Final[Mapping[str, Mapping[str, frozenset[str]]]] = {
    "math": {"display": frozenset({"block", "inline"})},
    "menclose": {"notation": frozenset({"box", "horizontalstrike", *STRIKES, " ".join(STRIKES)})},
    "mfrac": {"linethickness": frozenset({"0"})},
    "mi": {"mathvariant": frozenset({"normal", "bold", "italic"})},
    "mo": {
        "stretchy": TRUTH,
        "fence": TRUTH,
        "movablelimits": TRUTH,
        "form": frozenset({"prefix", "infix", "postfix"}),
        "minsize": SIZES,
        "maxsize": SIZES,
    },
    "mover": {"accent": TRUTH},
    "mspace": {"width": frozenset({"0.167em", "0.222em", "0.278em", "0.333em", "0.5em", "1em", "2em"})},
    "mstyle": {"displaystyle": TRUTH, "scriptlevel": frozenset("0123")},
    "mtable": {"displaystyle": TRUTH},
    "mtd": {"columnalign": frozenset({"left", "center", "right"}), "class": frozenset({*RULED, " ".join(RULED)})},
    "mtext": {"mathvariant": frozenset({"bold", "italic", "monospace"})},
    "munder": {"accentunder": TRUTH},
}

# Environments that the parser does not know, with a similar one that it knows.
ALIKE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("align", "aligned", "flalign", "eqnarray", "split"), "align*"),
    **dict.fromkeys(("alignat", "alignedat"), "align*"),
    **dict.fromkeys(("gather", "gathered", "multline"), "matrix"),
    **dict.fromkeys(("dcases", "rcases"), "cases"),
}

ENVIRONMENT: Final = re.compile(r"\\(begin|end)\s*\{([A-Za-z]+)(\*?)\}")
COLUMNS: Final = re.compile(r"(\\begin\s*\{align(?:at|edat)\*?\})\s*\{\d+\}")
# Labels, references and numbers of formulas, which are not shown.
UNSEEN: Final = re.compile(r"\\(?:label|eqref)\s*\{[^{}]*\}|\\(?:nonumber|notag)(?![A-Za-z])")
# Definitions of commands, by which a formula of twenty characters could expand to a million.
DEFINING: Final = re.compile(r"\\(?:(?:re)?newcommand|providecommand|def|let|DeclareMathOperator|newenvironment)")
NUMBERED: Final = re.compile(r"&#x([0-9A-Fa-f]{1,6});")
COMMAND: Final = re.compile(r"\\[A-Za-z]")


class UnreadableFormula(Exception):
    """A formula that cannot be shown as MathML and is shown as written."""


FAULTS: Final[tuple[type[Exception], ...]] = (
    *(fault for fault in vars(exceptions).values() if isinstance(fault, type) and issubclass(fault, Exception)),
    UnreadableFormula,
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,  # one of them: too deep
    StopIteration,
    TypeError,
    ValueError,
)


def latex_to_mathml(latex: str, *, display: bool) -> str | None:
    """The formula as MathML; None where it is too long or cannot be read."""
    if (
        not latex.strip()
        or len(latex) > MAX_FORMULA_CHARACTERS
        or brace_depth(latex) > DEEPEST
        or DEFINING.search(latex)
    ):
        return None
    kind = "block" if display else "inline"
    try:
        tree = Converter(display=kind).convert_to_element(normalise_latex(latex))
        return "".join(serialise_element(tree, {"display": kind, "dir": "ltr"}))
    except FAULTS:
        return None


def brace_depth(latex: str) -> int:
    return max(accumulate({"{": 1, "}": -1}.get(sign, 0) for sign in latex))


def normalise_latex(latex: str) -> str:
    """The formula with commands replaced by those that the converter knows."""
    latex = ENVIRONMENT.sub(in_known_environment, COLUMNS.sub(r"\1", UNSEEN.sub("", latex))).strip()
    if "\\\\" in latex and "\\begin" not in latex:
        return rf"\begin{{align*}}{latex}\end{{align*}}"
    return latex


def in_known_environment(match: re.Match[str]) -> str:
    side, name, star = match.group(1, 2, 3)
    return rf"\{side}{{{ALIKE.get(name, name + star)}}}"


def serialise_element(element: Element, attributes: Mapping[str, str] | None = None) -> Iterator[str]:
    r"""An element as HTML with everything escaped, which the library itself does not do for ``\text``."""
    tag, text = element.tag, decode_numbered_characters(element.text or "")
    if tag not in FORMULA_TAGS or len(element) != PARTS.get(tag, len(element)):
        raise UnreadableFormula
    if tag != "mtext" and (COMMAND.match(text) or (tag == "mi" and text in ("&", "{", "}"))):
        raise UnreadableFormula
    if tag == "mtable":
        draw_table_rules(element)
    if tag in LIMITS and element[0].tag == "mo" and decode_numbered_characters(element[0].text or "") in LIMITED:
        tag = LIMITS[tag]
        element[0].set("movablelimits", "true")
    attributes = attributes or allowed_attributes(element)
    parts = "".join(f' {name}="{value}"' for name, value in attributes.items())
    yield f"<{tag}{parts}>"
    yield escape(text, quote=False)
    for child in element:
        yield from serialise_element(child)
        yield escape(decode_numbered_characters(child.tail or ""), quote=False)
    yield f"</{tag}>"


def decode_numbered_characters(text: str) -> str:
    """The text with the numeric character references of the library decoded."""
    return NUMBERED.sub(decode_character, text)


def decode_character(match: re.Match[str]) -> str:
    number = int(match.group(1), 16)
    is_one = 0x20 <= number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF
    return chr(number) if is_one else match.group()


def allowed_attributes(element: Element) -> dict[str, str]:
    values = VALUES.get(element.tag, {})
    kept = {name: value for name, value in element.attrib.items() if value in values.get(name, ())}
    # The library writes upright letters as numeric references; without the attribute browsers make them italic.
    if (
        element.tag == "mi"
        and NUMBERED.fullmatch(element.text or "")
        and decode_numbered_characters(element.text or "").isascii()
    ):
        kept["mathvariant"] = "normal"
    return kept


def draw_table_rules(table: Element) -> None:
    """Mark cells with classes for the lines of a table, which browsers do not draw."""
    columns, lines = table.get("columnlines", "").split(), table.get("rowlines", "").split()
    for row, cells in enumerate(table):
        for column, cell in enumerate(cells):
            is_ruled = (has_table_line(columns, column), has_table_line(lines, row))
            cell.set("class", " ".join(compress(RULED, is_ruled)))


def has_table_line(lines: Sequence[str], place: int) -> bool:
    return place < len(lines) and lines[place] in ("solid", "dashed")


CLOSERS: Final = {"$$": "$$", "\\[": "\\]", "\\(": "\\)", "$": "$"}

ENVIRONMENT_NAMES: Final = (
    "align alignat aligned array bmatrix Bmatrix cases eqnarray equation flalign gather gathered math displaymath "
    "matrix multline pmatrix smallmatrix split vmatrix Vmatrix"
)

ENVIRONMENT_OPENER: Final = re.compile(r"\\begin\{((?:" + "|".join(ENVIRONMENT_NAMES.split()) + r")\*?)\}")
# A display formula may be followed by the full stop of its sentence.
AFTER: Final = re.compile(r"[ \t]*[.,;:]?[ \t]*$")
SIGN: Final = re.compile(r"[\\^_={}<>+*/|!′'∈≤≥≠≈×·−→∞√]|\d\s*-|-\s*\d|[A-Za-z]\s*-\s*[A-Za-z]\b")
WORD_OF_PROSE: Final = re.compile(r"[^\W\d_A-Z]{3,}|[^\W\d_]{2,}\s+[^\W\d_]{2,}|^\s*\d.*[^\W\d_]{2,}")
# Surely a formula, even if a letter follows (“the $n$th”) or a number precedes it (“2$x$”).
CERTAIN: Final = re.compile(r"[A-Za-z]|[^\d\s].*[\\^_].*|[\\^_].*")


def is_formula(content: str) -> bool:
    """Whether the content is a formula, not the words between two prices or an escaped bracket."""
    if not content.strip() or len(content) > MAX_FORMULA_CHARACTERS:
        return False
    return bool(SIGN.search(content)) or not WORD_OF_PROSE.search(content)


def inline_formula_rule(state: StateInline, silent: bool) -> bool:
    """A rule of markdown-it for formulas within a paragraph."""
    delimiter = find_opener(state.src, state.pos, state.posMax)
    if delimiter is None:
        return False
    opener, end = delimiter
    content = state.src[state.pos + len(opener) : end - len(closing_delimiter(opener))]
    if opener == "$" and not is_dollar_formula(state.src, state.pos, end, content):
        return False
    if not is_formula(content):
        return False
    if not silent:
        token = state.push("formula", "math", 0)
        token.content, token.markup = content, opener
    state.pos = end
    return True


def find_opener(source: str, place: int, last: int) -> tuple[str, int] | None:
    """The opening delimiter at this place and the end of its closing delimiter; None where none closes nearby."""
    sign = source[place]
    if sign not in "$\\":
        return None
    opener = next((delimiter for delimiter in CLOSERS if source.startswith(delimiter, place)), "")
    if sign == "\\" and (environment := ENVIRONMENT_OPENER.match(source, place)):
        opener = environment.group()
    if not opener:
        return None
    end = find_closer(
        source,
        place + len(opener),
        min(last, place + MAX_FORMULA_CHARACTERS + 2 * len(opener)),
        closing_delimiter(opener),
    )
    return (opener, end) if end > 0 else None


def closing_delimiter(opener: str) -> str:
    return CLOSERS.get(opener) or opener.replace("begin", "end", 1)


def find_closer(source: str, start: int, last: int, closer: str) -> int:
    """The end of the closing delimiter; -1 without one."""
    place = source.find(closer, start, last)
    while place > 0 and closer[0] == "$" and source[place - 1] == "\\":
        place = source.find(closer, place + 1, last)
    return place + len(closer) if place >= 0 else -1


def is_dollar_formula(source: str, start: int, end: int, content: str) -> bool:
    """Whether the content between dollars is a formula: adjacent to them, on one line, not money as in “$5 and $10”."""
    before, after = source[start - 1 : start] if start else "", source[end : end + 1]
    if content != content.strip() or "\n" in content or before == "$" or after == "$":
        return False
    if before.isalpha() or after.isdigit():
        return False
    return not (before.isdigit() or after.isalpha()) or bool(CERTAIN.fullmatch(content))


def block_formula_rule(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """A rule of markdown-it for formulas on their own lines, whose content is never a list or a heading."""
    if state.is_code_block(first):
        return False
    start = state.bMarks[first] + state.tShift[first]
    delimiter = find_opener(state.src, start, state.eMarks[last - 1]) if start < state.eMarks[first] else None
    if delimiter is None or delimiter[0] in ("$", "\\("):
        return False
    opener, end = delimiter
    line = next(line for line in range(first, last) if end <= state.eMarks[line])
    after = AFTER.match(state.src[end : state.eMarks[line]])
    if after is None or any(is_outside_block(state, inner) for inner in range(first + 1, line + 1)):
        return False
    lines = state.getLines(first, line + 1, state.blkIndent, False).strip()
    content = lines[len(opener) : lines.rindex(closing_delimiter(opener))]
    if not is_formula(content):
        return False
    if not silent:
        token = state.push("formula_block", "math", 0)
        token.content, token.markup, token.info = content, opener, after.group().strip()
        token.block, token.map = True, [first, line + 1]
    state.line = line + 1
    return True


def is_outside_block(state: StateBlock, line: int) -> bool:
    """Whether a line is empty or belongs to another block."""
    return state.isEmpty(line) or state.sCount[line] < state.blkIndent


def enable_formulas(markdown: MarkdownIt) -> None:
    markdown.inline.ruler.before("escape", "formula", inline_formula_rule)
    interrupts = ["paragraph", "reference", "blockquote", "list"]
    markdown.block.ruler.before("fence", "formula_block", block_formula_rule, {"alt": interrupts})
