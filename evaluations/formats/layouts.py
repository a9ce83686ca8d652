"""A prompt and what continues it, as chat messages or as plain texts."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from evaluations.domain import Message
from evaluations.formats.exported import MaterialOf
from evaluations.formats.leaving import Setting

Words = str | Sequence[Message]


class Layout(StrEnum):
    """How prompt and responses are written for a trainer."""

    CHAT = "chat"  # lists of messages, the prompt apart
    IMPLICIT = "implicit"  # lists of messages, each beginning with the prompt
    PLAIN = "plain"  # texts, the prompt apart


LAYOUT: Final = Setting(
    name="layout",
    label="Layout",
    values={
        Layout.CHAT: "chat messages, the prompt apart",
        Layout.IMPLICIT: "chat messages, each answer with the prompt before it",
        Layout.PLAIN: "plain texts, the prompt apart",
    },
    initial=Layout.CHAT,
)
BETWEEN: Final = "\n\n"
# As the first published preference data have them, and with them the programs that read transcripts.
SPEAKERS: Final = {"user": "Human", "assistant": "Assistant"}
NEXT: Final = "Assistant: "


class Asked(NamedTuple):
    """A prompt with one or two continuations, in one of the layouts."""

    prompt: Words
    answers: tuple[Words, ...]


def prompt_of(row: MaterialOf) -> Sequence[Message]:
    return row["messages"] or [{"role": "user", "content": row["query"] or ""}]


def turns_of(response: Words) -> Sequence[Message]:
    return [{"role": "assistant", "content": response}] if isinstance(response, str) else response


def as_chat(row: MaterialOf, *responses: Words) -> Asked:
    return Asked(prompt_of(row), tuple(turns_of(response) for response in responses))


def as_plain(row: MaterialOf, *responses: Words) -> Asked:
    """Texts as they are where nobody speaks twice, else a transcript of Human and Assistant.

    Prompt and answer put together are the whole transcript: the prompt ends where the assistant is to go on.
    """
    if row["query"] is not None and all(isinstance(response, str) for response in responses):
        return Asked(row["query"], responses)
    first = transcript(prompt_of(row)) + BETWEEN + NEXT
    return Asked(first, tuple(continued(turns_of(response)) for response in responses))


def transcript(messages: Sequence[Message]) -> str:
    return BETWEEN.join(f"{SPEAKERS.get(turn['role'], turn['role'].title())}: {turn['content']}" for turn in messages)


def continued(messages: Sequence[Message]) -> str:
    """A transcript of which the first role has been written."""
    return transcript(messages).removeprefix(NEXT)


def conversation(row: MaterialOf, response: Words) -> list[Message]:
    """The query with one response to it."""
    return [*prompt_of(row), *turns_of(response)]


def last_words(response: Words) -> str:
    """What the response says in the end; empty where it says nothing."""
    return response if isinstance(response, str) else response[-1]["content"]


def is_empty(response: Words) -> bool:
    """Nobody says anything in it."""
    if isinstance(response, str):
        return not response.strip()
    return not any(turn["content"].strip() for turn in response if turn["role"] == "assistant")
