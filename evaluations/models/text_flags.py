"""Flags on texts that hold words meant for the judge."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from evaluations.domain.texts import Message
from evaluations.judge_prompts.injection_flags import SuspectExcerpt, find_group_flags, find_suspect_excerpts
from evaluations.models.comparisons import Query, Response


@dataclass(frozen=True)
class SuspectText:
    """A text that holds suspect words: the first of each kind. ``where`` is for people."""

    where: str
    excerpts: tuple[SuspectExcerpt, ...]


def set_flags(rows: Sequence[Query | Response]) -> None:
    """Set the flags of rows that are not stored yet."""
    for row, flags in zip(
        rows, encode_flags([[text for _, text in list_named_texts(row)] for row in rows]), strict=True
    ):
        row.flags = flags


def encode_flags(groups: Sequence[Sequence[str]]) -> list[str]:
    """The value of the column ``flags`` for each group of texts."""
    return [",".join(flags) for flags in find_group_flags(groups)]


def list_named_texts(row: Query | Response) -> Iterator[tuple[str, str]]:
    """Every text of the row that a judge may read, with what it is."""
    turns = cast("list[Message]", row.messages)
    name = "query" if isinstance(row, Query) else "response"
    for number, turn in enumerate(turns, start=1):
        yield (name if len(turns) == 1 else f"{name}, turn {number}"), turn["content"]
    if isinstance(row, Query):
        yield from (("context", row.context or ""), ("reference answer", row.reference or ""))


def find_suspect_texts(row: Query | Response) -> list[SuspectText]:
    """The texts of a flagged row that hold suspect words."""
    if not row.flags:
        return []
    texts = (SuspectText(where, find_suspect_excerpts(text)) for where, text in list_named_texts(row))
    return [suspect for suspect in texts if suspect.excerpts]
