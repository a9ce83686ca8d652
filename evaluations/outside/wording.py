"""How servers word their errors. The protocol has one form; those who serve it have many.

Lower-case fragments, each seen in the answers of a server that people use: OpenAI, Azure, OpenRouter,
vLLM, SGLang, TGI, llama.cpp, Ollama, LM Studio, Gemini, Anthropic, Mistral, Groq, DeepSeek, xAI.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evaluations.domain import storable

LONGEST_BODY: Final = 4000
LONGEST_MESSAGE: Final = 300
LEAST_OF_KEY: Final = 12  # characters of a key by which it is known

FORMAT_WORDS: Final = (
    *("response_format", "response format", "json_schema", "json schema", "json_object", "structured output"),
    *("response_schema", "response mime type", "json mode", "grammar", "requested parameters"),
)
# Said of a prompt, whatever the status: some servers answer 500.
CONTEXT_WORDS: Final = (
    *("context_length", "context length", "maximum context", "context window", "context size", "context limit"),
    *("exceed_context_size", "prompt is too long", "input is too long"),
)
TOO_LONG_WORDS: Final = (
    *CONTEXT_WORDS,
    *("too long", "request too large", "too many tokens", "maximum number of tokens", "reduce the length"),
    *("string_above_max_length", "maximum input length", "maximum allowed length"),
    # vLLM takes the prompt off the window before it looks at what is left for the reply.
    "max_tokens must be at least 1, got -",
    # TGI: `inputs` tokens + `max_new_tokens` must be <= 4096.
    "`inputs` tokens",
)
# Turned away for its size under a limit a minute: waiting does not make it smaller.
NEVER_FITS_WORDS: Final = ("request too large", "tokens must be reduced")
FILTER_WORDS: Final = (
    *("content_filter", "content management policy", "content policy", "content_policy", "responsibleaipolicy"),
    *("usage policy", "usage policies", "flagged", "moderation", "safety system", "prohibited_content"),
    *("content exists risk", "data_inspection_failed", "inappropriate content"),
)
CREDIT_WORDS: Final = (
    *("insufficient_quota", "insufficient balance", "insufficient credits", "insufficient_balance"),
    *("credit balance is too low", "out of credits", "more credits", "used all available credits"),
    *("billing_not_active", "billing_hard_limit", "account is not active", "key limit exceeded", "arrearage"),
)
KEY_WORDS: Final = (
    *("api key not valid", "api_key_invalid", "invalid api key", "invalid_api_key"),
    *("incorrect api key", "incorrect_api_key"),
)
MODEL_WORDS: Final = (
    *("model_not_found", "not a valid model", "invalid model", "unknown model", "model not exist"),
    *("model does not exist", "no such model", "model not found", "deploymentnotfound"),
)
WRONG_DOOR_WORDS: Final = ("plain http request was sent to https", "client sent an http request to an https")
# Each setting by the names that servers have for it.
SETTING_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "temperature": ("temperature",),
    "max_tokens": ("max_tokens", "max_completion_tokens", "max_new_tokens"),
    "max_completion_tokens": ("max_completion_tokens", "max_tokens"),
    "seed": ("seed",),
    "reasoning_effort": ("reasoning_effort", "reasoning effort", "reasoning.effort", "reasoningeffort", "thinking"),
    "logprobs": ("logprobs", "top_logprobs"),
}
REFUSES: Final = re.compile(
    r"not (?:be )?(?:support|allow|permit|enabl|availab)|unsupported|unrecogni[sz]ed|unknown|unexpected|extra input"
    r"|invalid|deprecated|must be|only|cannot|incompatible|too large|less than|greater than|at most|at least"
)


@dataclass(frozen=True)
class Said:
    """What a server said instead of an answer: ``body`` is kept, ``message`` is for people, ``code`` is
    every name that it gave the fault."""

    status: int
    message: str
    code: str
    param: str
    body: str
    is_json: bool

    def holds(self, fragments: Iterable[str]) -> bool:
        words = f"{self.code} {self.message} {self.body}".lower()
        return any(fragment in words for fragment in fragments)

    def states(self, fragments: Iterable[str]) -> bool:
        """The same without the body, which may repeat what was sent: for what ends a run."""
        words = f"{self.code} {self.message}".lower()
        return any(fragment in words for fragment in fragments)

    def refused_setting(self, sent: Iterable[str]) -> str | None:
        """The first of the settings sent that the server says it does not take."""
        message = self.message.lower()
        for setting in sent:
            names = SETTING_NAMES[setting]
            named = any(re.search(rf"\b{re.escape(name)}\b", message) for name in names)
            if self.param in names or (named and REFUSES.search(message)):
                return setting
        return None


def said_by(status: int, text: str, key: str) -> Said:
    """The error of this answer, the key left out of all of it."""
    text = without_key(storable(text), key)
    given = json_in(text)
    error = error_in(given)
    names = (error.get(name) for name in ("code", "type", "status"))
    param = error.get("param")
    return Said(
        status=status,
        message=(message_in(error) or text.strip() or f"status {status}")[:LONGEST_MESSAGE],
        code=" ".join(str(name) for name in names if name),
        param=param if isinstance(param, str) else "",
        body=text[:LONGEST_BODY],
        is_json=given is not None,
    )


def without_key(text: str, key: str) -> str:
    """The text without the key, and without any longer part that it begins or ends with, as a server cuts it."""
    if not key or (key[:LEAST_OF_KEY] not in text and key[-LEAST_OF_KEY:] not in text):
        return text
    for length in range(len(key), min(LEAST_OF_KEY, len(key)) - 1, -1):
        text = text.replace(key[:length], "…").replace(key[-length:], "…")
    return text


def json_in(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def error_in(given: Any) -> Mapping[str, Any]:
    """The object that says what is wrong: under ``error``, at the top, or first of a list."""
    if isinstance(given, list) and given:
        given = given[0]
    if not isinstance(given, dict):
        return {}
    error = given.get("error", given)
    return error if isinstance(error, dict) else {"message": error}


def message_in(error: Mapping[str, Any]) -> str:
    """The sentence of it; FastAPI gives a list of places and what is wrong there."""
    message = error.get("message") or error.get("detail")
    if isinstance(message, list):
        return "; ".join(fault_at(fault) for fault in message)
    return message if isinstance(message, str) else json.dumps(message) if message else ""


def fault_at(fault: Any) -> str:
    if not isinstance(fault, dict):
        return str(fault)
    place = fault.get("loc")
    last = place[-1] if isinstance(place, list) and place else ""
    return f"{last}: {fault.get('msg', '')}"
