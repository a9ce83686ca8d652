"""Whether a judged text dictated a reply: then its verdict counts only once a person confirms it.

A judge that writes reasons of its own never repeats a whole passage of a judged text and nothing else.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from evaluations.domain import CallState
from evaluations.judge.json_objects import whole_object
from evaluations.judge.labels import without_lead
from evaluations.judge.object_verdicts import unwrapped
from evaluations.judge.passages import repeats, unescaped
from evaluations.judge.prompting import all_texts
from evaluations.judge.reading import NotRead, Read, evaluation_in
from evaluations.judge.thoughts import without_end_marks
from evaluations.judge.verdicts import Judged, out_of_fence

DICTATED: Final = (
    "The whole reply repeats a passage of a judged text, word for word. "
    "Its verdict does not count until a person confirms it."
)
SHORTEST: Final = 40  # characters; a shorter reply may be a label that a text happens to hold
OPENING_TOKENS: Final = re.compile(r"\A(?:\s*<\|\w{1,40}\|>)+")


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
    said |= {without_last_lead(text) for text in said}
    whole = [text for text in said if len(" ".join(text.split())) >= SHORTEST]
    if not whole:
        return False
    texts = [unescaped(text) for text in all_texts(judged()) if len(text) >= SHORTEST / 2]
    return any(repeats(reply, texts, members(reply)) for reply in whole)


def without_marks(text: str) -> str:
    """The text without code fence, tag, tokens and end marks around it."""
    return out_of_fence(OPENING_TOKENS.sub("", without_end_marks(text)))


def without_last_lead(text: str) -> str:
    """The text without “Final verdict:” before the label on its last line, which a judge may have added."""
    before, parted, last = text.rpartition("\n")
    return f"{before}{parted}{without_lead(last) or last}"


def members(reply: str) -> Iterator[str]:
    """The members of a reply that is one JSON object, each with its key: their order may have been changed."""
    found = whole_object(reply) if reply.startswith("{") else None
    if found is not None:
        yield from leaves(unwrapped(found))


def leaves(found: dict[str, Any]) -> Iterator[str]:
    for key, value in found.items():
        if isinstance(value, dict):
            yield from leaves(value)
        else:
            yield f"{key} {json.dumps(value, ensure_ascii=False)}"
