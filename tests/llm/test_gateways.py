"""What the dialects of gateways and of providers beside OpenAI send, and what they make of answers and errors."""

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.domain.judges import CallState, Dialect, ReplyShape
from evaluations.llm.client import parse_answer, parse_http_error, salvage_flawed_answer
from evaluations.llm.dialects.registry import ADAPTERS, guess_dialect
from evaluations.llm.error_body import parse_error_body
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
from evaluations.llm.token_usage import parse_token_count, parse_usage

XAI, GROQ, OPENROUTER, LITELLM, GENERIC = (
    Dialect.XAI,
    Dialect.GROQ,
    Dialect.OPENROUTER,
    Dialect.LITELLM,
    Dialect.GENERIC,
)
PLAIN = Request([{"role": "system", "content": "Judge."}, {"role": "user", "content": "A or B?"}], "model")
FULL = replace(
    PLAIN,
    temperature=0.0,
    max_tokens=400,
    seed=1,
    reasoning_effort="low",
    logprobs=True,
    shape=ReplyShape.JSON_SCHEMA,
    schema={"type": "object"},
)


def error(dialect: Dialect, status: int, body: Any, request: Request = FULL, **headers: str) -> LLMError:
    text = body if isinstance(body, str) else json.dumps(body)
    server = Server("http://gateway/v1", "SOME_API_KEY", dialect=dialect)
    return parse_http_error(status, text, server, request, headers={k.replace("_", "-"): v for k, v in headers.items()})


def answer(dialect: Dialect, body: Any, headers: Mapping[str, str] | None = None) -> Answer:
    return parse_answer(200, json.dumps(body), Server("http://gateway/v1", dialect=dialect), FULL, headers=headers)


def completion(usage: Mapping[str, Any], **choice: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "A"}
    return {"model": "m", "choices": [{"message": message, "finish_reason": "stop", **choice}], "usage": usage}


def fault(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


# ---- what is sent --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "limit", "effort", "likely"),
    [
        (XAI, "max_completion_tokens", {"reasoning_effort": "low"}, 8),
        (GROQ, "max_completion_tokens", {"reasoning_effort": "low"}, 20),
        (OPENROUTER, "max_tokens", {"reasoning": {"effort": "low"}}, 20),
        (LITELLM, "max_completion_tokens", {"reasoning_effort": "low"}, 20),
        (GENERIC, "max_completion_tokens", {"reasoning_effort": "low"}, 20),
    ],
)
def test_each_dialect_writes_the_settings_in_its_own_way(
    dialect: Dialect, limit: str, effort: dict[str, Any], likely: int
) -> None:
    body = ADAPTERS[dialect].body(FULL)
    names = {"model", "messages", "temperature", "seed", "logprobs", "top_logprobs", "response_format", limit}
    assert set(body) == names | set(effort)
    assert (body[limit], body["top_logprobs"]) == (400, likely)
    assert effort.items() <= body.items()


@pytest.mark.parametrize(
    ("address", "dialect"),
    [
        ("https://api.x.ai/v1", XAI),
        ("https://api.groq.com/openai/v1", GROQ),
        ("https://openrouter.ai/api/v1", OPENROUTER),
        ("http://localhost:4000", LITELLM),
        ("https://gateway.example.org:4000/v1", GENERIC),
        ("https://api.deepseek.com", GENERIC),
    ],
)
def test_a_dialect_is_told_by_its_address(address: str, dialect: Dialect) -> None:
    assert guess_dialect(address) == dialect


# ---- what was counted ----------------------------------------------------------------------

COUNTS = st.integers(min_value=0, max_value=200_000)


@given(COUNTS, COUNTS, COUNTS, st.booleans())
def test_output_is_what_the_bill_charges_wherever_reasoning_is_counted(
    prompt: int, visible: int, reasoning: int, beside: bool
) -> None:
    told = visible if beside else visible + reasoning
    usage = {"prompt_tokens": prompt, "completion_tokens": told, "total_tokens": prompt + visible + reasoning}
    counted = parse_usage({**usage, "completion_tokens_details": {"reasoning_tokens": reasoning}})
    assert (counted.tokens_in, counted.tokens_out) == (prompt, visible + reasoning)


@given(COUNTS, COUNTS)
def test_a_prompt_that_is_not_counted_is_the_rest_of_the_total(prompt: int, out: int) -> None:
    usage = {"completion_tokens": out, "total_tokens": prompt + out}
    counted = parse_usage({**usage, "completion_tokens_details": {"reasoning_tokens": out // 2}})
    assert (counted.tokens_in, counted.tokens_out) == (prompt, out)


@given(COUNTS, COUNTS, COUNTS)
def test_without_a_total_output_is_never_below_the_completion_nor_below_the_reasoning(
    prompt: int, completion_tokens: int, reasoning: int
) -> None:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion_tokens}
    out = parse_usage({**usage, "completion_tokens_details": {"reasoning_tokens": reasoning}}).tokens_out
    assert out is not None
    assert max(completion_tokens, reasoning) <= out <= completion_tokens + reasoning


@given(COUNTS, COUNTS, COUNTS, st.sampled_from([XAI, GENERIC]))
def test_xai_bills_reasoning_beside_the_completion_with_or_without_a_total(
    prompt: int, visible: int, reasoning: int, dialect: Dialect
) -> None:
    usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": visible, "num_sources_used": 0}
    usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    assert answer(dialect, completion(usage)).tokens_out == visible + reasoning
    usage["total_tokens"] = prompt + visible + reasoning
    assert answer(dialect, completion(usage)).tokens_out == visible + reasoning


@given(COUNTS, COUNTS, st.sampled_from([float, str, lambda number: f"{number}.0"]))
def test_a_count_is_one_however_it_is_written(prompt: int, out: int, write: Any) -> None:
    counted = parse_usage({"prompt_tokens": write(prompt), "completion_tokens": write(out)})
    assert (counted.tokens_in, counted.tokens_out) == (prompt, out)


@pytest.mark.parametrize("given", ["900.5", "-1", "9e3", "", " ", "٣", "nan", 0.5, True, None, "1" * 12])
def test_what_is_no_count_is_none(given: Any) -> None:
    assert parse_token_count(given) is None


@pytest.mark.parametrize(
    ("dialect", "usage", "headers", "cost"),
    [
        (XAI, {"cost_in_usd_ticks": 2_709_000}, {}, 270_900),
        (XAI, {"cost_in_usd_ticks": "free"}, {}, None),
        (OPENROUTER, {"cost": 0.00123}, {}, 1_230_000),
        (OPENROUTER, {"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.036}}, {}, 36_000_000),
        (OPENROUTER, {"cost": 0.001, "is_byok": True}, {}, None),
        (LITELLM, {}, {"x-litellm-response-cost": "3.45e-05"}, 34_500),
        (LITELLM, {}, {"x-litellm-response-cost": "0.0"}, None),
        (LITELLM, {}, {"x-litellm-response-cost": "0.0", "x-litellm-cache-key": "k"}, 0),
        (LITELLM, {}, {"x-litellm-response-cost": ""}, None),
        (GENERIC, {"cost": {"total_cost": 0.0053, "request_cost": 0.005}}, {}, 5_300_000),
        (GENERIC, {"cost": 0.00123}, {}, 1_230_000),
        (GENERIC, {}, {"x-litellm-response-cost": "0.0042"}, 4_200_000),
    ],
)
def test_a_cost_that_is_told_is_read(
    dialect: Dialect, usage: dict[str, Any], headers: dict[str, str], cost: int | None
) -> None:
    told = answer(dialect, completion({"prompt_tokens": 1, "completion_tokens": 1, **usage}), headers)
    assert told.usage.cost == cost


# ---- errors --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "status", "body", "kind", "words"),
    [
        (XAI, 403, {"code": "denied", "error": "Team t-1 is blocked."}, StopRun, "Team t-1 is blocked."),
        (GROQ, 498, fault("flex_tier_capacity_exceeded"), Retry, "498"),
        (OPENROUTER, 404, fault("No allowed providers are available for it.", code=404), StopRun, "No allowed"),
        (LITELLM, 400, fault("ExceededTokenBudget: spend: 2; Max Budget for Token: 1"), StopRun, "budget is used up"),
        (LITELLM, 429, fault("Crossed TPM / RPM / Max Parallel Request Limit", code="429"), Retry, "Crossed TPM"),
        (LITELLM, 403, fault("team not allowed to access model", type="x"), StopRun, "may not use the model"),
        (GENERIC, 403, {"message": "Insufficient account balance"}, StopRun, "no credit left"),
        (GENERIC, 429, {"message": "Your balance exhausted"}, StopRun, "no credit left"),
        (GENERIC, 403, {"message": "Rate limit exceeded, wait a few minutes"}, Retry, "wait a few minutes"),
        (GENERIC, 404, {"detail": "Function 'f': Not found for account 'a'"}, StopRun, "does not know the model"),
        (GENERIC, 404, {"detail": "Not Found"}, StopRun, "is the base URL right?"),
    ],
)
def test_what_an_error_means(dialect: Dialect, status: int, body: Any, kind: type[LLMError], words: str) -> None:
    told = error(dialect, status, body)
    assert type(told) is kind
    assert words in str(told)


@pytest.mark.parametrize(
    ("dialect", "status", "body", "state"),
    [
        (XAI, 403, {"error": "Stopped. Failed check: SAFETY_CHECK_TYPE_CYBER"}, CallState.REFUSED),
        (OPENROUTER, 403, fault("Forbidden", metadata={"reasons": [], "flagged_input": "…"}), CallState.REFUSED),
        (
            OPENROUTER,
            502,
            fault("Provider returned error", metadata={"raw": "blocked by content filtering"}),
            "refused",
        ),
        (OPENROUTER, 400, fault("Provider returned error", metadata={"raw": "The prompt is too long"}), "too_long"),
        (LITELLM, 500, fault("litellm.APIError: XException - content_filter hit", code="500"), CallState.REFUSED),
        (GENERIC, 400, fault("The prompt was blocked: violence"), CallState.REFUSED),
        (GENERIC, 400, fault("Input tokens 9000 exceed the limit of 8192"), CallState.TOO_LONG),
        (GENERIC, 429, fault("TPM: Limit 7000, Used 0, Requested ~12903. Please try again in 50s"), "too_long"),
        (GENERIC, 403, "<html><title>Attention Required!</title></html>", CallState.FAILED),
        (GENERIC, 400, "odd", CallState.FAILED),
    ],
)
def test_what_is_recorded_on_a_call(dialect: Dialect, status: int, body: Any, state: str) -> None:
    told = error(dialect, status, body)
    assert isinstance(told, RecordOnCall)
    assert told.state == state


def test_a_limit_that_is_reached_tells_how_long_it_lasts_and_those_beside_it_do_not() -> None:
    short = "Requests per Second (actual/limit): 2/1, Requests per Day (actual/limit): 16/5000"
    day = "Requests per Second (actual/limit): 0/1, Requests per Day (actual/limit): 5000/5000"
    assert type(error(XAI, 429, {"error": short})) is Retry
    assert type(error(XAI, 429, {"error": day})) is QuotaExhausted


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("tokens per day (TPD): Limit 100000, Used 99000, Requested 3619. Please try again in 14m24.5s.", 864.5),
        ("Rate limit of 50 per 86400s exceeded. Please wait 41027 seconds before retrying.", 41027),
        ("requests per day. Try again in 2h3m", 7380),
        ("You have used up your daily allocation.", 3600),
    ],
)
def test_a_daily_limit_leaves_the_endpoint_alone_as_long_as_it_says(words: str, seconds: float) -> None:
    told = error(GENERIC, 429, fault(words))
    assert isinstance(told, QuotaExhausted)
    assert told.after == seconds


def test_a_setting_is_told_where_a_gateway_prints_it_as_an_object() -> None:
    for printed in ("['seed']", "{'seed': 1}"):
        told = error(
            LITELLM, 400, fault(f"litellm.UnsupportedParamsError: x does not support parameters: {printed}, set")
        )
        assert isinstance(told, SettingRefused)
        assert told.setting == "seed"


def test_where_nobody_serves_all_parameters_the_form_goes_first_and_then_one_setting_after_the_other() -> None:
    body = fault("No endpoints found that can handle the requested parameters.", code=404)
    assert isinstance(error(OPENROUTER, 404, body), FormatRefused)
    left, plain = [], replace(FULL, shape=ReplyShape.TEXT)
    while isinstance(told := error(OPENROUTER, 404, body, plain), SettingRefused):
        left.append(told.setting)
        plain = replace(plain, request_shape=replace(plain.request_shape, left_out=tuple(left)))
    assert left == ["logprobs", "seed", "reasoning_effort", "temperature"]
    assert isinstance(told, StopRun)


def test_a_text_after_an_object_does_not_hide_it() -> None:
    body = {"error": {"message": "Outer - {'error': {'message': 'Inner.'}}. Fallbacks=[{'a': ['b']}]", "code": "400"}}
    assert parse_error_body(400, json.dumps(body), "").message == "Inner."


def test_an_answer_in_words_of_a_filter_ends_nothing_and_is_no_refusal() -> None:
    body = {"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted", "input": "content_filter"}]}
    told = error(GENERIC, 422, body)
    assert isinstance(told, SettingRefused)
    assert told.setting == "seed"


# ---- errors inside a 200 -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (
            {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}, "choices": None},
            StopRun,
            "credit",
        ),
        ({"base_resp": {"status_code": 1013, "status_msg": "odd"}, "model": "m", "choices": []}, Retry, "503: odd"),
        ({"success": False, "errors": [{"code": 5007, "message": "No such model x"}]}, StopRun, "No such model x"),
        ({"code": 401, "msg": "expired"}, StopRun, "expired"),
        ({"fault": {"faultstring": "no quota"}}, Retry, "no quota"),
        ({"detail": "busy"}, Retry, "busy"),
        ({"model": "m", "choices": [], "x_groq": {"error": "over capacity"}}, Retry, "over capacity"),
        (fault("flagged by moderation"), RecordOnCall, "filter"),
        (fault("Invalid API key"), StopRun, "refused the key"),
        (fault("rate limit exceeded"), Retry, "rate limit exceeded"),
        (fault("prompt is too long"), RecordOnCall, "too long"),
    ],
)
def test_an_error_of_a_providers_own_form_inside_a_200_is_read(body: Any, kind: type[LLMError], words: str) -> None:
    server = Server("http://gateway/v1", "SOME_API_KEY", dialect=GENERIC)
    with pytest.raises(LLMError) as raised:
        parse_answer(200, json.dumps(body), server, PLAIN)
    assert type(raised.value) is kind
    assert words in str(raised.value)


def test_a_reply_that_broke_off_is_none_and_its_tokens_count() -> None:
    for choice in ({"finish_reason": "error"}, {"error": {"code": 502, "message": "lost"}}):
        with pytest.raises(Retry) as raised:
            answer(OPENROUTER, completion({"prompt_tokens": 100, "completion_tokens": 20, "cost": 0.001}, **choice))
        assert raised.value.usage is not None
        assert (raised.value.usage.tokens_out, raised.value.usage.cost) == (20, 1_000_000)


def test_a_number_that_says_all_is_well_is_no_error() -> None:
    body = completion({"prompt_tokens": 1, "completion_tokens": 1})
    more: list[dict[str, Any]] = [
        {"base_resp": {"status_code": 0, "status_msg": ""}},
        {"code": 200, "msg": "ok"},
        {"errors": []},
    ]
    assert [answer(GENERIC, {**body, **one}).text for one in more] == ["A", "A", "A"]


def test_a_limit_that_names_the_moment_of_its_end_lasts_until_then() -> None:
    end = round((time.time() + 7200) * 1000)
    headers = {"X-RateLimit-Limit": "50", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(end)}
    body = fault("Rate limit exceeded: free-models-per-day", code=429, metadata={"headers": headers})
    told = error(OPENROUTER, 429, body)
    assert isinstance(told, QuotaExhausted)
    assert told.after == pytest.approx(7200, abs=60)


def test_a_key_of_ones_own_that_the_provider_refuses_is_not_the_gateways_key() -> None:
    upstream = fault("Provider returned error", code=401, metadata={"raw": "invalid key", "provider_name": "Foo"})
    own = fault("No auth credentials found", code=401)
    assert "Foo refused the key" in str(error(OPENROUTER, 401, upstream))
    assert "refused the key in SOME_API_KEY" in str(error(OPENROUTER, 401, own))
    proxied = fault("litellm.AuthenticationError: FooException - invalid x-api-key", code="401")
    assert "Foo refused the key that the gateway" in str(error(LITELLM, 401, proxied))


@pytest.mark.parametrize(
    ("wrote", "told"),
    [("I like A", ("I like A", "stop", True)), ("", ("", "stop", True)), (None, ("", "stop", True))],
)
def test_a_reply_against_its_form_is_what_the_model_wrote(wrote: str | None, told: tuple[str, str, bool]) -> None:
    body = fault("Failed to generate JSON.", code="json_validate_failed", failed_generation=wrote)
    flawed = salvage_flawed_answer(parse_error_body(400, json.dumps(body), ""))
    assert flawed is not None
    assert (flawed.text, flawed.finish_reason, flawed.is_flawed) == told


def test_a_form_that_did_not_end_at_the_limit_is_a_reply_that_was_cut_off() -> None:
    wrote = "max completion tokens reached before generating a valid document"
    body = fault("Failed to generate JSON.", code="json_validate_failed", failed_generation=wrote)
    cut = salvage_flawed_answer(parse_error_body(400, json.dumps(body), ""))
    assert cut is not None
    assert (cut.text, cut.finish_reason, cut.is_flawed) == ("", "length", False)
    assert salvage_flawed_answer(parse_error_body(400, json.dumps(fault("odd")), "")) is None
