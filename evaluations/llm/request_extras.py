"""Headers, query parameters and body fields that an endpoint or a judge adds to every request.

A value of the form ``$NAME`` is the environment variable of that name where the worker runs, so that no secret is
stored: ``$NAME`` alone, or after one word, as in ``Bearer $JUDGEWEB_KEY_GATEWAY``.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Final

from evaluations.domain.errors import InputRefused
from evaluations.domain.json_values import JsonDict, JsonMapping
from evaluations.domain.secrets import is_probable_key, is_secret_name
from evaluations.llm.exchange import Server
from evaluations.net.addresses import KEY_VARIABLE

ExtrasInput = str | JsonMapping

MAX_EXTRA_LINES: Final = 30
MAX_NAME_LENGTH: Final = 100
MAX_VALUE_LENGTH: Final = 1_000
MAX_BODY_LENGTH: Final = 10_000
MAX_BODY_DEPTH: Final = 20
VARIABLE: Final = re.compile(r"((?:[A-Za-z][A-Za-z0-9]* )?)\$(\S+)")
VARIABLE_IN_BODY: Final = re.compile(r"()\$([A-Z][A-Z0-9_]*)")
HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
PRINTABLE_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
KEY_REASON: Final = "the endpoint sends its key itself. Name the key's environment variable in the endpoint's settings."
FRAMING_REASON: Final = "it is written for each request."
SETTING_REASON: Final = "it is a setting of the judge."
PROMPT_REASON: Final = "the prompt is made from the rubric."
SHAPE_REASON: Final = "the judge's output format decides it."
ONE_REPLY_REASON: Final = "one whole reply is read for each request."
TOOLS_REASON: Final = "judges use no tools."
RESERVED_HEADERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("authorization", "api-key", "x-api-key", "x-goog-api-key"), KEY_REASON),
    **dict.fromkeys(("accept", "accept-encoding", "connection", "content-encoding", "content-length"), FRAMING_REASON),
    **dict.fromkeys(("content-type", "expect", "host", "te", "trailer", "transfer-encoding"), FRAMING_REASON),
    "upgrade": FRAMING_REASON,
}
RESERVED_QUERY: Final[Mapping[str, str]] = dict.fromkeys(("key", "api-key", "api_key", "access_token"), KEY_REASON)
RESERVED_BODY: Final[Mapping[str, str]] = {
    **dict.fromkeys(("model", "max_tokens", "max_completion_tokens", "max_output_tokens"), SETTING_REASON),
    **dict.fromkeys(("temperature", "seed", "logprobs", "top_logprobs", "reasoning_effort"), SETTING_REASON),
    **dict.fromkeys(("messages", "input", "system", "instructions", "prompt", "contents"), PROMPT_REASON),
    **dict.fromkeys(("response_format", "text", "format", "output_format", "output_config"), SHAPE_REASON),
    **dict.fromkeys(("n", "best_of", "stream", "stream_options", "background"), ONE_REPLY_REASON),
    **dict.fromkeys(("tools", "tool_choice", "functions", "function_call"), TOOLS_REASON),
}
# The same settings by Ollama's names, inside its options.
RESERVED_OPTIONS: Final[Mapping[str, str]] = dict.fromkeys(("num_predict", "temperature", "seed"), SETTING_REASON)
# Fields that change what a token costs: endpoints with them need prices of their own.
SEPARATELY_PRICED_FIELDS: Final = ("service_tier", "speed", "inference_geo")


def check_extra_headers(extras: ExtrasInput) -> dict[str, str]:
    """Name → value, from lines ``Name: value`` or a mapping. InputRefused names the first fault, never a value."""
    headers = check_extra_pairs(extras, "Extra headers", RESERVED_HEADERS)
    for name in headers:
        if not HEADER_NAME.fullmatch(name):
            raise InputRefused("Extra headers: a header's name has letters, digits and hyphens only.")
    return headers


def check_extra_query(extras: ExtrasInput) -> dict[str, str]:
    """Name → value, from lines ``name: value`` or a mapping. InputRefused names the first fault, never a value."""
    return check_extra_pairs(extras, "Extra query parameters", RESERVED_QUERY)


def check_extra_body(extras: ExtrasInput) -> JsonDict:
    """The fields of a JSON object. InputRefused names the first fault, never a value."""
    fields = parse_json_body(extras) if isinstance(extras, str) else dict(extras)
    for name in fields:
        refuse_reserved_name(name, "Extra body fields", RESERVED_BODY)
    for name in fields["options"] if isinstance(fields.get("options"), Mapping) else ():
        refuse_reserved_name(name, "Extra body fields, options", RESERVED_OPTIONS)
    texts = list(nested_texts(fields))
    if len(json.dumps(fields, ensure_ascii=False)) > MAX_BODY_LENGTH:
        raise InputRefused(f"Extra body fields: use at most {MAX_BODY_LENGTH:,} characters.")
    for name, text in texts:
        if match := VARIABLE_IN_BODY.fullmatch(text):
            refuse_extra_variable(match[2], "Extra body fields")
        elif is_probable_key(text) or is_secret_name(name):
            raise InputRefused(
                "Extra body fields: a value may be a key. Keys belong in an environment variable: write its name, "
                "such as $JUDGEWEB_KEY_GATEWAY, in place of the value."
            )
    return fields


def check_extra_pairs(extras: ExtrasInput, kind: str, reserved: Mapping[str, str]) -> dict[str, str]:
    pairs = list(parse_extra_lines(extras, kind) if isinstance(extras, str) else extras.items())
    if len(pairs) > MAX_EXTRA_LINES:
        raise InputRefused(f"{kind}: use at most {MAX_EXTRA_LINES} lines.")
    names = [name.lower() for name, _ in pairs]
    if len(set(names)) < len(names):
        raise InputRefused(f"{kind}: use each name once.")
    for name, value in pairs:
        if not (PRINTABLE_VALUE.fullmatch(name) and len(name) <= MAX_NAME_LENGTH) or is_probable_key(name):
            raise InputRefused(f"{kind}: a name has 1 to {MAX_NAME_LENGTH} printable ASCII characters and is no key.")
        refuse_reserved_name(name, kind, reserved)
        refuse_extra_value(name, value, kind)
    return dict(pairs)


def parse_extra_lines(text: str, kind: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not (colon and name.strip() and value.strip()):
            raise InputRefused(f"{kind}, line {number}: write a name, a colon and a value, as in “X-Title: judgeweb”.")
        yield name.strip(), value.strip()


def refuse_reserved_name(name: str, kind: str, reserved: Mapping[str, str]) -> None:
    if reason := reserved.get(name.lower()):
        raise InputRefused(f"{kind}: leave out “{name.lower()}”, {reason}")


def refuse_extra_value(name: str, value: object, kind: str) -> None:
    if not isinstance(value, str) or not PRINTABLE_VALUE.fullmatch(value) or len(value) > MAX_VALUE_LENGTH:
        raise InputRefused(f"{kind}, “{name}”: the value has 1 to {MAX_VALUE_LENGTH:,} printable ASCII characters.")
    if match := VARIABLE.fullmatch(value):
        refuse_extra_variable(match[2], kind)
    elif is_probable_key(value) or is_secret_name(name):
        raise InputRefused(
            f"{kind}, “{name}”: the value may be a key. Keys belong in an environment variable: write its name, such "
            "as $JUDGEWEB_KEY_GATEWAY, in place of the value."
        )


def refuse_extra_variable(name: str, kind: str) -> None:
    if not KEY_VARIABLE.fullmatch(name):
        raise InputRefused(
            f"{kind}: the environment variable after $ must end in _API_KEY or start with JUDGEWEB_KEY_, in capital "
            "letters."
        )


def parse_json_body(text: str) -> JsonDict:
    if not text.strip():
        return {}
    try:
        fields = json.loads(text, parse_constant=refuse_extra_json_constant, object_pairs_hook=refuse_repeated_members)
    except json.JSONDecodeError as error:
        raise InputRefused(
            f"Extra body fields: this is not JSON, see line {error.lineno}, column {error.colno}."
        ) from None
    except RecursionError:
        raise InputRefused(f"Extra body fields: nest at most {MAX_BODY_DEPTH} levels.") from None
    if not isinstance(fields, dict):
        raise InputRefused('Extra body fields: write a JSON object, such as {"top_p": 0.9}.')
    return fields


def refuse_extra_json_constant(_: str) -> None:
    raise InputRefused("Extra body fields: NaN and Infinity are not JSON.")


def refuse_repeated_members(pairs: list[tuple[str, object]]) -> JsonDict:
    if len(dict(pairs)) < len(pairs):
        raise InputRefused("Extra body fields: use each name once in an object.")
    return dict(pairs)


def nested_texts(value: object, name: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Every text inside with the name that it is under, field names included."""
    if depth > MAX_BODY_DEPTH:
        raise InputRefused(f"Extra body fields: nest at most {MAX_BODY_DEPTH} levels.")
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for inner_name, inner in value.items():
            yield "", inner_name
            yield from nested_texts(inner, inner_name, depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        refuse_extra_json_constant("")
    elif isinstance(value, list):
        for inner in value:
            yield from nested_texts(inner, name, depth + 1)


def extras_variables(extras: JsonMapping) -> set[str]:
    """The environment variables that the extras name."""
    matches = (VARIABLE.fullmatch(text) for _, text in nested_texts(extras))
    return {match[2] for match in matches if match and KEY_VARIABLE.fullmatch(match[2])}


def list_unsent_variables(extras: JsonMapping, server: Server) -> list[str]:
    """The environment variables that a judge's extras name and its endpoint does not send already."""
    sent = extras_variables({"headers": server.headers, "query": server.query, "body": server.body})
    return sorted(extras_variables(extras) - sent - {server.key_variable})


def resolve_extras(extras: JsonMapping, environ: Mapping[str, str]) -> JsonDict:
    """The extras with each variable replaced by its value. InputRefused names a variable that is not set."""
    return {name: resolve_extras_value(value, environ) for name, value in extras.items()}


def resolve_extras_value(value: object, environ: Mapping[str, str]) -> object:
    if isinstance(value, Mapping):
        return resolve_extras(value, environ)
    if isinstance(value, list):
        return [resolve_extras_value(inner, environ) for inner in value]
    match = VARIABLE.fullmatch(value) if isinstance(value, str) else None
    if match is None or not KEY_VARIABLE.fullmatch(match[2]):
        return value
    if not (secret := environ.get(match[2], "").strip()):
        raise InputRefused(
            f"{match[2]} is not set where the worker runs: set it there and start the worker again, or take it out of "
            "the extra headers, query parameters and body fields."
        )
    return match[1] + secret
