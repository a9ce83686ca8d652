"""LaTeX in, MathML out: what a reader of formulas needs to see, and nothing that could do more."""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import accumulate, compress
from typing import Final
from xml.etree.ElementTree import Element

from latex2mathml import exceptions
from latex2mathml.converter import Converter

# A longer one is shown as it was written: reading costs about a millisecond for each hundred characters.
LONGEST_FORMULA: Final = 2_000
# A reader of formulas calls itself for each brace within a brace.
DEEPEST: Final = 40

# How many parts each of these has. One with fewer is a formula that was not read to its end.
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
# What stands beside an operator in a line stands above and below these in a formula of its own.
LIMITS: Final[Mapping[str, str]] = {"msub": "munder", "msup": "mover", "msubsup": "munderover"}
LIMITED: Final = frozenset(
    (
        *"∑∏∐⋃⋂⨆⨅⋁⋀⨁⨂⨀",
        *("lim", "max", "min", "sup", "inf", "argmax", "argmin"),
        *("lim\u2006sup", "lim\u2006inf", "arg\u2009max", "arg\u2009min"),
    )
)
TAG_NAMES: Final = (
    "math menclose mfrac mi mn mo mover mpadded mphantom mroot mrow mspace msqrt mstyle msub msubsup msup mtable mtd "
    "mtext mtr munder munderover"
)
TAGS: Final = frozenset(TAG_NAMES.split())
# What may stand on which, and which values. No colour and no free lengths: neither may hide or cover other words.
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

# Environments that the reader does not know, by one that it knows and that looks alike.
ALIKE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("align", "aligned", "flalign", "eqnarray", "split"), "align*"),
    **dict.fromkeys(("alignat", "alignedat"), "align*"),
    **dict.fromkeys(("gather", "gathered", "multline"), "matrix"),
    **dict.fromkeys(("dcases", "rcases"), "cases"),
}
ENVIRONMENT: Final = re.compile(r"\\(begin|end)\s*\{([A-Za-z]+)(\*?)\}")
COLUMNS: Final = re.compile(r"(\\begin\s*\{align(?:at|edat)\*?\})\s*\{\d+\}")
# They name a formula for others to refer to, or number it; nothing of it is seen here.
UNSEEN: Final = re.compile(r"\\(?:label|eqref)\s*\{[^{}]*\}|\\(?:nonumber|notag)(?![A-Za-z])")
# Words that would define others: a formula of twenty characters could become one of a million.
DEFINING: Final = re.compile(r"\\(?:(?:re)?newcommand|providecommand|def|let|DeclareMathOperator|newenvironment)")
NUMBERED: Final = re.compile(r"&#x([0-9A-Fa-f]{1,6});")
COMMAND: Final = re.compile(r"\\[A-Za-z]")


class Unreadable(Exception):
    """It is no formula that we can show: show it as it was written."""


FAULTS: Final[tuple[type[Exception], ...]] = (
    *(fault for fault in vars(exceptions).values() if isinstance(fault, type) and issubclass(fault, Exception)),
    Unreadable,
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,  # one of them: too deep
    StopIteration,
    TypeError,
    ValueError,
)


def mathml(latex: str, *, display: bool) -> str | None:
    """The formula as MathML; None where it is too long or cannot be read."""
    if not latex.strip() or len(latex) > LONGEST_FORMULA or depth(latex) > DEEPEST or DEFINING.search(latex):
        return None
    kind = "block" if display else "inline"
    try:
        tree = Converter(display=kind).convert_to_element(readable(latex))
        return "".join(written(tree, {"display": kind, "dir": "ltr"}))
    except FAULTS:
        return None


def depth(latex: str) -> int:
    """How deep its braces are nested."""
    return max(accumulate({"{": 1, "}": -1}.get(sign, 0) for sign in latex))


def readable(latex: str) -> str:
    """The same formula in the words that the reader knows."""
    latex = ENVIRONMENT.sub(in_known_environment, COLUMNS.sub(r"\1", UNSEEN.sub("", latex))).strip()
    if "\\\\" in latex and "\\begin" not in latex:
        return rf"\begin{{align*}}{latex}\end{{align*}}"
    return latex


def in_known_environment(found: re.Match[str]) -> str:
    side, name, star = found.group(1, 2, 3)
    return rf"\{side}{{{ALIKE.get(name, name + star)}}}"


def written(element: Element, attributes: Mapping[str, str] | None = None) -> Iterator[str]:
    """An element with what is in it. Ours, not the library's own, which does not escape what stands in ``\\text``."""
    tag, text = element.tag, shown(element.text or "")
    if tag not in TAGS or len(element) != PARTS.get(tag, len(element)):
        raise Unreadable
    if tag != "mtext" and (COMMAND.match(text) or (tag == "mi" and text in ("&", "{", "}"))):
        raise Unreadable
    if tag == "mtable":
        rule(element)
    if tag in LIMITS and element[0].tag == "mo" and shown(element[0].text or "") in LIMITED:
        tag = LIMITS[tag]
        element[0].set("movablelimits", "true")
    attributes = attributes or allowed(element)
    parts = "".join(f' {name}="{value}"' for name, value in attributes.items())
    yield f"<{tag}{parts}>"
    yield escape(text, quote=False)
    for child in element:
        yield from written(child)
        yield escape(shown(child.tail or ""), quote=False)
    yield f"</{tag}>"


def shown(text: str) -> str:
    """The characters that the library writes by number."""
    return NUMBERED.sub(character, text)


def character(found: re.Match[str]) -> str:
    number = int(found.group(1), 16)
    is_one = 0x20 <= number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF
    return chr(number) if is_one else found.group()


def allowed(element: Element) -> dict[str, str]:
    values = VALUES.get(element.tag, {})
    kept = {name: value for name, value in element.attrib.items() if value in values.get(name, ())}
    # A letter that the library writes by number is an upright one: browsers slant single letters by themselves.
    if element.tag == "mi" and NUMBERED.fullmatch(element.text or "") and shown(element.text or "").isascii():
        kept["mathvariant"] = "normal"
    return kept


def rule(table: Element) -> None:
    """The lines of a table, which browsers do not draw by themselves, as classes of its cells."""
    columns, lines = table.get("columnlines", "").split(), table.get("rowlines", "").split()
    for row, cells in enumerate(table):
        for column, cell in enumerate(cells):
            is_ruled = (has_line(columns, column), has_line(lines, row))
            cell.set("class", " ".join(compress(RULED, is_ruled)))


def has_line(lines: Sequence[str], place: int) -> bool:
    return place < len(lines) and lines[place] in ("solid", "dashed")
