"""Limits of an endpoint, divided among the workers that live."""

import math
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from evaluations.domain.judges import AttemptOutcome, CallState, RunState
from evaluations.judges.calls.claims import claim_calls, room_at_endpoint
from evaluations.judges.calls.lease_sweeper import return_expired_calls
from evaluations.judges.calls.work_session import WorkSession, begin_work_session
from evaluations.judges.calls.worker_registry import (
    OWN_STANDING,
    SETTLING_SECONDS,
    STALE_SECONDS,
    apply_endpoint_shares,
    divide_limits,
    endpoint_capacity,
    forget_own_standing,
    must_count_in_flight,
    record_heartbeat,
    registered_worker,
    send_heartbeats,
    take_rank,
)
from evaluations.judges.endpoints.selectors import endpoint_slots, endpoint_timeout
from evaluations.judges.runs.planner import plan_run_calls
from evaluations.judges.runs.services import start_run
from evaluations.llm.rate_limits import RateLimits
from evaluations.llm.retry_policy import RetryPolicy
from evaluations.models import jobs
from evaluations.models.jobs import WORKER_ALIVE, Worker, process_name
from evaluations.models.judges import Endpoint, EndpointCheck
from evaluations.models.runs import Attempt, Call
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_llm_judge, work_run_here
from tests.helpers.llm_server import llm_server

pytestmark = pytest.mark.django_db(transaction=True)

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    forget_own_standing()
    yield
    forget_own_standing()


def report(name: str, in_flight: int = 0) -> None:
    record_heartbeat(name, host="here", pid=1, version="1", in_flight=in_flight)


def older(name: str, seconds: float) -> None:
    """As if that worker had come and last reported so long ago."""
    ago = timedelta(seconds=seconds)
    Worker.objects.filter(name=name).update(started_at=F("started_at") - ago, seen_at=F("seen_at") - ago)


def endpoint(**limits: Any) -> Endpoint:
    return Endpoint.objects.create(name="server", base_url="http://127.0.0.1:9/v1", **limits)


@pytest.mark.parametrize(("workers", "places"), [(1, [10]), (2, [5, 5]), (3, [4, 3, 3]), (4, [3, 3, 2, 2])])
def test_places_at_once_are_divided_without_a_rest(workers: int, places: list[int]) -> None:
    shares = [divide_limits(RateLimits(max_in_flight=10), rank, workers).max_in_flight for rank in range(workers)]
    assert shares == places


def test_more_workers_than_places_leave_some_without_any() -> None:
    assert [divide_limits(RateLimits(max_in_flight=2), rank, 3).max_in_flight for rank in range(3)] == [1, 1, 0]


def test_what_is_allowed_a_minute_is_divided_evenly_and_no_limit_stays_none() -> None:
    assert divide_limits(RateLimits(None, 90, 3000), 1, 3) == RateLimits(None, 30, 1000)
    assert divide_limits(RateLimits(), 1, 3) == RateLimits()


def test_a_worker_alone_has_the_whole_limit_and_need_not_count() -> None:
    server = endpoint(max_in_flight=10)
    assert must_count_in_flight(server)  # nobody knows of it yet
    report("one")
    take_rank("one")
    assert not must_count_in_flight(server)
    assert endpoint_capacity(server).limits.max_in_flight == 10


def test_a_newcomer_takes_its_share_and_counts_until_the_others_know_of_it() -> None:
    server = endpoint(max_in_flight=10)
    report("one")
    older("one", 4)
    report("two")
    take_rank("two")
    assert endpoint_capacity(server).limits.max_in_flight == 5
    assert must_count_in_flight(server)
    assert OWN_STANDING.noticed_at is None
    # The other reports, clearly after this one came: what it sent before still has to end.
    Worker.objects.filter(name="two").update(started_at=Now() - timedelta(seconds=3))
    report("one")
    take_rank("two")
    assert OWN_STANDING.noticed_at is not None
    assert must_count_in_flight(server)
    # That may take as long as its requests may: 600 seconds, for it is on this machine.
    OWN_STANDING.noticed_at -= 600
    assert must_count_in_flight(server)
    OWN_STANDING.noticed_at -= SETTLING_SECONDS
    assert not must_count_in_flight(server)
    server.timeout_seconds = 3600
    assert must_count_in_flight(server)


def test_a_newcomer_need_not_count_once_each_other_had_nothing_in_flight_since_it_knew_of_it() -> None:
    server = endpoint(max_in_flight=10)
    for name in ("one", "three"):
        report(name)
        older(name, 4)
    report("two")
    take_rank("two")
    Worker.objects.filter(name="two").update(started_at=Now() - timedelta(seconds=3))
    for name in ("one", "three"):
        report(name)
    take_rank("two")  # what these reports counted was counted a moment before they looked at the workers
    assert must_count_in_flight(server)
    report("one")
    report("three", in_flight=2)
    take_rank("two")
    assert must_count_in_flight(server)
    report("one", in_flight=3)  # sent within its share
    report("three")
    take_rank("two")
    assert not must_count_in_flight(server)


def test_a_newcomer_does_not_wait_for_the_requests_of_one_that_signed_off() -> None:
    server = endpoint(max_in_flight=10)
    report("one", in_flight=3)
    older("one", 4)
    report("two")
    take_rank("two")
    Worker.objects.filter(name="two").update(started_at=Now() - timedelta(seconds=3))
    report("one", in_flight=3)
    take_rank("two")
    assert must_count_in_flight(server)
    Worker.objects.filter(name="one").delete()  # as `sign_off` does, once its last request has ended
    take_rank("two")
    assert not must_count_in_flight(server)


@pytest.mark.parametrize(
    ("base_url", "stated", "seconds"),
    [
        ("http://127.0.0.1:8080/v1", None, 600),
        ("http://127.0.0.1:8080/v1", 30, 30),
        ("https://api.example.com/v1", None, 120),
        ("https://api.example.com/v1", 900, 900),
    ],
)
def test_a_server_of_this_network_has_more_time_unless_it_was_set(
    base_url: str, stated: int | None, seconds: int
) -> None:
    assert endpoint_timeout(Endpoint(base_url=base_url, timeout_seconds=stated)) == seconds


@pytest.mark.parametrize(
    ("result", "slots"),
    [({"slots": 4}, 4), ({"slots": None}, None), ({}, None), ({"slots": 0}, None), ({"slots": True}, None), ([], None)],
)
def test_slots_are_those_of_the_latest_check(result: Any, slots: int | None) -> None:
    server = endpoint()
    EndpointCheck.objects.create(endpoint=server, model="old", checked_at=NOON - timedelta(days=1), result={"slots": 9})
    EndpointCheck.objects.create(endpoint=server, model="new", checked_at=NOON, result=result)
    assert endpoint_slots(server) == slots


def test_without_a_check_no_slots_are_known() -> None:
    assert endpoint_slots(endpoint()) is None


def test_two_workers_begin_with_half_of_the_slots_each_and_know_whether_the_other_is_busy() -> None:
    report("one")
    record_heartbeat("two", host="here", pid=2, version="1", in_flight=0)
    take_rank("one")
    server = endpoint()
    capacity = endpoint_capacity(server, 4)
    assert (capacity.max_in_flight_now, capacity.window.most, capacity.window.sharers) == (2, 4, 1)
    record_heartbeat("two", host="here", pid=2, version="1", in_flight=3)
    take_rank("one")
    assert endpoint_capacity(server, 4).window.sharers == 2


def test_a_worker_that_knows_only_slots_has_no_share_that_ends() -> None:
    report("one")
    take_rank("one")
    taker = endpoint_capacity(endpoint(), 4).join()
    late(STALE_SECONDS + 1)
    assert taker.wait(time.monotonic()) == 0


def test_slots_of_a_check_bound_what_a_run_has_in_flight() -> None:
    evaluation = make_evaluation()
    for number in range(5):
        make_comparison(evaluation, query=f"Question {number}?")
    with llm_server(latency=0.2) as server:
        judge = make_llm_judge(evaluation, server.base_url, mode="json_schema")
        EndpointCheck.objects.create(
            endpoint=Endpoint.objects.get(), model="test-model", checked_at=NOON, result={"slots": 3}
        )
        assert work_run_here(start_run(judge, user=None)).state == RunState.DONE
        assert server.most_in_flight == 3


def test_an_old_worker_shrinks_at_its_next_report_without_counting() -> None:
    server = endpoint(max_in_flight=9, requests_per_minute=60)
    report("one")
    take_rank("one")
    capacity = endpoint_capacity(server)
    report("two")
    report("one")
    take_rank("one")
    apply_endpoint_shares()
    assert capacity.limits == RateLimits(5, 30)
    assert not must_count_in_flight(server)


def test_a_worker_that_is_gone_leaves_its_share_to_the_others() -> None:
    server = endpoint(max_in_flight=10)
    report("one")
    report("two")
    take_rank("one")
    assert endpoint_capacity(server).limits.max_in_flight == 5
    older("two", 60)
    take_rank("one")
    assert endpoint_capacity(server).limits.max_in_flight == 10


def test_a_worker_that_could_not_report_for_long_comes_back_as_a_newcomer() -> None:
    server = endpoint(max_in_flight=10)
    report("one")
    take_rank("one")
    assert OWN_STANDING.reported_at is not None
    OWN_STANDING.reported_at -= STALE_SECONDS + 1
    assert must_count_in_flight(server)
    report("two")
    report("one")
    take_rank("one")
    assert OWN_STANDING.noticed_at is None


def late(seconds: float) -> None:
    """As if this process had last reported so long ago, by its own clock."""
    assert OWN_STANDING.reported_at is not None
    OWN_STANDING.reported_at -= seconds
    apply_endpoint_shares()


def test_a_worker_whose_report_is_late_sends_and_claims_nothing_before_others_take_it_for_dead() -> None:
    assert WORKER_ALIVE.total_seconds() > STALE_SECONDS
    report("one")
    take_rank("one")
    taker = endpoint_capacity(endpoint(max_in_flight=8)).join()
    now = time.monotonic()
    assert (taker.wait(now), taker.expected_room(now)) == (0, 8)
    assert taker.wait(now + STALE_SECONDS) > 0  # nothing was told to it meanwhile
    assert taker.expected_room(now + STALE_SECONDS) == 0
    report("one")
    take_rank("one")
    apply_endpoint_shares()
    assert taker.expected_room(time.monotonic()) == 8


def test_a_worker_that_was_late_sends_nothing_until_the_others_know_that_it_is_back() -> None:
    report("one")
    report("two")
    take_rank("one")
    taker = endpoint_capacity(endpoint(max_in_flight=8)).join()
    late(STALE_SECONDS)
    report("one")
    take_rank("one")
    apply_endpoint_shares()
    assert taker.expected_room(time.monotonic()) == 0  # the other may have the whole limit in use
    Worker.objects.filter(name="one").update(started_at=Now() - timedelta(seconds=3))
    report("two")
    take_rank("one")
    apply_endpoint_shares()
    assert taker.expected_room(time.monotonic()) == 4


def test_a_report_counts_from_when_it_was_begun() -> None:
    report("one")
    began = time.monotonic() - STALE_SECONDS
    take_rank("one", began)
    assert endpoint_capacity(endpoint(max_in_flight=8)).wait(time.monotonic()) > 0


def test_where_there_is_no_limit_there_is_no_share_that_ends() -> None:
    report("one")
    take_rank("one")
    taker = endpoint_capacity(endpoint()).join()
    late(STALE_SECONDS + 1)
    assert taker.wait(time.monotonic()) == 0


def test_a_worker_that_cannot_report_starts_no_call() -> None:
    evaluation = make_evaluation()
    for number in range(3):
        make_comparison(evaluation, query=f"Question {number}?")
    with llm_server() as server:
        run = start_run(make_llm_judge(evaluation, server.base_url, max_in_flight=2), user=None)
        report("one")
        take_rank("one")
        late(STALE_SECONDS)
        assert work_run_here(run, seconds=1).state == RunState.RUNNING
        assert not server.asked
        report("one")
        take_rank("one")
        apply_endpoint_shares()
        assert work_run_here(run).state == RunState.DONE
        assert server.asked


@pytest.mark.parametrize("name", ["survivor", "successor"])
def test_a_killed_workers_requests_are_counted_until_they_must_have_ended(name: str) -> None:
    """The survivor’s share grows to the whole limit while the server may still be at the dead one’s requests."""
    server = endpoint(max_in_flight=10, timeout_seconds=300)
    report("dead")
    if name == "survivor":
        report(name)
        older("dead", 4)
        older(name, 4)
    older("dead", WORKER_ALIVE.total_seconds() + 1)
    report(name)
    take_rank(name)
    OWN_STANDING.noticed_at = -math.inf  # as long as it has lived
    assert endpoint_capacity(server).limits.max_in_flight == 10
    assert must_count_in_flight(server)
    older("dead", 300)
    report(name)
    take_rank(name)
    OWN_STANDING.noticed_at = -math.inf
    assert not must_count_in_flight(server)


def room_for_ten(session: WorkSession) -> int:
    with transaction.atomic():
        return room_at_endpoint(session, 10, unstored=0)


def test_what_a_killed_worker_has_in_flight_is_no_room_for_others() -> None:
    with llm_server() as server:
        evaluation = make_evaluation()
        for _ in range(12):
            make_comparison(evaluation)
        judge = make_llm_judge(evaluation, server.base_url, max_in_flight=10)
        run = start_run(judge, user=None)
        plan_run_calls(run.pk, until=math.inf)
        session = begin_work_session(run.pk, RetryPolicy())
        assert session is not None
        report("dead")
        assert len(claim_calls(session, 7).calls) == 7
        older("dead", WORKER_ALIVE.total_seconds() + 1)
        Call.all_rows.filter(run=run, state=CallState.RUNNING).update(lease_until=Now() - timedelta(seconds=1))
        report("successor")
        take_rank("successor")
        assert room_for_ten(session) == 3
        return_expired_calls()  # they are pending again, and recorded as lost
        assert room_for_ten(session) == 3
        call = Call.all_rows.filter(run=run).earliest("pk")
        Attempt.objects.create(call=call, run=run, number=9, outcome=AttemptOutcome.ANSWERED, latency_ms=60_000)
        Attempt.objects.filter(outcome=AttemptOutcome.LOST).update(created_at=Now() - timedelta(seconds=110))
        assert room_for_ten(session) == 3
        Attempt.objects.filter(outcome=AttemptOutcome.LOST).update(created_at=Now() - timedelta(seconds=130))
        assert room_for_ten(session) == 10


def test_a_process_that_starts_again_under_its_old_number_has_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    before = process_name()
    assert process_name() == before
    monkeypatch.setattr(jobs, "START_IDS", {})
    assert process_name() != before


def test_without_a_limit_on_places_nothing_is_ever_counted() -> None:
    assert not must_count_in_flight(endpoint(requests_per_minute=60))


def test_a_process_that_works_by_itself_counts_as_a_worker_meanwhile() -> None:
    with registered_worker():
        deadline = time.monotonic() + 60
        while not Worker.objects.filter(name=process_name()).exists():
            assert time.monotonic() < deadline
    assert not Worker.objects.exists()


def test_a_worker_told_to_leave_stays_on_the_list_while_requests_of_its_are_in_flight() -> None:
    capacity = endpoint_capacity(endpoint())
    taker = capacity.join()
    taker.sent(0.0)
    leaving = threading.Event()
    leaving.set()
    thread = threading.Thread(target=send_heartbeats, args=(leaving,))
    thread.start()
    deadline = time.monotonic() + 60
    while not Worker.objects.filter(in_flight=1).exists():
        assert time.monotonic() < deadline
        assert thread.is_alive()
        time.sleep(0.01)
    taker.ended()
    thread.join(60)
    assert not Worker.objects.exists()
