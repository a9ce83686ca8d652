"""Rows as answers have them, where more than one door tells of them."""

from collections.abc import Iterable, Mapping
from typing import Any

from evaluations.api.schemas.shared import Message, Person
from evaluations.models import User

SPOKEN = ("role", "content")


def person_told(user: User) -> Person:
    return Person(id=user.pk, username=user.username, name=str(user))


def anyone_told(user: User | None) -> Person | None:
    """None for what the server did by itself."""
    return person_told(user) if user else None


def messages_told(messages: Iterable[Mapping[str, Any]]) -> list[Message]:
    """Content in parts, as some APIs have it, stands in ``more`` as it came."""
    return [message_told(message) for message in messages]


def message_told(message: Mapping[str, Any]) -> Message:
    content = message.get("content")
    is_text = content is None or isinstance(content, str)
    more = {name: value for name, value in message.items() if name not in (SPOKEN if is_text else ("role",))}
    return Message(role=str(message.get("role", "")), content=content if is_text else None, more=more)


def usd(nano: int | float | None) -> float | None:
    return None if nano is None else nano / 1e9
