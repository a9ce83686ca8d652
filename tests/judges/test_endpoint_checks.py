"""The check: a tiny question tells what an endpoint takes for a model, and a judge of it begins there."""

import json
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from evaluations.domain.jobs import CHECK_ENDPOINT
from evaluations.domain.judges import ReplyShape, RequestShape
from evaluations.jobs.runner import work_for_a_while
from evaluations.jobs.sweeper import sweep_jobs
from evaluations.judges.endpoints.checks import (
    CHECK_MAX_TOKENS,
    CheckFinding,
    CheckResult,
    perform_check,
    store_check,
)
from evaluations.judges.endpoints.selectors import summarize_checks
from evaluations.judges.endpoints.services import request_check
from evaluations.judges.runs.services import start_run
from evaluations.llm.exchange import Server
from evaluations.models.judges import Endpoint, EndpointCheck
from evaluations.models.users import User
from evaluations.operations.doctor import run_checks
from evaluations.operations.findings import Health
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_llm_judge, work_run_here
from tests.helpers.job_work import job_about, work_all
from tests.helpers.llm_server import (
    LLMServer,
    Question,
    Script,
    ServerAnswer,
    accept_shapes,
    answer_text,
    answer_well,
    fail_with,
    llm_server,
    refuse_setting,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


def found_by(script: Script, *, long: bool = False) -> tuple[CheckResult, LLMServer]:
    with llm_server(script) as server:
        return perform_check(Server(server.base_url), "test-model", long=long), server


def line(result: CheckResult, about: str) -> CheckFinding:
    (one,) = [one for one in result.findings if one.about == about]
    return one


def test_one_tiny_request_tells_what_is_taken() -> None:
    result, server = found_by(answer_well)
    assert len(server.questions) == 1
    assert (result.shape, result.request_shape, result.problem) == (ReplyShape.JSON_SCHEMA, RequestShape(), None)
    assert line(result, "Output format").found == "JSON schema (strict)"
    assert line(result, "System text").found == "sent as a system message"
    assert result.tokens_per_byte == pytest.approx(0.25, abs=0.01)  # the test server counts four characters a token
    assert server.questions[0].body["max_tokens"] == CHECK_MAX_TOKENS


def refusing_all(question: Question) -> ServerAnswer:
    """A model that takes neither a schema, a temperature, a system role nor the older name of the limit."""
    body = question.body
    if body["messages"][0]["role"] == "system":
        return fail_with(400, "System role not supported")(question)
    for name, script in (
        ("max_tokens", refuse_setting("max_tokens")),
        ("temperature", refuse_setting("temperature")),
    ):
        if name in body:
            return script(question)
    return accept_shapes("json_object")(question)


def test_each_refusal_is_written_another_way_until_the_model_answers() -> None:
    result, server = found_by(refusing_all)
    assert result.shape == ReplyShape.JSON_OBJECT
    assert result.request_shape == RequestShape("max_completion_tokens", ("temperature",), system_folded=True)
    assert line(result, "Temperature").health == "warning"
    assert "temperature" in line(result, "Temperature").found
    assert line(result, "System text").found == "folded into the first user message"
    assert line(result, "Token limit").found == "sent as max_completion_tokens"
    assert len(server.questions) == 5


def test_a_judge_begins_as_the_check_ended_and_sends_nothing_that_is_refused() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    with llm_server(refusing_all) as server:
        judge = make_llm_judge(evaluation, server.base_url, temperature=0.0, max_tokens=300)
        assert judge.endpoint is not None
        store_check(judge.endpoint, perform_check(Server(server.base_url), "test-model", long=False))
        tried = len(server.questions)
        run = work_run_here(start_run(judge, user=None, orders="as-stored"))
    assert (run.state, len(server.questions) - tried) == ("done", 1)
    judge.refresh_from_db()
    assert judge.reply_shape == "json_object"
    assert judge.request_shape == RequestShape("max_completion_tokens", ("temperature",), system_folded=True).as_json()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (fail_with(401), "requires an API key"),
        (fail_with(404, "The model `test-model` does not exist"), "does not know the model"),
        (fail_with(500, "The model has crashed"), "The model has crashed"),
        (lambda question: ServerAnswer(html="<p>Welcome</p>"), "other than JSON"),
    ],
)
def test_where_it_fails_the_command_ends_with_the_reason_and_the_cure(script: Script, words: str) -> None:
    with llm_server(script) as server, pytest.raises(CommandError) as raised:
        call_command("check_endpoint", base_url=server.base_url, model="test-model", stdout=StringIO())
    assert words in str(raised.value)
    assert str(raised.value).endswith("test again.")


def test_the_command_prints_a_table_or_json_and_keeps_what_it_found_with_the_endpoint() -> None:
    with llm_server(answer_well) as server:
        Endpoint.objects.create(name="here", base_url=server.base_url)
        table, told = StringIO(), StringIO()
        call_command("check_endpoint", "here", model="test-model", stdout=table)
        call_command("check_endpoint", "here", model="test-model", json=True, stdout=told)
    assert "Output format" in table.getvalue()
    assert json.loads(told.getvalue())["shape"] == "json_schema"
    assert EndpointCheck.objects.get().result["shape"] == "json_schema"


def test_a_server_that_cuts_long_prompts_is_told_by_the_check() -> None:
    def cutting(question: Question) -> ServerAnswer:
        told = answer_well(question)
        message = {"role": "assistant", "content": told.text}
        tokens = min(len(question.prompt) // 4, 2_050)
        usage = {"prompt_tokens": tokens, "completion_tokens": 5}
        return ServerAnswer(body={"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})

    result, _ = found_by(cutting, long=True)
    assert result.is_cut is True
    assert result.problem == line(result, "Long prompts")
    assert "OLLAMA_CONTEXT_LENGTH" in line(result, "Long prompts").do
    whole, _ = found_by(answer_well, long=True)
    assert (whole.is_cut, line(whole, "Long prompts").found) == (False, "read in full, or refused")


def test_a_reply_that_ignores_the_schema_is_a_warning() -> None:
    result, _ = found_by(answer_text("Both are right."))
    assert line(result, "Output format").health == "warning"
    assert "Both are right." in line(result, "Output format").found


def test_an_answer_ends_a_pause_for_a_quota() -> None:
    with llm_server(answer_well) as server:
        endpoint = Endpoint.objects.create(
            name="here", base_url=server.base_url, paused_until=timezone.now(), pause_reason="The quota is used up."
        )
        store_check(endpoint, perform_check(Server(server.base_url), "test-model", long=False))
    endpoint.refresh_from_db()
    assert (endpoint.paused_until, endpoint.pause_reason) == (None, "")


def test_nobody_there_is_said_at_once() -> None:
    result = perform_check(Server("http://127.0.0.1:9/v1"), "m")
    assert [one.found for one in result.findings] == ["No answer from http://127.0.0.1:9/v1."]


# ---- on the page -----------------------------------------------------------------------------


def test_an_administrator_tests_an_endpoint_on_its_page(client: Any, django_user_model: Callable[..., User]) -> None:
    administrator = User.objects.create_superuser("root", password="x")
    client.force_login(administrator)
    with llm_server(answer_well) as server:
        endpoint = Endpoint.objects.create(name="here", base_url=server.base_url)
        assert "Not tested yet" in client.get(f"/endpoints/{endpoint.pk}").content.decode()
        request_check(endpoint, "test-model")
        assert "Testing…" in client.get(f"/endpoints/{endpoint.pk}").content.decode()
        work_all(CHECK_ENDPOINT)
        page = client.get(f"/endpoints/{endpoint.pk}/handshakes").content.decode()
    assert "JSON schema (strict)" in page
    assert "Testing…" not in page
    assert not summarize_checks(endpoint).is_testing
    assert client.post(f"/endpoints/{endpoint.pk}/check", {"model": "other"}).status_code == 302
    assert EndpointCheck.objects.filter(model="other").exists()


def test_a_test_whose_message_is_lost_is_made_once_by_a_sweep() -> None:
    with llm_server(answer_well) as server:
        endpoint = Endpoint.objects.create(name="here", base_url=server.base_url)
        waiting = request_check(endpoint, "test-model")
        job = job_about(CHECK_ENDPOINT, waiting.pk)
        assert sweep_jobs() == [job.pk]
        work_all(CHECK_ENDPOINT)
        asked = server.asked.total()
        assert not summarize_checks(endpoint).is_testing
        assert sweep_jobs() == []
        work_for_a_while(job.pk)  # the message after all
    assert server.asked.total() == asked


def test_strangers_find_no_test(client: Any) -> None:
    client.force_login(User.objects.create_user("someone", password="x"))
    endpoint = Endpoint.objects.create(name="here", base_url="http://127.0.0.1:9/v1")
    assert client.post(f"/endpoints/{endpoint.pk}/check", {"model": "m"}).status_code == 404
    assert client.get(f"/endpoints/{endpoint.pk}/handshakes").status_code == 404


# ---- the doctor ------------------------------------------------------------------------------


def test_the_doctor_asks_the_model_of_a_judge_one_real_question() -> None:
    with llm_server(fail_with(400, "The model has crashed")) as server:
        make_llm_judge(make_evaluation(), server.base_url)
        (told,) = [one for one in run_checks(lambda: None) if one.part.startswith("endpoint")]
        assert told.health is Health.PROBLEM
        assert "test-model did not answer: " in told.summary
        assert "The model has crashed" in told.summary
        server.script = answer_well
        (told,) = [one for one in run_checks(lambda: None) if one.part.startswith("endpoint")]
    assert (told.health, told.summary) == (Health.OK, "test-model responds")
