"""Shapes that stand in more than one answer."""

from typing import Annotated, Any

from ninja import Field, Schema
from pydantic import ConfigDict


class Sent(Schema):
    """What a program sends: a name that is not known is a mistake, and said to be one."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class NothingSent(Sent):
    """A step that needs no words."""


class Fault(Schema):
    field: str
    message: str


class ProblemAnswer(Schema):
    """RFC 9457. ``code`` is stable: programs go by it, people read ``detail``."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    errors: list[Fault]


class Message(Schema):
    role: str
    content: str | None
    more: dict[str, Any] = Field(default_factory=dict, description="whatever else the message has, such as tool calls")


class Person(Schema):
    id: int
    username: str
    name: str


Id = Annotated[int, Field(ge=1, le=2**63 - 1)]
Version = Annotated[int, Field(ge=0, le=2**31 - 1)]
Text = Annotated[str, Field(max_length=500_000)]
ShortText = Annotated[str, Field(max_length=500)]
Name = Annotated[str, Field(max_length=200)]
