"""What may be added to requests: checked before it is stored, filled in before it is sent, no secret repeated."""

import json

import pytest

from evaluations.domain.errors import InputRefused
from evaluations.domain.secrets import can_show_lines
from evaluations.llm.request_extras import (
    check_extra_body,
    check_extra_headers,
    check_extra_query,
    extras_variables,
    resolve_extras,
)

KEY = "sk-proj-abcdefghij1234567890abcdefghij"


def test_lines_and_mappings_are_read_alike() -> None:
    text = "X-Title: judgeweb\n\n HTTP-Referer :  https://example.org/a:b  \nHelicone-Auth: Bearer $JUDGEWEB_KEY_H"
    read = {
        "X-Title": "judgeweb",
        "HTTP-Referer": "https://example.org/a:b",
        "Helicone-Auth": "Bearer $JUDGEWEB_KEY_H",
    }
    assert check_extra_headers(text) == check_extra_headers(read) == read
    assert check_extra_query("api-version: 2025-04-01-preview") == {"api-version": "2025-04-01-preview"}
    assert check_extra_body('{"top_p": 0.9, "options": {"num_ctx": 8192}, "stop": ["$5"]}')["options"] == {
        "num_ctx": 8192
    }
    assert check_extra_headers("") == check_extra_query(" \n") == check_extra_body("  ") == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("X-Title", "Extra headers, line 1: write a name, a colon and a value"),
        ("A: 1\nX-Title:", "line 2"),
        ("A: 1\na: 2", "use each name once"),
        ("Authorization: $OPENAI_API_KEY", "leave out “authorization”, the endpoint sends its key itself"),
        ("x-api-key: $OPENAI_API_KEY", "leave out “x-api-key”"),
        ("Content-Type: text/plain", "leave out “content-type”, it is written for each request"),
        ("X Title: judgeweb", "letters, digits and hyphens"),
        ("X-Title: café", "printable ASCII"),
        (f"X-Custom: {KEY}", "“X-Custom”: the value may be a key"),
        (f"X-Custom: Bearer {KEY}", "may be a key"),
        ("X-Gateway-Token: hunter2", "“X-Gateway-Token”: the value may be a key"),
        (f"{KEY}: 1", "is no key"),
        ("X-Path: $PATH", "must end in _API_KEY"),
        ("X-Path: Bearer $HOME", "must end in _API_KEY"),
        ("\n".join(f"X-{number}: 1" for number in range(31)), "at most 30 lines"),
    ],
)
def test_a_header_that_may_not_be_is_refused_and_no_value_repeated(text: str, words: str) -> None:
    with pytest.raises(InputRefused) as refused:
        check_extra_headers(text)
    assert words in str(refused.value)
    for value in (KEY, "hunter2", "$PATH", "$HOME"):
        assert value not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("top_p: 0.9", "this is not JSON, see line 1, column 1"),
        ("[1]", "write a JSON object"),
        ('{"a": NaN}', "NaN and Infinity"),
        ('{"a": 1, "a": 2}', "use each name once"),
        ('{"model": "x"}', "leave out “model”, it is a setting of the judge"),
        ('{"options": {"num_ctx": 9000, "num_predict": 9}}', "options: leave out “num_predict”, it is a setting"),
        ('{"messages": []}', "leave out “messages”, the prompt is made from the rubric"),
        ('{"response_format": {}}', "the judge's output format decides it"),
        ('{"max_tokens": 5}', "leave out “max_tokens”"),
        ('{"temperature": 1}', "leave out “temperature”"),
        ('{"n": 2}', "leave out “n”, one whole reply is read"),
        ('{"tools": []}', "judges use no tools"),
        (json.dumps({"a": {"b": [KEY]}}), "a value may be a key"),
        ('{"api_key": "hunter2"}', "a value may be a key"),
        ('{"a": "$HOME"}', "must end in _API_KEY"),
        ('{"a": ' * 25 + "1" + "}" * 25, "nest at most 20"),
        ('{"a": ' * 5000 + "1" + "}" * 5000, "nest at most 20"),
        (json.dumps({"a": "b c " * 3000}), "at most 10,000 characters"),
    ],
)
def test_a_body_field_that_may_not_be_is_refused_and_no_value_repeated(text: str, words: str) -> None:
    with pytest.raises(InputRefused) as refused:
        check_extra_body(text)
    assert words in str(refused.value)
    for value in (KEY, "hunter2"):
        assert value not in str(refused.value)


def test_a_number_that_is_not_json_is_refused_in_an_object_too() -> None:
    with pytest.raises(InputRefused, match="NaN and Infinity"):
        check_extra_body({"a": [float("inf")]})


def test_variables_are_filled_in_where_they_are_a_whole_value() -> None:
    environ = {"JUDGEWEB_KEY_H": "one", "OTHER_API_KEY": "two", "HOME": "/home"}
    extras = {"auth": "Bearer $JUDGEWEB_KEY_H", "a": [{"b": "$OTHER_API_KEY"}], "c": "costs $5", "d": "$HOME", "e": 1}
    assert resolve_extras(extras, environ) == {
        "auth": "Bearer one",
        "a": [{"b": "two"}],
        "c": "costs $5",
        "d": "$HOME",
        "e": 1,
    }
    assert extras_variables(extras) == {"JUDGEWEB_KEY_H", "OTHER_API_KEY"}
    with pytest.raises(InputRefused, match="OTHER_API_KEY is not set where the worker runs: set it there"):
        resolve_extras(extras, {"JUDGEWEB_KEY_H": "one", "OTHER_API_KEY": ""})


@pytest.mark.parametrize(
    ("text", "may_show"),
    [
        ("X-Title: judgeweb\nX-Token: $GATEWAY_API_KEY", True),
        ('{"top_p": 0.9}', True),
        (f"X-Title: {KEY}", False),
        ("A: 1\nX-Token: hunter2", False),
        ('{"api_key": "hunter2"}', False),
    ],
)
def test_a_text_that_may_hold_a_secret_is_not_shown_again(text: str, may_show: bool) -> None:
    assert can_show_lines(text) is may_show
