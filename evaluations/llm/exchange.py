"""Requests to an LLM server, its answers, and a tree of errors that say what the caller should do."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypedDict, Unpack

from evaluations.domain.json_values import JsonMapping
from evaluations.domain.judges import CallState, Dialect, ReplyShape, ReplyToken, RequestShape
from evaluations.domain.texts import Message


@dataclass(frozen=True)
class Server:
    """An endpoint as requests need it.

    ``headers``, ``query`` and ``body`` are sent with every request; a value of the form $NAME is that environment
    variable. ``read_stored_key`` decrypts the API key that the endpoint stores; InputRefused if it cannot.
    """

    base_url: str
    key_variable: str = ""
    timeout_seconds: float = 120.0
    dialect: Dialect | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: JsonMapping = field(default_factory=dict)
    read_stored_key: Callable[[], str] | None = field(default=None, repr=False, compare=False)

    @property
    def has_key(self) -> bool:
        return bool(self.key_variable) or self.read_stored_key is not None

    @property
    def key_in_words(self) -> str:
        return f"the key in {self.key_variable}" if self.key_variable else "the stored API key"


@dataclass(frozen=True)
class Request:
    """One request. ``shape``: how the reply's format is enforced; a JSON schema needs a ``schema``.

    ``request_shape``: how the settings are written for this model. ``context_tokens``: how many tokens prompt and reply
    need together, for servers that must be given a number.
    """

    messages: Sequence[Message]
    model: str
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    shape: ReplyShape = ReplyShape.TEXT
    schema: JsonMapping | None = None
    reasoning_effort: str = ""
    logprobs: bool = False
    request_shape: RequestShape = field(default_factory=RequestShape)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: JsonMapping = field(default_factory=dict)
    context_tokens: int | None = None

    def sends(self, setting: str) -> bool:
        """Whether the judge has this setting and the model takes it."""
        value = getattr(self, setting)
        return value is not None and value is not False and value != "" and setting not in self.request_shape.left_out


@dataclass(frozen=True)
class Usage:
    """The server's token counts. ``tokens_in`` includes tokens read from or written to a cache.

    ``tokens_out`` includes reasoning, as billed. ``cost``: nano-USD, if reported.
    """

    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    tokens_written: int | None = None
    tokens_reasoning: int | None = None
    cost: int | None = None


@dataclass(frozen=True)
class Answer:
    """A reply. ``is_flawed``: the server reports that the model broke the format, and returns what it wrote."""

    text: str
    finish_reason: str
    refusal: str
    model: str
    http_status: int
    usage: Usage = field(default_factory=Usage)
    reasoning: str = ""
    logprobs: tuple[ReplyToken, ...] = ()
    is_flawed: bool = False

    @property
    def tokens_in(self) -> int | None:
        return self.usage.tokens_in

    @property
    def tokens_out(self) -> int | None:
        return self.usage.tokens_out


SendRequest = Callable[[Request], Awaitable[Answer]]


def merge_extra_fields(body: Mapping[str, object], extra: Mapping[str, object]) -> dict[str, object]:
    """The body with the fields that an endpoint or a judge adds.

    Objects in both are merged, unless the added one names its type.

    >>> merge_extra_fields({"model": "m", "options": {"seed": 1}}, {"options": {"num_gpu": 2}})
    {'model': 'm', 'options': {'seed': 1, 'num_gpu': 2}}
    """
    merged = {**body, **extra}
    for name, added in extra.items():
        value = body.get(name)
        if isinstance(value, Mapping) and isinstance(added, Mapping) and "type" not in added:
            merged[name] = {**value, **added}
    return merged


MAX_PAUSE_SECONDS: Final = 86_400.0 * 2  # the longest pause of an endpoint, whatever its provider says


class ErrorFacts(TypedDict, total=False):
    """The facts that any error of a request may have; see LLMError."""

    http_status: int | None
    body: str
    usage: Usage | None


class LLMError(Exception):
    """Why there is no answer, as a sentence; with the server's text, the key redacted, and its token counts."""

    def __init__(
        self, sentence: str, *, http_status: int | None = None, body: str = "", usage: Usage | None = None
    ) -> None:
        super().__init__(sentence)
        self.http_status = http_status
        self.body = body
        self.usage = usage


class Retry(LLMError):
    """Ask again later, ``after`` seconds if the server named a time.

    ``busy``: there were too many requests. ``unreachable``: nothing answered, so no call of the run can succeed.
    ``is_outage``: the server is down or restarts; the request itself is not at fault.
    """

    def __init__(
        self,
        sentence: str,
        *,
        after: float | None = None,
        busy: bool = False,
        unreachable: bool = False,
        is_outage: bool = False,
        **details: Unpack[ErrorFacts],
    ) -> None:
        super().__init__(sentence, **details)
        self.after = after
        self.busy = busy
        self.unreachable = unreachable
        self.is_outage = is_outage or unreachable


class RequestTimedOut(Retry):
    """No answer came in time: the server may be overloaded."""


class QuotaExhausted(Retry):
    """A daily limit or the like is reached: no call can succeed before ``after`` seconds have passed."""

    def __init__(self, sentence: str, *, after: float, **details: Unpack[ErrorFacts]) -> None:
        super().__init__(sentence, after=after, busy=True, **details)


class StopRun(LLMError):
    """No call of this run can succeed before a person acts."""


class RecordOnCall(LLMError):
    """This one call fails in this state; others may succeed."""

    def __init__(self, state: CallState, sentence: str, **details: Unpack[ErrorFacts]) -> None:
        super().__init__(sentence, **details)
        self.state = state


class FormatRefused(LLMError):
    """The server refuses this reply shape: try another one, or stop."""

    def __init__(self, shape: ReplyShape, sentence: str, **details: Unpack[ErrorFacts]) -> None:
        super().__init__(sentence, **details)
        self.shape = shape


class SettingRefused(StopRun):
    """The model refuses this setting of the judge: write it another way, omit it, or stop.

    ``instead``: the setting's other name, if it has one.
    """

    def __init__(self, setting: str, sentence: str, *, instead: str = "", **details: Unpack[ErrorFacts]) -> None:
        super().__init__(sentence, **details)
        self.setting = setting
        self.instead = instead


# From the strictest shape to the one that every server takes.
SHAPES_TO_TRY: Final = (ReplyShape.JSON_SCHEMA, ReplyShape.JSON_OBJECT, ReplyShape.TEXT)
# The model refuses the number, not its name.
NUMBER_OUT_OF_RANGE: Final = re.compile(
    r"less than|greater than|at most|at least|between|range of|<=|>=|too large|exceed", re.I
)

UNKNOWN_NAME: Final = re.compile(r"instead|unsupported|not supported|extra input|unrecogni[sz]ed", re.I)
# Settings that are omitted if the model refuses them; "native" is the dialect's own protocol.
REMOVABLE_SETTINGS: Final = (
    *("temperature", "seed", "reasoning_effort", "logprobs", "top_logprobs", "native"),
    *("thinking", "reasoning_summary"),  # sent together with an effort
)


def adapt_to_refusal(request_shape: RequestShape, error: SettingRefused) -> RequestShape | None:
    """The request shape after this refusal; None if nothing is left to try."""
    setting = error.setting
    if setting == "system":
        return None if request_shape.system_folded else replace(request_shape, system_folded=True)
    if setting == "max_tokens":
        # Once: a second refusal is of the number, not of its name.
        if NUMBER_OUT_OF_RANGE.search(str(error)) and not UNKNOWN_NAME.search(str(error)):
            return None
        if not error.instead or request_shape.limit_name:
            return None
        return replace(request_shape, limit_name=error.instead)
    if setting not in REMOVABLE_SETTINGS or setting in request_shape.left_out:
        return None
    return replace(request_shape, left_out=(*request_shape.left_out, setting))
