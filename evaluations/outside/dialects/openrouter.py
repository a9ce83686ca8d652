"""OpenRouter, a gateway that says what each request cost, without being asked to.

https://openrouter.ai/docs/api/reference/errors-and-debugging, https://openrouter.ai/docs/use-cases/usage-accounting,
https://openrouter.ai/docs/use-cases/reasoning-tokens. What the provider said stands in ``metadata.raw``, as JSON or as
plain text: https://github.com/open-webui/computer/issues/293.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from evaluations.domain import CallState, Dialect, ReplyShape
from evaluations.outside.dialects.adapter import Adapter, Headers, Words
from evaluations.outside.dialects.chat import WORDS, chat_body, chat_reader
from evaluations.outside.errors import LLMError, QuotaUsedUp, RecordOnCall, Retry, SettingRefused, StopRun
from evaluations.outside.exchange import Request, Server
from evaluations.outside.usage import nano_usd_in, part_of
from evaluations.outside.wording import Said, json_in, object_in

# What may be left out where nobody serves the model with all that was asked for, what matters least first.
MAY_GO: Final = ("logprobs", "seed", "reasoning_effort", "temperature")
DAY_SECONDS: Final = 3600.0  # a daily limit of a key ends at midnight: looked at again every hour


def body(request: Request) -> dict[str, Any]:
    """The effort is a part of an object of its own; the limit has one name for all models."""
    given = chat_body(request, limit_name=lambda request: "max_tokens")
    if effort := given.pop("reasoning_effort", None):
        given = {"reasoning": {"effort": effort}, **given}
    return given


def cost(usage: Mapping[str, Any], headers: Headers) -> int | None:
    """What was charged; with a key of one's own the provider's bill comes beside OpenRouter's fee."""
    fee = nano_usd_in(usage.get("cost"))
    if not usage.get("is_byok"):
        return fee
    upstream = nano_usd_in(part_of(usage, "cost_details").get("upstream_inference_cost"))
    return None if upstream is None else upstream + (fee or 0)


def inner(said: Said) -> Said:
    """The provider's error, with the status that the provider gave it."""
    raw = metadata_of(said).get("raw")
    given = object_in(raw) if isinstance(raw, str) else raw
    codes = [one.get(name) for one in objects_in(given) for name in ("code", "status")]
    statuses = [int(str(code)) for code in codes if str(code).isdecimal() and 400 <= int(str(code)) < 500]
    if statuses and said.status != 429:
        return replace(said, status=statuses[-1], is_known_status=True)
    return as_request(said) if raw else said


def as_request(said: Said) -> Said:
    """A provider's no to this prompt, which a gateway passes on as a fault of its own."""
    is_no = said.states((*WORDS.filter, *WORDS.context, *WORDS.too_long))
    return replace(said, status=400, is_known_status=True) if said.status >= 500 and is_no else said


def metadata_of(said: Said) -> Mapping[str, Any]:
    """What OpenRouter adds to an error, wherever the error stands."""
    given = json_in(said.body)
    found = [part_of(one, "metadata") for one in objects_in(given) if part_of(one, "metadata")]
    return found[-1] if found else {}


def objects_in(given: Any) -> Iterator[Mapping[str, Any]]:
    """An answer, its error, and the error of its first choice."""
    if isinstance(given, list) and given:
        given = given[0]
    if not isinstance(given, Mapping):
        return
    yield given
    choices = given.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    for one in (given.get("error"), first):
        yield from objects_in(one)


def meaning(said: Said, server: Server, request: Request, headers: Headers) -> LLMError | None:
    metadata = metadata_of(said)
    known: dict[str, Any] = {"http_status": said.status, "body": said.body}
    provider = metadata.get("provider_name")
    if said.status == 403 and ("flagged_input" in metadata or metadata.get("reasons")):
        return RecordOnCall(CallState.REFUSED, f"The server's filter refused the prompt: {said.message}", **known)
    if said.status == 403 and said.states(("key limit exceeded (daily",)):
        return QuotaUsedUp(f"The endpoint's quota is used up. It says: {said.message}", after=DAY_SECONDS, **known)
    if said.status == 402 and headers.get("retry-after", "").strip().isdecimal():
        after = float(headers["retry-after"])
        return Retry(f"The server answered 402: {said.message}", after=after, busy=True, **known)
    if said.status == 401 and isinstance(provider, str) and provider:
        return StopRun(
            f"{provider} refused the key that OpenRouter has for it: replace it in OpenRouter's provider keys (BYOK) "
            f"and resume the run. It says: {said.message}",
            **known,
        )
    if said.states(("requested parameters",)) and request.shape == ReplyShape.TEXT:
        return nobody_takes(said, request, known)
    return None


def nobody_takes(said: Said, request: Request, known: Mapping[str, Any]) -> LLMError | None:
    """Nobody serves the model with all these settings, and which of them is too much is not said."""
    setting = next((name for name in MAY_GO if request.sends(name)), None)
    if setting is None:
        return None
    return SettingRefused(setting, f"Nobody serves the model with this judge's {setting}: {said.message}", **known)


ADAPTER: Final = Adapter(
    dialect=Dialect.OPENROUTER,
    hosts=("openrouter.ai",),
    body=body,
    read=chat_reader(cost),
    cost=cost,
    inner=inner,
    meaning=meaning,
    words=WORDS.plus(
        Words(
            filter=("requires moderation",),
            credit=("can only afford", "prompt tokens limit exceeded"),
            model=("is not a valid model id",),
        )
    ),
)
