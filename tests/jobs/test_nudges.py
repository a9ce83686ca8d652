"""Messages to workers: sent by a thread, so that nothing waits for a broker that is away."""

import threading
from collections.abc import Iterator

import pytest

from evaluations.jobs import direct_work, nudges
from evaluations.jobs.direct_work import FOUND, SLOTS, offer_slots, take_unanswered
from evaluations.jobs.nudges import BROKER, MESSAGES, Nudge, WorkerTask, send_or_work

JOB = WorkerTask.WORK_ON_JOB
REAL_SEND_NUDGE = nudges.send_nudge


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[None]:
    """A process that knows nothing of its broker yet and is no worker."""
    yield
    BROKER.is_away, BROKER.rests_until = False, 0.0
    SLOTS.clear()
    FOUND.clear()


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> "list[tuple[str, tuple[int, ...]]]":
    """What this worker did itself, at once and in the thread of the test."""
    done: list[tuple[str, tuple[int, ...]]] = []

    def do_work(slots: direct_work.Slots, work: direct_work.Work) -> None:
        done.append(work)
        slots.release(work)

    monkeypatch.setattr(direct_work, "do_work", do_work)
    return done


def refuse(_: Nudge) -> None:
    raise ConnectionRefusedError("nobody listens")


def work_of(slots: direct_work.Slots) -> None:
    """Wait for what is done in its threads."""
    slots.executor.shutdown(wait=True)


def test_a_page_does_not_wait_for_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answer = threading.Event(), threading.Event()

    def hang(_: Nudge) -> None:
        asked.set()
        answer.wait(30)

    monkeypatch.setattr(nudges, "publish", hang)
    REAL_SEND_NUDGE(JOB, (1,), None)
    assert asked.wait(30), "another thread speaks with the broker"
    answer.set()
    MESSAGES.join()


def test_an_outage_is_logged_once_and_its_end_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(nudges, "REST_SECONDS", 0.0)
    monkeypatch.setattr(nudges, "publish", refuse)
    for number in range(3):
        send_or_work(Nudge(JOB, (number,), None))
    monkeypatch.setattr(nudges, "publish", lambda message: None)
    for number in range(3):
        send_or_work(Nudge(JOB, (number,), None))
    assert [record.getMessage() for record in caplog.records] == [
        "The broker does not take messages, so work starts later: nobody listens",
        "The broker takes messages again.",
    ]


def test_a_broker_that_refused_is_left_alone_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Nudge] = []

    def note_and_refuse(message: Nudge) -> None:
        tried.append(message)
        raise ConnectionRefusedError

    monkeypatch.setattr(nudges, "publish", note_and_refuse)
    for number in range(200):
        send_or_work(Nudge(JOB, (number,), None))
    assert len(tried) == 1


def test_a_worker_does_itself_what_it_cannot_send(
    monkeypatch: pytest.MonkeyPatch, done: list[tuple[str, tuple[int, ...]]]
) -> None:
    monkeypatch.setattr(nudges, "publish", refuse)
    offer_slots(4, count_busy=lambda: 0)
    send_or_work(Nudge(JOB, (7,), None))
    work_of(SLOTS[0])
    assert done == [(JOB.value, (7,))]


def test_a_process_that_is_no_worker_leaves_it_to_the_sweep(
    monkeypatch: pytest.MonkeyPatch, done: list[tuple[str, tuple[int, ...]]]
) -> None:
    monkeypatch.setattr(nudges, "publish", refuse)
    send_or_work(Nudge(JOB, (7,), None))
    assert done == []


@pytest.mark.parametrize(("busy", "taken"), [(0, 2), (1, 1), (2, 0)])
def test_a_worker_takes_no_more_than_its_idle_slots(monkeypatch: pytest.MonkeyPatch, busy: int, taken: int) -> None:
    release = threading.Event()
    monkeypatch.setattr(direct_work, "do_work", lambda *_: release.wait(30))
    offer_slots(2, count_busy=lambda: busy)
    assert [direct_work.take(JOB, (number,)) for number in range(4)] == [number < taken for number in range(4)]
    release.set()
    work_of(SLOTS[0])


def test_the_same_work_is_not_taken_twice_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(direct_work, "do_work", lambda *_: release.wait(30))
    offer_slots(4, count_busy=lambda: 0)
    assert [direct_work.take(JOB, (1,)), direct_work.take(JOB, (1,))] == [True, False]
    release.set()
    work_of(SLOTS[0])


def test_work_that_waits_under_sweep_after_sweep_is_done_without_a_message(
    monkeypatch: pytest.MonkeyPatch, done: list[tuple[str, tuple[int, ...]]]
) -> None:
    """A broker that was emptied, or takes messages and delivers none."""
    now = 100.0
    monkeypatch.setattr("evaluations.jobs.direct_work.time.monotonic", lambda: now)
    offer_slots(4, count_busy=lambda: 0)
    take_unanswered([(JOB, (1,)), (JOB, (2,))])
    now = 105.0
    take_unanswered([(JOB, (1,))])  # the other one was taken up
    now = 110.0
    take_unanswered([(JOB, (1,)), (JOB, (2,))])
    work_of(SLOTS[0])
    assert done == [(JOB.value, (1,))]
