"""Delimiters round judged text that the text itself cannot guess."""

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Iterable
from typing import Final

# Where compatibility forms of letters lie: super- and subscript, circled, full-width, mathematical.
STYLED: Final = (
    (0x1D2C, 0x1D6B),
    (0x2070, 0x209D),
    (0x2100, 0x214F),
    (0x24B6, 0x24EA),
    (0xFF21, 0xFF5B),
    (0x1D400, 0x1D7CC),
)
# Letters of other scripts that look like these.
TWINS: Final = {"b": "ЬьВв", "e": "ЕеЁёΕ", "g": "ɡԌ", "i": "ІіΙıι", "n": "ΝпП", "d": "ԁԀ"}
# Marks that are seen on no letter, or over one: they may stand between any two characters.
UNSEEN: Final = (
    r"\u0300-\u036f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff"
)
BRACKETS: Final = "[\uff3b\ufe47\u23a1\u2045\u27e6\u301a\u2e22\u3010\u3016"
OPENS, OPENS_TWICE = re.escape(BRACKETS[:5]), BRACKETS[5:]  # the latter are read as two


def letter(wanted: str) -> str:
    """A class of everything that reads as this letter."""
    styled = (chr(code) for first, last in STYLED for code in range(first, last))
    alike = [one for one in styled if unicodedata.normalize("NFKC", one).casefold() == wanted]
    return f"[{wanted}{wanted.upper()}{TWINS[wanted]}{''.join(alike)}]"


def word(letters: str) -> str:
    return f"[{UNSEEN}]*+".join(letter(one) for one in letters)


# Whatever looks like one of our delimiters: two brackets or a double one, then "begin" or "end". No
# repetition gives back what it took or reaches past the next bracket: the time grows with the length alone.
FORGED: Final = re.compile(
    rf"(?:[{OPENS}][{UNSEEN}]*+[{OPENS}]|[{OPENS_TWICE}])"
    rf"(?=(?:(?![{OPENS}{OPENS_TWICE}])[\W{UNSEEN}])*+(?:{word('begin')}|{word('end')})(?![^\W_]))"
)


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


def fenced(title: str, text: str, token: str) -> str:
    """The text between two delimiter lines, with every look-alike in it broken."""
    return f"[[begin {title} {token}]]\n{unforged(text)}\n[[end {title} {token}]]"


def unforged(text: str) -> str:
    """The text with every look-alike of a delimiter broken: its brackets stand apart."""
    return FORGED.sub("[ [", text)
