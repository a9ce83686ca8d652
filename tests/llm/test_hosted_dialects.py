"""What is sent to hosted providers, to the letter, and how their answers are read."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evaluations.domain.judges import CallState, Dialect, ReplyShape, RequestShape
from evaluations.llm.batch_client import build_batch_line, connect_batches
from evaluations.llm.client import connect_llm, parse_answer, parse_http_error, server_base_url
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
    Usage,
)
from tests.helpers.replay_server import RecordedRequest, replay_answers

SYSTEM = {"role": "system", "content": "Judge."}
USER = {"role": "user", "content": "Which is better?"}
SCHEMA = {"type": "object", "properties": {"score": {"type": "number", "minimum": 0, "maximum": 1}}}
FULL = Request(
    [SYSTEM, USER],  # type: ignore[list-item]  # mypy takes them for plain dicts
    "m",
    temperature=0.0,
    max_tokens=400,
    seed=7,
    shape=ReplyShape.JSON_SCHEMA,
    schema=SCHEMA,
    reasoning_effort="low",
    logprobs=True,
)
BARE = Request([SYSTEM, USER], "m")  # type: ignore[list-item]
JSON_FORMAT = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA}}


def server(dialect: Dialect, base_url: str = "https://provider.example/v1", **more: Any) -> Server:
    return Server(base_url, dialect=dialect, **more)


def body(dialect: Dialect, request: Request) -> dict[str, Any]:
    return find_adapter(server(dialect)).body(request)


def answer(dialect: Dialect, given: dict[str, Any], request: Request = FULL) -> Answer:
    return parse_answer(200, json.dumps(given), server(dialect), request)


def error(dialect: Dialect, status: int, given: Any, request: Request = FULL, retry_after: str = "") -> LLMError:
    return parse_http_error(status, json.dumps(given), server(dialect), request, headers={"retry-after": retry_after})


def asked_of(dialect: Dialect, path: str = "", request: Request = BARE, **more: Any) -> RecordedRequest:
    with replay_answers([{"status": 418, "body": {}}]) as replay:

        async def main() -> None:
            async with connect_llm(server(dialect, replay.address + path, **more)) as ask:
                with pytest.raises(LLMError):
                    await ask(request)

        asyncio.run(main())
    return replay.asked[0]


# ---- bodies --------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", [Dialect.OPENAI, Dialect.AZURE])
def test_openai_and_azure_are_sent_the_newer_name_of_the_limit(dialect: Dialect) -> None:
    assert body(dialect, FULL) == {
        "model": "m",
        "messages": [SYSTEM, USER],
        "temperature": 0.0,
        "max_completion_tokens": 400,
        "seed": 7,
        "reasoning_effort": "low",
        "logprobs": True,
        "top_logprobs": 20,
        "response_format": JSON_FORMAT,
    }
    assert body(dialect, BARE) == {"model": "m", "messages": [SYSTEM, USER]}
    older = replace(FULL, request_shape=RequestShape(limit_name="max_tokens"))
    assert body(dialect, older)["max_tokens"] == 400
    assert "max_completion_tokens" not in body(dialect, older)


def test_google_is_sent_the_older_name_of_the_limit_together_with_an_effort_the_newer() -> None:
    assert body(Dialect.GOOGLE, replace(FULL, seed=None, logprobs=False)) == {
        "model": "m",
        "messages": [SYSTEM, USER],
        "temperature": 0.0,
        "max_completion_tokens": 400,
        "reasoning_effort": "low",
        "response_format": JSON_FORMAT,
    }
    assert body(Dialect.GOOGLE, replace(BARE, max_tokens=9))["max_tokens"] == 9


def test_a_response_is_asked_for_with_its_own_names_and_without_a_seed() -> None:
    assert body(Dialect.OPENAI_RESPONSES, FULL) == {
        "model": "m",
        "input": [SYSTEM, USER],
        "store": False,
        "temperature": 0.0,
        "max_output_tokens": 400,
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 20,
        "text": {"format": {"type": "json_schema", "name": "verdict", "strict": True, "schema": SCHEMA}},
    }
    assert body(Dialect.OPENAI_RESPONSES, BARE) == {"model": "m", "input": [SYSTEM, USER], "store": False}
    in_json = body(Dialect.OPENAI_RESPONSES, replace(BARE, shape=ReplyShape.JSON_OBJECT))
    assert in_json["text"] == {"format": {"type": "json_object"}}


def test_a_summary_is_asked_for_with_an_effort_alone_until_it_was_refused() -> None:
    refused = replace(FULL, request_shape=RequestShape(left_out=("reasoning_summary",)))
    assert body(Dialect.OPENAI_RESPONSES, refused)["reasoning"] == {"effort": "low"}
    assert body(Dialect.OPENAI_RESPONSES, replace(FULL, reasoning_effort="none"))["reasoning"] == {"effort": "none"}
    assert "reasoning" not in body(Dialect.OPENAI_RESPONSES, replace(FULL, reasoning_effort=""))


def test_a_message_has_its_system_text_apart_and_marked_for_the_cache() -> None:
    assert body(Dialect.ANTHROPIC, FULL) == {
        "model": "m",
        "max_tokens": 400,
        "messages": [USER],
        "system": [{"type": "text", "text": "Judge.", "cache_control": {"type": "ephemeral"}}],
        "temperature": 0.0,
        "output_config": {
            "effort": "low",
            # The API refuses bounds of numbers.
            "format": {
                "type": "json_schema",
                "schema": {"type": "object", "properties": {"score": {"type": "number"}}},
            },
        },
        "thinking": {"type": "adaptive", "display": "summarized"},
    }


def test_a_message_without_settings_has_the_limit_that_the_api_requires() -> None:
    system = [{"type": "text", "text": "Judge.", "cache_control": {"type": "ephemeral"}}]
    assert body(Dialect.ANTHROPIC, BARE) == {"model": "m", "max_tokens": 16000, "messages": [USER], "system": system}
    in_json = replace(BARE, shape=ReplyShape.JSON_OBJECT)
    assert body(Dialect.ANTHROPIC, in_json) == body(Dialect.ANTHROPIC, BARE)  # there is no such mode


def test_an_aspect_named_like_a_bound_keeps_its_place_in_the_schema() -> None:
    schema = {"type": "object", "properties": {"maximum": {"type": "string", "enum": ["A", "B"]}}}
    sent = body(Dialect.ANTHROPIC, replace(FULL, schema=schema))
    assert sent["output_config"]["format"]["schema"] == schema


@pytest.mark.parametrize(
    ("effort", "left_out", "thinking", "output"),
    [
        ("none", (), {"type": "disabled"}, None),
        ("minimal", (), {"type": "adaptive", "display": "summarized"}, {"effort": "low"}),
        ("xhigh", ("thinking",), None, {"effort": "xhigh"}),
        ("high", ("thinking", "reasoning_effort"), None, None),
    ],
)
def test_an_effort_becomes_the_apis_own(effort: str, left_out: tuple[str, ...], thinking: Any, output: Any) -> None:
    request = replace(BARE, reasoning_effort=effort, request_shape=RequestShape(left_out=left_out))
    sent = body(Dialect.ANTHROPIC, request)
    assert (sent.get("thinking"), sent.get("output_config")) == (thinking, output)


def test_turns_alternate_and_none_is_empty() -> None:
    said = [USER, {"role": "assistant", "content": " "}, {"role": "user", "content": "Once more."}]
    request = replace(BARE, messages=[SYSTEM, *said, {"role": "assistant", "content": "A"}, USER])  # type: ignore[list-item]
    assert body(Dialect.ANTHROPIC, request)["messages"] == [
        {"role": "user", "content": "Which is better?\n\nOnce more."},
        {"role": "assistant", "content": "A"},
        USER,
    ]


# ---- addresses and keys --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "given", "used"),
    [
        (Dialect.AZURE, "https://x.openai.azure.com/", "https://x.openai.azure.com/openai/v1"),
        (Dialect.AZURE, "https://x.openai.azure.com/openai", "https://x.openai.azure.com/openai/v1"),
        (Dialect.AZURE, "https://x.openai.azure.com/openai/v1/", "https://x.openai.azure.com/openai/v1"),
        (
            Dialect.AZURE,
            "https://x.openai.azure.com/openai/deployments/d/chat/completions",
            "https://x.openai.azure.com/openai/deployments/d",
        ),
        (Dialect.ANTHROPIC, "https://api.anthropic.com", "https://api.anthropic.com/v1"),
        (Dialect.ANTHROPIC, "https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1"),
        (Dialect.GOOGLE, "https://g.example", "https://g.example/v1beta/openai"),
        (Dialect.GOOGLE, "https://g.example/v1beta", "https://g.example/v1beta/openai"),
        (Dialect.GOOGLE, "https://g.example/v1beta/openai/", "https://g.example/v1beta/openai"),
        (Dialect.OPENAI, "https://api.openai.com/v1", "https://api.openai.com/v1"),
    ],
)
def test_an_address_without_its_path_is_completed(dialect: Dialect, given: str, used: str) -> None:
    assert server_base_url(server(dialect, given)) == used


@pytest.mark.parametrize(
    ("address", "dialect"),
    [
        ("https://x.openai.azure.com", Dialect.AZURE),
        ("https://x.services.ai.azure.com/openai/v1", Dialect.AZURE),
        ("https://api.anthropic.com/v1", Dialect.ANTHROPIC),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", Dialect.GOOGLE),
        ("https://api.openai.com/v1", Dialect.OPENAI),
    ],
)
def test_a_well_known_host_has_its_dialect(address: str, dialect: Dialect) -> None:
    assert guess_dialect(address) == dialect


def test_a_deployments_address_is_asked_for_a_version_unless_the_endpoint_names_one() -> None:
    deployment = "/openai/deployments/d"
    assert asked_of(Dialect.AZURE, deployment).query == {"api-version": "2025-04-01-preview"}
    given = {"api-version": "2024-10-21"}
    assert asked_of(Dialect.AZURE, deployment, query=given).query == given
    assert asked_of(Dialect.AZURE).query == {}


def test_a_key_goes_where_its_provider_wants_it_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGEWEB_KEY_TEST", "secret-1")
    anthropic = asked_of(Dialect.ANTHROPIC, key_variable="JUDGEWEB_KEY_TEST").headers
    assert (anthropic["x-api-key"], anthropic["anthropic-version"]) == ("secret-1", "2023-06-01")
    assert "Authorization" not in anthropic
    azure = asked_of(Dialect.AZURE, key_variable="JUDGEWEB_KEY_TEST").headers
    assert azure["api-key"] == "secret-1"
    assert "Authorization" not in azure
    google = asked_of(Dialect.GOOGLE, key_variable="JUDGEWEB_KEY_TEST").headers
    assert google["Authorization"] == "Bearer secret-1"


def test_an_authorization_that_the_endpoint_adds_is_sent() -> None:
    headers = asked_of(Dialect.ANTHROPIC, headers={"authorization": "Bearer gateway"}).headers
    assert {name.lower(): value for name, value in headers.items()}["authorization"] == "Bearer gateway"


def test_a_batch_of_responses_names_their_path_and_a_provider_without_one_stops() -> None:
    line = json.loads(build_batch_line("call-1", FULL, server(Dialect.OPENAI_RESPONSES)))
    assert (line["url"], line["body"]["max_output_tokens"]) == ("/v1/responses", 400)
    with pytest.raises(StopRun, match="asks each call by itself"), connect_batches(server(Dialect.ANTHROPIC)):
        pass


# ---- answers -------------------------------------------------------------------------------


def test_a_response_brings_its_text_its_summaries_and_its_probabilities() -> None:
    token = {"token": "A", "bytes": [65], "logprob": -0.5, "top_logprobs": []}
    given = {
        "status": "completed",
        "model": "m-1",
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "First."}], "content": None},
            {"type": "message", "content": [{"type": "output_text", "text": "A", "logprobs": [token]}]},
        ],
        "usage": {
            "input_tokens": 10,
            "output_tokens": 8,
            "input_tokens_details": {"cached_tokens": 4},
            "output_tokens_details": {"reasoning_tokens": 5},
        },
    }
    read = answer(Dialect.OPENAI_RESPONSES, given)
    assert (read.text, read.finish_reason, read.reasoning, read.model) == ("A", "stop", "First.", "m-1")
    assert read.usage == Usage(10, 8, 4, None, 5)
    assert [(one.text, one.logprob) for one in read.logprobs] == [(b"A", -0.5)]


@pytest.mark.parametrize(
    ("why", "ended"), [("max_output_tokens", "length"), ("content_filter", "content_filter"), ("other", "other")]
)
def test_a_response_that_is_incomplete_says_why(why: str, ended: str) -> None:
    given = {"status": "incomplete", "incomplete_details": {"reason": why}, "output": []}
    assert answer(Dialect.OPENAI_RESPONSES, given).finish_reason == ended


def test_a_response_under_way_is_no_answer() -> None:
    with pytest.raises(Retry):
        answer(Dialect.OPENAI_RESPONSES, {"status": "in_progress", "output": []})


def test_a_message_counts_what_was_read_from_the_cache_and_written_to_it() -> None:
    given = {
        "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "A"}],
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": 3,
            "cache_read_input_tokens": 40,
            "cache_creation_input_tokens": 500,
            "output_tokens": 6,
        },
    }
    read = answer(Dialect.ANTHROPIC, given)
    assert (read.text, read.reasoning, read.finish_reason, read.refusal) == ("A", "Hm.", "stop", "")
    assert read.usage == Usage(tokens_in=543, tokens_out=6, tokens_cached=40, tokens_written=500)
    assert answer(Dialect.ANTHROPIC, {"content": []}).usage == Usage()


@pytest.mark.parametrize(
    ("why", "ended"),
    [
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
    ],
)
def test_a_message_says_why_it_ended(why: str, ended: str) -> None:
    assert answer(Dialect.ANTHROPIC, {"content": [], "stop_reason": why}).finish_reason == ended


# ---- errors --------------------------------------------------------------------------------


def test_an_overloaded_provider_is_asked_less_and_after_the_time_it_names() -> None:
    told = error(Dialect.ANTHROPIC, 529, {"error": {"type": "overloaded_error"}}, retry_after="7")
    assert isinstance(told, Retry)
    assert (told.busy, told.after) == (True, 7.0)


def test_a_limit_of_the_account_is_waited_for_where_it_is_lifted_soon() -> None:
    soon = datetime.now(UTC) + timedelta(hours=5)
    sentence = (
        f"You have reached your specified API usage limits. You will regain access on {soon:%Y-%m-%d at %H:%M} UTC."
    )
    told = error(Dialect.ANTHROPIC, 400, {"error": {"type": "invalid_request_error", "message": sentence}})
    assert isinstance(told, QuotaExhausted)
    assert told.after is not None
    assert 4.9 * 3600 < told.after <= 5 * 3600
    later = {
        "error": {"message": "You have reached your specified API usage limits. You will regain access on 2999-13-45"}
    }
    assert type(error(Dialect.ANTHROPIC, 400, later)) is StopRun


@pytest.mark.parametrize(
    ("sentence", "setting"),
    [
        ("thinking: Input tag 'adaptive' found using 'type' does not match any of the expected tags", "thinking"),
        ("thinking.adaptive.display: Extra inputs are not permitted", "thinking"),
        ("output_config.effort: Extra inputs are not permitted", "reasoning_effort"),
        ("`temperature` may only be set to 1 when thinking is enabled.", "temperature"),
    ],
)
def test_a_part_of_a_message_that_is_refused_is_named(sentence: str, setting: str) -> None:
    told = error(Dialect.ANTHROPIC, 400, {"error": {"type": "invalid_request_error", "message": sentence}})
    assert isinstance(told, SettingRefused)
    assert told.setting == setting


def test_a_disabled_thinking_that_is_refused_is_the_judges_effort() -> None:
    request = replace(FULL, reasoning_effort="none")
    told = error(Dialect.ANTHROPIC, 400, {"error": {"message": "thinking cannot be disabled for this model"}}, request)
    assert isinstance(told, SettingRefused)
    assert told.setting == "reasoning_effort"


def test_a_refused_format_is_told_from_a_refused_effort() -> None:
    refused = {"error": {"message": "output_config: Extra inputs are not permitted"}}
    assert isinstance(error(Dialect.ANTHROPIC, 400, refused), FormatRefused)
    told = error(Dialect.ANTHROPIC, 400, refused, replace(FULL, shape=ReplyShape.TEXT))
    assert isinstance(told, SettingRefused)
    assert told.setting == "reasoning_effort"


def test_a_limit_that_is_refused_by_its_name_has_another_and_one_that_is_too_large_has_none() -> None:
    told = error(Dialect.OPENAI, 400, {"error": {"message": "Unrecognized argument: max_completion_tokens"}})
    assert isinstance(told, SettingRefused)
    assert (told.setting, told.instead) == ("max_tokens", "max_tokens")
    generic = error(
        Dialect.GENERIC, 400, {"error": {"message": "'max_tokens' is not supported, use another"}}, BARE_LIMIT
    )
    assert isinstance(generic, SettingRefused)
    assert generic.instead == "max_completion_tokens"
    own = error(Dialect.OPENAI_RESPONSES, 400, {"error": {"message": "max_output_tokens must be at least 16"}})
    assert isinstance(own, SettingRefused)
    assert own.instead == ""


BARE_LIMIT = replace(BARE, max_tokens=9)


@pytest.mark.parametrize("dialect", [Dialect.OPENAI, Dialect.GOOGLE, Dialect.GENERIC])
def test_a_place_that_is_not_served_stops_the_run_through_a_gateway_too(dialect: Dialect) -> None:
    given = {"error": {"code": 400, "message": "User location is not supported for the API use."}}
    told = error(dialect, 400, given)
    assert type(told) is StopRun
    assert "does not serve the place" in str(told)


def test_a_quota_of_the_day_keeps_the_time_it_names_unless_that_is_the_minutes() -> None:
    def after(delay: str) -> float | None:
        details = [
            {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]},
            {"retryDelay": delay},
        ]
        told = error(Dialect.GOOGLE, 429, [{"error": {"message": "Quota exceeded.", "details": details}}])
        assert isinstance(told, QuotaExhausted)
        return told.after

    assert after("600.5s") == 600.5
    assert after("41s") == 3600
    assert after("999999s") == 2 * 86400


def test_a_quota_that_is_nothing_for_some_measures_alone_is_waited_for() -> None:
    sentence = "Quota exceeded for metric: tokens, limit: 0\nQuota exceeded for metric: requests, limit: 20"
    told = error(Dialect.GOOGLE, 429, [{"error": {"code": 429, "message": sentence}}])
    assert isinstance(told, Retry)


def test_a_schema_is_not_blamed_where_none_was_sent() -> None:
    given = [{"error": {"code": 400, "message": "The specified schema has too many states for serving."}}]
    assert isinstance(error(Dialect.GOOGLE, 400, given), FormatRefused)
    told = error(Dialect.GOOGLE, 400, given, replace(FULL, shape=ReplyShape.TEXT))
    assert isinstance(told, RecordOnCall)
    assert told.state == CallState.FAILED
