"""What is suspect in texts that are to be judged: written with the rows, and shown with the words themselves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from evaluations.domain import Message
from evaluations.judge.flagging import Excerpt, excerpts, flags_of
from evaluations.models import Query, Response


@dataclass(frozen=True)
class Suspect:
    """A text that holds suspect words: the first of each kind. ``where`` is for people."""

    where: str
    excerpts: tuple[Excerpt, ...]


def flag(rows: Sequence[Query | Response]) -> None:
    """Note on rows that are not stored yet what is suspect in their texts."""
    for row, found in zip(rows, flags_for([[text for _, text in named_texts(row)] for row in rows]), strict=True):
        row.flags = found


def flags_for(groups: Sequence[Sequence[str]]) -> list[str]:
    """What the column ``flags`` says of each group of texts."""
    return [",".join(found) for found in flags_of(groups)]


def named_texts(row: Query | Response) -> Iterator[tuple[str, str]]:
    """Every text of the row that a judge may read, with what it is."""
    turns = cast("list[Message]", row.messages)
    name = "query" if isinstance(row, Query) else "response"
    for number, turn in enumerate(turns, start=1):
        yield (name if len(turns) == 1 else f"{name}, turn {number}"), turn["content"]
    if isinstance(row, Query):
        yield from (("context", row.context or ""), ("reference answer", row.reference or ""))


def suspects(row: Query | Response) -> list[Suspect]:
    """The suspect words of a flagged row, text by text; nothing of one that is not flagged."""
    if not row.flags:
        return []
    found = (Suspect(where, excerpts(text)) for where, text in named_texts(row))
    return [one for one in found if one.excerpts]
