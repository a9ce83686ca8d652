"""Runs through all that a server, a broker or a database does to them: every call ends as it should."""

import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.backends.signals import connection_created
from django.db.models.functions import Now

from evaluations.domain.judges import AttemptOutcome, CallState, RunState
from evaluations.judges.calls import live_worker
from evaluations.judges.calls.claims import refresh_leases
from evaluations.judges.calls.lease_sweeper import return_expired_calls
from evaluations.judges.calls.live_worker import work_run_calls
from evaluations.judges.endpoints import selectors as endpoints_selectors
from evaluations.judges.runs.planner import plan_run_calls
from evaluations.judges.runs.selectors import count_calls_by_state
from evaluations.judges.runs.services import resume_run, start_run
from evaluations.models.judges import Endpoint
from evaluations.models.runs import Attempt, Call, Run
from tests.factories.judges import FAST_RETRIES, make_llm_judge
from tests.helpers.llm_faults import (
    assert_nothing_was_bought_twice,
    evaluation_of_size,
    fail_in_bursts,
    fail_sometimes,
    true_for_share,
    work_run_through_faults,
)
from tests.helpers.llm_server import (
    JUDGE_REASON,
    LLMServer,
    Question,
    Script,
    ServerAnswer,
    answer_broken,
    answer_well,
    fail_with,
    hang,
    llm_server,
    verdict_reply,
)

pytestmark = pytest.mark.django_db(transaction=True)
COMPARISONS = 60
CALLS = 2 * COMPARISONS
IN_FLIGHT = 16


def counts(run: Run) -> dict[str, int]:
    return {state: count for state, count in count_calls_by_state(run).items() if count}


@contextmanager
def judged(script: Script, comparisons: int = COMPARISONS, **settings: Any) -> Iterator[tuple[Run, LLMServer]]:
    with llm_server(script) as server:
        judge = make_llm_judge(
            evaluation_of_size(comparisons), server.base_url, max_in_flight=IN_FLIGHT, mode="json_schema", **settings
        )
        yield start_run(judge, user=None), server


def test_thirty_percent_of_500s(settings: Any) -> None:
    with judged(fail_sometimes(fail_with(500), 0.3)) as (run, server):
        run = work_run_through_faults(run)
    assert (run.state, counts(run)) == (RunState.DONE, {"answered": CALLS})
    assert_nothing_was_bought_twice(run, server)
    faults = Attempt.objects.filter(run=run, http_status=500).count()
    assert sum(server.asked.values()) == CALLS + faults
    assert faults > CALLS * 0.2


def test_five_percent_that_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine a good answer can be late as well: it is then asked for once more, and counted.
    monkeypatch.setattr(endpoints_selectors, "LOCAL_TIMEOUT_SECONDS", 2.0)
    with judged(fail_sometimes(hang, 0.05)) as (run, server):
        run = work_run_through_faults(run)
    assert (run.state, counts(run)) == (RunState.DONE, {"answered": CALLS})
    assert_nothing_was_bought_twice(run, server)
    assert sum(server.asked.values()) > CALLS


def test_ten_percent_of_broken_json() -> None:
    """A tenth is broken, and of the repairs of those every second again."""
    seen: dict[str, str] = {}
    is_broken, is_repair_broken = true_for_share(0.1), true_for_share(0.5)

    def script(question: Question) -> ServerAnswer:
        if len(question.body["messages"]) > 2:
            bad = is_repair_broken()
            seen[question.body["messages"][1]["content"]] = "unreadable" if bad else "repaired"
        else:
            bad = is_broken()
        return (answer_broken if bad else answer_well)(question)

    with judged(script) as (run, server):
        run = work_run_through_faults(run)
    fates = list(seen.values())
    assert (fates.count("repaired"), fates.count("unreadable")) == (CALLS // 20, CALLS // 20)
    assert counts(run) == {"answered": CALLS - fates.count("unreadable"), "unreadable": fates.count("unreadable")}
    assert Call.objects.filter(run=run, repaired=True).count() == fates.count("repaired")
    assert sum(server.asked.values()) == CALLS + len(fates)
    assert_nothing_was_bought_twice(run, server)


def test_bursts_of_429_pause_everything_and_fail_nothing() -> None:
    bursts = [range(20, 35), range(70, 90)]
    with judged(fail_in_bursts(fail_with(429, retry_after=0.2), bursts)) as (run, server):
        run = work_run_through_faults(run)
    assert (run.state, counts(run)) == (RunState.DONE, {"answered": CALLS})
    assert Attempt.objects.filter(run=run, http_status=429).count() == sum(server.asked.values()) - CALLS > 0
    assert Endpoint.objects.get().paused_until is not None
    assert_nothing_was_bought_twice(run, server)


# ---- the database --------------------------------------------------------------------------


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no connections that a server could drop")
def test_every_connection_to_the_database_dropped_in_the_middle() -> None:
    def script(question: Question) -> ServerAnswer:
        if server.asked.total() in (30, 75):
            drop_connections()
        return answer_well(question)

    with judged(script) as (run, server):
        plan_run_calls(run.pk, until=float("inf"))
        run = worked_to_the_end_on_new_connections(run)
    assert (run.state, counts(run)) == (RunState.DONE, {"answered": CALLS})
    assert_nothing_was_bought_twice(run, server)
    assert set(server.asked.values()) == {1}


def drop_connections() -> None:
    import psycopg

    given = connection.get_connection_params()
    where = {key: given[key] for key in ("dbname", "user", "password", "host", "port") if given.get(key)}
    with psycopg.connect(**where, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def worked_to_the_end_on_new_connections(run: Run) -> Run:
    """As tasks of a worker do it: each looks at its connections first, and one that fails is not the last."""
    from django.db import InterfaceError, OperationalError, connections

    for _ in range(10):
        try:
            return work_run_through_faults(run)
        except (OperationalError, InterfaceError):
            connections.close_all()
    raise AssertionError("the database did not come back")


def test_calls_in_flight_stay_ours_after_the_database_was_away_for_a_moment(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.LEASE_SECONDS = 0.4  # leases are extended four times in it
    extended: list[int] = []

    def extend(leases: dict[int, uuid.UUID]) -> None:
        extended.append(len(leases))
        if len(extended) == 1:
            raise OperationalError("the connection is closed")
        refresh_leases(leases)

    monkeypatch.setattr(live_worker, "refresh_leases", extend)
    with judged(answer_well, comparisons=1) as (run, server):
        server.latency = 0.6
        run = work_run_through_faults(run)
    assert counts(run) == {"answered": 2}
    assert len(extended) > 2


def test_a_full_disk_is_reported_and_nothing_is_marked_done(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(live_worker, "STORE_RETRY_SECONDS", (0.01, 0.02))
    with judged(at_length) as (run, server):
        server.latency = 0.5
        plan_run_calls(run.pk, until=float("inf"))
        with disk_full(), caplog.at_level(logging.ERROR):
            work_run_calls(run.pk, hand_over=lambda: None, retry_policy=FAST_RETRIES)
        bought_in_vain = sum(server.asked.values())
        assert "could not be stored" in caplog.text
        run.refresh_from_db()
        assert run.state == RunState.STOPPED
        assert run.stop_reason.endswith("full. Free disk space or repair the database, then resume this run.")
        assert not Call.objects.filter(run=run, state=CallState.ANSWERED).exists()
        assert 0 < bought_in_vain <= 3 * IN_FLIGHT
        resume_run(run, user=None)
        # Exact: the sweeper records one lost request for each claimed call, also for one that was not sent yet, and
        # every request to the server belongs to a claimed call that asks once.
        claimed = Call.objects.filter(run=run, state=CallState.RUNNING).update(lease_until=Now() - timedelta(seconds=1))
        return_expired_calls()
        lost = Attempt.objects.filter(run=run, outcome=AttemptOutcome.LOST)
        assert lost.count() == claimed >= bought_in_vain
        run = work_run_through_faults(run)
    assert (run.state, counts(run)) == (RunState.DONE, {"answered": CALLS})
    assert_nothing_was_bought_twice(run, server, in_flight_at_kills=claimed)


def at_length(question: Question) -> ServerAnswer:
    """A reply of more than the pages that are left, so that not one fits in."""
    return ServerAnswer(verdict_reply(question).replace(JUDGE_REASON, "So it is. " * 4_000))


@contextmanager
def disk_full() -> Iterator[None]:
    """No Attempt can be written: on SQLite its own limit of pages, on PostgreSQL the very error of a full disk."""
    fill = full_postgres if connection.vendor == "postgresql" else full_sqlite
    with fill():
        yield


@contextmanager
def full_postgres() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION 'could not extend file: disk full' USING ERRCODE = '53100'; END $$"
        )
        cursor.execute("CREATE TRIGGER disk_full BEFORE INSERT ON evaluations_attempt EXECUTE FUNCTION disk_full()")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER disk_full ON evaluations_attempt")
            cursor.execute("DROP FUNCTION disk_full()")


@contextmanager
def full_sqlite() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")
        pages = cursor.execute("PRAGMA page_count").fetchone()[0]

    def limit(connection: Any, **told: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA max_page_count = {pages + 2}")

    connection_created.connect(limit)
    try:
        yield
    finally:
        connection_created.disconnect(limit)
