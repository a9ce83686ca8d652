"""Serializers of rows that several answers contain."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from ninja import Schema

from evaluations.api.schemas import MessageOut, UserOut
from evaluations.models.users import User

MESSAGE_FIELDS = ("role", "content")
S = TypeVar("S", bound=Schema)


def serialize_row(schema: type[S], row: object, **values: Any) -> S:
    """An answer with these values, and with the row's attributes for all other fields."""
    names = schema.model_fields.keys() - values.keys()
    return schema(**values, **{name: getattr(row, name) for name in names})


def serialize_user(user: User) -> UserOut:
    return UserOut(id=user.pk, username=user.username, name=str(user))


def serialize_optional_user(user: User | None) -> UserOut | None:
    """None for automatic actions of the server."""
    return serialize_user(user) if user else None


def serialize_messages(messages: Iterable[Mapping[str, object]]) -> list[MessageOut]:
    """Chat messages; content in parts is passed on unchanged in ``more``."""
    return [serialize_message(message) for message in messages]


def serialize_message(message: Mapping[str, Any]) -> MessageOut:
    content = message.get("content")
    is_text = content is None or isinstance(content, str)
    extra = {name: value for name, value in message.items() if name not in (MESSAGE_FIELDS if is_text else ("role",))}
    return MessageOut(role=str(message.get("role", "")), content=content if is_text else None, more=extra)


def nano_to_usd(nano: int | float | None) -> float | None:
    return None if nano is None else nano / 1e9
