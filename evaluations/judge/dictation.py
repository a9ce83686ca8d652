"""Whether a judged text dictated a reply: then its verdict counts only once a person confirms it.

A judge that writes reasons of its own never repeats a whole passage of a judged text and nothing else. White space,
case, punctuation, escapes and invisible characters are ignored: models change them when they copy.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from evaluations.domain import CallState
from evaluations.judge.fencing import STYLED, UNSEEN
from evaluations.judge.prompting import all_texts
from evaluations.judge.reading import NotRead, Read, evaluation_in
from evaluations.judge.thoughts import without_end_marks
from evaluations.judge.verdicts import Judged, out_of_fence

DICTATED: Final = (
    "The whole reply repeats a passage of a judged text, word for word. "
    "Its verdict does not count until a person confirms it."
)
SHORTEST: Final = 40  # characters; a shorter reply may be a label that a text happens to hold
# So many letters and digits identify a passage without its punctuation.
ENOUGH_LETTERS: Final = 24
ESCAPED_CODE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
ESCAPED_SPACE: Final = re.compile(r"\\[nrt]")
INVISIBLE: Final = re.compile(f"[{UNSEEN}]+")
STYLED_OR_MARKED: Final = re.compile(f"[{UNSEEN}{''.join(f'{chr(first)}-{chr(last)}' for first, last in STYLED)}]")
NO_LETTERS: Final = bytes(code for code in range(128) if not chr(code).isalnum())


def state_of(read: Read | NotRead, replies: Sequence[str], judged: Judged) -> CallState:
    """The state of a call whose last reply was read so; ``replies`` is its conversation, oldest first.

    An earlier reply counts too: a verdict that follows from dictated reasons is no more the judge's own.
    """
    if isinstance(read, NotRead):
        return read.state
    return CallState.SUSPECT if is_dictated(replies, judged) else CallState.ANSWERED


def is_dictated(replies: Iterable[str], judged: Judged) -> bool:
    """Whether one of the replies, of 40 characters or more, is a passage of a judged text and nothing else."""
    said = {without_marks(text) for reply in replies for text in (reply, evaluation_in(reply))}
    whole = [text for text in said if len(" ".join(text.split())) >= SHORTEST]
    if not whole:
        return False
    texts = [unescaped(text) for text in all_texts(judged()) if len(text) >= SHORTEST / 2]
    return any(repeats(reply, texts) for reply in whole)


def without_marks(text: str) -> str:
    """The text without code fence, tag and end marks around it."""
    return out_of_fence(without_end_marks(text))


def repeats(reply: str, texts: Sequence[str]) -> bool:
    parts = [unescaped(part) for part in members(reply)]
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


def members(reply: str) -> Iterator[str]:
    """The members of a reply that is one JSON object, each with its key: their order may have been changed."""
    if not reply.startswith("{"):
        return
    try:
        found = json.loads(reply)
    except (ValueError, RecursionError):
        return
    yield from leaves(found)


def leaves(found: dict[str, Any]) -> Iterator[str]:
    for key, value in found.items():
        if isinstance(value, dict):
            yield from leaves(value)
        else:
            yield f"{key} {json.dumps(value, ensure_ascii=False)}"


# ---- texts as they are compared ------------------------------------------------------------


def letters(text: str) -> str:
    """The letters and digits of the text, in one case."""
    return ascii_letters(text) if text.isascii() else "".join(filter(str.isalnum, text)).lower()


def ascii_letters(text: str) -> str:
    return text.encode("ascii", "ignore").translate(None, NO_LETTERS).lower().decode()


def bare_letters(text: str) -> str:
    """The same in their usual form, without marks."""
    return "".join(filter(str.isalnum, INVISIBLE.sub("", unicodedata.normalize("NFKD", text)))).lower()


def squeezed(text: str) -> str:
    """The text without white space and what is invisible, in one case."""
    return "".join(INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).split()).lower()


def is_styled(text: str) -> bool:
    """Whether letters of the text are written in another form, or with marks over or between them."""
    return not text.isascii() and STYLED_OR_MARKED.search(text) is not None


def unescaped(text: str) -> str:
    """The text without the escapes of line breaks, and with the characters that JSON writes as codes."""
    if "\\" not in text:
        return text
    return ESCAPED_SPACE.sub(" ", ESCAPED_CODE.sub(lambda code: chr(int(code[1], 16)), text))
