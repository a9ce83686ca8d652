"""A strict JSON parser that refuses what no column can hold."""

import json
from itertools import chain
from typing import cast

from django.http import HttpRequest
from ninja.parser import Parser

from evaluations.api.problems import Problem
from evaluations.domain.json_values import JsonDict


class StrictParser(Parser):
    """Refuses NaN, infinity, NUL and lone surrogates, which no database can store."""

    def parse_body(self, request: HttpRequest) -> dict[str, object]:
        try:
            text = request.body.decode()
            read = json.loads(text, parse_constant=refuse_nan_constant)
        except (ValueError, RecursionError) as error:
            raise UnreadableRequest(f"The body is not JSON: {str(error)[:200]}. Nothing was done.") from error
        if "\\u" in text or "\x00" in text:
            refuse_unstorable_texts(read)
        return cast("JsonDict", read)


class UnreadableRequest(Exception):
    pass


def refuse_nan_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def refuse_unstorable_texts(value: object) -> None:
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            refuse_unstorable_text(part)
        elif isinstance(part, dict):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, list):
            waiting += part


def refuse_unstorable_text(text: str) -> None:
    if "\x00" in text:
        raise UnreadableRequest("A text contains a NUL character. Nothing was done.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnreadableRequest("A text contains half of a character (a lone surrogate). Nothing was done.") from None


def refuse_unstorable_address(request: HttpRequest) -> None:
    """Refuse an address with characters that no database can store."""
    try:
        for text in (request.path, *chain(*([name, *values] for name, values in request.GET.lists()))):
            refuse_unstorable_text(text)
    except UnreadableRequest as unreadable:
        raise Problem("malformed", str(unreadable)) from unreadable
