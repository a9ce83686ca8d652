"""Limits of an endpoint, divided among the workers that live."""

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.db.models.functions import Now

from evaluations.domain import RunState
from evaluations.judge.adapting import Limits
from evaluations.models import Endpoint, Worker
from evaluations.models.runs import WORKER_ALIVE
from evaluations.services.judging import attending, sharing
from evaluations.services.judging.running import start_run
from evaluations.services.judging.sharing import share_of
from tests.judges import make_judge, work_off
from tests.llm_server import llm_server
from tests.making import make_comparison, make_evaluation

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    sharing.forget_standing()
    yield
    sharing.forget_standing()


def report(name: str) -> None:
    attending.report_worker(name, host="here", pid=1, version="1")


def older(name: str, seconds: float) -> None:
    """As if that worker had come and last reported so long ago."""
    ago = timedelta(seconds=seconds)
    Worker.objects.filter(name=name).update(started_at=F("started_at") - ago, seen_at=F("seen_at") - ago)


def endpoint(**limits: Any) -> Endpoint:
    return Endpoint.objects.create(name="server", base_url="http://127.0.0.1:9/v1", **limits)


@pytest.mark.parametrize(("workers", "places"), [(1, [10]), (2, [5, 5]), (3, [4, 3, 3]), (4, [3, 3, 2, 2])])
def test_places_at_once_are_divided_without_a_rest(workers: int, places: list[int]) -> None:
    shares = [share_of(Limits(max_in_flight=10), rank, workers).max_in_flight for rank in range(workers)]
    assert shares == places


def test_more_workers_than_places_leave_some_without_any() -> None:
    assert [share_of(Limits(max_in_flight=2), rank, 3).max_in_flight for rank in range(3)] == [1, 1, 0]


def test_what_is_allowed_a_minute_is_divided_evenly_and_no_limit_stays_none() -> None:
    assert share_of(Limits(None, 90, 3000), 1, 3) == Limits(None, 30, 1000)
    assert share_of(Limits(), 1, 3) == Limits()


def test_a_worker_alone_has_the_whole_limit_and_need_not_count() -> None:
    server = endpoint(max_in_flight=10)
    assert sharing.must_count(server)  # nobody knows of it yet
    report("one")
    sharing.take_place("one")
    assert not sharing.must_count(server)
    assert sharing.capacity_of(server).limits.max_in_flight == 10


def test_a_newcomer_takes_its_share_and_counts_until_the_others_know_of_it() -> None:
    server = endpoint(max_in_flight=10)
    report("one")
    older("one", 4)
    report("two")
    sharing.take_place("two")
    assert sharing.capacity_of(server).limits.max_in_flight == 5
    assert sharing.must_count(server)
    assert sharing.STANDING.settled_at is None
    # The other reports, clearly after this one came: what it sent before still has to end.
    Worker.objects.filter(name="two").update(started_at=Now() - timedelta(seconds=3))
    report("one")
    sharing.take_place("two")
    assert sharing.STANDING.settled_at is not None
    assert sharing.must_count(server)
    sharing.STANDING.settled_at -= sharing.SETTLING_SECONDS
    assert not sharing.must_count(server)


def test_an_old_worker_shrinks_at_its_next_report_without_counting() -> None:
    server = endpoint(max_in_flight=9, requests_per_minute=60)
    report("one")
    sharing.take_place("one")
    capacity = sharing.capacity_of(server)
    report("two")
    report("one")
    sharing.take_place("one")
    sharing.apply_shares()
    assert capacity.limits == Limits(5, 30)
    assert not sharing.must_count(server)


def test_a_worker_that_is_gone_leaves_its_share_to_the_others() -> None:
    server = endpoint(max_in_flight=10)
    report("one")
    report("two")
    sharing.take_place("one")
    assert sharing.capacity_of(server).limits.max_in_flight == 5
    older("two", 60)
    sharing.take_place("one")
    assert sharing.capacity_of(server).limits.max_in_flight == 10


def test_a_worker_that_could_not_report_for_long_comes_back_as_a_newcomer() -> None:
    server = endpoint(max_in_flight=10)
    report("one")
    sharing.take_place("one")
    assert sharing.STANDING.reported_at is not None
    sharing.STANDING.reported_at -= sharing.STALE_SECONDS + 1
    assert sharing.must_count(server)
    report("two")
    report("one")
    sharing.take_place("one")
    assert sharing.STANDING.settled_at is None


def late(seconds: float) -> None:
    """As if this process had last reported so long ago, by its own clock."""
    assert sharing.STANDING.reported_at is not None
    sharing.STANDING.reported_at -= seconds
    sharing.apply_shares()


def test_a_worker_whose_report_is_late_sends_and_claims_nothing_before_others_take_it_for_dead() -> None:
    assert WORKER_ALIVE.total_seconds() > sharing.STALE_SECONDS
    report("one")
    sharing.take_place("one")
    taker = sharing.capacity_of(endpoint(max_in_flight=8)).join()
    now = time.monotonic()
    assert (taker.wait(now), taker.soon(now)) == (0, 8)
    assert taker.wait(now + sharing.STALE_SECONDS) > 0  # nothing was told to it meanwhile
    assert taker.soon(now + sharing.STALE_SECONDS) == 0
    report("one")
    sharing.take_place("one")
    sharing.apply_shares()
    assert taker.soon(time.monotonic()) == 8


def test_a_worker_that_was_late_sends_nothing_until_the_others_know_that_it_is_back() -> None:
    report("one")
    report("two")
    sharing.take_place("one")
    taker = sharing.capacity_of(endpoint(max_in_flight=8)).join()
    late(sharing.STALE_SECONDS)
    report("one")
    sharing.take_place("one")
    sharing.apply_shares()
    assert taker.soon(time.monotonic()) == 0  # the other may have the whole limit in use
    Worker.objects.filter(name="one").update(started_at=Now() - timedelta(seconds=3))
    report("two")
    sharing.take_place("one")
    sharing.apply_shares()
    assert taker.soon(time.monotonic()) == 4


def test_a_report_counts_from_when_it_was_begun() -> None:
    report("one")
    began = time.monotonic() - sharing.STALE_SECONDS
    sharing.take_place("one", began)
    assert sharing.capacity_of(endpoint(max_in_flight=8)).wait(time.monotonic()) > 0


def test_where_there_is_no_limit_there_is_no_share_that_ends() -> None:
    report("one")
    sharing.take_place("one")
    taker = sharing.capacity_of(endpoint()).join()
    late(sharing.STALE_SECONDS + 1)
    assert taker.wait(time.monotonic()) == 0


def test_a_worker_that_cannot_report_starts_no_call() -> None:
    evaluation = make_evaluation()
    for number in range(3):
        make_comparison(evaluation, query=f"Question {number}?")
    with llm_server() as server:
        run = start_run(make_judge(evaluation, server.base_url, max_in_flight=2), user=None)
        report("one")
        sharing.take_place("one")
        late(sharing.STALE_SECONDS)
        assert work_off(run, seconds=1).state == RunState.RUNNING
        assert not server.asked
        report("one")
        sharing.take_place("one")
        sharing.apply_shares()
        assert work_off(run).state == RunState.DONE
        assert server.asked


def test_without_a_limit_on_places_nothing_is_ever_counted() -> None:
    assert not sharing.must_count(endpoint(requests_per_minute=60))


def test_a_process_that_works_by_itself_counts_as_a_worker_meanwhile() -> None:
    with attending.attendance():
        deadline = time.monotonic() + 60
        while not Worker.objects.filter(name=attending.own_name()).exists():
            assert time.monotonic() < deadline
    assert not Worker.objects.exists()


def test_a_worker_told_to_leave_stays_on_the_list_while_requests_of_its_are_in_flight() -> None:
    capacity = sharing.capacity_of(endpoint())
    taker = capacity.join()
    taker.sent(0.0)
    leaving = threading.Event()
    leaving.set()
    thread = threading.Thread(target=attending.attend, args=(leaving,))
    thread.start()
    deadline = time.monotonic() + 60
    while not Worker.objects.filter(in_flight=1).exists():
        assert time.monotonic() < deadline
        assert thread.is_alive()
        time.sleep(0.01)
    taker.ended()
    thread.join(60)
    assert not Worker.objects.exists()
