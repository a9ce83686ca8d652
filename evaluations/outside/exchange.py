"""What goes to a server of models and what comes back, whatever protocol it speaks."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluations.domain import Dialect, Message, ReplyShape, SentAs, Token


@dataclass(frozen=True)
class Server:
    """An endpoint as a request needs it. ``headers``, ``query`` and ``body`` are sent with every request;
    a value of the form $NAME stands for that environment variable."""

    base_url: str
    key_variable: str = ""
    timeout_seconds: float = 120.0
    dialect: Dialect | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """What is asked. ``shape`` says what holds the reply to its form; a JSON schema needs a ``schema``.

    ``sent_as`` says how the settings are written for this model. ``context_tokens`` is how many tokens prompt and
    reply need together, for servers that must be told.
    """

    messages: Sequence[Message]
    model: str
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    shape: ReplyShape = ReplyShape.TEXT
    schema: Mapping[str, Any] | None = None
    reasoning_effort: str = ""
    logprobs: bool = False
    sent_as: SentAs = field(default_factory=SentAs)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    context_tokens: int | None = None

    def sends(self, setting: str) -> bool:
        """Whether the judge has this setting and the model takes it."""
        given = getattr(self, setting)
        return given is not None and given is not False and given != "" and setting not in self.sent_as.left_out


@dataclass(frozen=True)
class Usage:
    """What the server counted. ``tokens_in`` includes those that were cached or written to a cache.

    ``tokens_out`` includes those of the reasoning, as they are billed. ``cost`` is in nano-USD, where told.
    """

    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    tokens_written: int | None = None
    tokens_reasoning: int | None = None
    cost: int | None = None


@dataclass(frozen=True)
class Answer:
    """``is_flawed``: the server says that the model failed to keep to the form, and gives what it wrote."""

    text: str
    finish_reason: str
    refusal: str
    model: str
    http_status: int
    usage: Usage = field(default_factory=Usage)
    reasoning: str = ""
    logprobs: tuple[Token, ...] = ()
    is_flawed: bool = False

    @property
    def tokens_in(self) -> int | None:
        return self.usage.tokens_in

    @property
    def tokens_out(self) -> int | None:
        return self.usage.tokens_out

    @property
    def tokens_cached(self) -> int | None:
        return self.usage.tokens_cached


Ask = Callable[[Request], Awaitable[Answer]]


def with_extra(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The body with the fields that an endpoint or a judge adds.

    An object in both has the members of both, unless the one that is added names a type of its own.

    >>> with_extra({"model": "m", "options": {"seed": 1}}, {"options": {"num_gpu": 2}})
    {'model': 'm', 'options': {'seed': 1, 'num_gpu': 2}}
    """
    return {**body, **{name: joined(body.get(name), value) for name, value in extra.items()}}


def joined(given: Any, added: Any) -> Any:
    are_objects = isinstance(given, Mapping) and isinstance(added, Mapping)
    return {**given, **added} if are_objects and "type" not in added else added
