"""An endpoint that goes away during a run and comes back: the run goes on by itself."""

import re
import threading
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.management import call_command
from django.db import connections
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluations.domain.judges import AttemptOutcome, CallState, RunState
from evaluations.jobs.runner import work_on_due_jobs
from evaluations.judges.calls.lease_sweeper import find_idle_runs, find_runs_to_join
from evaluations.judges.endpoints.outages import (
    PROBE_ENDPOINT,
    describe_outage,
    end_outage,
    has_endpoint_answered,
    probe_now,
    probe_wait,
    restore_lost_probes,
    set_endpoint_aside,
)
from evaluations.judges.runs.services import start_run
from evaluations.management.commands import run_judge
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.jobs import Job
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.users import User
from tests.factories.evaluations import make_comparison
from tests.factories.judges import make_llm_judge, work_run_here
from tests.helpers.api_client import ApiClient, token_for
from tests.helpers.llm_server import Question, Script, ServerAnswer, answer_well, drop_connection, fail_with, llm_server
from tests.helpers.page_text import html_of
from tests.helpers.work_sessions import CLOSED_ADDRESS, claim_session_calls, start_run_session

pytestmark = pytest.mark.django_db(transaction=True)

COMPARISONS, IN_FLIGHT = 60, 8
CALLS = 2 * COMPARISONS


@pytest.fixture(autouse=True)
def sixty_comparisons(evaluation: Evaluation) -> None:
    for number in range(COMPARISONS):
        make_comparison(evaluation, response_a=f"a{number}")


def make_known_judge(evaluation: Evaluation, base_url: str, **settings: Any) -> Judge:
    """A judge whose endpoint answered an earlier run."""
    judge = make_llm_judge(evaluation, base_url, mode="json_schema", max_in_flight=IN_FLIGHT, **settings)
    assert work_run_here(start_run(judge, user=None, limit=1, orders="as-stored")).state == RunState.DONE
    return Judge.objects.get(pk=judge.pk)


def probe() -> Endpoint:
    """As a worker does once the next probe is due."""
    Job.objects.filter(kind=PROBE_ENDPOINT).update(not_before=None)
    work_on_due_jobs(PROBE_ENDPOINT)
    return Endpoint.objects.get()


def break_after(count: int, then: Script, gone: threading.Event | None = None) -> Script:
    """Answer so many questions, then something else."""
    left = iter(range(count))

    def script(question: Question) -> ServerAnswer:
        if next(left, None) is not None:
            return answer_well(question)
        if gone:
            gone.set()
        return then(question)

    return script


def test_a_run_goes_on_by_itself_after_its_server_was_killed_and_started_again(evaluation: Evaluation) -> None:
    gone = threading.Event()
    with llm_server(latency=0.01, models=["test-model"]) as server:
        port = urlsplit(server.base_url).port or 0
        judge = make_known_judge(evaluation, server.base_url)
        server.script = break_after(30, answer_well, gone)
        run = start_run(judge, user=None)
        working = threading.Thread(target=work_in_thread, args=[run])
        working.start()
        assert gone.wait(60)
    working.join(60)
    run.refresh_from_db()
    endpoint = Endpoint.objects.get()
    assert (run.state, run.stop_reason) == (RunState.RUNNING, "")
    assert endpoint.down_since is not None
    failed = Attempt.objects.exclude(outcome=AttemptOutcome.ANSWERED)
    assert failed.count() <= IN_FLIGHT + 4
    assert not Call.objects.filter(state__in=[CallState.RUNNING, CallState.FAILED]).exists()
    assert find_idle_runs() == []
    before = Attempt.objects.count()
    work_run_here(run)
    assert probe().down_since is not None
    assert Attempt.objects.count() == before
    with llm_server(port=port, models=["test-model"]) as server:
        assert probe().down_since is None
        assert server.questions == []
        assert find_idle_runs() == [run.pk]
        assert work_run_here(run).state == RunState.DONE
    assert Call.objects.filter(state=CallState.ANSWERED).count() == CALLS


def work_in_thread(run: Run) -> None:

    try:
        work_run_here(run)
    finally:
        connections.close_all()


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_gateway_without_its_server_is_set_aside_after_a_handful_of_requests(
    evaluation: Evaluation, status: int
) -> None:
    with llm_server() as server:
        judge = make_known_judge(evaluation, server.base_url)
        server.script = fail_with(status)
        run = work_run_here(start_run(judge, user=None))
        assert run.state == RunState.RUNNING
        assert Endpoint.objects.get().down_reason.startswith(f"The server answered {status}")
        assert Attempt.objects.exclude(outcome=AttemptOutcome.ANSWERED).count() <= 3
        assert len(server.questions) <= 1 + IN_FLIGHT + 4


def test_broken_connections_set_it_aside_and_each_leaves_at_most_one_row(evaluation: Evaluation) -> None:
    with llm_server(latency=0.01) as server:
        judge = make_known_judge(evaluation, server.base_url)
        server.script = drop_connection
        run = work_run_here(start_run(judge, user=None))
        assert (run.state, Endpoint.objects.get().down_since is None) == (RunState.RUNNING, False)
        assert Attempt.objects.exclude(outcome=AttemptOutcome.ANSWERED).count() <= IN_FLIGHT + 4


def test_an_endpoint_that_never_answered_stops_the_run_as_before(evaluation: Evaluation) -> None:
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS, mode="json_schema", max_in_flight=IN_FLIGHT)
    run = work_run_here(start_run(judge, user=None))
    assert run.state in (RunState.STOPPED, RunState.PAUSED)
    assert "Nobody answers at" in run.stop_reason
    assert Endpoint.objects.get().down_since is None


@pytest.mark.parametrize(("script", "state"), [(fail_with(500), RunState.PAUSED), (fail_with(401), RunState.STOPPED)])
def test_a_server_that_fails_every_request_otherwise_is_not_set_aside(
    evaluation: Evaluation, script: Script, state: RunState
) -> None:
    with llm_server() as server:
        judge = make_known_judge(evaluation, server.base_url)
        server.script = script
        run = work_run_here(start_run(judge, user=None))
        assert (run.state, Endpoint.objects.get().down_since) == (state, None)


def test_one_call_that_a_gateway_never_answers_ends_as_failed_while_the_others_go_on(evaluation: Evaluation) -> None:
    def script(question: Question) -> ServerAnswer:
        return fail_with(503)(question) if "a7" in question.prompt.split() else answer_well(question)

    with llm_server() as server:
        judge = make_known_judge(evaluation, server.base_url)
        server.script = script
        run = work_run_here(start_run(judge, user=None, orders="as-stored"))
        assert (run.state, Endpoint.objects.get().down_since) == (RunState.DONE, None)
        assert Call.objects.get(state=CallState.FAILED).error.startswith("No answer after 4 tries")


def test_a_gateway_that_answers_probes_and_no_request_is_asked_ever_more_rarely(evaluation: Evaluation) -> None:
    with llm_server(models=["test-model"]) as server:
        judge = make_known_judge(evaluation, server.base_url)
        server.script = fail_with(503)
        run = start_run(judge, user=None)
        waits = []
        for _ in range(4):
            Call.objects.update(not_before=None)
            run = work_run_here(run)
            waits.append(Endpoint.objects.get().failed_probes)
            assert probe().down_since is None
        assert (run.state, waits) == (RunState.RUNNING, [0, 1, 2, 3])
        assert Attempt.objects.exclude(outcome=AttemptOutcome.ANSWERED).count() <= 4 * 4
        server.script = answer_well
        Call.objects.update(not_before=None)
        assert work_run_here(run).state == RunState.DONE
        set_endpoint_aside(Endpoint.objects.get(), "again")
        assert Endpoint.objects.get().failed_probes == 0


# ---- probes ------------------------------------------------------------------------------------


def test_waits_double_from_a_second_up_to_hours() -> None:
    assert 0.8 <= probe_wait(0).total_seconds() <= 1.2
    assert 6.4 <= probe_wait(3).total_seconds() <= 9.6
    assert timedelta(hours=3) < probe_wait(40) < timedelta(hours=5)


@pytest.mark.parametrize("models", [["test-model"], []])
def test_probes_are_free_with_a_list_of_models_or_without(evaluation: Evaluation, models: list[str]) -> None:
    with llm_server(models=models) as server:
        judge = make_known_judge(evaluation, server.base_url)
        asked = len(server.questions)
        assert judge.endpoint is not None
        set_endpoint_aside(judge.endpoint, "gone")
        assert probe().down_since is None
        assert len(server.questions) == asked


def test_a_failed_probe_waits_longer_for_the_next_one_and_there_is_one_job(evaluation: Evaluation) -> None:
    endpoint = make_llm_judge(evaluation, CLOSED_ADDRESS).endpoint
    assert endpoint is not None
    set_endpoint_aside(endpoint, "gone")
    set_endpoint_aside(endpoint, "gone again")
    first = probe()
    second = probe()
    assert first.next_probe_at is not None
    assert second.next_probe_at is not None
    assert second.next_probe_at - timezone.now() > timedelta(seconds=2)
    assert (second.failed_probes, second.down_reason, Job.objects.count()) == (2, "gone", 1)
    probe_now(endpoint)
    assert Job.objects.due().count() == 1


def test_a_probe_that_was_lost_is_made_again(evaluation: Evaluation) -> None:
    make_llm_judge(evaluation, CLOSED_ADDRESS)
    Endpoint.objects.update(down_since=timezone.now())
    restore_lost_probes()
    assert Job.objects.get().kind == PROBE_ENDPOINT


def test_runs_at_an_endpoint_that_is_down_claim_nothing_and_wake_nobody(evaluation: Evaluation) -> None:
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS, mode="json_schema")
    session = start_run_session(judge)
    assert judge.endpoint is not None
    set_endpoint_aside(judge.endpoint, "gone")
    assert claim_session_calls(session) == []
    assert (find_idle_runs(), find_runs_to_join()) == ([], [])
    end_outage(judge.endpoint)
    assert find_idle_runs() == [session.run.pk]
    assert len(claim_session_calls(session, 4)) == 4
    assert list(Event.objects.filter(object_type="endpoint").order_by("pk").values_list("verb", flat=True))[-2:] == [
        "set aside",
        "answers again",
    ]


def test_a_passed_test_shows_that_an_endpoint_works_and_a_failed_one_does_not(evaluation: Evaluation) -> None:
    endpoint = make_llm_judge(evaluation, CLOSED_ADDRESS).endpoint
    assert endpoint is not None
    check = endpoint.checks.create(model="m", checked_at=timezone.now(), result={"request_shape": None})
    assert not has_endpoint_answered(endpoint)
    check.result = {"request_shape": {"limit_name": ""}}
    check.save()
    assert has_endpoint_answered(endpoint)


# ---- what people see ---------------------------------------------------------------------------


def test_the_run_says_since_when_and_when_next_and_a_manager_can_try_now(
    client: Client, evaluation: Evaluation, manager: User, viewer: User
) -> None:
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS, mode="json_schema")
    run = start_run_session(judge).run
    assert judge.endpoint is not None
    set_endpoint_aside(judge.endpoint, "gone")
    Endpoint.objects.update(next_probe_at=timezone.now() + timedelta(seconds=40))
    Job.objects.update(not_before=timezone.now() + timedelta(hours=1))
    client.force_login(manager)
    page = html_of(client.get(reverse("run", args=["study", run.pk])))
    assert "has not answered since" in page
    assert re.search(r"next try in \d\d s", page)
    assert "Check now" in page
    api = ApiClient(token_for(manager))
    told = api.get(f"/evaluations/study/runs/{run.pk}").json()
    assert (told["state"], "has not answered since" in told["waits_for"]) == ("running", True)
    assert told["next_try_at"] is not None
    listed = html_of(client.get(reverse("runs", args=["study"])))
    assert "endpoint not responding" in listed
    assert client.post(reverse("run_try_now", args=["study", run.pk])).status_code == 302
    assert Job.objects.due().count() == 1
    assert api.post(f"/evaluations/study/runs/{run.pk}/try-now").status_code == 200
    client.force_login(viewer)
    assert "Check now" not in html_of(client.get(reverse("run", args=["study", run.pk])))
    end_outage(judge.endpoint)
    assert api.post(f"/evaluations/study/runs/{run.pk}/try-now").status_code == 422


def test_a_command_that_waits_goes_through_the_outage_and_says_so(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with llm_server(models=["test-model"]) as server:
        make_known_judge(evaluation, server.base_url)
        server.script = fail_with(503)

        def start_server_and_describe(endpoint: Endpoint) -> str:
            server.script = answer_well
            return describe_outage(endpoint)

        monkeypatch.setattr(run_judge, "describe_outage", start_server_and_describe)
        call_command("run_judge", "study", judge=["judge"], limit=4, wait=True)
    printed = capsys.readouterr()
    assert "has not answered since" in printed.err
    assert '"state": "done"' in printed.out
