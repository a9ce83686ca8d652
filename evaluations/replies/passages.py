"""Comparison of a text with passages of another.

White space, case, punctuation, escapes, invisible characters and look-alike letters are ignored, since models change
them when they copy.
"""

import html
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from evaluations.domain.choices import ShownOrder
from evaluations.domain.texts import PairTexts, ResponseTexts, messages_to_text

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

# Invisible or combining marks, which may occur between any two characters.
UNSEEN: Final = (
    r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u0300-\u036f\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20d0-\u20ff\u2800\u3164\ufe00-\ufe0f"
    r"\ufe20-\ufe2f\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)


def order_judged_texts(texts: PairTexts | ResponseTexts, shown: ShownOrder) -> dict[str, str]:
    """The judged texts by the field that each fills; A of a pair is the one shown first."""
    if isinstance(texts, ResponseTexts):
        return {"response": messages_to_text(texts.response)}
    first, second = messages_to_text(texts.response_a), messages_to_text(texts.response_b)
    if shown == ShownOrder.SWAPPED:
        first, second = second, first
    return {"response_a": first, "response_b": second}


def list_all_texts(texts: PairTexts | ResponseTexts) -> list[str]:
    """The texts that the fence depends on, as stored, so that both orders differ in their order only."""
    parts = [part for message in texts.messages for part in (message["role"], message["content"])]
    judged = order_judged_texts(texts, ShownOrder.AS_STORED)
    return [*parts, texts.context or "", texts.reference or "", *judged.values()]


# So many letters and digits identify a passage without its punctuation.
MIN_PASSAGE_LETTERS: Final = 24
ESCAPED_CODE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
ESCAPED_SPACE: Final = re.compile(r"\\[nrt]")
ENTITY: Final = re.compile(r"&(?:quot|apos|amp|lt|gt|nbsp|#\d{1,7}|#[xX][\da-fA-F]{1,6});")
# Letters of other scripts that look like these of the Latin one: a model that copies them may write its own.
LOOKALIKE_LETTERS: Final = str.maketrans(
    "аеорсухіјѕһԁԛԝкмнтвοαειικνρτυχѵıσ",
    "aeopcyxijshdqwkmhtboaeiiknptuxvio",
)

INVISIBLE_RUN: Final = re.compile(f"[{UNSEEN}]+")
STYLED_OR_MARKED_LETTER: Final = re.compile(
    f"[{UNSEEN}{''.join(f'{chr(first)}-{chr(last)}' for first, last in STYLED)}]"
    rf"|(?<=[a-z])[{''.join(map(chr, LOOKALIKE_LETTERS))}]|[{''.join(map(chr, LOOKALIKE_LETTERS))}](?=[a-z])",
    re.IGNORECASE,
)

NON_LETTER_BYTES: Final = bytes(code for code in range(128) if not chr(code).isalnum())


def repeats_passage(reply: str, texts: Sequence[str], parts: Iterable[str] = ()) -> bool:
    """Whether one of the texts contains the reply, or each of its parts, all unescaped."""
    parts = [unescape_text(part) for part in parts]
    reply = unescape_text(reply)
    if len(letters_and_digits(reply)) < MIN_PASSAGE_LETTERS:
        passage = squeeze_text(reply)
        return any(passage in squeeze_text(text) for text in texts)
    passages = [[reply]]
    if any(len(letters_and_digits(part)) >= MIN_PASSAGE_LETTERS for part in parts):
        passages.append(parts)
    return any(contains_parts(text, passage) for text in texts for passage in passages)


def contains_parts(text: str, parts: Sequence[str]) -> bool:
    """Whether the text contains every part, by letters and digits; the fast comparison in ASCII comes first."""
    if has_styled_letters(text):
        letters = plain_letters(text)
        return all(plain_letters(part) in letters for part in parts)
    letters = ascii_letters_and_digits(text)
    if any(ascii_letters_and_digits(part) not in letters for part in parts):
        return False
    letters = letters_and_digits(text)
    return all(letters_and_digits(part) in letters for part in parts)


def letters_and_digits(text: str) -> str:
    """The letters and digits of the text, case-folded."""
    return ascii_letters_and_digits(text) if text.isascii() else "".join(filter(str.isalnum, text.casefold()))


def ascii_letters_and_digits(text: str) -> str:
    return text.encode("ascii", "ignore").translate(None, NON_LETTER_BYTES).lower().decode()


def plain_letters(text: str) -> str:
    """The letters and digits in their usual form, without marks."""
    plain = INVISIBLE_RUN.sub("", unicodedata.normalize("NFKD", text)).casefold()
    return "".join(filter(str.isalnum, plain.translate(LOOKALIKE_LETTERS)))


def squeeze_text(text: str) -> str:
    """The text without white space and invisible characters, case-folded."""
    return "".join(INVISIBLE_RUN.sub("", unicodedata.normalize("NFKC", text)).split()).lower()


def has_styled_letters(text: str) -> bool:
    """Whether letters differ in form or script from their word, or carry marks."""
    return not text.isascii() and STYLED_OR_MARKED_LETTER.search(text) is not None


def unescape_text(text: str) -> str:
    """The text without escaped line breaks, with JSON and HTML escapes decoded."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if "&" in text:
        text = ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    if "\\" not in text:
        return text
    return ESCAPED_SPACE.sub(" ", ESCAPED_CODE.sub(lambda code: chr(int(code[1], 16)), text))
