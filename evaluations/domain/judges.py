"""The words for judges, their runs and the outcome of each request."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from evaluations.domain.json_values import JsonMapping


class JudgeKind(StrEnum):
    LLM = "llm"
    RULE = "rule"
    IMPORTED = "imported"


BASELINE_REMARK: Final = "rule-based"  # shown with the name of every rule judge
# Descriptions of the rule judges by their model names.
RULE_JUDGE_TEXTS: Final[Mapping[str, str]] = {
    "longest": "the longer response wins every aspect; a difference of 5% or less is a tie",
    "first": "the response shown first wins every aspect",
    "random": "A, tie or B is drawn by the seed for each comparison, order and aspect, the same every time",
}


class OutputMode(StrEnum):
    """The output format that a judge is asked for.

    AUTO detects before the first verdict which format the server supports. TWO_STEP asks for free text, and then in the
    same conversation for the verdict alone.
    """

    AUTO = "auto"
    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    TEXT = "text"
    TWO_STEP = "two_step"


class ReplyShape(StrEnum):
    """How the form of a verdict is enforced: by a schema or JSON mode of the server, or only by the prompt."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    TEXT = "text"


class Dialect(StrEnum):
    """The protocol that an endpoint speaks, with its provider's peculiarities. GENERIC: any of them, or a gateway."""

    OPENAI = "openai"
    OPENAI_RESPONSES = "openai_responses"
    AZURE = "azure"
    ANTHROPIC = "anthropic"
    GOOGLE = "google"
    OPENROUTER = "openrouter"
    XAI = "xai"
    GROQ = "groq"
    OLLAMA = "ollama"
    LLAMA_CPP = "llama_cpp"
    VLLM = "vllm"
    LM_STUDIO = "lm_studio"
    LITELLM = "litellm"
    GENERIC = "generic"


DIALECT_NAMES: Final[Mapping[Dialect, str]] = {
    Dialect.OPENAI: "OpenAI (Chat Completions)",
    Dialect.OPENAI_RESPONSES: "OpenAI (Responses)",
    Dialect.AZURE: "Azure OpenAI",
    Dialect.ANTHROPIC: "Anthropic",
    Dialect.GOOGLE: "Google Gemini",
    Dialect.OPENROUTER: "OpenRouter",
    Dialect.XAI: "xAI",
    Dialect.GROQ: "Groq",
    Dialect.OLLAMA: "Ollama",
    Dialect.LLAMA_CPP: "llama.cpp",
    Dialect.VLLM: "vLLM or SGLang",
    Dialect.LM_STUDIO: "LM Studio",
    Dialect.LITELLM: "LiteLLM proxy",
    Dialect.GENERIC: "Other OpenAI-compatible",
}


@dataclass(frozen=True)
class RequestShape:
    """The form of requests that a judge's model accepts, detected before its first verdict and then frozen.

    ``limit_name``: the parameter for the token limit, empty for that of the dialect. ``left_out``: settings of the
    judge that the model refuses. ``system_folded``: whether the system text is sent at the start of the first user
    turn, for models without a system role.
    """

    limit_name: str = ""
    left_out: tuple[str, ...] = ()
    system_folded: bool = False

    def as_json(self) -> dict[str, object]:
        return {"limit_name": self.limit_name, "left_out": list(self.left_out), "system_folded": self.system_folded}

    @staticmethod
    def from_json(stored: JsonMapping | None) -> "RequestShape":
        """The settings from a judge's JSON; defaults where nothing is stored yet."""
        stored = stored or {}
        return RequestShape(
            stored.get("limit_name", ""), tuple(stored.get("left_out", ())), stored.get("system_folded", False)
        )


class RunOrders(StrEnum):
    BOTH = "both"
    RANDOM = "random"
    AS_STORED = "as-stored"
    SWAPPED = "swapped"


class RunChannel(StrEnum):
    """How a run sends its requests: singly, or many in one file of the Batch API."""

    LIVE = "live"
    BATCH = "batch"


class RunState(StrEnum):
    PLANNING = "planning"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    CANCELLED = "cancelled"
    STOPPED = "stopped"  # by a fault that only a person can fix, see stop_reason


ACTIVE_RUN_STATES: Final = (RunState.PLANNING, RunState.RUNNING, RunState.PAUSED)


class CallState(StrEnum):
    """SUSPECT: the whole reply repeats a judged text; its verdict counts once a person confirms it."""

    PENDING = "pending"
    RUNNING = "running"
    ANSWERED = "answered"
    UNREADABLE = "unreadable"
    SUSPECT = "suspect"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    TOO_LONG = "too_long"
    FAILED = "failed"
    CANCELLED = "cancelled"


FAILURE_STATES: Final = (
    CallState.UNREADABLE,
    CallState.SUSPECT,
    CallState.REFUSED,
    CallState.TRUNCATED,
    CallState.TOO_LONG,
    CallState.FAILED,
)
OPEN_CALL_STATES: Final = (CallState.PENDING, CallState.RUNNING)


class AttemptStep(StrEnum):
    """The purpose of a request of a Call; on the Call, that of its next request.

    REPAIR follows an unreadable reply and says what was wrong with it; SCORE follows a free-text evaluation and asks
    for its verdict. Both continue the conversation that ASK began.
    """

    ASK = "ask"
    REPAIR = "repair"
    SCORE = "score"


class AttemptOutcome(StrEnum):
    """The outcome of one request.

    RETRY: the call was queued again. LOST: the worker was killed before it stored the answer, so the cost is unknown.
    """

    ANSWERED = "answered"
    UNREADABLE = "unreadable"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    TOO_LONG = "too_long"
    FAILED = "failed"
    RETRY = "retry"
    STOPPED = "stopped"
    LOST = "lost"


class BatchState(StrEnum):
    SENDING = "sending"  # the file is being made and uploaded; nothing was bought yet
    SUBMITTED = "submitted"
    COLLECTING = "collecting"  # the server has ended it; its answers are being stored
    DONE = "done"
    FAILED = "failed"  # nothing of it was answered; its calls wait again


OPEN_BATCH_STATES: Final = (BatchState.SENDING, BatchState.SUBMITTED, BatchState.COLLECTING)


@dataclass(frozen=True)
class ReplyToken:
    """One token of a reply as bytes, with its log probability and the likeliest alternatives."""

    text: bytes
    logprob: float
    likeliest: tuple[tuple[bytes, float], ...] = ()
