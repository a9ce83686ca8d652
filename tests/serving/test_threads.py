"""Threads take short turns: one that computes does not hold up those that wait for the database."""

import asyncio
import logging
import sys
from collections.abc import Coroutine, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from evaluations.jobs.direct_work import SLOTS
from judgeweb import celery
from judgeweb.threads import TURN_SECONDS
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


def test_a_worker_shortens_the_turns_before_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(celery, "HEART", SimpleNamespace(start=lambda: None))
    monkeypatch.setattr(celery, "TIMER", SimpleNamespace(start=lambda: None))
    celery.start_work(SimpleNamespace(concurrency=1))
    assert sys.getswitchinterval() == pytest.approx(TURN_SECONDS)
