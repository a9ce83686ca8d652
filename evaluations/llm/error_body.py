"""The error that a server sent instead of an answer, wherever in the body it is.

The protocol has one form of an error; those who serve it have many. A gateway wraps the error of the provider
behind it, as JSON, as text that holds JSON, or as Python prints an object: the innermost sentence is the real one.
"""

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from evaluations.domain.json_values import JsonMapping
from evaluations.domain.texts import replace_unstorable

MAX_BODY_LENGTH: Final = 4000
MAX_MESSAGE_LENGTH: Final = 500
MIN_KEY_FRAGMENT: Final = 12  # characters of a key by which it is known
MAX_DEPTH: Final = 6
# Where an error may hold the one that it wraps.
WRAPPER_NAMES: Final = (
    "error",
    "errors",
    "metadata",
    "raw",
    "detail",
    "innererror",
    "inner_error",
    "provider_error",
    "body",
    "fault",
    "base_resp",
)
SENTENCE_NAMES: Final = (
    *("message", "detail", "msg", "error_message", "reason", "error_msg", "errmsg", "status_msg", "faultstring"),
    *("error_description", "Message", "title"),
)
CODE_NAMES: Final = ("code", "type", "status", "error_code", "status_code", "errorcode", "errcode")
# Where a gateway gives what the provider said, as it came.
PLAIN_TEXT_NAMES: Final = ("raw", "body", "provider_error")
ERROR_NAMES: Final = {*WRAPPER_NAMES, *SENTENCE_NAMES, *CODE_NAMES}
# What a gateway says of any error that it passes on.
EMPTY_SENTENCES: Final = ("provider returned error", "error from provider", "upstream error", "internal server error")
HTML_TITLE: Final = re.compile(r"<title[^>]*>([^<]{1,300})</title>", re.IGNORECASE)
# How many ends of an object are tried in a text that goes on after it.
MAX_OBJECT_ENDS: Final = 20

# Each setting by the names that servers have for it.
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
    """What a server said instead of an answer: ``body`` is kept, ``message`` is for people, ``code`` is
    every name that it gave the fault, ``wrote`` what the model wrote where it failed to keep to the form."""

    status: int
    message: str
    code: str
    param: str
    body: str
    is_json: bool
    wrote: str = ""
    is_known_status: bool = True

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
            if self.param in names or (named and SETTING_REFUSED.search(message)):
                return setting
        return None


def parse_error_body(status: int, text: str, key: str, *, is_known_status: bool = True) -> ErrorBody:
    """The error of this answer, the key left out of all of it."""
    text = redact_key(replace_unstorable(text), key)
    given = parse_json_object(text)
    chain = list(unwrap_error_objects(given))
    names = [
        str(one[name]) for one in chain for name in CODE_NAMES if isinstance(one.get(name), (str, int)) and one[name]
    ]
    names += ["validation_error"] if any("loc" in one for one in chain) else []
    params = [one["param"] for one in chain if isinstance(one.get("param"), str)]
    wrote = next((one["failed_generation"] for one in chain if isinstance(one.get("failed_generation"), str)), "")
    return ErrorBody(
        status=status,
        message=(innermost_sentence(chain) or html_title(text) or text.strip() or f"status {status}")[
            :MAX_MESSAGE_LENGTH
        ],
        code=" ".join(dict.fromkeys(names)),
        param=params[-1] if params else "",
        body=text[:MAX_BODY_LENGTH],
        is_json=given is not None,
        wrote=wrote,
        is_known_status=is_known_status,
    )


# ---- errors inside errors --------------------------------------------------------------------


def unwrap_error_objects(given: object, depth: int = 0) -> Iterator[JsonMapping]:
    """The objects that say what is wrong, from the outermost to the innermost."""
    if isinstance(given, str):
        given = parse_embedded_object(given)
    if isinstance(given, list) and given and isinstance(given[0], str):
        given = {"message": "; ".join(map(str, given))}
    if isinstance(given, list) and given and isinstance(given[0], dict) and "loc" not in given[0]:
        given = given[0]
    if not isinstance(given, dict) or depth > MAX_DEPTH:
        return
    if isinstance(given.get("error"), str) and not parse_embedded_object(given["error"]):
        given = {"message": given["error"], **given}
    yield given
    choices = given.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        yield from unwrap_error_objects(choices[0].get("error"), depth + 1)
    for name in (*WRAPPER_NAMES, "message"):
        inside = given.get(name)
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
    """The object inside a text, as JSON or as Python prints it; None where there is none."""
    start = text.find("{")
    if start < 0 or len(text) > 4 * MAX_BODY_LENGTH:
        return None
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return parse_python_object(text, start)


def parse_python_object(text: str, start: int) -> object:
    """The longest object that begins here as Python prints one; a gateway may add its own sentence after it."""
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
    """The innermost sentence that says something: a text without an object in it, and not a gateway's general word."""
    found = [sentence for one in chain if (sentence := error_sentence(one))]
    telling = [one for one in found if not one.lower().strip(" .").startswith(EMPTY_SENTENCES)]
    return (telling or found or [""])[-1]


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
    """A sentence without the object that it wraps, which is read for itself."""
    inside = parse_embedded_object(message)
    if not isinstance(inside, dict) or not ERROR_NAMES & inside.keys():
        return message.strip()
    return message[: message.find("{")].strip().removesuffix("-").strip()


def fastapi_error_text(fault: object) -> str:
    """FastAPI gives a list of places and what is wrong there."""
    if not isinstance(fault, Mapping):
        return str(fault)
    place = fault.get("loc")
    last = place[-1] if isinstance(place, (list, tuple)) and place else ""
    return f"{last}: {fault.get('msg', '')}"


# ---- text ------------------------------------------------------------------------------------


def html_title(text: str) -> str:
    """The title of a web page, which is all that it says; "" where the text is none."""
    found = HTML_TITLE.search(text[:MAX_BODY_LENGTH]) if text.lstrip()[:1] == "<" else None
    return " ".join(found[1].split()) if found else ""


def redact_key(text: str, key: str) -> str:
    """The text without the key, and without any longer part that it begins or ends with, as a server cuts it."""
    if not key or (key[:MIN_KEY_FRAGMENT] not in text and key[-MIN_KEY_FRAGMENT:] not in text):
        return text
    for length in range(len(key), min(MIN_KEY_FRAGMENT, len(key)) - 1, -1):
        text = text.replace(key[:length], "…").replace(key[-length:], "…")
    return text


def parse_json_object(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
