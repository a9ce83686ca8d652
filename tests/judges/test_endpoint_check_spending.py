"""A test of an endpoint and the doctor's question count in its day and its totals, and keep to its daily budget."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from evaluations.domain.errors import InputRefused
from evaluations.domain.jobs import CHECK_ENDPOINT
from evaluations.judges.endpoints import check_spending
from evaluations.judges.endpoints.checks import find_model_problem, perform_check
from evaluations.judges.endpoints.grants import find_account_of_today
from evaluations.judges.endpoints.selectors import server_for_endpoint
from evaluations.judges.endpoints.services import request_check
from evaluations.models.endpoint_grants import EndpointSpending
from evaluations.models.judges import Endpoint, EndpointCheck, Price
from evaluations.operations.doctor import run_checks
from evaluations.operations.findings import Health
from tests.factories.evaluations import make_evaluation, make_user
from tests.factories.judges import make_llm_judge
from tests.helpers.api_client import ApiClient, token_for
from tests.helpers.job_work import work_all
from tests.helpers.llm_server import (
    LLMServer,
    Question,
    Script,
    ServerAnswer,
    accept_shapes,
    answer_well,
    fail_with,
    llm_server,
)
from tests.helpers.page_text import html_of

pytestmark = pytest.mark.django_db(transaction=True)

IN, OUT = 1_000, 10_000  # nano-USD a token: $1 and $10 a million
USED_UP = "The daily budget of “here” does not cover a test: USD"


def answer_counted(question: Question) -> ServerAnswer:
    """An answer of 100 tokens in and 20 out, which cost 300,000 nano-USD."""
    message = {"role": "assistant", "content": '{"choice": "A"}'}
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    return ServerAnswer(body={"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})


def make_endpoint(server: LLMServer, **columns: Any) -> Endpoint:
    endpoint = Endpoint.objects.create(name="here", base_url=server.base_url, **columns)
    usd = {"tokens_in": IN * 10**6, "tokens_cached": IN * 10**6, "tokens_out": OUT * 10**6}
    Price.objects.create(endpoint=endpoint, model="test-model", **usd)
    return endpoint


def check(endpoint: Endpoint, *, long: bool = False) -> None:
    perform_check(server_for_endpoint(endpoint), "test-model", endpoint=endpoint, long=long)


def totals_of_tests(endpoint: Endpoint) -> tuple[int, int, int, int, int]:
    row = EndpointSpending.objects.get(endpoint=endpoint, evaluation=None, evaluation_name="")
    assert find_account_of_today(endpoint).spent == row.cost + row.max_cost
    assert find_account_of_today(endpoint).reserved == 0
    return row.requests, row.tokens_in, row.tokens_out, row.cost, row.max_cost


def test_what_tests_of_one_day_took_is_added_up() -> None:
    with llm_server(answer_counted) as server:
        endpoint = make_endpoint(server, daily_budget=10**9)
        check(endpoint)
        assert totals_of_tests(endpoint) == (1, 100, 20, 300_000, 0)
        check(endpoint, long=True)
        assert totals_of_tests(endpoint) == (3, 300, 60, 900_000, 0)
        assert find_model_problem(endpoint, "test-model") == ""
        assert totals_of_tests(endpoint) == (4, 400, 80, 1_200_000, 0)
        call_command("check_endpoint", "here", model="test-model", stdout=StringIO())
        call_command("check_endpoint", base_url=server.base_url, model="test-model", stdout=StringIO())
    assert totals_of_tests(endpoint)[3] == len(server.questions) * 300_000


def answer_uncounted(question: Question) -> ServerAnswer:
    message = {"role": "assistant", "content": '{"choice": "A"}'}
    return ServerAnswer(body={"choices": [{"message": message, "finish_reason": "stop"}]})


@pytest.mark.parametrize(
    ("script", "requests", "is_charged"),
    [
        (accept_shapes("json_object"), 2, None),  # a refusal, then an answer
        (fail_with(401), 1, False),
        (fail_with(500, "The model has crashed"), 1, False),
        (answer_uncounted, 1, True),
        (lambda question: ServerAnswer(drop=True), 1, True),
    ],
)
def test_a_test_that_fails_counts_what_it_can_have_cost(script: Script, requests: int, is_charged: bool | None) -> None:
    with llm_server(script) as server:
        endpoint = make_endpoint(server)
        check(endpoint)
    counted, _, _, cost, max_cost = totals_of_tests(endpoint)
    assert counted == requests == len(server.questions)
    if is_charged is None:
        assert (cost > 0, max_cost) == (True, 0)
    else:
        assert (cost, max_cost > 512 * OUT) == (0, is_charged)


def test_an_endpoint_that_nobody_answers_is_charged_nothing() -> None:
    with llm_server(answer_counted) as server:
        endpoint = make_endpoint(server)
    check(endpoint)
    assert "did not answer" not in find_model_problem(endpoint, "test-model")
    assert totals_of_tests(endpoint)[3:] == (0, 0)


def test_a_test_is_charged_before_anything_is_sent_and_stays_charged_if_it_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(check_spending.CheckMeter, "add", killed)
    with llm_server(answer_counted) as server:
        endpoint = make_endpoint(server)
        with pytest.raises(KeyboardInterrupt):
            check(endpoint)
    *counted, max_cost = totals_of_tests(endpoint)
    assert counted == [0, 0, 0, 0]
    assert max_cost > 512 * OUT


# ---- the daily budget ------------------------------------------------------------------------


def test_nothing_is_sent_beyond_the_daily_budget() -> None:
    with llm_server(answer_counted) as server:
        endpoint = make_endpoint(server, daily_budget=10**9)
        for _ in range(3):
            check(endpoint)
        # Less than 5,120,000 is left, which the longest reply alone can cost.
        Endpoint.objects.update(daily_budget=6_000_000)
        endpoint.refresh_from_db()
        with pytest.raises(InputRefused, match=rf"^{USED_UP} 0\.0009 of 0\.006 spent or in flight today\. Raise it"):
            check(endpoint)
        with pytest.raises(CommandError, match=USED_UP):
            call_command("check_endpoint", base_url=server.base_url, model="test-model", stdout=StringIO())
        make_llm_judge(make_evaluation(), server.base_url)
        [told] = [one for one in run_checks(lambda: None) if one.part == "endpoint here"]
        assert (told.health, told.summary) == (Health.WARNING, "test-model was not tested")
        assert told.advice.startswith(USED_UP)
        assert len(server.questions) == 3
        assert totals_of_tests(endpoint)[3:] == (900_000, 0)


def test_with_a_daily_budget_a_model_needs_a_price() -> None:
    with llm_server(answer_counted) as server:
        endpoint = make_endpoint(server, daily_budget=10**9)
        Price.objects.all().delete()
        with pytest.raises(InputRefused, match=r"^No price is known for “test-model” at “here”, so its daily budget"):
            check(endpoint)
    assert not server.questions


def test_a_used_up_day_is_said_at_once_on_the_page_and_by_the_api(client: Client) -> None:
    root = make_user("root", is_superuser=True)
    client.force_login(root)
    with llm_server(answer_counted) as server:
        endpoint = make_endpoint(server)
        check(endpoint)
        Endpoint.objects.update(daily_budget=300_000)
        assert USED_UP in html_of(
            client.post(reverse("endpoint_check", args=[endpoint.pk]), {"model": "test-model"}, follow=True)
        )
        answer = ApiClient(token_for(root)).post(f"/endpoints/{endpoint.pk}/check", {"model": "test-model"})
    assert (answer.status_code, "does not cover a test" in answer.content.decode()) == (422, True)
    assert not EndpointCheck.objects.exists()
    assert "Endpoint tests" in html_of(client.get(reverse("endpoint", args=[endpoint.pk])))


def test_a_requested_test_whose_day_was_used_up_meanwhile_says_so() -> None:
    with llm_server(answer_counted) as server:
        endpoint = make_endpoint(server, daily_budget=10**9)
        request_check(endpoint, "test-model")
        Endpoint.objects.update(daily_budget=1)
        work_all(CHECK_ENDPOINT)
    [finding] = EndpointCheck.objects.get().result["findings"]
    assert (finding["about"], finding["health"]) == ("Budget", "problem")
    assert finding["found"].startswith(USED_UP)
    assert not server.questions


def test_totals_of_tests_outlive_their_endpoint() -> None:
    with llm_server(answer_well) as server:
        endpoint = make_endpoint(server)
        check(endpoint)
    Price.objects.all().delete()
    Endpoint.objects.get(pk=endpoint.pk).delete()
    row = EndpointSpending.objects.get()
    assert (row.endpoint, row.endpoint_name, row.requests) == (None, "here", 1)
