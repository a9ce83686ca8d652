"""Whether a text repeats a passage of another one.

White space, case, punctuation, escapes, invisible characters, marks and look-alike letters are ignored: models change
them when they copy.
"""

import html
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from evaluations.judge.fencing import STYLED, UNSEEN

# So many letters and digits identify a passage without its punctuation.
ENOUGH_LETTERS: Final = 24
ESCAPED_CODE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
ESCAPED_SPACE: Final = re.compile(r"\\[nrt]")
ENTITY: Final = re.compile(r"&(?:quot|apos|amp|lt|gt|nbsp|#\d{1,7}|#[xX][\da-fA-F]{1,6});")
# Letters of other scripts that look like these of the Latin one: a model that copies them may write its own.
TWINS: Final = str.maketrans(
    "аеорсухіјѕһԁԛԝкмнтвοαειικνρτυχѵıσ",
    "aeopcyxijshdqwkmhtboaeiiknptuxvio",
)
INVISIBLE: Final = re.compile(f"[{UNSEEN}]+")
STYLED_OR_MARKED: Final = re.compile(
    f"[{UNSEEN}{''.join(f'{chr(first)}-{chr(last)}' for first, last in STYLED)}]"
    rf"|(?<=[a-z])[{''.join(map(chr, TWINS))}]|[{''.join(map(chr, TWINS))}](?=[a-z])",
    re.IGNORECASE,
)
NO_LETTERS: Final = bytes(code for code in range(128) if not chr(code).isalnum())


def repeats(reply: str, texts: Sequence[str], parts: Iterable[str] = ()) -> bool:
    """Whether one of the texts, unescaped, holds the reply, or each of its parts."""
    parts = [unescaped(part) for part in parts]
    reply = unescaped(reply)
    if len(letters(reply)) < ENOUGH_LETTERS:
        passage = squeezed(reply)
        return any(passage in squeezed(text) for text in texts)
    wanted = [[reply]]
    if any(len(letters(part)) >= ENOUGH_LETTERS for part in parts):
        wanted.append(parts)
    return any(holds(text, parts) for text in texts for parts in wanted)


def holds(text: str, parts: Sequence[str]) -> bool:
    """Whether every part is in the text, by letters and digits: first by those of ASCII, the faster look."""
    if is_styled(text):
        held = bare_letters(text)
        return all(bare_letters(part) in held for part in parts)
    held = ascii_letters(text)
    if any(ascii_letters(part) not in held for part in parts):
        return False
    held = letters(text)
    return all(letters(part) in held for part in parts)


# ---- texts as they are compared ------------------------------------------------------------


def letters(text: str) -> str:
    """The letters and digits of the text, in one case."""
    return ascii_letters(text) if text.isascii() else "".join(filter(str.isalnum, text.casefold()))


def ascii_letters(text: str) -> str:
    return text.encode("ascii", "ignore").translate(None, NO_LETTERS).lower().decode()


def bare_letters(text: str) -> str:
    """The same in their usual form, without marks."""
    plain = INVISIBLE.sub("", unicodedata.normalize("NFKD", text)).casefold()
    return "".join(filter(str.isalnum, plain.translate(TWINS)))


def squeezed(text: str) -> str:
    """The text without white space and what is invisible, in one case."""
    return "".join(INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).split()).lower()


def is_styled(text: str) -> bool:
    """Whether letters of the text are in another form or script than their word, or with marks over or between them."""
    return not text.isascii() and STYLED_OR_MARKED.search(text) is not None


def unescaped(text: str) -> str:
    """The text without escapes of line breaks, and with the characters that JSON and HTML write as codes."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if "&" in text:
        text = ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    if "\\" not in text:
        return text
    return ESCAPED_SPACE.sub(" ", ESCAPED_CODE.sub(lambda code: chr(int(code[1], 16)), text))
