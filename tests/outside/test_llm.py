"""Requests over real HTTP: what comes back, and what each fault tells the caller to do."""

import asyncio
import socket
from typing import Any

import pytest

from evaluations.domain import CallState, InputRefused
from evaluations.outside.addresses import checked_base_url, checked_key_variable
from evaluations.outside.llm import (
    Answer,
    FormatRefused,
    LLMError,
    RecordOnCall,
    Request,
    Retry,
    Server,
    StopRun,
    answer_from,
    connected,
    retry_after,
)
from tests.llm_server import LLMServer, Script, Told, failing, good, hanging, llm_server, refusing, truncated, web_page

REQUEST = Request([{"role": "user", "content": "Which is better?"}], "test-model", schema={"type": "object"})
PLAIN = Request([{"role": "user", "content": "Which is better?"}], "test-model")


def ask(base_url: str, request: Request = PLAIN, **server: Any) -> Answer:
    async def main() -> Answer:
        async with connected(Server(base_url, **server)) as asking:
            return await asking(request)

    return asyncio.run(main())


def answer_to(script: Script, request: Request = PLAIN, **server: Any) -> Answer:
    with llm_server(script) as running:
        return ask(running.base_url, request, **server)


def error_from(script: Script, request: Request = PLAIN, **server: Any) -> LLMError:
    with pytest.raises(LLMError) as raised:
        answer_to(script, request, **server)
    return raised.value


def sent_to(script: Script, request: Request, **server: Any) -> LLMServer:
    with llm_server(script) as running:
        ask(running.base_url, request, **server)
    return running


def plain(text: str) -> Script:
    return lambda question: Told(text)


def test_an_answer_brings_its_text_why_it_ended_and_what_it_cost() -> None:
    answer = answer_to(plain("A is better"))
    assert (answer.text, answer.finish_reason, answer.refusal, answer.http_status) == ("A is better", "stop", "", 200)
    assert (answer.model, answer.tokens_in, answer.tokens_out, answer.tokens_cached) == ("test-model", 4, 20, None)


def test_only_what_the_judge_sets_is_sent_and_a_schema_asks_for_strict_output() -> None:
    body = sent_to(plain(""), PLAIN).questions[0].body
    assert body == {"model": "test-model", "messages": [{"role": "user", "content": "Which is better?"}]}
    request = Request(PLAIN.messages, "m", temperature=0.0, max_tokens=9, seed=3, schema={"type": "object"})
    body = sent_to(plain(""), request).questions[0].body
    assert (body["temperature"], body["max_tokens"], body["seed"]) == (0.0, 9, 3)
    assert body["response_format"]["json_schema"] == {"name": "verdict", "strict": True, "schema": {"type": "object"}}


def test_the_key_comes_from_the_named_variable_and_a_keyless_server_gets_a_dummy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JUDGEWEB_KEY_TEST", " secret-1 \n")
    keyed = sent_to(plain(""), PLAIN, key_variable="JUDGEWEB_KEY_TEST").questions[0]
    assert keyed.headers["Authorization"] == "Bearer secret-1"
    assert sent_to(plain(""), PLAIN).questions[0].headers["Authorization"] == "Bearer no-key"


@pytest.mark.parametrize("variable", ["JUDGEWEB_KEY_ABSENT", "HOME", "JUDGEWEB_SECRET_KEY"])
def test_a_key_that_is_not_there_or_not_a_key_stops_the_run_before_anything_is_sent(variable: str) -> None:
    with llm_server() as running:
        with pytest.raises(StopRun):
            ask(running.base_url, key_variable=variable)
        assert not running.questions


def test_refusal_and_truncation_are_answers_for_the_reader() -> None:
    assert answer_to(refusing).refusal == "I will not compare these."
    assert answer_to(truncated).finish_reason == "length"


@pytest.mark.parametrize(
    ("script", "error", "words"),
    [
        (failing(401), StopRun, "wants a key (401), and this endpoint names none"),
        (failing(402), StopRun, "no credit"),
        (failing(429, code="insufficient_quota"), StopRun, "no credit"),
        (failing(404, "The model `test-model` does not exist", code="model_not_found"), StopRun, "know the model"),
        (failing(404, "Not Found"), StopRun, "It usually ends in /v1"),
        (failing(405), StopRun, "It usually ends in /v1"),
        (failing(400, "Unsupported value", param="temperature"), StopRun, "temperature"),
        (web_page, StopRun, "something other than JSON"),
        (failing(400, "maximum context length is 8192 tokens"), RecordOnCall, "too long"),
        (failing(413), RecordOnCall, "too long"),
        (failing(400, "blocked", code="content_filter"), RecordOnCall, "filter"),
        (failing(400, "messages[0] is odd"), RecordOnCall, "messages[0] is odd"),
        (failing(418), RecordOnCall, "418"),
        (failing(408), Retry, "408"),
        (failing(409), Retry, "409"),
        (failing(429), Retry, "429"),
        (failing(500), Retry, "500"),
        (failing(503), Retry, "503"),
    ],
)
def test_every_fault_says_what_to_do(script: Script, error: type[LLMError], words: str) -> None:
    told = error_from(script)
    assert type(told) is error
    assert words in str(told)


def test_what_a_call_is_recorded_as() -> None:
    states = [
        error_from(failing(400, said, code=code)).state  # type: ignore[attr-defined]
        for said, code in (("prompt is too long", None), ("blocked", "content_filter"), ("odd", None))
    ]
    assert states == [CallState.TOO_LONG, CallState.REFUSED, CallState.FAILED]


def test_a_wait_that_the_server_names_is_passed_on_and_only_429_means_busy() -> None:
    busy = error_from(failing(429, retry_after=7))
    down = error_from(failing(503, retry_after="Wed, 21 Oct 2015 07:28:00 GMT"))
    assert isinstance(busy, Retry)
    assert isinstance(down, Retry)
    assert (busy.after, busy.busy, busy.http_status) == (7.0, True, 429)
    assert (down.after, down.busy) == (0.0, False)
    assert [retry_after({"retry-after": given}) for given in ("", "soon", "nan", "-3", "1e9")] == [None] * 4 + [3600.0]


def test_structured_output_that_is_refused_is_told_apart_from_other_bad_requests() -> None:
    refused = failing(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported")
    assert isinstance(error_from(refused, REQUEST), FormatRefused)
    assert isinstance(error_from(refused, PLAIN), RecordOnCall)


def test_a_server_that_hangs_is_left_after_the_timeout() -> None:
    told = error_from(hanging, timeout_seconds=0.2)
    assert isinstance(told, Retry)
    assert not told.unreachable
    assert str(told) == "No answer within 0.2 seconds."


def test_an_address_where_nobody_listens_is_unreachable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Retry) as raised:
        ask(f"http://127.0.0.1:{port}/v1")
    assert raised.value.unreachable


def test_the_key_is_never_kept_with_what_the_server_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGEWEB_KEY_TEST", "secret-1")
    told = error_from(failing(500, "bad token secret-1"), key_variable="JUDGEWEB_KEY_TEST")
    assert "secret-1" not in str(told) + told.body


def test_an_answer_without_a_choice_is_asked_again_and_odd_shapes_do_no_harm() -> None:
    for text in ("{}", '{"choices": []}', '{"choices": [{"message": null}]}', '{"choices": {"a": 1}}'):
        with pytest.raises(Retry):
            answer_from(200, text, Server("http://x/v1"))
    odd = answer_from(200, '{"choices": [{"message": {"content": ["a"]}}], "usage": "free"}', Server("http://x/v1"))
    assert (odd.text, odd.tokens_in) == ('["a"]', None)


@pytest.mark.parametrize("given", ["", "example.org/v1", "ftp://example.org", "http://", "http://[::1", "file:///etc"])
def test_an_address_must_be_plain_http(given: str) -> None:
    with pytest.raises(InputRefused):
        checked_base_url(given)


@pytest.mark.parametrize("given", ["http://me:pw@example.org", "https://example.org/v1?key=1", "http://x/#a"])
def test_an_address_holds_no_secrets(given: str) -> None:
    with pytest.raises(InputRefused):
        checked_base_url(given)


def test_an_address_loses_its_last_slash() -> None:
    assert checked_base_url(" http://127.0.0.1:11434/v1/ ") == "http://127.0.0.1:11434/v1"


def test_only_names_of_keys_may_name_a_key() -> None:
    assert [checked_key_variable(name) for name in ("", "OPENAI_API_KEY", "JUDGEWEB_KEY_LOCAL")]
    for name in ("HOME", "DATABASE_URL", "JUDGEWEB_SECRET_KEY", "openai_api_key", "API_KEY", "X_API_KEY\nY"):
        with pytest.raises(InputRefused):
            checked_key_variable(name)


def test_a_script_may_answer_differently_the_second_time() -> None:
    from tests.llm_server import first

    with llm_server(first([failing(500)], good)) as running:
        with pytest.raises(Retry):
            ask(running.base_url)
        assert ask(running.base_url).finish_reason == "stop"
        assert list(running.asked.values()) == [2]
