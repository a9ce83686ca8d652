"""The adapter: how requests to one provider are written, and how its answers and errors are read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

from evaluations.domain.json_values import JsonDict, JsonMapping
from evaluations.domain.judges import Dialect
from evaluations.llm.error_body import ErrorBody
from evaluations.llm.exchange import Answer, LLMError, Request, Server

Headers = Mapping[str, str]


@dataclass(frozen=True)
class ErrorWords:
    """Lower-case fragments of a provider's errors, by their meaning; those that many providers share are left out."""

    format: tuple[str, ...] = ()  # it does not take a reply of this shape
    context: tuple[str, ...] = ()  # the prompt is longer than the context, whatever the status
    too_long: tuple[str, ...] = ()  # the same, in words that count only with a 4xx
    never_fits: tuple[str, ...] = ()  # larger than a limit a minute: waiting does not help
    filter: tuple[str, ...] = ()  # a safety filter blocked the prompt or the reply
    credit: tuple[str, ...] = ()  # the account or the gateway's budget is used up
    quota: tuple[str, ...] = ()  # a daily limit or the like is reached, and will be lifted automatically
    key: tuple[str, ...] = ()
    model: tuple[str, ...] = ()  # there is no such model
    wrong_address: tuple[str, ...] = ()
    place: tuple[str, ...] = ()  # the provider does not serve the place where the worker runs
    system: tuple[str, ...] = ()  # the model has no system role
    remedy: tuple[str, ...] = ()  # the message itself says what a person must do
    retry: tuple[str, ...] = ()  # a fault that may pass although its status says otherwise
    refused: tuple[str, ...] = ()  # with a 5xx: the request itself is refused, asking again does not help
    busy: tuple[str, ...] = ()  # with a 5xx: there were too many requests at once
    template: tuple[str, ...] = ()  # the model's chat template does not take these messages
    loading: tuple[str, ...] = ()  # the server cannot load the model, for lack of memory or other reasons
    budget: tuple[str, ...] = ()  # a gateway's own budget is used up
    rate: tuple[str, ...] = ()  # too many requests, where the status does not say so
    flawed: tuple[str, ...] = ()  # the model broke the format of the reply
    cut_off: tuple[str, ...] = ()  # it reached the token limit before the reply was complete

    def plus(self, other: "ErrorWords") -> "ErrorWords":
        names = [field.name for field in fields(self)]
        return ErrorWords(**{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass(frozen=True)
class Adapter:
    """One dialect. ``hosts`` are ends of host names, ``ports`` where such a server listens on its own machine.

    ``read``: the answer in a body of status 200, None if there is none. ``meaning``: what an error means, before the
    rules that all dialects share; None leaves it to them. ``inner``: the error that this one passes on. ``fault``: the
    error in a body of status 200 in the provider's own form, None if there is none. ``base_url`` completes an address,
    ``query`` gives the parameters that it needs. ``lacks``: settings that the protocol does not have. ``batch_path``:
    "" if there is no Batch API of OpenAI's form.
    """

    dialect: Dialect
    body: Callable[[Request], JsonDict]
    read: Callable[[JsonMapping, Headers, Request], Answer | None]
    hosts: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    base_url: Callable[[str], str] = lambda given: given
    path: Callable[[Server, Request], str] = lambda server, request: "/chat/completions"
    key_headers: Callable[[str], Headers] = lambda key: {"Authorization": f"Bearer {key}"}
    headers: Headers = field(default_factory=dict)
    query: Callable[[str], Mapping[str, str]] = lambda base_url: {}
    words: ErrorWords = field(default_factory=ErrorWords)
    meaning: Callable[[ErrorBody, Server, Request, Headers], LLMError | None] = lambda *details: None
    inner: Callable[[ErrorBody], ErrorBody] = lambda error: error
    fault: Callable[[JsonMapping], JsonMapping | None] = lambda body: None
    cost: Callable[[JsonMapping, Headers], int | None] = lambda usage, headers: None
    lacks: tuple[str, ...] = ()
    batch_path: str = "/v1/chat/completions"
