"""An endpoint is used by the evaluations that it is granted to, and does not exist for others."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import Client
from django.urls import reverse

from evaluations.domain.choices import ShownOrder
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import CallState, RequestShape, RunChannel, RunState
from evaluations.domain.roles import Role
from evaluations.judges.calls import batch_worker
from evaluations.judges.calls.claims import claim_calls
from evaluations.judges.endpoints.grants import (
    find_grant,
    grant_endpoint,
    is_granted,
    list_granted_endpoints,
    withdraw_grant,
)
from evaluations.judges.endpoints.services import change_endpoint, read_stored_settings
from evaluations.judges.runs.services import pause_run, resume_run, start_panel, start_run
from evaluations.judges.runs.single_call import single_call_selection
from evaluations.judges.services import JudgeSettings, create_judge
from evaluations.llm.batch_client import build_batch_line
from evaluations.models.comparisons import Comparison
from evaluations.models.endpoint_grants import EndpointGrant
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Endpoint, Judge, LocalServer
from evaluations.models.runs import Batch, Call, Run
from evaluations.models.users import User
from tests.factories.evaluations import make_comparison, make_evaluation, make_member, make_user
from tests.factories.judges import make_llm_judge, work_run_here
from tests.helpers.api_client import ApiClient, token_for
from tests.helpers.llm_server import answer_broken, llm_server
from tests.helpers.page_text import html_of
from tests.helpers.work_sessions import CLOSED_ADDRESS, claim_session_calls, make_rating_judge, start_run_session

pytestmark = pytest.mark.django_db(transaction=True)

NOT_GRANTED = "not granted to this evaluation"


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint.objects.create(name="secret-server", base_url="http://10.1.2.3/v1", key_variable="HIDDEN_API_KEY")


@pytest.fixture
def judge(evaluation: Evaluation) -> Judge:
    make_comparison(evaluation)
    return make_llm_judge(evaluation, CLOSED_ADDRESS, mode="json_schema")


def settings_at(endpoint: Endpoint, evaluation: Evaluation, name: str = "judge") -> JudgeSettings:
    return JudgeSettings(name=name, model="m", version=evaluation.review_rubric, endpoint=endpoint)


def withdraw(judge: Judge) -> None:
    assert judge.endpoint is not None
    grant = find_grant(judge.endpoint, judge.evaluation)
    assert grant is not None
    assert withdraw_grant(grant, user=None)


# ---- who grants ------------------------------------------------------------------------------


def test_a_manager_makes_a_judge_only_at_a_granted_endpoint(
    evaluation: Evaluation, manager: User, endpoint: Endpoint
) -> None:
    with pytest.raises(InputRefused, match=f"^There is no endpoint {endpoint.pk}.$"):
        create_judge(evaluation, settings_at(endpoint, evaluation), user=manager)
    grant_endpoint(endpoint, evaluation, budget=None, user=None)
    assert create_judge(evaluation, settings_at(endpoint, evaluation), user=manager).endpoint == endpoint


def test_a_grant_to_one_evaluation_is_none_to_another(evaluation: Evaluation, endpoint: Endpoint) -> None:
    grant_endpoint(endpoint, make_evaluation(), budget=None, user=None)
    assert not is_granted(endpoint, evaluation)


def test_a_site_administrator_who_makes_a_judge_grants_its_endpoint(evaluation: Evaluation, endpoint: Endpoint) -> None:
    root = make_user("root", is_superuser=True)
    create_judge(evaluation, settings_at(endpoint, evaluation), user=root)
    grant = EndpointGrant.objects.get()
    assert (grant.is_active, grant.budget, grant.granted_by) == (True, None, root)
    event = Event.objects.get(verb="granted")
    assert (event.user, event.evaluation, event.after["endpoint"]) == (root, evaluation, "secret-server")


def test_an_endpoint_that_is_offered_needs_no_grant(evaluation: Evaluation, manager: User, endpoint: Endpoint) -> None:
    Endpoint.objects.update(is_offered=True)
    create_judge(evaluation, settings_at(endpoint, evaluation), user=manager)
    assert not EndpointGrant.objects.filter(is_active=True).exists()
    assert list(list_granted_endpoints(evaluation)) == [endpoint]


def test_a_new_endpoint_is_offered_to_nobody(client: Client, evaluation: Evaluation) -> None:
    root = ApiClient(token_for(make_user("root", is_superuser=True)))
    made = root.post("/endpoints", {"name": "new", "base_url": "http://10.1.1.1/v1"}).json()
    assert made["is_offered"] is False
    assert not list_granted_endpoints(evaluation).exists()


def test_granting_changing_and_withdrawing_are_recorded_once_each(evaluation: Evaluation, endpoint: Endpoint) -> None:
    for budget in (None, None, 5_000_000_000, 5_000_000_000):
        grant = grant_endpoint(endpoint, evaluation, budget=budget, user=None)
    assert withdraw_grant(grant, user=None)
    assert not withdraw_grant(grant, user=None)
    recorded = Event.objects.filter(object_type="endpointgrant").order_by("pk")
    assert [event.verb for event in recorded] == ["granted", "changed grant", "withdrew grant"]
    assert recorded[1].after["budget_usd"] == "5.00"


# ---- every door to a paid request --------------------------------------------------------------


def start_plain(judge: Judge) -> object:
    return start_run(judge, user=None)


def start_in_panel(judge: Judge) -> object:
    return start_panel([judge], user=None)


def start_batch(judge: Judge) -> object:
    return start_run(judge, user=None, channel=RunChannel.BATCH)


def try_once(judge: Judge) -> object:
    return start_run(judge, user=None, **single_call_selection(Comparison.objects.get(), ShownOrder.AS_STORED))


def ask_failures_again(judge: Judge) -> object:
    return start_run(judge, user=None, ask_failures_again=True)


def retry_states(judge: Judge) -> object:
    return start_run(judge, user=None, only_states=["failed"])


STARTS = [start_plain, start_in_panel, start_batch, try_once, ask_failures_again, retry_states]


@pytest.mark.parametrize("start", STARTS)
def test_no_run_starts_after_the_grant_was_withdrawn(judge: Judge, start: Callable[[Judge], object]) -> None:
    if start is retry_states:
        Call.objects.create(judge=judge, comparison=Comparison.objects.get(), state=CallState.FAILED)
    withdraw(judge)
    with pytest.raises(InputRefused, match=NOT_GRANTED):
        start(judge)
    assert not Run.objects.exists()


def test_no_pointwise_run_starts_after_the_grant_was_withdrawn(evaluation: Evaluation) -> None:
    make_comparison(evaluation)
    judge = make_rating_judge(evaluation, mode="json_schema")
    withdraw(judge)
    with pytest.raises(InputRefused, match=NOT_GRANTED):
        start_run(judge, user=None)


@pytest.mark.parametrize("state", [RunState.PLANNING, RunState.RUNNING, RunState.PAUSED])
def test_withdrawing_stops_the_runs_there_with_the_reason(judge: Judge, state: RunState) -> None:
    run = start_run(judge, user=None)
    other = start_run(make_llm_judge(judge.evaluation, "http://127.0.0.1:8/v1", name="other"), user=None)
    Run.objects.filter(pk=run.pk).update(state=state)
    withdraw(judge)
    run.refresh_from_db()
    other.refresh_from_db()
    assert (run.state, other.state) == (RunState.STOPPED, RunState.PLANNING)
    assert NOT_GRANTED in run.stop_reason


def test_a_stopped_run_is_not_resumed_without_a_grant(judge: Judge) -> None:
    session = start_run_session(judge)
    withdraw(judge)
    with pytest.raises(InputRefused, match=NOT_GRANTED):
        resume_run(session.run, user=None)
    assert judge.endpoint is not None
    grant_endpoint(judge.endpoint, judge.evaluation, budget=None, user=None)
    resume_run(session.run, user=None)
    assert claim_session_calls(session)


def test_a_run_that_slipped_past_the_withdrawal_claims_nothing_and_stops(judge: Judge) -> None:
    session = start_run_session(judge)
    EndpointGrant.objects.update(is_active=False)
    assert not claim_calls(session, 8).calls
    session.run.refresh_from_db()
    assert (session.run.state, NOT_GRANTED in session.run.stop_reason) == (RunState.STOPPED, True)


def test_a_repair_is_not_sent_once_the_grant_is_withdrawn(evaluation: Evaluation) -> None:
    """A call goes on with a second request; each one is claimed anew."""
    make_comparison(evaluation)
    with llm_server(answer_broken) as server:
        judge = make_llm_judge(evaluation, server.base_url, mode="json_schema", max_in_flight=1)
        run = start_run(judge, user=None, orders="as-stored")

        def withdraw_here() -> None:
            EndpointGrant.objects.update(is_active=False)
            connections.close_all()

        def broken_and_withdrawn(question: Any) -> Any:
            with ThreadPoolExecutor(1) as thread:
                thread.submit(withdraw_here).result()
            return answer_broken(question)

        server.script = broken_and_withdrawn
        run = work_run_here(run)
        assert (sum(server.asked.values()), run.state) == (1, RunState.STOPPED)


def test_a_file_is_not_uploaded_if_the_grant_goes_while_it_is_written(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:

    Judge.objects.update(request_shape=RequestShape().as_json())
    run = start_run(Judge.objects.get(), user=None, channel=RunChannel.BATCH)

    def withdraw_and_build(*args: Any) -> bytes:
        EndpointGrant.objects.update(is_active=False)
        return build_batch_line(*args)

    monkeypatch.setattr(batch_worker, "build_batch_line", withdraw_and_build)
    monkeypatch.setattr(batch_worker, "connect_batches", lambda server: pytest.fail("a file was sent"))
    run = work_run_here(run)
    assert (run.state, Batch.objects.get().state) == (RunState.STOPPED, "failed")
    assert not Call.objects.exclude(state=CallState.PENDING).exists()


def test_runs_stop_where_an_endpoint_is_no_longer_offered_unless_it_was_granted(evaluation: Evaluation) -> None:
    judges = [make_llm_judge(one, CLOSED_ADDRESS) for one in (evaluation, make_evaluation())]
    for judge in judges:
        make_comparison(judge.evaluation)
    endpoint = judges[0].endpoint
    assert endpoint is not None
    Endpoint.objects.update(is_offered=True)
    EndpointGrant.objects.filter(evaluation=evaluation).update(is_active=False)
    runs = [start_run(Judge.objects.get(pk=judge.pk), user=None) for judge in judges]
    endpoint.refresh_from_db()
    settings = read_stored_settings(endpoint)
    change_endpoint(endpoint, type(settings)(**{**vars(settings), "is_offered": False}), user=None)
    assert [Run.objects.get(pk=run.pk).state for run in runs] == [RunState.STOPPED, RunState.PLANNING]


def test_a_paused_run_stays_paused_while_its_grant_stands(judge: Judge) -> None:
    run = start_run(judge, user=None)
    pause_run(run, user=None)
    resume_run(run, user=None)
    assert Run.objects.get().state == RunState.PLANNING


# ---- what others see of it ---------------------------------------------------------------------


SECRETS = ("secret-server", "10.1.2.3", "HIDDEN_API_KEY", "their-model")


@pytest.mark.parametrize("role", [Role.OWNER, Role.MANAGER])
def test_pages_and_api_tell_a_manager_nothing_of_an_endpoint_that_is_not_granted(
    client: Client, evaluation: Evaluation, endpoint: Endpoint, role: Role
) -> None:
    endpoint.prices.create(model="their-model", tokens_in=1, tokens_cached=1, tokens_out=1)
    LocalServer.objects.create(
        base_url="http://10.1.2.3/v1", kind="vllm", model_names=["their-model"], seen_at="2026-01-01T00:00Z"
    )
    user = make_member(evaluation, role)
    client.force_login(user)
    api = ApiClient(token_for(user))
    asked = f"?endpoint={endpoint.pk}&model=their-model"
    new = reverse("judge_new", args=["study"])
    pages = [client.get(new), client.get(reverse("judges", args=["study"]))]
    pages += [client.get(f"{new}{asked}", headers={"HX-Request": "true"}), api.get("/evaluations/study/endpoints")]
    values = {"endpoint": endpoint.pk, "model": "m", "version": evaluation.review_rubric_id, "mode": "auto"}
    pages += [client.post(new, values), api.post("/evaluations/study/judges", {**values, "name": "j"})]
    for page in pages:
        text = page.content.decode().replace("?model=their-model", "")
        assert [secret for secret in SECRETS[:3] if secret in text] == []
    assert "their-model" not in html_of(pages[0])
    assert "their-model" not in html_of(pages[1])
    assert [page.status_code for page in pages[-2:]] == [422, 422]
    unknown = api.post("/evaluations/study/judges", {**values, "endpoint": endpoint.pk + 99, "name": "j"})
    assert unknown.json()["detail"].replace(str(endpoint.pk + 99), str(endpoint.pk)) == pages[-1].json()["detail"]
    assert not Judge.objects.exists()


@pytest.mark.parametrize("name", ["endpoint", "endpoint_grant", "endpoint_withdraw", "endpoint_check"])
def test_managers_reach_no_page_of_an_endpoint(client: Client, manager: User, endpoint: Endpoint, name: str) -> None:
    client.force_login(manager)
    assert client.post(reverse(name, args=[endpoint.pk])).status_code == 404


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "grants"), ("PUT", "grants"), ("DELETE", "grants/1"), ("GET", "spending")]
)
def test_managers_neither_grant_nor_read_grants_by_the_api(
    manager: User, evaluation: Evaluation, endpoint: Endpoint, method: str, path: str
) -> None:
    api = ApiClient(token_for(manager))
    assert api(
        method, f"/endpoints/{endpoint.pk}/{path}", {"evaluation": "study"} if method == "PUT" else None
    ).status_code in (403, 404)
    assert not EndpointGrant.objects.exists()


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.VIEWER, Role.ADJUDICATOR])
def test_only_managers_see_the_budgets_of_their_evaluation(client: Client, evaluation: Evaluation, role: Role) -> None:
    make_llm_judge(evaluation, CLOSED_ADDRESS)
    client.force_login(make_member(evaluation, role))
    assert "Budget here" not in html_of(client.get(reverse("judges", args=["study"])))
    user = make_member(evaluation, role, "other")
    assert ApiClient(token_for(user)).get("/evaluations/study/endpoints").status_code == 403


def test_a_manager_sees_the_account_of_their_evaluation_and_of_no_other(
    client: Client, evaluation: Evaluation, manager: User, endpoint: Endpoint
) -> None:
    grant_endpoint(endpoint, evaluation, budget=2_500_000_000, user=None)
    theirs = make_evaluation()
    grant_endpoint(endpoint, theirs, budget=777_000_000_000, user=None)
    client.force_login(manager)
    page = html_of(client.get(reverse("judges", args=["study"])))
    assert "$2.5" in page
    assert "777" not in page
    (listed,) = ApiClient(token_for(manager)).get("/evaluations/study/endpoints").json()["items"]
    assert listed == {
        "id": endpoint.pk,
        "name": "secret-server",
        "is_granted": True,
        "budget_usd": 2.5,
        "spent_usd": 0.0,
        "reserved_usd": 0.0,
    }


# ---- page, API, command ------------------------------------------------------------------------


def test_an_administrator_grants_and_withdraws_on_the_page(
    client: Client, evaluation: Evaluation, endpoint: Endpoint
) -> None:
    client.force_login(make_user("root", is_superuser=True))
    address = reverse("endpoint_grant", args=[endpoint.pk])
    assert client.post(address, {"evaluation": evaluation.pk, "budget": "1.50"}).status_code == 302
    grant = EndpointGrant.objects.get()
    assert (grant.is_active, grant.budget) == (True, 1_500_000_000)
    refused = client.post(address, {"evaluation": evaluation.pk, "budget": "0"})
    assert (refused.status_code, "The budget must be more than USD 0." in html_of(refused)) == (422, True)
    page = html_of(client.get(reverse("endpoint", args=[endpoint.pk])))
    assert evaluation.name in page
    client.post(reverse("endpoint_withdraw", args=[endpoint.pk]), {"grant": grant.pk})
    grant.refresh_from_db()
    assert not grant.is_active
    assert client.post(reverse("endpoint_withdraw", args=[endpoint.pk]), {"grant": "x"}).status_code == 404


def test_an_administrator_grants_and_withdraws_by_the_api(evaluation: Evaluation, endpoint: Endpoint) -> None:
    root = ApiClient(token_for(make_user("root", is_superuser=True)))
    at = f"/endpoints/{endpoint.pk}/grants"
    granted = root("PUT", at, {"evaluation": "study", "budget_usd": 1.5})
    assert (granted.status_code, granted.json()["budget_usd"]) == (200, 1.5)
    assert [one["evaluation"] for one in root.get(at).json()["items"]] == ["study"]
    assert root("DELETE", f"{at}/{granted.json()['id']}").status_code == 204
    assert not EndpointGrant.objects.get().is_active
    assert root("PUT", at, {"evaluation": "nowhere"}).status_code == 422


def test_a_command_grants_withdraws_and_prints_what_was_spent(
    evaluation: Evaluation, endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(*args: str, **options: Any) -> Any:
        call_command("grant_endpoint", "secret-server", *args, **options)
        return json.loads(capsys.readouterr().out)

    told = printed("study", budget="3", daily_budget="10", offer="no")
    assert told["grants"] == [{"evaluation": "study", "active": True, "budget_usd": 3.0, "spent_usd": 0.0}]
    assert (told["daily_budget_usd"], told["spent_usd"], told["requests"]) == (10.0, 0.0, 0)
    assert printed("study", daily_budget="11")["grants"][0]["budget_usd"] == 3.0
    assert printed("study", budget="none")["grants"][0]["budget_usd"] is None
    assert printed("study", withdraw=True)["grants"] == []
    with pytest.raises(CommandError, match="is not granted to “study”"):
        printed("study", withdraw=True)
    with pytest.raises(CommandError, match="Name the evaluation"):
        printed(withdraw=True)
    with pytest.raises(CommandError, match="There is no endpoint “nowhere”"):
        call_command("grant_endpoint", "nowhere")
