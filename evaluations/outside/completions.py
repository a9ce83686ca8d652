"""What the body of a completion holds, in whichever way its server writes it."""

import json
from collections.abc import Mapping
from math import isnan
from typing import Any, Final

from evaluations.domain import Token, storable

TEXTS: Final = ("text", "output_text")  # the kinds of parts that are the reply
LEAST_LOGPROB: Final = -9999.0
# What servers say instead of content_filter and of length.
FILTERED: Final = ("content_filter", "safety", "recitation", "prohibited_content", "blocklist")
CUT_OFF: Final = ("max_tokens", "model_length", "model_context_window_exceeded")


def ended_by(given: str) -> str:
    """Why the model stopped, in the protocol's word where the server has one of its own for a filter or a limit."""
    word = given.partition(":")[0].strip().lower()  # some say after a colon what was found
    if word in FILTERED:
        return "content_filter"
    return "length" if word in CUT_OFF else given[:40]


def first_choice(body: Mapping[str, Any]) -> dict[str, Any]:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def part(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    inside = body.get(name)
    return inside if isinstance(inside, dict) else {}


def count(given: Any) -> int | None:
    return given if isinstance(given, int) and 0 <= given < 2**31 else None


def text_in(given: Any) -> str:
    """What stands where text should: the text parts of a list, other JSON as it is written, nothing as nothing.

    A part of another kind, such as what the model thought, is not text although it holds some.
    """
    if given is None:
        return ""
    if isinstance(given, list) and given and all(isinstance(one, dict) for one in given):
        texts = [one.get("text") for one in given if one.get("type", "text") in TEXTS and not one.get("thought")]
        given = "".join(text for text in texts if isinstance(text, str))
    return storable(given if isinstance(given, str) else json.dumps(given))


def tokens_in(choice: Mapping[str, Any]) -> tuple[Token, ...]:
    """The reply's tokens with their probabilities; none where the server sent none, or not of this form."""
    given = part(choice, "logprobs").get("content")
    try:
        return tuple(token_from(one) for one in given or ())
    except (AttributeError, KeyError, TypeError, ValueError):
        return ()


def token_from(given: Mapping[str, Any]) -> Token:
    likeliest = ((bytes_of(other), logprob_in(other)) for other in given.get("top_logprobs") or ())
    return Token(bytes_of(given), logprob_in(given), tuple(likeliest))


def bytes_of(token: Mapping[str, Any]) -> bytes:
    """A token may be half a character: its bytes tell, its text does not."""
    given = token.get("bytes")
    return bytes(given) if isinstance(given, list) else str(token["token"]).encode(errors="replace")


def logprob_in(token: Mapping[str, Any]) -> float:
    """At most certain, and at least as likely as what no database would take for a number: minus infinity."""
    logprob = float(token["logprob"])
    if isnan(logprob):
        raise ValueError
    return min(max(logprob, LEAST_LOGPROB), 0.0)
