"""What a server said instead of an answer, wherever in its body it stands.

The protocol has one form of an error; those who serve it have many. A gateway wraps the error of the provider
behind it, as JSON, as text that holds JSON, or as Python prints an object: the innermost sentence is the real one.
"""

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evaluations.domain import storable

LONGEST_BODY: Final = 4000
LONGEST_MESSAGE: Final = 500
LEAST_OF_KEY: Final = 12  # characters of a key by which it is known
DEEPEST: Final = 6
# Where an error may hold the one that it wraps.
WRAPPED_IN: Final = (
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
SENTENCES: Final = (
    *("message", "detail", "msg", "error_message", "reason", "error_msg", "errmsg", "status_msg", "faultstring"),
    *("error_description", "Message", "title"),
)
CODES: Final = ("code", "type", "status", "error_code", "status_code", "errorcode", "errcode")
# Where a gateway gives what the provider said, as it came.
PLAIN_TOO: Final = ("raw", "body", "provider_error")
ABOUT_AN_ERROR: Final = {*WRAPPED_IN, *SENTENCES, *CODES}
# What a gateway says of any error that it passes on.
SAYS_NOTHING: Final = ("provider returned error", "error from provider", "upstream error", "internal server error")
TITLE: Final = re.compile(r"<title[^>]*>([^<]{1,300})</title>", re.IGNORECASE)
# How many ends of an object are tried in a text that goes on after it.
MOST_ENDS: Final = 20

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
REFUSES: Final = re.compile(
    r"(?:not|n't) (?:be )?(?:support|allow|permit|enabl|availab)|unsupported|unrecogni[sz]ed|unknown|unexpected"
    r"|extra input|invalid|deprecated|must be|should be|only|cannot|incompatible|too large|less than|greater than"
    r"|at most|at least"
    r"|does not accept|out of range|maximum|exceeds"
)


@dataclass(frozen=True)
class Said:
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
            if self.param in names or (named and REFUSES.search(message)):
                return setting
        return None


def said_by(status: int, text: str, key: str, *, is_known_status: bool = True) -> Said:
    """The error of this answer, the key left out of all of it."""
    text = without_key(storable(text), key)
    given = json_in(text)
    chain = list(wrapped(given))
    names = [str(one[name]) for one in chain for name in CODES if isinstance(one.get(name), (str, int)) and one[name]]
    names += ["validation_error"] if any("loc" in one for one in chain) else []
    params = [one["param"] for one in chain if isinstance(one.get("param"), str)]
    wrote = next((one["failed_generation"] for one in chain if isinstance(one.get("failed_generation"), str)), "")
    return Said(
        status=status,
        message=(sentence_in(chain) or title_of(text) or text.strip() or f"status {status}")[:LONGEST_MESSAGE],
        code=" ".join(dict.fromkeys(names)),
        param=params[-1] if params else "",
        body=text[:LONGEST_BODY],
        is_json=given is not None,
        wrote=wrote,
        is_known_status=is_known_status,
    )


# ---- errors inside errors --------------------------------------------------------------------


def wrapped(given: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """The objects that say what is wrong, from the outermost to the innermost."""
    if isinstance(given, str):
        given = object_in(given)
    if isinstance(given, list) and given and isinstance(given[0], str):
        given = {"message": "; ".join(map(str, given))}
    if isinstance(given, list) and given and isinstance(given[0], dict) and "loc" not in given[0]:
        given = given[0]
    if not isinstance(given, dict) or depth > DEEPEST:
        return
    if isinstance(given.get("error"), str) and not object_in(given["error"]):
        given = {"message": given["error"], **given}
    yield given
    choices = given.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        yield from wrapped(choices[0].get("error"), depth + 1)
    for name in (*WRAPPED_IN, "message"):
        inside = given.get(name)
        if name in PLAIN_TOO and isinstance(inside, str) and inside.strip() and object_in(inside) is None:
            inside = {"message": title_of(inside) or inside}
        if isinstance(inside, (dict, list, str)):
            yield from wrapped(inside, depth + 1)


def object_in(text: str) -> Any:
    """The object inside a text, as JSON or as Python prints it; None where there is none."""
    start = text.find("{")
    if start < 0 or len(text) > 4 * LONGEST_BODY:
        return None
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return python_object(text, start)


def python_object(text: str, start: int) -> Any:
    """The longest object that begins here as Python prints one; a gateway may add its own sentence after it."""
    end = len(text)
    for _ in range(MOST_ENDS):
        end = text.rfind("}", start, end)
        if end < 0:
            return None
        try:
            return ast.literal_eval(text[start : end + 1])
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


def sentence_in(chain: Iterable[Mapping[str, Any]]) -> str:
    """The innermost sentence that says something: a text without an object in it, and not a gateway's general word."""
    found = [sentence for one in chain if (sentence := sentence_of(one))]
    telling = [one for one in found if not one.lower().strip(" .").startswith(SAYS_NOTHING)]
    return (telling or found or [""])[-1]


def sentence_of(error: Mapping[str, Any]) -> str:
    for name in SENTENCES:
        message = error.get(name)
        if isinstance(message, list) and message:
            return "; ".join(fault_at(fault) for fault in message)
        if name == "msg" and "loc" in error:
            return fault_at(error)
        if isinstance(message, str) and message.strip():
            return before_object(message)
    return ""


def before_object(message: str) -> str:
    """A sentence without the object that it wraps, which is read for itself."""
    inside = object_in(message)
    if not isinstance(inside, dict) or not ABOUT_AN_ERROR & inside.keys():
        return message.strip()
    return message[: message.find("{")].strip().removesuffix("-").strip()


def fault_at(fault: Any) -> str:
    """FastAPI gives a list of places and what is wrong there."""
    if not isinstance(fault, Mapping):
        return str(fault)
    place = fault.get("loc")
    last = place[-1] if isinstance(place, (list, tuple)) and place else ""
    return f"{last}: {fault.get('msg', '')}"


# ---- text ------------------------------------------------------------------------------------


def title_of(text: str) -> str:
    """The title of a web page, which is all that it says; "" where the text is none."""
    found = TITLE.search(text[:LONGEST_BODY]) if text.lstrip()[:1] == "<" else None
    return " ".join(found[1].split()) if found else ""


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
