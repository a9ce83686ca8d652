"""The length of a text in characters and estimated tokens, and where its words begin and end."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from evaluations.domain.texts import estimate_tokens_by_rule

# Scripts without spaces between words: each character counts as a word.
UNSPACED: Final = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\uff66-\uff9f"  # kana of half width
)

# Accents, vowel signs and joiners belong to the character before them, which Python's \w does not know.
MARKS: Final = (
    "".join(chr(code) for code in range(0x300, 0x3100) if unicodedata.category(chr(code)).startswith("M"))
    + "\u200c\u200d\ufe00-\ufe0f\ufe20-\ufe2f"
)

SPACED: Final = f"[^\\W{UNSPACED}]+(?:[{MARKS}]+[^\\W{UNSPACED}]*)*"
# One word: “don’t” and “3.14” are one as well.
WORD_PATTERN: Final = f"[{UNSPACED}][{MARKS}]*|{SPACED}(?:['’]{SPACED}|[.,][0-9]+)*"
WORD: Final = re.compile(WORD_PATTERN)
# A word, or a single other character; between pieces there is only white space.
PIECE: Final = re.compile(f"{WORD_PATTERN}|\\S[{MARKS}]*")


@dataclass(frozen=True)
class TextLength:
    """``tokens`` is an estimate (``domain.texts.estimate_tokens_by_rule``): pages say “about”."""

    characters: int
    tokens: int


def measure_text(text: str) -> TextLength:
    return TextLength(len(text), round(estimate_tokens_by_rule(text)))
