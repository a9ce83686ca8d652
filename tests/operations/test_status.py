"""How background work stands: what is measured, and what monitors, administrators and programs are told."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.db.models import F
from django.db.models.functions import Now
from django.test import Client
from pytest_django.fixtures import Settings

from evaluations import tasks
from evaluations.domain.jobs import SENT_EXPORT_JOB
from evaluations.domain.judges import AttemptOutcome
from evaluations.jobs.queue import enqueue_job
from evaluations.jobs.sweeper import site_lease
from evaluations.judges.calls.worker_registry import record_heartbeat
from evaluations.models.evaluations import Evaluation
from evaluations.models.jobs import CallTotal, Job, Lease, Worker
from evaluations.models.judges import Endpoint
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.users import User
from evaluations.operations import metrics, site_status, views
from evaluations.operations.call_totals import add_new_attempts
from evaluations.operations.site_status import BROKER_ANSWER
from evaluations.operations.status import describe_broker, find_standstill, format_age, measure_background
from evaluations.tasks import sweep_all
from tests.factories.evaluations import make_comparison
from tests.factories.full_evaluation import make_full_evaluation
from tests.factories.judges import make_llm_judge
from tests.helpers.api_client import ApiClient, token_for
from tests.helpers.work_sessions import CLOSED_ADDRESS, start_run_session
from tests.personas import STRANGER

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A broker that answers."""
    BROKER_ANSWER.asked_at = None
    monkeypatch.setattr(site_status, "reach_broker", lambda seconds: None)
    yield
    BROKER_ANSWER.asked_at = None


@pytest.fixture
def worker(settings: Settings) -> Worker:
    record_heartbeat("here:1", host="here", pid=1, version=settings.VERSION)
    return Worker.objects.get()


@pytest.fixture
def swept(worker: Worker) -> None:
    with site_lease("sweep", 20):
        pass


def last_swept(seconds: int) -> None:
    Lease.objects.update(ended_at=Now() - timedelta(seconds=seconds))


def queued(job: Job, seconds: int) -> None:
    Job.objects.filter(pk=job.pk).update(queued_at=Now() - timedelta(seconds=seconds))


@pytest.fixture
def administrator(owner: User, client: Client) -> Client:
    User.objects.filter(pk=owner.pk).update(is_superuser=True)
    client.force_login(owner)
    return client


def asked(client: Client, path: str, **headers: str) -> tuple[int, str]:
    answer = client.get(path, headers=headers)
    return answer.status_code, answer.content.decode()


def test_a_site_that_sweeps_and_has_nothing_to_do_works(client: Client, swept: None) -> None:
    assert asked(client, "/workz") == (200, "ok\n")


def test_work_stands_still_without_a_worker(client: Client) -> None:
    assert asked(client, "/workz") == (503, "no worker is running\n")


def test_work_stands_still_where_no_worker_sweeps(client: Client, swept: None) -> None:
    last_swept(59)
    assert asked(client, "/workz") == (200, "ok\n")
    last_swept(130)
    assert asked(client, "/workz") == (503, "the last sweep was 2 minutes ago\n")


def test_work_stands_still_where_every_sweep_fails(client: Client, swept: None) -> None:
    last_swept(130)
    with pytest.raises(ZeroDivisionError), site_lease("sweep", 20):
        raise ZeroDivisionError
    assert asked(client, "/workz") == (503, "the last sweep was 2 minutes ago\n")


def test_a_step_of_the_sweep_that_fails_stops_none_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []

    def fail() -> None:
        raise ValueError("this row is broken")

    monkeypatch.setattr(tasks, "SWEEP_STEPS", (fail, lambda: taken.append("second"), fail))
    with pytest.raises(ExceptionGroup) as failed:
        sweep_all()
    assert taken == ["second"]
    assert [str(error) for error in failed.value.exceptions] == ["this row is broken"] * 2


def test_a_sweep_ends_where_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []

    def lose_connection() -> None:
        raise OperationalError("the connection is closed")

    monkeypatch.setattr(tasks, "SWEEP_STEPS", (lose_connection, lambda: taken.append("second")))
    with pytest.raises(OperationalError):
        sweep_all()
    assert not taken


def test_a_worker_that_has_never_swept_is_late_a_minute_after_its_start(worker: Worker) -> None:
    assert list(find_standstill(measure_background())) == []
    Worker.objects.update(started_at=Now() - timedelta(seconds=65))
    assert list(find_standstill(measure_background())) == ["the last sweep was 1 minute ago"]


def test_a_job_that_waits_while_nothing_is_worked_on_stands_still(
    client: Client, evaluation: Evaluation, swept: None
) -> None:
    job = enqueue_job("render_ahead", evaluation.pk, evaluation=evaluation)
    queued(job, 290)
    assert asked(client, "/workz") == (200, "ok\n")
    queued(job, 3700)
    sent = enqueue_job(SENT_EXPORT_JOB, 1, evaluation=evaluation)  # by a web process, which may be dead
    Job.objects.filter(pk=sent.pk).update(state="running", lease_until=Now() + timedelta(minutes=59))
    assert asked(client, "/workz") == (503, "a job has waited for 1 hour\n")
    busy = enqueue_job("index_import", 1, evaluation=evaluation)
    Job.objects.filter(pk=busy.pk).update(state="running", lease_until=Now() + timedelta(minutes=1))
    assert asked(client, "/workz") == (200, "ok\n")


def test_a_run_waits_for_a_worker_only_while_its_endpoint_takes_requests(evaluation: Evaluation) -> None:
    make_comparison(evaluation)
    start_run_session(make_llm_judge(evaluation, CLOSED_ADDRESS, mode="json_schema"))
    hour_ago = Now() - timedelta(hours=1)
    Run.objects.update(created_at=hour_ago, started_at=hour_ago, resumed_at=None)
    assert (measure_background().oldest_call_seconds or 0) > 3500
    endpoint = Endpoint.objects.all()
    endpoint.update(paused_until=Now() + timedelta(hours=1))
    assert measure_background().oldest_call_seconds is None
    endpoint.update(paused_until=Now() - timedelta(seconds=20), down_since=Now() - timedelta(minutes=30))
    assert measure_background().oldest_call_seconds is None
    endpoint.update(down_since=None, probed_up_at=Now() - timedelta(seconds=10))
    assert 9 < (measure_background().oldest_call_seconds or 0) < 20


def test_a_job_waits_since_it_was_last_queued(evaluation: Evaluation) -> None:
    job = enqueue_job("render_ahead", evaluation.pk, evaluation=evaluation)
    Job.objects.filter(pk=job.pk).update(queued_at=F("queued_at") - timedelta(days=2), state="done")
    enqueue_job("render_ahead", evaluation.pk, evaluation=evaluation)
    seconds = measure_background().oldest_job_seconds
    assert seconds is not None
    assert seconds < 60


def test_a_job_that_is_to_wait_does_not_wait_yet(evaluation: Evaluation) -> None:
    job = enqueue_job("render_ahead", evaluation.pk, evaluation=evaluation)
    Job.objects.filter(pk=job.pk).update(queued_at=Now() - timedelta(days=2), not_before=Now() + timedelta(seconds=100))
    assert measure_background().oldest_job_seconds is None


@pytest.mark.parametrize("path", ["/workz", "/readyz", "/metrics"])
def test_monitors_are_told_where_the_database_does_not_answer(
    client: Client, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OperationalError("gone")

    for name in ("measure_background", "has_waiting_migrations", "build_metrics"):
        monkeypatch.setattr(views, name, fail)
    assert asked(client, path) == (503, "the database is not responding\n")


def test_a_web_process_is_ready_once_migrations_are_applied(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(client, "/readyz") == (200, "ok\n"), "without any worker too"
    monkeypatch.setattr(views, "has_waiting_migrations", lambda: True)
    assert asked(client, "/readyz") == (503, "migrations are not applied\n")


def test_monitors_need_no_https(client: Client, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT, settings.SECURE_REDIRECT_EXEMPT = True, [r"^(healthz|readyz|workz|metrics)$"]
    assert {client.get(path).status_code for path in ("/workz", "/metrics", "/readyz")} <= {200, 503}


def test_metrics_are_for_this_machine_where_no_token_is_set(client: Client) -> None:
    assert client.get("/metrics").status_code == 200
    assert client.get("/metrics", REMOTE_ADDR="10.0.0.7").status_code == 404
    assert client.get("/metrics", REMOTE_ADDR="").status_code == 404
    assert client.get("/metrics", headers={"X-Forwarded-For": "10.0.0.7"}).status_code == 404


def test_metrics_are_for_who_has_the_token_where_one_is_set(client: Client, settings: Settings) -> None:
    settings.METRICS_TOKEN = "s3cret"
    assert client.get("/metrics").status_code == 404
    assert client.get("/metrics", headers={"Authorization": "Bearer s3cre"}).status_code == 404
    assert client.get("/metrics", headers={"Authorization": "Bearer é"}).status_code == 404
    answer = client.get("/metrics", REMOTE_ADDR="10.0.0.7", headers={"Authorization": "Bearer s3cret"})
    assert answer.status_code == 200


def test_metrics_count_requests_by_route_and_name_nobody(client: Client, swept: None) -> None:
    client.get("/e/a-made-up-name/")
    client.get("/made/up/by/somebody")
    text = asked(client, "/metrics")[1]
    assert 'judgeweb_http_requests_total{method="GET",route="evaluation",status="302"}' in text
    assert 'judgeweb_http_request_duration_seconds_bucket{le="0.05",method="GET",route="evaluation"}' in text
    assert "judgeweb_workers 1.0" in text
    assert "judgeweb_background_stands_still 0.0" in text
    assert "made-up" not in text
    assert "somebody" not in text


def test_totals_add_each_request_once() -> None:
    add_new_attempts()
    make_full_evaluation(500)
    Attempt.objects.update(tokens_in=7, cost=11, outcome=AttemptOutcome.ANSWERED)
    add_new_attempts()
    counted = CallTotal.objects.filter(outcome=AttemptOutcome.ANSWERED)
    assert not counted.exists(), "others may still be committing earlier ones"
    Attempt.objects.update(created_at=Now() - timedelta(minutes=1))
    for _ in range(2):
        add_new_attempts()
    total, count = counted.get(), Attempt.objects.count()
    assert count > 0
    assert (total.requests, total.tokens_in, total.cost) == (count, 7 * count, 11 * count)


def test_metrics_give_costs_in_usd_and_latencies_in_seconds(client: Client) -> None:
    """1,500,000,000 nano-USD are 1.5 USD, and 2,500 ms are 2.5 s."""
    CallTotal.objects.create(outcome="answered", requests=3, tokens_in=40, cost=1_500_000_000, latency_ms=2_500)
    text = client.get("/metrics").content.decode()
    assert 'judgeweb_llm_requests_total{outcome="answered"} 3.0' in text
    assert 'judgeweb_llm_cost_usd_total{outcome="answered"} 1.5' in text
    assert 'judgeweb_llm_latency_seconds_total{outcome="answered"} 2.5' in text


def test_a_scrape_asks_the_same_number_of_questions_at_any_size(
    client: Client, django_assert_max_num_queries: object
) -> None:
    make_full_evaluation(500)
    with django_assert_max_num_queries(20):  # type: ignore[operator]
        assert client.get("/metrics").status_code == 200


def test_runs_that_wait_are_all_asked_about_at_once(
    evaluation: Evaluation, django_assert_max_num_queries: object
) -> None:
    """In an outage there may be hundreds, and then monitors look."""
    make_comparison(evaluation)
    judges = [
        make_llm_judge(evaluation, CLOSED_ADDRESS, name=f"judge {n}", model=f"m{n}", mode="json_schema")
        for n in range(12)
    ]
    runs = [start_run_session(judge).run for judge in judges]
    hours = {run.pk: 20 - number for number, run in enumerate(runs)}
    for pk, age in hours.items():
        moment = Now() - timedelta(hours=age)
        Run.objects.filter(pk=pk).update(created_at=moment, started_at=moment, resumed_at=None)
    with django_assert_max_num_queries(14):  # type: ignore[operator]
        assert format_age(measure_background().oldest_call_seconds or 0) == "20 hours"
    Call.all_rows.filter(run=runs[0]).update(not_before=Now() - timedelta(hours=1))
    assert format_age(measure_background().oldest_call_seconds or 0) == "19 hours"


def test_a_scrape_counts_waiting_calls_up_to_a_limit(
    client: Client, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MOST_WAITING_CALLS", 2)
    for number in range(3):
        make_comparison(evaluation, key=f"q{number}")
    start_run_session(make_llm_judge(evaluation, CLOSED_ADDRESS, mode="json_schema"))
    text = client.get("/metrics").content.decode()
    assert 'judgeweb_calls{state="pending"} 2.0' in text
    assert 'judgeweb_calls{state="running"} 0.0' in text


def test_administrators_see_what_works_and_what_does_not(administrator: Client, swept: None) -> None:
    page = administrator.get("/status")
    assert "Everything works." in page.content.decode()
    last_swept(630)
    part = administrator.get("/status", headers={"HX-Request": "true"}).content.decode()
    assert part.startswith('<div id="status"')
    assert "Something does not work." in part
    assert "The last sweep was 10 minutes ago: the workers are stuck." in part


def test_a_broker_that_is_away_is_shown_and_asked_once_for_all(
    administrator: Client, swept: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def refuse(seconds: float) -> None:
        tried.append(seconds)
        raise ConnectionError("nobody listens.")

    monkeypatch.setattr(site_status, "reach_broker", refuse)
    for _ in range(3):
        assert "does not answer: nobody listens." in administrator.get("/status").content.decode()
    assert len(tried) == 1


@pytest.mark.parametrize(
    "error",
    [
        "(0, 0): (403) ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see it",
        "Authentication required",
        "invalid username-password pair or user is disabled",
    ],
)
def test_a_broker_that_refuses_the_password_is_told_in_one_sentence(error: str) -> None:
    finding = describe_broker("amqp", error)
    assert finding.summary == "amqp refuses the username or password."
    assert describe_broker("amqp", "timed out").summary == "amqp does not answer: timed out."


def test_programs_of_administrators_are_told_the_same(administrator: Client, owner: User, swept: None) -> None:
    answer = ApiClient(token_for(owner)).get("/status")
    told = answer.json()
    assert told["health"] == "ok"
    assert [one["name"] for one in told["measures"]["workers"]] == ["here:1"]


def test_nobody_else_sees_the_status(client: Client) -> None:
    stranger = STRANGER.make()
    client.force_login(stranger)
    assert client.get("/status").status_code == 404
    assert ApiClient(token_for(stranger)).get("/status").status_code == 404


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 seconds"), (1, "1 second"), (119, "1 minute"), (7200, "2 hours"), (90000, "1 day")]
)
def test_ages_are_told_in_their_largest_unit(seconds: float, words: str) -> None:
    assert format_age(seconds) == words
