"""What is suspect in texts that are to be judged: written with the rows, and shown with the words themselves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from evaluations.domain import Message
from evaluations.judge.flagging import Excerpt, excerpts, flags_of
from evaluations.models import Comparison, Query, Response


@dataclass(frozen=True)
class Suspect:
    """A text of a comparison that holds suspect words: the first of each kind. ``where`` is for people."""

    where: str
    excerpts: tuple[Excerpt, ...]


def flag(rows: Sequence[Query | Response]) -> None:
    """Note on rows that are not stored yet what is suspect in their texts."""
    for row, found in zip(rows, flags_of([[text for _, text in texts_of(row)] for row in rows]), strict=True):
        row.flags = ",".join(found)


def texts_of(row: Query | Response) -> Iterator[tuple[str, str]]:
    """Every text of the row that a judge may read, with what it is."""
    turns = cast("list[Message]", row.messages)
    name = "query" if isinstance(row, Query) else "response"
    for number, turn in enumerate(turns, start=1):
        yield (name if len(turns) == 1 else f"{name}, turn {number}"), turn["content"]
    if isinstance(row, Query):
        yield from (("context", row.context or ""), ("reference answer", row.reference or ""))


def suspects(comparison: Comparison) -> list[Suspect]:
    """The suspect words of a flagged comparison, text by text; nothing of one that is not flagged."""
    rows = (("", comparison.query), (" A", comparison.response_a), (" B", comparison.response_b))
    found = (
        Suspect(where.replace("response", f"response{side}"), excerpts(text))
        for side, row in rows
        if row.flags
        for where, text in texts_of(row)
    )
    return [one for one in found if one.excerpts]
