"""A prompt with its continuations, as chat messages or as plain text."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from evaluations.domain.texts import Message
from evaluations.formats.export_format import FormatSetting
from evaluations.formats.exported_rows import ExportedMaterial, ResponseText


class Layout(StrEnum):
    """How prompt and responses are written for a trainer."""

    CHAT = "chat"  # lists of messages, the prompt apart
    IMPLICIT = "implicit"  # lists of messages, each beginning with the prompt
    PLAIN = "plain"  # texts, the prompt apart


LAYOUT_SETTING: Final = FormatSetting(
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


class LaidOutPrompt(NamedTuple):
    """A prompt with one or two continuations, in one of the layouts."""

    prompt: ResponseText
    answers: tuple[ResponseText, ...]


def prompt_messages(row: ExportedMaterial) -> Sequence[Message]:
    return row["messages"] or [{"role": "user", "content": row["query"] or ""}]


def response_messages(response: ResponseText) -> Sequence[Message]:
    return [{"role": "assistant", "content": response}] if isinstance(response, str) else response


def lay_out_as_chat(row: ExportedMaterial, *responses: ResponseText) -> LaidOutPrompt:
    return LaidOutPrompt(prompt_messages(row), tuple(response_messages(response) for response in responses))


def lay_out_as_plain(row: ExportedMaterial, *responses: ResponseText) -> LaidOutPrompt:
    """Plain texts where nobody speaks twice, else a transcript of Human and Assistant.

    Prompt and answer put together are the whole transcript: the prompt ends where the assistant is to go on.
    """
    if row["query"] is not None and all(isinstance(response, str) for response in responses):
        return LaidOutPrompt(row["query"], responses)
    first = transcript(prompt_messages(row)) + BETWEEN + NEXT
    return LaidOutPrompt(first, tuple(transcript_to_continue(response_messages(response)) for response in responses))


def transcript(messages: Sequence[Message]) -> str:
    return BETWEEN.join(f"{SPEAKERS.get(turn['role'], turn['role'].title())}: {turn['content']}" for turn in messages)


def transcript_to_continue(messages: Sequence[Message]) -> str:
    """A transcript of which the first role has been written."""
    return transcript(messages).removeprefix(NEXT)


def conversation_with_response(row: ExportedMaterial, response: ResponseText) -> list[Message]:
    """The query with one response to it."""
    return [*prompt_messages(row), *response_messages(response)]


def is_empty_response(response: ResponseText) -> bool:
    """Whether no message of the response has any text."""
    if isinstance(response, str):
        return not response.strip()
    return not any(turn["content"].strip() for turn in response if turn["role"] == "assistant")
