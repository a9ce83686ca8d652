"""Delimiters around judged text that the text itself cannot forge."""

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Final

from evaluations.domain.rubrics import CURRENT_LAYOUT, FIRST_LAYOUT
from evaluations.replies.passages import STYLED, UNSEEN

ACCENTED: Final = ((0x00C0, 0x0250), (0x1E00, 0x1F00))
# Emblems of A to Z that have no compatibility form: circled, squared, and those of flags.
EMBLEM_STARTS: Final = (0x1F150, 0x1F170, 0x1F1E6)
# Letters, digits and signs that look like these.
LOOKALIKES: Final = {
    "b": "ЬьВвƄɓʙᏴᏏβΒßƀᖯᗷꓐ8",
    "e": "ЕеΕεЄєҽҼᎬ℮ϵɛƐəǝᴇꓰ3€",
    "g": "ɡԌɢցᏀǥɠꓖ9",
    "i": "ІіΙιıɪӏӀꓲl1|!¡",
    "n": "ΝпПηոռՈɴƞᴎꓠ",
    "d": "ԁԀɗɖᎠᗞժđĐðᴅꓓ",
}
OPENS: Final = re.escape("[［﹇⁅⎡⎢⎣〔﹝❲❴⦋⦍⦏⦗⧘‹〈〈⟨❬❰❮⌈⌊⌜⌞⸤┌└┏┗╒╘╓╙「｢『﹁﹃⟅⁽₍ㄷ匚⼕ⵎ«")
OPENS_TWICE: Final = re.escape("⟦〚⸢【〖⟬〘⦃⸨⦅｟⟪╔╚")  # each is read as two
# What is read as a bracket once a page has rendered it, less its first character.
ESCAPED_BRACKET: Final = r"(?:(?<=&)(?:#0*+91|#[xX]0*+5[bB]|lbrack|lsqb);?|(?<=%)5[bB]|(?<=\\)(?:u005[bB]|x5[bB]))"
BROKEN_DELIMITER: Final = "[ ["  # what is left of the brackets of a look-alike
# How titles of blocks begin, by the layout of the prompt.
DELIMITER_TITLES: Final = {
    FIRST_LAYOUT: r"(?:response|turn|context|reference)",
    CURRENT_LAYOUT: r"(?:response|turn|context|reference|conversation|user.?s?\s++query)",
}


def letter_class(letter: str) -> str:
    """A character class of all look-alikes of this letter."""
    styled = (chr(code) for first, last in (*ACCENTED, *STYLED) for code in range(first, last))
    forms = [form for form in styled if plain_letter(form) == letter]
    emblems = [chr(first + ord(letter) - ord("a")) for first in EMBLEM_STARTS]
    return f"[{letter}{letter.upper()}{LOOKALIKES[letter]}{''.join((*forms, *emblems))}]"


def plain_letter(character: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", character))).casefold()


def word_pattern(letters: str) -> str:
    """The word, broken by at most one line break, or with a mark or space between all of its letters."""
    classes = [letter_class(letter) for letter in letters]
    as_one = rf"[{UNSEEN}]*+(?:\r?\n)?+[{UNSEEN}]*+".join(classes)
    apart = rf"[{UNSEEN}]*+[\s._\-\u2010-\u2015][{UNSEEN}]*+".join(classes)
    return f"(?:{as_one}|{apart})"


BEGIN_OR_END_WORD: Final = rf"(?:{word_pattern('begin')}|{word_pattern('end')})(?![^\W_])"
# What may come between the brackets and the word. Nothing that may be a letter of the word is taken.
NON_LETTER: Final = rf"(?:(?![{OPENS}{OPENS_TWICE}]|{BEGIN_OR_END_WORD})[\W{UNSEEN}])"
DIRECTLY_FOLLOWED: Final = rf"{NON_LETTER}*+{BEGIN_OR_END_WORD}"
SOON_FOLLOWED: Final = rf"{NON_LETTER}{{0,8}}+{BEGIN_OR_END_WORD}"


# Look-alikes of our delimiters: two brackets or a double one, then "begin" or "end"; with white space between the
# brackets, or other marks in their place, only if the remainder reads like a delimiter, too. All begin with one class,
# which makes the search fast, and what they are broken into looks like none of them. No repetition gives back what it
# took, and all are bounded or end at the next bracket: the time is linear in the length.
@cache
def forged_delimiter_pattern(layout: int) -> re.Pattern[str]:
    """The pattern of look-alike delimiters in this layout."""
    return re.compile(
        rf"[{OPENS}{OPENS_TWICE}&%\\({{<=]"
        rf"(?:(?:(?<=[{OPENS}{OPENS_TWICE}])|{ESCAPED_BRACKET})"
        rf"(?:(?:[{UNSEEN}]|\\(?![ux]))*+(?:[{OPENS}{OPENS_TWICE}]|[&%\\]{ESCAPED_BRACKET})){{1,30}}+(?={DIRECTLY_FOLLOWED})"
        rf"|(?<=[{OPENS_TWICE}])(?={DIRECTLY_FOLLOWED})"
        rf"|(?<=[{OPENS}])(?!(?<=\[) \[)[\s{UNSEEN}\\]++[{OPENS}](?={DIRECTLY_FOLLOWED}[\s{UNSEEN}]++[^\W_])"
        rf"|(?:(?<=[{OPENS}])(?<!\[ \[)|(?<!\S.)(?:(?<=\()\(++|(?<={{){{++|(?<=<)<++|(?<==)=++))"
        rf"(?={SOON_FOLLOWED}\s++{DELIMITER_TITLES[layout]}\b))",
    )


FORGED_DELIMITER: Final = forged_delimiter_pattern(FIRST_LAYOUT)


def make_fence_token(fence_key: str, texts: Iterable[str]) -> str:
    """Sixteen hex digits from the key and the texts: the same call always renders the same prompt.

    Each text is hashed with its length, so that moving a boundary changes the token.
    """
    digest = hmac.new(fence_key.encode(), digestmod=hashlib.sha256)
    for text in texts:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()[:16]


def fence_text(title: str, text: str, token: str, layout: int = FIRST_LAYOUT) -> str:
    """The text between two delimiter lines, with look-alikes in it broken."""
    return f"[[begin {title} {token}]]\n{break_forged_delimiters(text, layout)}\n[[end {title} {token}]]"


def break_forged_delimiters(text: str, layout: int = FIRST_LAYOUT) -> str:
    """The text with the brackets of look-alike delimiters set apart."""
    return forged_delimiter_pattern(layout).sub(BROKEN_DELIMITER, text)
