"""The error that a server sent instead of an answer, at any place in the body.

Servers and gateways nest errors in many forms: as JSON, as text that contains JSON, or as a printed Python object.
The innermost sentence is the real one.
"""

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from evaluations.domain.json_values import JsonMapping
from evaluations.domain.judges import CallState
from evaluations.domain.texts import replace_unstorable
from evaluations.llm.exchange import ErrorFacts, QuotaExhausted, RecordOnCall, Retry, StopRun

MAX_BODY_LENGTH: Final = 4000
MAX_MESSAGE_LENGTH: Final = 500
MIN_KEY_FRAGMENT: Final = 12  # characters that identify a key
MAX_DEPTH: Final = 6
# Members in which an error may wrap another one.
WRAPPER_NAMES: Final = (
    *("error", "errors", "metadata", "raw", "detail", "innererror", "inner_error", "provider_error", "body", "fault"),
    "base_resp",
)
SENTENCE_NAMES: Final = (
    *("message", "detail", "msg", "error_message", "reason", "error_msg", "errmsg", "status_msg", "faultstring"),
    *("error_description", "Message", "title"),
)
CODE_NAMES: Final = ("code", "type", "status", "error_code", "status_code", "errorcode", "errcode")
# Members in which a gateway passes on the provider's text.
PLAIN_TEXT_NAMES: Final = ("raw", "body", "provider_error")
ERROR_NAMES: Final = {*WRAPPER_NAMES, *SENTENCE_NAMES, *CODE_NAMES}
# A gateway's generic messages.
EMPTY_SENTENCES: Final = ("provider returned error", "error from provider", "upstream error", "internal server error")
HTML_TITLE: Final = re.compile(r"<title[^>]*>([^<]{1,300})</title>", re.IGNORECASE)
# How many closing braces are tried in a text that continues after the object.
MAX_OBJECT_ENDS: Final = 20
# Each setting with the servers' names for it.
SETTING_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "temperature": ("temperature",),
    "max_tokens": ("max_tokens", "max_completion_tokens", "max_new_tokens", "max_output_tokens"),
    "seed": ("seed",),
    "reasoning_effort": (
        *("reasoning_effort", "reasoning effort", "reasoning.effort", "reasoningeffort", "thinking", "think"),
        *("reasoning", "effort"),
    ),
    "top_logprobs": ("top_logprobs", "max_logprobs", "sample logprobs"),
    "logprobs": ("logprobs", "top_logprobs"),
}
SETTING_REFUSED: Final = re.compile(
    r"(?:not|n't) (?:be )?(?:support|allow|permit|enabl|availab)|unsupported|unrecogni[sz]ed|unknown|unexpected"
    r"|extra input|invalid|deprecated|must be|should be|only|cannot|incompatible|too large|less than|greater than"
    r"|at most|at least"
    r"|does not accept|out of range|maximum|exceeds"
)


@dataclass(frozen=True)
class ErrorBody:
    """A server's error, and what it can mean for the caller.

    ``body`` is stored, ``message`` is for people, ``code`` has every name of the fault, ``flawed_reply`` is the model's
    reply if it failed to keep to the format.
    """

    status: int
    message: str
    code: str
    param: str
    body: str
    is_json: bool
    flawed_reply: str = ""
    is_known_status: bool = True

    @property
    def kept(self) -> ErrorFacts:
        """The part of the body that an LLMError keeps."""
        return {"http_status": self.status, "body": self.body}

    def stop(self, sentence: str) -> StopRun:
        return StopRun(f"{sentence} It says: {self.message}", **self.kept)

    def retry(self, *, after: float | None = None, busy: bool = False) -> Retry:
        return Retry(f"The server answered {self.status}: {self.message}", after=after, busy=busy, **self.kept)

    def exhausted_quota(self, after: float) -> QuotaExhausted:
        return QuotaExhausted(f"The endpoint's quota is used up. It says: {self.message}", after=after, **self.kept)

    def filtered_prompt(self) -> RecordOnCall:
        sentence = f"The server's filter refused the prompt: {self.message}"
        return RecordOnCall(CallState.REFUSED, sentence, **self.kept)

    def holds(self, fragments: Iterable[str]) -> bool:
        words = f"{self.code} {self.message} {self.body}".lower()
        return any(fragment in words for fragment in fragments)

    def states(self, fragments: Iterable[str]) -> bool:
        """Like ``holds`` without the body, which may repeat what was sent: for errors that end a run."""
        words = f"{self.code} {self.message}".lower()
        return any(fragment in words for fragment in fragments)

    def refused_setting(self, sent: Iterable[str]) -> str | None:
        """The first of the sent settings that the server refuses."""
        message = self.message.lower()
        for setting in sent:
            names = SETTING_NAMES[setting]
            named = any(re.search(rf"\b{re.escape(name)}\b", message) for name in names)
            if self.param in names or (named and SETTING_REFUSED.search(message)):
                return setting
        return None


def parse_error_body(status: int, text: str, key: str, *, is_known_status: bool = True) -> ErrorBody:
    """The error of this answer, with the key redacted."""
    text = redact_key(replace_unstorable(text), key)
    body = parse_json_object(text)
    chain = list(unwrap_error_objects(body))
    codes = [error[name] for error in chain for name in CODE_NAMES if isinstance(error.get(name), (str, int))]
    codes += ["validation_error"] if any("loc" in error for error in chain) else []
    params = [error["param"] for error in chain if isinstance(error.get("param"), str)]
    flawed_replies = [error["failed_generation"] for error in chain if isinstance(error.get("failed_generation"), str)]
    message = innermost_sentence(chain) or html_title(text) or text.strip() or f"status {status}"
    return ErrorBody(
        status=status,
        message=message[:MAX_MESSAGE_LENGTH],
        code=" ".join(dict.fromkeys(str(code) for code in codes if code)),
        param=params[-1] if params else "",
        body=text[:MAX_BODY_LENGTH],
        is_json=body is not None,
        flawed_reply=flawed_replies[0] if flawed_replies else "",
        is_known_status=is_known_status,
    )


def unwrap_error_objects(body: object, depth: int = 0) -> Iterator[JsonMapping]:
    """The objects that describe the error, from the outermost to the innermost."""
    if isinstance(body, str):
        body = parse_embedded_object(body)
    if isinstance(body, list) and body and isinstance(body[0], str):
        body = {"message": "; ".join(map(str, body))}
    if isinstance(body, list) and body and isinstance(body[0], dict) and "loc" not in body[0]:
        body = body[0]
    if not isinstance(body, dict) or depth > MAX_DEPTH:
        return
    if isinstance(body.get("error"), str) and not parse_embedded_object(body["error"]):
        body = {"message": body["error"], **body}
    yield body
    choices = body.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        yield from unwrap_error_objects(choices[0].get("error"), depth + 1)
    for name in (*WRAPPER_NAMES, "message"):
        inside = body.get(name)
        if (
            name in PLAIN_TEXT_NAMES
            and isinstance(inside, str)
            and inside.strip()
            and parse_embedded_object(inside) is None
        ):
            inside = {"message": html_title(inside) or inside}
        if isinstance(inside, (dict, list, str)):
            yield from unwrap_error_objects(inside, depth + 1)


def parse_embedded_object(text: str) -> object:
    """The object in a text, as JSON or printed by Python; None if there is none."""
    start = text.find("{")
    if start < 0 or len(text) > 4 * MAX_BODY_LENGTH:
        return None
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return parse_python_object(text, start)


def parse_python_object(text: str, start: int) -> object:
    """The longest printed Python object that begins here; a gateway may append a sentence."""
    end = len(text)
    for _ in range(MAX_OBJECT_ENDS):
        end = text.rfind("}", start, end)
        if end < 0:
            return None
        try:
            return ast.literal_eval(text[start : end + 1])
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


def innermost_sentence(chain: Iterable[JsonMapping]) -> str:
    """The innermost specific sentence: without an object in it, and not a gateway's generic one."""
    sentences = [sentence for error in chain if (sentence := error_sentence(error))]
    specific = [sentence for sentence in sentences if not sentence.lower().strip(" .").startswith(EMPTY_SENTENCES)]
    return (specific or sentences or [""])[-1]


def error_sentence(error: JsonMapping) -> str:
    for name in SENTENCE_NAMES:
        message = error.get(name)
        if isinstance(message, list) and message:
            return "; ".join(fastapi_error_text(fault) for fault in message)
        if name == "msg" and "loc" in error:
            return fastapi_error_text(error)
        if isinstance(message, str) and message.strip():
            return text_before_object(message)
    return ""


def text_before_object(message: str) -> str:
    """A sentence without the object that it wraps."""
    inside = parse_embedded_object(message)
    if not isinstance(inside, dict) or not ERROR_NAMES & inside.keys():
        return message.strip()
    return message[: message.find("{")].strip().removesuffix("-").strip()


def fastapi_error_text(fault: object) -> str:
    """FastAPI lists locations with messages."""
    if not isinstance(fault, Mapping):
        return str(fault)
    place = fault.get("loc")
    last = place[-1] if isinstance(place, (list, tuple)) and place else ""
    return f"{last}: {fault.get('msg', '')}"


def html_title(text: str) -> str:
    """The title of a web page; "" if the text is none."""
    match = HTML_TITLE.search(text[:MAX_BODY_LENGTH]) if text.lstrip()[:1] == "<" else None
    return " ".join(match[1].split()) if match else ""


def redact_key(text: str, key: str) -> str:
    """The text without the key, and without longer prefixes and suffixes of it, as servers abbreviate keys."""
    if not key or (key[:MIN_KEY_FRAGMENT] not in text and key[-MIN_KEY_FRAGMENT:] not in text):
        return text
    for length in range(len(key), min(MIN_KEY_FRAGMENT, len(key)) - 1, -1):
        text = text.replace(key[:length], "…").replace(key[-length:], "…")
    return text


def parse_json_object(text: str | bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
