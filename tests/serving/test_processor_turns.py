"""Threads take short turns, so that one that computes does not hold up the others, and workers let pages go first."""

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from evaluations.jobs.direct_work import SLOTS
from judgeweb import celery
from judgeweb.processor_turns import TURN_SECONDS, give_way
from judgeweb.web_worker import WebWorker

pytestmark = pytest.mark.any_database


@pytest.fixture(autouse=True)
def usual_turns() -> Iterator[None]:
    before, slots = sys.getswitchinterval(), list(SLOTS)
    assert before > TURN_SECONDS
    yield
    sys.setswitchinterval(before)
    SLOTS[:] = slots


def test_a_web_process_shortens_the_turns_before_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = []
    log = logging.getLogger("uvicorn.error")
    for name in ("handlers", "propagate", "level"):  # to have them back
        monkeypatch.setattr(log, name, getattr(log, name))

    def serve(work: Coroutine[Any, Any, None]) -> None:
        work.close()
        turns.append(sys.getswitchinterval())

    monkeypatch.setattr(asyncio, "run", serve)
    worker = WebWorker.__new__(WebWorker)
    worker.alive, worker.log = True, SimpleNamespace(error_log=SimpleNamespace(handlers=[]))
    worker.run()
    assert turns == [pytest.approx(TURN_SECONDS)]


def test_a_worker_shortens_the_turns_and_lets_pages_go_first(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.WORKER_NICENESS = 12
    monkeypatch.setattr(celery, "HEART", SimpleNamespace(start=lambda: None))
    monkeypatch.setattr(celery, "TIMER", SimpleNamespace(start=lambda: None))
    niceness = run_in_thread(lambda: celery.start_work(SimpleNamespace(concurrency=1)))
    assert sys.getswitchinterval() == pytest.approx(TURN_SECONDS)
    assert niceness == [12, 12]


def test_a_worker_that_was_started_with_less_priority_keeps_it() -> None:
    def start() -> None:
        give_way(15)
        give_way(10)

    assert run_in_thread(start) == [15, 15]


def run_in_thread(work: Callable[[], object]) -> list[int]:
    """The niceness after the work, and of a thread that it starts: on Linux each thread has its own."""
    seen: list[int] = []

    def note() -> None:
        seen.append(os.getpriority(os.PRIO_PROCESS, 0))

    def run() -> None:
        work()
        note()
        later = threading.Thread(target=note)
        later.start()
        later.join()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return seen
