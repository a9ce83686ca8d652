"""Servers of one's own: Ollama over its own API, llama.cpp, vLLM and SGLang, LM Studio."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from evaluations.domain.judges import CallState, Dialect, ReplyShape, RequestShape
from evaluations.llm.client import connect_llm, parse_answer, parse_http_error
from evaluations.llm.dialects.registry import find_adapter, guess_dialect
from evaluations.llm.exchange import (
    Answer,
    FormatRefused,
    LLMError,
    QuotaExhausted,
    RecordOnCall,
    Request,
    Retry,
    Server,
    SettingRefused,
    StopRun,
)
from tests.helpers.replay_server import replay_answers

SCHEMA = {"type": "object", "properties": {"choice": {"enum": ["A", "B"]}}}
REQUEST = Request(
    [{"role": "system", "content": "Judge."}, {"role": "user", "content": "Which is better?"}],
    "qwen3:4b",
    temperature=0.0,
    max_tokens=400,
    seed=7,
    shape=ReplyShape.JSON_SCHEMA,
    schema=SCHEMA,
    logprobs=True,
)
PLAIN = replace(REQUEST, shape=ReplyShape.TEXT, schema=None, logprobs=False)
SPOKEN = RequestShape(left_out=("native",))  # as the protocol of OpenAI has it


def server(dialect: Dialect, base_url: str = "http://gpu:9000/v1") -> Server:
    return Server(base_url, dialect=dialect)


def error(dialect: Dialect, status: int, said: Any, request: Request = REQUEST, **more: Any) -> LLMError:
    text = said if isinstance(said, str) else json.dumps(said)
    return parse_http_error(status, text, server(dialect, **more), request)


def openai_error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


# ---- Ollama: the request -------------------------------------------------------------------


def test_ollama_is_asked_with_its_own_names_and_told_to_cut_nothing() -> None:
    body = find_adapter(server(Dialect.OLLAMA)).body(replace(REQUEST, context_tokens=9000))
    assert body == {
        "model": "qwen3:4b",
        "messages": list(REQUEST.messages),
        "stream": False,
        "truncate": False,
        "shift": False,
        "options": {"temperature": 0.0, "num_predict": 400, "seed": 7, "num_ctx": 12288},
        "format": SCHEMA,
        "logprobs": True,
        "top_logprobs": 20,
    }


@pytest.mark.parametrize(("tokens", "context"), [(None, None), (1, 4096), (4096, 4096), (4097, 8192), (40000, 40960)])
def test_the_context_that_ollama_is_asked_for_grows_in_steps(tokens: int | None, context: int | None) -> None:
    body = find_adapter(server(Dialect.OLLAMA)).body(replace(REQUEST, context_tokens=tokens))
    assert body["options"].get("num_ctx") == context


@pytest.mark.parametrize(
    ("effort", "think"), [("none", False), ("minimal", "low"), ("medium", "medium"), ("xhigh", "high")]
)
def test_an_effort_becomes_what_ollama_is_told_of_thinking(effort: str, think: str | bool) -> None:
    body = find_adapter(server(Dialect.OLLAMA)).body(replace(REQUEST, reasoning_effort=effort))
    assert body["think"] == think
    assert "think" not in find_adapter(server(Dialect.OLLAMA)).body(REQUEST)


def test_ollama_is_asked_without_what_its_model_refused() -> None:
    left_out = RequestShape(left_out=("seed", "top_logprobs"), system_folded=True)
    request = replace(REQUEST, request_shape=left_out, shape=ReplyShape.JSON_OBJECT, body={"options": {"num_gpu": 1}})
    body = find_adapter(server(Dialect.OLLAMA)).body(request)
    assert body["options"] == {"temperature": 0.0, "num_predict": 400, "num_gpu": 1}
    assert body["format"] == "json"
    assert body["top_logprobs"] == 5
    assert body["messages"] == [{"role": "user", "content": "Judge.\n\nWhich is better?"}]


@pytest.mark.parametrize(
    ("base_url", "native", "spoken"),
    [
        ("http://h:1/v1", "http://h:1/api/chat", "http://h:1/v1/chat/completions"),
        ("http://h:1", "http://h:1/api/chat", "http://h:1/v1/chat/completions"),
        ("http://h:1/api", "http://h:1/api/chat", "http://h:1/v1/chat/completions"),
        ("https://h/ollama/v1", "https://h/ollama/api/chat", "https://h/ollama/v1/chat/completions"),
    ],
)
def test_ollamas_own_api_is_beside_the_compatible_one(base_url: str, native: str, spoken: str) -> None:
    adapter, at = find_adapter(server(Dialect.OLLAMA)), server(Dialect.OLLAMA, base_url)
    assert adapter.path(at, REQUEST) == native
    assert adapter.path(at, replace(REQUEST, request_shape=SPOKEN)) == spoken


def test_a_server_without_ollamas_api_is_asked_as_the_protocol_has_it() -> None:
    body = find_adapter(server(Dialect.OLLAMA)).body(replace(REQUEST, request_shape=SPOKEN, context_tokens=9000))
    assert (body["max_tokens"], body["seed"], "options" in body) == (400, 7, False)
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA


def test_the_whole_address_is_asked_over_http_with_the_fields_of_the_endpoint() -> None:
    answers = [{"body": {"model": "m", "message": {"role": "assistant", "content": "A"}, "done_reason": "stop"}}]

    async def asking(address: str) -> Answer:
        at = Server(f"{address}/v1", dialect=Dialect.OLLAMA, body={"options": {"num_gpu": 2}, "keep_alive": "1h"})
        async with connect_llm(at) as ask:
            return await ask(PLAIN)

    with replay_answers(answers) as replay:
        answer = asyncio.run(asking(replay.address))
    assert answer.text == "A"
    asked = replay.asked[0]
    assert (asked.path, asked.body["keep_alive"]) == ("/api/chat", "1h")
    assert asked.body["options"] == {"temperature": 0.0, "num_predict": 400, "seed": 7, "num_gpu": 2}


# ---- Ollama: the answer --------------------------------------------------------------------


NATIVE = {
    "model": "qwen3:4b",
    "created_at": "2026-11-01T10:00:00Z",
    "message": {"role": "assistant", "content": '{"choice": "A"}', "thinking": "Both open well."},
    "done": True,
    "done_reason": "stop",
    "total_duration": 5_000_000_000,
    "prompt_eval_count": 900,
    "eval_count": 60,
}


def read(dialect: Dialect, body: Any, request: Request = REQUEST) -> Answer:
    return parse_answer(200, json.dumps(body), server(dialect), request)


def test_an_answer_of_ollama_is_read() -> None:
    answer = read(Dialect.OLLAMA, NATIVE)
    assert (answer.text, answer.reasoning, answer.finish_reason) == ('{"choice": "A"}', "Both open well.", "stop")
    assert (answer.tokens_in, answer.tokens_out, answer.model) == (900, 60, "qwen3:4b")


def test_a_reply_that_ollama_cut_at_the_limit_is_known() -> None:
    assert read(Dialect.OLLAMA, NATIVE | {"done_reason": "length"}).finish_reason == "length"


@pytest.mark.parametrize("count", [0, None])
def test_a_prompt_that_ollama_did_not_count_is_not_one_of_no_tokens(count: int | None) -> None:
    assert read(Dialect.OLLAMA, NATIVE | {"prompt_eval_count": count}).tokens_in is None


def test_ollamas_probabilities_are_read() -> None:
    told = [{"token": "A", "logprob": -0.1, "bytes": [65], "top_logprobs": [{"token": "B", "logprob": -2.5}]}]
    (token,) = read(Dialect.OLLAMA, NATIVE | {"logprobs": told}).logprobs
    assert token.logprob == -0.1
    assert read(Dialect.OLLAMA, NATIVE).logprobs == ()


def test_a_model_that_was_only_loaded_is_asked_again() -> None:
    with pytest.raises(Retry):
        read(Dialect.OLLAMA, NATIVE | {"message": {"role": "assistant", "content": ""}, "done_reason": "load"})


def test_another_server_that_answers_on_ollamas_path_is_asked_as_the_protocol_has_it() -> None:
    completion = {"choices": [{"message": {"content": "A"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9}}
    with pytest.raises(SettingRefused) as told:
        read(Dialect.OLLAMA, completion)
    assert (told.value.setting, told.value.usage.tokens_in if told.value.usage else None) == ("native", 9)
    assert read(Dialect.OLLAMA, completion, replace(REQUEST, request_shape=SPOKEN)).text == "A"


# ---- Ollama: errors ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (404, "404 page not found"),
        (404, {"detail": "Not Found"}),
        (404, openai_error("File Not Found", type="not_found_error", code=404)),
        (405, {"detail": "Method Not Allowed"}),
    ],
)
def test_a_server_that_lacks_ollamas_path_is_told_from_one_that_lacks_the_model(status: int, said: Any) -> None:
    told = error(Dialect.OLLAMA, status, said)
    assert isinstance(told, SettingRefused)
    assert told.setting == "native"
    assert type(error(Dialect.OLLAMA, status, said, replace(REQUEST, request_shape=SPOKEN))) is StopRun


def test_lm_studio_at_ollamas_address_is_asked_as_the_protocol_has_it() -> None:
    with pytest.raises(SettingRefused) as told:
        read(Dialect.OLLAMA, {"error": "Unexpected endpoint or method. (POST /api/chat). Returning 200 anyway"})
    assert told.value.setting == "native"


@pytest.mark.parametrize(
    "said",
    [{"error": 'model "qwen3:4b" not found, try pulling it first'}, {"error": "model 'qwen3:4b' not found"}],
)
def test_a_model_that_was_never_pulled_stops_the_run_with_the_cure(said: Any) -> None:
    told = error(Dialect.OLLAMA, 404, said)
    assert type(told) is StopRun
    assert "“ollama pull qwen3:4b”" in str(told)


@pytest.mark.parametrize(
    "said", ['"llama3.2" does not support thinking', 'think value "medium" is not supported for this model']
)
def test_thinking_that_a_model_lacks_is_a_refused_setting(said: str) -> None:
    told = error(Dialect.OLLAMA, 400, {"error": said}, replace(REQUEST, reasoning_effort="medium"))
    assert isinstance(told, SettingRefused)
    assert told.setting == "reasoning_effort"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (500, "invalid JSON schema in format"),
        (500, "failed to load model vocabulary required for format"),
        (400, 'invalid format: "x"; expected "json" or a valid JSON Schema object'),
        (400, "json: cannot unmarshal object into Go struct field ChatRequest.format of type string"),
    ],
)
def test_a_format_that_ollama_cannot_hold_is_refused_and_not_asked_again(status: int, said: str) -> None:
    assert isinstance(error(Dialect.OLLAMA, status, {"error": said}), FormatRefused)


@pytest.mark.parametrize("dialect", [Dialect.OLLAMA, Dialect.GENERIC])
def test_too_little_memory_stops_the_run(dialect: Dialect) -> None:
    said = "model requires more system memory (5.3 GiB) than is available (3.5 GiB)"
    told = error(dialect, 500, {"error": said})
    assert type(told) is StopRun
    assert "free memory" in str(told)
    assert said in str(told)


@pytest.mark.parametrize(
    "said",
    [
        "llama runner process has terminated: exit status 2",
        "model runner has unexpectedly stopped, this may be due to resource limitations or an internal error",
    ],
)
def test_a_runner_that_ended_is_asked_again(said: str) -> None:
    told = error(Dialect.OLLAMA, 500, {"error": said})
    assert isinstance(told, Retry)
    assert not told.busy


@pytest.mark.parametrize(
    "said",
    [
        "server busy, please try again.  maximum pending requests exceeded",
        "Server overloaded, please retry shortly (ref: 06d81c91)",
    ],
)
def test_an_ollama_with_a_full_queue_is_busy(said: str) -> None:
    told = error(Dialect.OLLAMA, 503, {"error": said})
    assert isinstance(told, Retry)
    assert told.busy


@pytest.mark.parametrize(
    "said",
    [
        "the prompt is longer than the context length currently available to the model (4096 tokens)",
        "the input length exceeds the context length",
    ],
)
def test_a_prompt_that_ollama_was_told_not_to_cut_is_too_long(said: str) -> None:
    told = error(Dialect.OLLAMA, 400, {"error": said})
    assert isinstance(told, RecordOnCall)
    assert told.state == CallState.TOO_LONG


def test_a_machine_that_is_not_signed_in_to_ollamas_cloud_is_told_how() -> None:
    told = error(Dialect.OLLAMA, 401, {"error": "unauthorized", "signin_url": "https://ollama.com/connect?name=x"})
    assert type(told) is StopRun
    assert "ollama signin" in str(told)


def test_a_used_up_plan_of_ollamas_cloud_pauses_the_endpoint() -> None:
    told = error(Dialect.OLLAMA, 429, {"error": "you have reached your weekly usage limit, upgrade for higher limits"})
    assert isinstance(told, QuotaExhausted)


# ---- llama.cpp -----------------------------------------------------------------------------


JINJA = (
    "\n------------\nWhile executing CallExpression at line 19, column 27 in source:\n"
    '...% 2 == 0) -%}↵        {{ raise_exception("%s...\n                  ^\nError: Jinja Exception: %s'
)


def jinja(sentence: str) -> str:
    return JINJA.replace("%s", sentence)


@pytest.mark.parametrize("dialect", [Dialect.LLAMA_CPP, Dialect.GENERIC])
@pytest.mark.parametrize(
    ("status", "said"),
    [
        (500, jinja("Conversation roles must alternate user/assistant/user/assistant/...")),
        (500, jinja("System role not supported")),
        (400, f"Unable to generate parser for this template. {jinja('System role not supported')}"),
        (500, jinja("Only user and assistant roles are supported!")),
    ],
)
def test_a_template_without_a_system_role_is_found_behind_any_status(dialect: Dialect, status: int, said: str) -> None:
    told = error(dialect, status, openai_error(said, code=status, type="server_error"))
    assert isinstance(told, SettingRefused)
    assert told.setting == "system"


@pytest.mark.parametrize("folded", [True, False])
def test_a_template_that_takes_no_messages_at_all_stops_the_run_in_one_line(folded: bool) -> None:
    request = replace(REQUEST, request_shape=RequestShape(system_folded=folded))
    told = error(Dialect.LLAMA_CPP, 500, openai_error(jinja("No user query found in messages."), code=500), request)
    assert type(told) is StopRun
    assert str(told).endswith("It says: No user query found in messages.")


def test_a_system_text_that_is_folded_already_cannot_be_refused_once_more() -> None:
    request = replace(REQUEST, request_shape=RequestShape(system_folded=True))
    told = error(Dialect.LLAMA_CPP, 500, openai_error(jinja("System role not supported")), request)
    assert type(told) is StopRun


def test_slots_that_share_a_context_are_busy_when_it_runs_out() -> None:
    for dialect in (Dialect.LLAMA_CPP, Dialect.GENERIC):
        told = error(dialect, 500, openai_error("Context size has been exceeded.", code=500, type="server_error"))
        assert isinstance(told, Retry)
        assert told.busy


def test_a_prompt_longer_than_a_slot_is_too_long() -> None:
    said = "request (9020 tokens) exceeds the available context size (4096 tokens), try increasing it"
    fields = {"type": "exceed_context_size_error", "n_prompt_tokens": 9020, "n_ctx": 4096}
    told = error(Dialect.LLAMA_CPP, 400, openai_error(said, code=400, **fields))
    assert isinstance(told, RecordOnCall)
    assert told.state == CallState.TOO_LONG


def test_an_older_llama_cpp_that_calls_it_a_fault_of_its_own_means_the_same() -> None:
    said = "the request exceeds the available context size. try increasing the context size or enable context shift"
    told = error(Dialect.LLAMA_CPP, 500, openai_error(said, code=500, type="exceed_context_size_error"))
    assert isinstance(told, RecordOnCall)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "Failed to parse grammar"),
        (500, "failed to parse grammar"),
        (
            400,
            "Unable to generate parser for this template. Automatic parser generation failed: "
            'JSON schema conversion failed:\nUnrecognized schema: {"type":"nonsense"}',
        ),
    ],
)
def test_a_schema_that_llama_cpp_cannot_hold_is_refused(status: int, said: str) -> None:
    assert isinstance(error(Dialect.LLAMA_CPP, status, openai_error(said, code=status)), FormatRefused)


def test_a_validation_of_the_python_server_is_a_refusal_although_it_says_500() -> None:
    def said(place: str, kind: str, message: str) -> dict[str, Any]:
        fault = {"type": kind, "loc": ("body", *place.split(".")), "msg": message, "input": "x"}
        return openai_error(f"1 validation error:\n  {fault}\n", type="internal_server_error", param=None, code=None)

    shape = said("response_format.type", "literal_error", "Input should be 'text' or 'json_object'")
    assert isinstance(error(Dialect.LLAMA_CPP, 500, shape), FormatRefused)
    warm = said("temperature", "less_than_equal", "Input should be less than or equal to 2")
    told = error(Dialect.LLAMA_CPP, 500, warm, PLAIN)
    assert isinstance(told, SettingRefused)
    assert told.setting == "temperature"


def test_a_model_that_loads_is_waited_for() -> None:
    said = openai_error("Loading model", type="unavailable_error", code=503)
    assert isinstance(error(Dialect.LLAMA_CPP, 503, said), Retry)


def test_the_cached_part_of_a_prompt_is_read_from_older_timings() -> None:
    body = {
        "choices": [{"message": {"content": "A"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 33, "completion_tokens": 6, "total_tokens": 39},
        "timings": {"cache_n": 30, "prompt_n": 3},
    }
    assert read(Dialect.LLAMA_CPP, body).usage.tokens_cached == 30
    told = body | {"usage": {**body["usage"], "prompt_tokens_details": {"cached_tokens": 32}}}  # type: ignore[dict-item]
    assert read(Dialect.LLAMA_CPP, told).usage.tokens_cached == 32


# ---- vLLM and SGLang -----------------------------------------------------------------------


def test_fewer_probabilities_are_asked_for_where_twenty_are_too_many() -> None:
    said = "Requested sample logprobs of 20, which is greater than max allowed: 5"
    for dialect in (Dialect.VLLM, Dialect.GENERIC):
        told = error(dialect, 400, {"object": "error", "message": said, "type": "BadRequestError", "code": 400})
        assert isinstance(told, SettingRefused)
        assert told.setting == "top_logprobs"
    few = replace(REQUEST, request_shape=RequestShape(left_out=("top_logprobs",)))
    none = error(
        Dialect.VLLM, 400, openai_error("Requested sample logprobs of 5, which is greater than max allowed: 0"), few
    )
    assert isinstance(none, SettingRefused)
    assert none.setting == "logprobs"


@pytest.mark.parametrize(
    "said",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8600 in the messages)",
        "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
        "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
        "Input length (9000 tokens) exceeds the maximum allowed length (8190 tokens).",
        "Requested token count exceeds the model's maximum context length of 8192 tokens.",
    ],
)
def test_a_prompt_that_vllm_or_sglang_cannot_hold_is_too_long(said: str) -> None:
    told = error(Dialect.VLLM, 400, {"object": "error", "message": said, "type": "BadRequestError", "code": 400})
    assert isinstance(told, RecordOnCall)
    assert told.state == CallState.TOO_LONG


def test_a_limit_as_large_as_the_context_stops_the_run_at_its_first_call() -> None:
    said = "'max_tokens' is too large: 4096. This model's maximum context length is 4096 tokens and your request has 60"
    told = error(Dialect.VLLM, 400, openai_error(said), replace(REQUEST, max_tokens=4096))
    assert type(told) is StopRun
    assert "limit of 4,096 tokens" in str(told)


@pytest.mark.parametrize(
    "said",
    [
        "Grammar error: Unimplemented keys: ['propertyNames']",
        "The provided JSON schema contains features not supported by xgrammar.",
        "Failed to convert the grammar from JSON schema",
        "Request-level structured outputs backend must match engine-level backend",
    ],
)
def test_a_schema_that_vllm_cannot_hold_is_refused(said: str) -> None:
    assert isinstance(error(Dialect.VLLM, 400, openai_error(said)), FormatRefused)


def test_a_model_without_a_chat_template_stops_the_run() -> None:
    said = (
        "As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat template "
        "if the tokenizer does not define one. None"
    )
    told = error(Dialect.VLLM, 400, openai_error(said, type="BadRequestError", code=400))
    assert type(told) is StopRun
    assert "instruction-tuned" in str(told)


def test_a_model_that_vllm_does_not_serve_stops_the_run() -> None:
    said = {"object": "error", "message": "The model `x` does not exist.", "type": "NotFoundError", "code": 404}
    told = error(Dialect.VLLM, 404, said)
    assert type(told) is StopRun
    assert "does not know the model" in str(told)


def test_a_dead_engine_is_asked_again() -> None:
    said = "EngineCore encountered an issue. See stack trace (above) for the root cause."
    assert isinstance(error(Dialect.VLLM, 500, openai_error(said, type="Internal Server Error", code=500)), Retry)


def test_a_reply_that_the_server_gave_up_is_asked_for_again() -> None:
    body = {"choices": [{"message": {"content": '{"choice": "A"}'}, "finish_reason": "abort"}]}
    with pytest.raises(Retry):
        read(Dialect.VLLM, body)


# ---- LM Studio -----------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["", ". Returning 200 anyway"])
def test_lm_studio_without_v1_stops_the_run_with_the_right_address(end: str) -> None:
    said = json.dumps({"error": f"Unexpected endpoint or method. (POST /chat/completions){end}"})
    with pytest.raises(StopRun) as told:
        parse_answer(200, said, server(Dialect.LM_STUDIO, "http://gpu:1234"), REQUEST)
    assert "The base URL should end in /v1: http://gpu:1234/v1" in str(told.value)


def test_lm_studio_takes_no_json_object_and_is_asked_in_the_next_shape() -> None:
    said = {"error": "'response_format.type' must be 'json_schema' or 'text'"}
    told = error(Dialect.LM_STUDIO, 400, said, replace(REQUEST, shape=ReplyShape.JSON_OBJECT))
    assert isinstance(told, FormatRefused)
    assert told.shape == ReplyShape.JSON_OBJECT


@pytest.mark.parametrize("dialect", [Dialect.LM_STUDIO, Dialect.GENERIC])
@pytest.mark.parametrize("status", [400, 404])
def test_no_loaded_model_stops_the_run_with_what_lm_studio_says_to_do(dialect: Dialect, status: int) -> None:
    said = "No models loaded. Please load a model in the developer page or use the 'lms load' command."
    told = error(dialect, status, openai_error(said, type="invalid_request_error", param="model", code=None))
    assert type(told) is StopRun
    assert "lms load" in str(told)


@pytest.mark.parametrize("dialect", [Dialect.LM_STUDIO, Dialect.GENERIC])
@pytest.mark.parametrize("status", [400, 404, 500])
@pytest.mark.parametrize(
    "said",
    [
        "Model unloaded.",
        "Model is unloaded.",
        "The model has crashed without additional information. (Exit code: 18446744072635812000)",
    ],
)
def test_a_model_that_crashed_or_was_unloaded_is_asked_again(dialect: Dialect, status: int, said: str) -> None:
    assert isinstance(error(dialect, status, {"error": said}), Retry)


@pytest.mark.parametrize(
    "said",
    [
        "Trying to keep the first 6547 tokens when context the overflows. However, the model is loaded with context "
        "length of only 4096 tokens, which is not enough. Try to load the model with a larger context length",
        "Cannot truncate prompt with n_keep (5000) >= n_ctx (4096)",
        "The number of tokens to keep from the initial prompt is greater than the context length.",
    ],
)
def test_a_prompt_that_lm_studio_cannot_hold_is_too_long(said: str) -> None:
    told = error(Dialect.LM_STUDIO, 400, {"error": said})
    assert isinstance(told, RecordOnCall)
    assert told.state == CallState.TOO_LONG


@pytest.mark.parametrize(
    "said",
    [
        'Failed to load model "qwen3-4b". Error: Model loading was stopped due to insufficient system resources.',
        "Error loading model. (Exit code: 6). Please check settings and try loading the model again.",
    ],
)
def test_a_model_that_lm_studio_cannot_load_stops_the_run(said: str) -> None:
    told = error(Dialect.LM_STUDIO, 400, {"error": said})
    assert type(told) is StopRun
    assert "could not load “qwen3:4b”" in str(told)


def test_a_template_of_lm_studio_without_a_system_role_is_found() -> None:
    said = (
        'Error rendering prompt with jinja template: "System role not supported".\n\nThis is usually an issue with the '
        "model's prompt template. If you are using a popular model, you can try to search the model elsewhere."
    )
    told = error(Dialect.LM_STUDIO, 400, {"error": said})
    assert isinstance(told, SettingRefused)
    assert told.setting == "system"


# ---- where they listen ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base_url", "dialect"),
    [
        ("http://127.0.0.1:11434/v1", Dialect.OLLAMA),
        ("http://ollama:11434/v1", Dialect.OLLAMA),
        ("http://192.168.1.20:11434/v1", Dialect.OLLAMA),
        ("https://ollama.com/v1", Dialect.OLLAMA),
        ("http://localhost:8080/v1", Dialect.LLAMA_CPP),
        ("http://gpu.lan:1234/v1", Dialect.LM_STUDIO),
        ("http://[::1]:30000/v1", Dialect.VLLM),
        ("https://models.example.com:8080/v1", Dialect.GENERIC),
        ("http://127.0.0.1:9999/v1", Dialect.GENERIC),
    ],
)
def test_the_port_in_ones_own_network_tells_the_dialect(base_url: str, dialect: Dialect) -> None:
    assert guess_dialect(base_url) == dialect


@pytest.mark.parametrize("dialect", [Dialect.LLAMA_CPP, Dialect.VLLM, Dialect.LM_STUDIO])
def test_servers_of_ones_own_know_the_limit_by_its_older_name(dialect: Dialect) -> None:
    body = find_adapter(server(dialect)).body(replace(REQUEST, reasoning_effort="low"))
    assert (body["max_tokens"], "max_completion_tokens" in body) == (400, False)


def test_braces_in_a_sentence_that_are_no_object_break_nothing() -> None:
    assert isinstance(error(Dialect.GENERIC, 500, openai_error("{{1}} is no template")), Retry)
