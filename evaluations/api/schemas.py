"""Schemas and field types that several operations share."""

from typing import Annotated, Any, Final

from ninja import Field, Schema
from pydantic import ConfigDict

from evaluations.domain.json_values import JsonDict


class StrictIn(Schema):
    """Base of all input schemas: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    def sent_values(self) -> dict[str, Any]:
        """The fields that were sent, by name; omitted fields are absent."""
        return {name: getattr(self, name) for name in self.model_fields_set}


# The default of a field that a patch may omit and that cannot be null.
OMITTED: Final[Any] = Field(default_factory=lambda: None)


class EmptyIn(StrictIn):
    """The body of an operation that takes none."""


class FieldErrorOut(Schema):
    field: str
    message: str


class ProblemOut(Schema):
    """RFC 9457. ``code`` is stable: programs go by it, people read ``detail``."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    errors: list[FieldErrorOut]


class MessageOut(Schema):
    role: str
    content: str | None
    more: JsonDict = Field(default_factory=dict, description="other fields of the message, such as tool calls")


class UserOut(Schema):
    id: int
    username: str
    name: str


RowId = Annotated[int, Field(ge=1, le=2**63 - 1)]

VersionNumber = Annotated[int, Field(ge=0, le=2**31 - 1)]

LongText = Annotated[str, Field(max_length=500_000)]

ShortText = Annotated[str, Field(max_length=500)]

NameText = Annotated[str, Field(max_length=200)]

AspectKey = Annotated[str, Field(min_length=1, max_length=60)]

NoteText = Annotated[str, Field(max_length=10_000)]
