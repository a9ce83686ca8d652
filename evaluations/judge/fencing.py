"""Delimiters round judged text that the text itself cannot guess."""

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Final

from evaluations.domain import CURRENT_LAYOUT, FIRST_LAYOUT

ACCENTED: Final = ((0x00C0, 0x0250), (0x1E00, 0x1F00))
# Where compatibility forms of letters are: super- and subscript, circled, full-width, mathematical.
STYLED: Final = (
    (0x1D2C, 0x1D6B),
    (0x2070, 0x209D),
    (0x2100, 0x2184),
    (0x249C, 0x24EA),
    (0xFF21, 0xFF5B),
    (0x1D400, 0x1D7CC),
    (0x1F110, 0x1F14A),
)
# Emblems of A to Z that have no compatibility form: circled, squared, and those of flags.
EMBLEMS: Final = (0x1F150, 0x1F170, 0x1F1E6)
# Letters, digits and signs that look like these.
TWINS: Final = {
    "b": "ЬьВвƄɓʙᏴᏏβΒßƀᖯᗷꓐ8",
    "e": "ЕеΕεЄєҽҼᎬ℮ϵɛƐəǝᴇꓰ3€",
    "g": "ɡԌɢցᏀǥɠꓖ9",
    "i": "ІіΙιıɪӏӀꓲl1|!¡",
    "n": "ΝпПηոռՈɴƞᴎꓠ",
    "d": "ԁԀɗɖᎠᗞժđĐðᴅꓓ",
}
# Marks that are seen on no letter, or over one: they may stand between any two characters.
UNSEEN: Final = (
    r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u0300-\u036f\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20d0-\u20ff\u2800\u3164\ufe00-\ufe0f"
    r"\ufe20-\ufe2f\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
OPENS: Final = re.escape("[［﹇⁅⎡⎢⎣〔﹝❲❴⦋⦍⦏⦗⧘‹〈〈⟨❬❰❮⌈⌊⌜⌞⸤┌└┏┗╒╘╓╙「｢『﹁﹃⟅⁽₍ㄷ匚⼕ⵎ«")
OPENS_TWICE: Final = re.escape("⟦〚⸢【〖⟬〘⦃⸨⦅｟⟪╔╚")  # each is read as two
# What is read as a bracket once a page has rendered it, less its first character.
ESCAPED: Final = r"(?:(?<=&)(?:#0*+91|#[xX]0*+5[bB]|lbrack|lsqb);?|(?<=%)5[bB]|(?<=\\)(?:u005[bB]|x5[bB]))"
BROKEN: Final = "[ ["  # what is left of the brackets of a look-alike
# How titles of blocks begin, by the layout of the prompt.
TITLES: Final = {
    FIRST_LAYOUT: r"(?:response|turn|context|reference)",
    CURRENT_LAYOUT: r"(?:response|turn|context|reference|conversation|user.?s?\s++query)",
}


def letter(wanted: str) -> str:
    """A class of everything that reads as this letter."""
    styled = (chr(code) for first, last in (*ACCENTED, *STYLED) for code in range(first, last))
    alike = [
        one for one in styled if "".join(filter(str.isalnum, unicodedata.normalize("NFKD", one))).casefold() == wanted
    ]
    emblems = [chr(first + ord(wanted) - ord("a")) for first in EMBLEMS]
    return f"[{wanted}{wanted.upper()}{TWINS[wanted]}{''.join((*alike, *emblems))}]"


def word(letters: str) -> str:
    """The word as one, broken by a line at most, or with a mark or a space between all of its letters."""
    classes = [letter(one) for one in letters]
    as_one = rf"[{UNSEEN}]*+(?:\r?\n)?+[{UNSEEN}]*+".join(classes)
    apart = rf"[{UNSEEN}]*+[\s._\-\u2010-\u2015][{UNSEEN}]*+".join(classes)
    return f"(?:{as_one}|{apart})"


BEGIN_OR_END: Final = rf"(?:{word('begin')}|{word('end')})(?![^\W_])"
# What may come between the brackets and the word. Nothing that may be a letter of the word is taken.
NO_LETTER: Final = rf"(?:(?![{OPENS}{OPENS_TWICE}]|{BEGIN_OR_END})[\W{UNSEEN}])"
THEN: Final = rf"{NO_LETTER}*+{BEGIN_OR_END}"
SOON: Final = rf"{NO_LETTER}{{0,8}}+{BEGIN_OR_END}"


# Whatever looks like one of our delimiters: two brackets or a double one, then "begin" or "end"; with white space
# between the brackets, or other marks in their place, only where the rest reads like a delimiter, too. All begin with
# one class, by which the search is fast, and what they are broken into looks like none of them. No repetition gives
# back what it took, and all are bounded or end at the next bracket: the time grows with the length alone.
@cache
def forged(layout: int) -> re.Pattern[str]:
    """The pattern of what looks like a delimiter of a prompt in this layout."""
    return re.compile(
        rf"[{OPENS}{OPENS_TWICE}&%\\({{<=]"
        rf"(?:(?:(?<=[{OPENS}{OPENS_TWICE}])|{ESCAPED})"
        rf"(?:(?:[{UNSEEN}]|\\(?![ux]))*+(?:[{OPENS}{OPENS_TWICE}]|[&%\\]{ESCAPED})){{1,30}}+(?={THEN})"
        rf"|(?<=[{OPENS_TWICE}])(?={THEN})"
        rf"|(?<=[{OPENS}])(?!(?<=\[) \[)[\s{UNSEEN}\\]++[{OPENS}](?={THEN}[\s{UNSEEN}]++[^\W_])"
        rf"|(?:(?<=[{OPENS}])(?<!\[ \[)|(?<!\S.)(?:(?<=\()\(++|(?<={{){{++|(?<=<)<++|(?<==)=++))"
        rf"(?={SOON}\s++{TITLES[layout]}\b))",
    )


FORGED: Final = forged(FIRST_LAYOUT)


def fence_token(fence_key: str, texts: Iterable[str]) -> str:
    """Sixteen hex digits from the key and the texts: the same call always renders the same prompt.

    Each text goes in with its length, so that moving a boundary changes the token.
    """
    digest = hmac.new(fence_key.encode(), digestmod=hashlib.sha256)
    for text in texts:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()[:16]


def fenced(title: str, text: str, token: str, layout: int = FIRST_LAYOUT) -> str:
    """The text between two delimiter lines, with every look-alike in it broken."""
    return f"[[begin {title} {token}]]\n{unforged(text, layout)}\n[[end {title} {token}]]"


def unforged(text: str, layout: int = FIRST_LAYOUT) -> str:
    """The text with every look-alike of a delimiter broken: its brackets stand apart."""
    return forged(layout).sub(BROKEN, text)
