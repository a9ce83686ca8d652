"""How many slots of a worker are busy with tasks that messages brought."""

from collections.abc import Callable
from typing import Any

import pytest
from celery.concurrency.base import apply_target
from celery.worker import state
from celery.worker.request import Request
from kombu.message import Message

from evaluations import tasks
from judgeweb.celery import TASKS_AT_WORK, app


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tasks were at work, as the task saw it."""
    counted: list[int] = []
    monkeypatch.setattr(tasks, "work_for_a_while", lambda job_id: counted.append(len(TASKS_AT_WORK)))
    return counted


def receive(acknowledge: Callable[..., None]) -> None:
    """Work on a message as a worker does."""
    message = Message(
        body="[[7], {}, {}]",
        content_type="application/json",
        content_encoding="utf-8",
        headers={"task": tasks.work_on_job.name, "id": "one", "lang": "py"},
    )
    request: Any = Request(message, on_ack=acknowledge, app=app, task=tasks.work_on_job)
    state.task_reserved(request)

    class Pool:
        def apply_async(self, target: Callable[..., object], **options: Any) -> None:
            apply_target(target, options["args"], {}, options["callback"], options["accept_callback"])

    try:
        request.execute_using_pool(Pool())
    finally:
        state.requests.clear()
        state.reserved_requests.clear()


def test_a_task_is_at_work_from_its_begin_to_its_end(counted: list[int]) -> None:
    receive(lambda *_: None)
    assert counted == [1]
    assert not TASKS_AT_WORK


def test_a_task_that_could_not_be_acknowledged_keeps_no_slot_busy(counted: list[int]) -> None:
    """Celery counts it as active for as long as its request is referred to, and that may be for ever."""

    def refuse(*_: object) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        receive(refuse)
    assert counted == []
    assert not TASKS_AT_WORK


def test_a_task_that_fails_is_no_longer_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(job_id: int) -> None:
        raise ValueError(job_id)

    monkeypatch.setattr(tasks, "work_for_a_while", fail)
    receive(lambda *_: None)
    assert not TASKS_AT_WORK


def test_work_that_no_message_brought_is_not_counted_twice(counted: list[int]) -> None:
    tasks.work_on_job.apply((7,))
    assert counted == [0]
