"""Requests over real HTTP: what comes back, and what each fault tells the caller to do."""

import asyncio
import json
import math
import socket
from dataclasses import replace
from typing import Any

import pytest

from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import CallState, ReplyShape, RequestShape
from evaluations.domain.texts import Message
from evaluations.llm.client import connect_llm, parse_answer
from evaluations.llm.error_classifier import parse_retry_after
from evaluations.llm.exchange import (
    Answer,
    FormatRefused,
    LLMError,
    RecordOnCall,
    Request,
    Retry,
    Server,
    SettingRefused,
    StopRun,
)
from evaluations.net.addresses import check_base_url, check_key_variable
from tests.helpers.llm_server import (
    LLMServer,
    Script,
    ServerAnswer,
    answer_truncated,
    answer_web_page,
    answer_well,
    answer_with_logprobs,
    drop_connection,
    fail_with,
    hang,
    llm_server,
    refuse_answer,
)

REQUEST = Request(
    [{"role": "user", "content": "Which is better?"}],
    "test-model",
    temperature=0.0,
    seed=1,
    shape=ReplyShape.JSON_SCHEMA,
    schema={"type": "object"},
)
PLAIN = Request([{"role": "user", "content": "Which is better?"}], "test-model")


def ask(base_url: str, request: Request = PLAIN, **server: Any) -> Answer:
    async def main() -> Answer:
        async with connect_llm(Server(base_url, **server)) as asking:
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
    return lambda question: ServerAnswer(text)


def test_an_answer_brings_its_text_why_it_ended_and_what_it_cost() -> None:
    answer = answer_to(plain("A is better"))
    assert (answer.text, answer.finish_reason, answer.refusal, answer.http_status) == ("A is better", "stop", "", 200)
    assert (answer.model, answer.tokens_in, answer.tokens_out, answer.usage.tokens_cached) == (
        "test-model",
        4,
        20,
        None,
    )


def test_only_what_the_judge_sets_is_sent_and_a_schema_asks_for_strict_output() -> None:
    body = sent_to(plain(""), PLAIN).questions[0].body
    assert body == {"model": "test-model", "messages": [{"role": "user", "content": "Which is better?"}]}
    body = sent_to(plain(""), replace(REQUEST, max_tokens=9, seed=3)).questions[0].body
    assert (body["temperature"], body["max_tokens"], body["seed"]) == (0.0, 9, 3)
    assert body["response_format"]["json_schema"] == {"name": "verdict", "strict": True, "schema": {"type": "object"}}
    body = sent_to(plain(""), replace(REQUEST, shape=ReplyShape.JSON_OBJECT)).questions[0].body
    assert body["response_format"] == {"type": "json_object"}


def test_a_reasoning_effort_brings_the_name_of_the_limit_that_reasoning_models_know() -> None:
    body = sent_to(plain(""), replace(PLAIN, max_tokens=9, reasoning_effort="low")).questions[0].body
    assert (body["reasoning_effort"], body["max_completion_tokens"]) == ("low", 9)
    assert "max_tokens" not in body


def test_extras_are_sent_with_their_variables_filled_in_and_a_judges_override_its_endpoints(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JUDGEWEB_KEY_GATEWAY", " secret-2 \n")
    monkeypatch.setenv("HOME", "/home/someone")
    of_endpoint: dict[str, Any] = {
        "headers": {"X-Gateway-Auth": "Bearer $JUDGEWEB_KEY_GATEWAY", "X-Title": "endpoint", "X-Path": "$HOME"},
        "body": {"top_p": 0.9, "metadata": {"key": "$JUDGEWEB_KEY_GATEWAY"}},
    }
    request = replace(PLAIN, headers={"X-Title": "judge"}, body={"top_p": 0.5})
    asked = sent_to(plain(""), request, **of_endpoint).questions[0]
    headers = {name.lower(): value for name, value in asked.headers.items()}
    assert headers["x-gateway-auth"] == "Bearer secret-2"
    assert (headers["x-title"], headers["x-path"]) == ("judge", "$HOME")
    assert (asked.body["top_p"], asked.body["metadata"]) == (0.5, {"key": "secret-2"})

    monkeypatch.delenv("JUDGEWEB_KEY_GATEWAY")
    told = error_from(plain(""), PLAIN, **of_endpoint)
    assert isinstance(told, StopRun)
    assert str(told).startswith("JUDGEWEB_KEY_GATEWAY is not set where the worker runs")


def test_a_judge_names_no_secret_that_its_endpoint_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "secret-3")
    in_body = replace(PLAIN, body={"user": "$OTHER_API_KEY"})
    for request in (replace(PLAIN, headers={"X-Mine": "$OTHER_API_KEY"}), in_body):
        told = error_from(plain(""), request)
        assert isinstance(told, StopRun)
        assert "name OTHER_API_KEY, which its endpoint is not sent" in str(told)
    asked = sent_to(plain(""), in_body, headers={"X-Its": "$OTHER_API_KEY"}).questions[0]
    assert asked.body["user"] == "secret-3"


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
    assert answer_to(refuse_answer).refusal == "I will not compare these."
    assert answer_to(answer_truncated).finish_reason == "length"


@pytest.mark.parametrize(
    ("script", "error", "words"),
    [
        (fail_with(401), StopRun, "requires an API key (401): add one to the endpoint"),
        (fail_with(402), StopRun, "no credit"),
        (fail_with(429, code="insufficient_quota"), StopRun, "no credit"),
        (fail_with(404, "The model `test-model` does not exist", code="model_not_found"), StopRun, "know the model"),
        (fail_with(404, "Not Found"), StopRun, "It usually ends in /v1"),
        (fail_with(405), StopRun, "It usually ends in /v1"),
        (answer_web_page, StopRun, "something other than JSON"),
        (fail_with(400, "maximum context length is 8192 tokens"), RecordOnCall, "too long"),
        (fail_with(413), RecordOnCall, "too long"),
        (fail_with(400, "blocked", code="content_filter"), RecordOnCall, "filter"),
        (fail_with(400, "messages[0] is odd"), RecordOnCall, "messages[0] is odd"),
        (fail_with(418), RecordOnCall, "418"),
        (fail_with(408), Retry, "408"),
        (fail_with(409), Retry, "409"),
        (fail_with(429), Retry, "429"),
        (fail_with(500), Retry, "500"),
        (fail_with(503), Retry, "503"),
    ],
)
def test_every_fault_says_what_to_do(script: Script, error: type[LLMError], words: str) -> None:
    told = error_from(script)
    assert type(told) is error
    assert words in str(told)


def test_what_a_call_is_recorded_as() -> None:
    states = [
        error_from(fail_with(400, said, code=code)).state  # type: ignore[attr-defined]
        for said, code in (("prompt is too long", None), ("blocked", "content_filter"), ("odd", None))
    ]
    assert states == [CallState.TOO_LONG, CallState.REFUSED, CallState.FAILED]


def test_an_overloaded_model_is_asked_again_whatever_the_status() -> None:
    assert isinstance(error_from(fail_with(400, "The model is overloaded, try again later")), Retry)


def test_a_wait_that_the_server_names_is_passed_on_and_only_429_means_busy() -> None:
    busy = error_from(fail_with(429, retry_after=7))
    down = error_from(fail_with(503, retry_after="Wed, 21 Oct 2015 07:28:00 GMT"))
    assert isinstance(busy, Retry)
    assert isinstance(down, Retry)
    assert (busy.after, busy.busy, busy.http_status) == (7.0, True, 429)
    assert (down.after, down.busy) == (0.0, False)
    assert [parse_retry_after({"retry-after": given}) for given in ("", "soon", "nan", "-3", "1e9")] == [None] * 4 + [
        3600.0
    ]


@pytest.mark.parametrize("shape", [ReplyShape.JSON_SCHEMA, ReplyShape.JSON_OBJECT])
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported"),
        (400, "This response_format type is unavailable now"),
        (400, "This model does not support response format `json_schema`"),
        (400, "JSON mode is not enabled for models/gemma-3"),
        (400, "Failed to parse grammar"),
        (422, "Structured output is not available for this model"),
        (404, "No endpoints found that can handle the requested parameters."),
    ],
)
def test_a_shape_that_is_refused_is_told_apart_from_other_bad_requests(
    status: int, words: str, shape: ReplyShape
) -> None:
    refused = fail_with(status, words)
    told = error_from(refused, replace(REQUEST, shape=shape))
    assert isinstance(told, FormatRefused)
    assert told.shape == shape
    assert not isinstance(error_from(refused, PLAIN), FormatRefused)


# Every sentence below is how one of the servers words it that people use; only the numbers are made up.
CONTEXT_ENDS = [
    (400, "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"),
    (400, "max_tokens must be at least 1, got -186."),
    (400, "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it"),
    (400, "The input token count (3475108) exceeds the maximum number of tokens allowed (1048576)."),
    (400, "prompt is too long: 205000 tokens > 200000 maximum"),
    (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"),
    (429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 36278."),
    (413, "Request too large for model `m` on tokens per minute (TPM): Limit 8000, Requested 34041"),
]


@pytest.mark.parametrize(("status", "words"), CONTEXT_ENDS)
def test_a_prompt_that_does_not_fit_is_recorded_on_its_call_however_it_is_worded(status: int, words: str) -> None:
    told = error_from(fail_with(status, words), replace(REQUEST, max_tokens=9))
    assert isinstance(told, RecordOnCall)
    assert told.state == CallState.TOO_LONG


@pytest.mark.parametrize(
    ("status", "words", "said"),
    [
        (400, "The response was filtered due to the prompt triggering a content management policy.", {}),
        (400, "Content Exists Risk", {}),
        (400, "Your prompt was flagged as potentially violating our usage policy", {"code": "invalid_prompt"}),
        (403, "Your input was flagged by a provider", {"code": 403}),
        (400, "odd", {"innererror": {"code": "ResponsibleAIPolicyViolation"}}),
    ],
)
def test_a_filter_that_refuses_the_prompt_is_a_refusal_of_this_call(
    status: int, words: str, said: dict[str, Any]
) -> None:
    told = error_from(fail_with(status, words, **said))
    assert isinstance(told, RecordOnCall)
    assert told.state == CallState.REFUSED


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (402, "Insufficient Balance"),
        (400, "Your credit balance is too low to access the API."),
        (403, "Key limit exceeded (total limit)."),
        (429, "Your account is not active, please check your billing details."),
    ],
)
def test_an_account_without_credit_stops_the_run_whatever_the_status(status: int, words: str) -> None:
    told = error_from(fail_with(status, words))
    assert isinstance(told, StopRun)
    assert "no credit left" in str(told)


@pytest.mark.parametrize(
    ("status", "words", "sentence"),
    [
        (400, "API key not valid. Please pass a valid API key.", "requires an API key (400)"),
        (403, "Country, region, or territory not supported", "It says: Country, region"),
        (400, "gpt-x is not a valid model ID", "does not know the model “test-model”"),
        (404, "No endpoints found for test-model.", "has nobody who serves “test-model” so"),
        (410, "The model has been retired", "does not know the model"),
        (401, "Your account has been flagged for violating our usage policies.", "behind the key is blocked"),
        (403, "Your account was suspended for violating our terms.", "behind the key is blocked"),
        (400, "Client sent an HTTP request to an HTTPS server.", "is the base URL right?"),
    ],
)
def test_what_no_call_can_mend_stops_the_run_whatever_the_status(status: int, words: str, sentence: str) -> None:
    told = error_from(fail_with(status, words))
    assert isinstance(told, StopRun)
    assert sentence in str(told)


@pytest.mark.parametrize(
    ("fault", "setting"),
    [
        (fail_with(400, "Unsupported value", param="temperature"), "temperature"),
        (fail_with(400, "Unsupported parameter: 'temperature' is not supported with this model."), "temperature"),
        (fail_with(400, "odd", param="seed"), "seed"),
        (fail_with(400, "Logprobs is not enabled for models/m"), "logprobs"),
        (fail_with(403, "You are not allowed to request logprobs from this model"), "logprobs"),
        (fail_with(400, "`reasoning_effort` is not supported with this model"), "reasoning_effort"),
        (fail_with(400, '"llama3" does not support thinking'), "reasoning_effort"),
        (fail_with(422, "Extra inputs are not permitted: seed"), "seed"),
    ],
)
def test_a_setting_that_the_server_does_not_take_is_told_by_its_name(fault: Script, setting: str) -> None:
    told = error_from(fault, replace(REQUEST, logprobs=True, reasoning_effort="low"))
    assert isinstance(told, SettingRefused)
    assert told.setting == setting
    assert f"does not take this judge's {setting}: " in str(told)


def test_a_limit_by_its_old_name_is_a_setting_that_may_be_written_otherwise() -> None:
    fault = fail_with(400, "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
    told = error_from(fault, replace(PLAIN, max_tokens=9))
    assert isinstance(told, SettingRefused)
    assert told.setting == "max_tokens"


@pytest.mark.parametrize(
    "words",
    ["System role not supported", "Only user and assistant roles are supported!", "Unsupported role: system"],
)
def test_a_model_without_a_system_role_says_so_and_is_sent_one_user_turn(words: str) -> None:
    messages: list[Message] = [{"role": "system", "content": "Judge."}, {"role": "user", "content": "A or B?"}]
    told = error_from(fail_with(400, words), replace(PLAIN, messages=messages))
    assert isinstance(told, SettingRefused)
    assert told.setting == "system"
    folded = replace(PLAIN, messages=messages, request_shape=RequestShape(system_folded=True))
    body = sent_to(plain(""), folded).questions[0].body
    assert body["messages"] == [{"role": "user", "content": "Judge.\n\nA or B?"}]


def test_the_faults_of_a_list_of_fields_are_read() -> None:
    body = {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}
    told = error_from(lambda question: ServerAnswer(status=422, body=body), REQUEST)
    assert isinstance(told, StopRun)
    assert "seed: Extra inputs are not permitted" in str(told)


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        ({"error": {"code": 429, "message": "slow down"}}, Retry, "429: slow down"),
        ({"error": {"code": 400, "message": "maximum context length is 8 tokens"}}, RecordOnCall, "too long"),
        ({"error": {"code": 402, "message": "Insufficient credits"}}, StopRun, "no credit"),
        ({"error": "upstream broke"}, Retry, "502: upstream broke"),
        ({"choices": [{"finish_reason": "error", "error": {"code": 503, "message": "gone"}}]}, Retry, "503: gone"),
    ],
)
def test_an_error_inside_a_200_is_the_error_that_it_names(body: Any, error: type[LLMError], words: str) -> None:
    told = error_from(lambda question: ServerAnswer(body=body))
    assert type(told) is error
    assert words in str(told)


def test_a_list_of_errors_and_a_retry_in_milliseconds_are_read() -> None:
    told = error_from(lambda question: ServerAnswer(status=400, body=[{"error": {"message": "API key not valid"}}]))
    assert isinstance(told, StopRun)
    assert parse_retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5


def test_a_filter_that_leaves_no_message_is_an_answer_for_the_reader() -> None:
    body = {"choices": [{"finish_reason": "content_filter: PROHIBITED_CONTENT"}]}
    answer = parse_answer(200, json.dumps(body), Server("http://x/v1"), PLAIN)
    assert (answer.text, answer.finish_reason) == ("", "content_filter")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("stop", "stop"),
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("SAFETY", "content_filter"),
        ("eos", "eos"),
    ],
)
def test_why_the_model_stopped_is_told_in_the_protocols_words(given: str, kept: str) -> None:
    body = {"choices": [{"message": {"content": "A"}, "finish_reason": given}]}
    assert parse_answer(200, json.dumps(body), Server("http://x/v1"), PLAIN).finish_reason == kept


def test_words_of_a_judged_text_that_is_sent_back_stop_no_run() -> None:
    """A body may repeat the prompt: only the server's own sentence says that it does not take a shape or a key."""
    text = "Explain response_format and json_schema; insufficient_quota; invalid api key; temperature is unsupported."
    told = error_from(fail_with(400, "messages[1] is odd", input=text), REQUEST)
    assert isinstance(told, RecordOnCall)
    assert told.state == CallState.FAILED


def test_logprobs_come_with_the_answer_where_they_were_asked_for() -> None:
    choices = {"type": "object", "properties": {"choice": {"enum": ["A", "B"]}}}
    request = replace(REQUEST, logprobs=True, schema=choices)
    with llm_server(answer_with_logprobs({"B": 0.25, "A": 0.75})) as running:
        (token, *_) = [token for token in ask(running.base_url, request).logprobs if token.text == b"A"]
        assert ask(running.base_url, replace(request, logprobs=False)).logprobs == ()
    assert (running.questions[0].body["logprobs"], running.questions[0].body["top_logprobs"]) == (True, 20)
    assert {text: round(math.exp(logprob), 6) for text, logprob in token.likeliest} == {b"A": 0.75, b"B": 0.25}


def test_a_logprob_is_always_a_number_that_can_be_stored() -> None:
    odd = [("A", -math.inf, None), ("\ud800", 0.3, 10**12), ("é", -1, [195])]
    content = [{"token": text, "logprob": logprob, "bytes": raw} for text, logprob, raw in odd]
    body = {"choices": [{"message": {"content": "A"}, "logprobs": {"content": content}}]}
    told = parse_answer(200, json.dumps(body), Server("http://x/v1"), replace(PLAIN, logprobs=True)).logprobs
    assert [(one.text, one.logprob) for one in told] == [(b"A", -9999.0), (b"?", 0.0), (b"\xc3", -1.0)]


def test_logprobs_of_another_form_are_none() -> None:
    nameless = {"content": [{"token": "A", "logprob": math.nan}]}
    for odd in ({"content": [{"token": "A"}]}, {"content": "A"}, {"tokens": ["A"]}, None, {"content": [7]}, nameless):
        body = {"choices": [{"message": {"content": "A"}, "logprobs": odd}]}
        answer = parse_answer(200, json.dumps(body), Server("http://x/v1"), replace(PLAIN, logprobs=True))
        assert (answer.text, answer.logprobs) == ("A", ())


def test_a_server_that_hangs_is_left_after_the_timeout() -> None:
    told = error_from(hang, timeout_seconds=0.2)
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


def test_a_connection_that_is_lost_is_asked_again() -> None:
    told = error_from(drop_connection)
    assert isinstance(told, Retry)
    assert (told.unreachable, told.busy) == (False, False)
    assert str(told).endswith(" broke.")


def test_the_key_is_never_kept_with_what_the_server_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGEWEB_KEY_TEST", "secret-1")
    told = error_from(fail_with(500, "bad token secret-1"), key_variable="JUDGEWEB_KEY_TEST")
    assert "secret-1" not in str(told) + told.body


@pytest.mark.parametrize(
    "body",
    [
        "<html>Authorization: Bearer {key}</html>",
        '{{"choices": [], "headers": "Bearer {key}"}}',
        '{{"choices": [{{"message": {{"content": "Bearer {key}',
        '{{"error": {{"code": 400, "message": "Incorrect key {start}"}}}}',
        '{{"error": {{"code": 400, "message": "Incorrect key …{end}"}}}}',
    ],
)
def test_no_answer_whatever_its_form_keeps_the_key_or_a_long_part_of_it(
    monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    key = "sk-proj-Zq8vT3xLk29PwN4mRb7YcD1e"
    monkeypatch.setenv("JUDGEWEB_KEY_TEST", key)
    sent = body.format(key=key, start=key[:20], end=key[-16:])
    told = error_from(lambda question: ServerAnswer(body=sent), key_variable="JUDGEWEB_KEY_TEST")
    assert not any(part in str(told) + told.body for part in (key[:12], key[-12:]))


def test_a_reply_that_repeats_the_key_is_kept_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGEWEB_KEY_TEST", "sk-proj-Zq8vT3xLk29PwN4mRb7YcD1e")
    answer = answer_to(plain("You sent sk-proj-Zq8vT3xLk29PwN4mRb7YcD1e. A"), key_variable="JUDGEWEB_KEY_TEST")
    assert answer.text == "You sent …. A"
    monkeypatch.setenv("JUDGEWEB_KEY_TEST", "EMPTY")
    assert answer_to(plain("EMPTY"), key_variable="JUDGEWEB_KEY_TEST").text == "EMPTY"


def test_an_answer_without_a_choice_is_asked_again_and_odd_shapes_do_no_harm() -> None:
    for text in (
        "",
        " \n\n",
        '{"choices": [',
        "{}",
        '{"choices": []}',
        '{"choices": [{"message": null}]}',
        '{"choices": {"a": 1}}',
    ):
        with pytest.raises(Retry):
            parse_answer(200, text, Server("http://x/v1"), PLAIN)
    strange = '{"choices": [{"message": {"content": ["a"]}}], "usage": "free"}'
    odd = parse_answer(200, strange, Server("http://x/v1"), PLAIN)
    assert (odd.text, odd.tokens_in) == ('["a"]', None)
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "A "}, {"type": "text", "text": "wins"}]
    listed = json.dumps({"choices": [{"message": {"content": parts}}]})
    assert parse_answer(200, listed, Server("http://x/v1"), PLAIN).text == "A wins"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "A", "reasoning_content": "B"}, "A"),
        ({"content": None, "reasoning_content": "B"}, ""),
        ({"content": "", "reasoning": "B"}, ""),
        ({"reasoning_content": "B", "reasoning_details": [{"text": "B"}]}, ""),
        ({"content": [{"type": "reasoning", "text": "B"}, {"type": "text", "text": "A"}]}, "A"),
        ({"content": [{"type": "thinking", "text": "B"}]}, ""),
        ({"content": [{"thought": True, "text": "B"}, {"text": "A"}]}, "A"),
        ({"content": [{"type": "output_text", "text": "A"}, {"type": "summary_text", "text": "B"}]}, "A"),
        ({"content": [{"type": "text", "text": None}]}, ""),
    ],
)
def test_what_a_model_thought_is_never_its_reply(message: dict[str, Any], text: str) -> None:
    body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})
    assert parse_answer(200, body, Server("http://x/v1"), PLAIN).text == text


@pytest.mark.parametrize("given", ["", "example.org/v1", "ftp://example.org", "http://", "http://[::1", "file:///etc"])
def test_an_address_must_be_plain_http(given: str) -> None:
    with pytest.raises(InputRefused):
        check_base_url(given)


@pytest.mark.parametrize("given", ["http://me:pw@example.org", "https://example.org/v1?key=1", "http://x/#a"])
def test_an_address_holds_no_secrets(given: str) -> None:
    with pytest.raises(InputRefused):
        check_base_url(given)


def test_an_address_loses_its_last_slash() -> None:
    assert check_base_url(" http://127.0.0.1:11434/v1/ ") == "http://127.0.0.1:11434/v1"


def test_only_names_of_keys_may_name_a_key() -> None:
    assert [check_key_variable(name) for name in ("", "OPENAI_API_KEY", "JUDGEWEB_KEY_LOCAL")]
    for name in ("HOME", "DATABASE_URL", "JUDGEWEB_SECRET_KEY", "openai_api_key", "API_KEY", "X_API_KEY\nY"):
        with pytest.raises(InputRefused):
            check_key_variable(name)


def test_a_script_may_answer_differently_the_second_time() -> None:
    from tests.helpers.llm_server import answer_first

    with llm_server(answer_first([fail_with(500)], answer_well)) as running:
        with pytest.raises(Retry):
            ask(running.base_url)
        assert ask(running.base_url).finish_reason == "stop"
        assert list(running.asked.values()) == [2]
