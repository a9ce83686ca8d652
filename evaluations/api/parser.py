"""A strict JSON parser that refuses what no column can hold."""

import json
from typing import cast

from django.http import HttpRequest
from ninja.parser import Parser

from evaluations.api.problems import Problem
from evaluations.domain.json_values import JsonDict


class StrictParser(Parser):
    """No NaN, no infinity, no NUL and no half of a character: databases take none of these."""

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
    raise ValueError(f"{name} is no number")


def refuse_unstorable_texts(value: object) -> None:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            refuse_unstorable_text(one)
        elif isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            waiting += one


def refuse_unstorable_text(text: str) -> None:
    if "\x00" in text:
        raise UnreadableRequest("A text holds the character NUL, which no text can hold. Nothing was done.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnreadableRequest("A text holds half of a character (a lone surrogate). Nothing was done.") from None


def refuse_unstorable_address(request: HttpRequest) -> None:
    """Refuse an address with characters that no database can store."""
    try:
        for text in (request.path, *request.GET.keys(), *(one for each in request.GET.lists() for one in each[1])):
            refuse_unstorable_text(text)
    except UnreadableRequest as unreadable:
        raise Problem("malformed", str(unreadable)) from unreadable
