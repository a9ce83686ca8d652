"""Messages that wake a worker. Each may be lost or come twice, since the rows hold the work."""

from enum import StrEnum
from typing import Final

from celery import current_app
from django.db import transaction

BROKER_SECONDS: Final = 5


class WorkerTask(StrEnum):
    """The names of the tasks, so that senders need not import the worker's code."""

    WORK_ON_JOB = "evaluations.tasks.work_on_job"
    WORK_RUN = "evaluations.tasks.work_run"
    CHECK_ENDPOINT = "evaluations.tasks.check_endpoint"


def nudge(task: WorkerTask, *ids: int, expires: float | None = None) -> None:
    """Wake a worker once the rows are committed. A message that cannot be sent is logged: the sweep sends another."""

    def send() -> None:  # no partial: of a robust callback that fails, Django logs the name
        send_nudge(task, ids, expires)

    transaction.on_commit(send, robust=True)


def send_nudge(task: WorkerTask, ids: tuple[int, ...], expires: float | None) -> None:
    current_app.send_task(task.value, ids, expires=expires)


def reach_broker() -> None:
    """Raise the broker's error if it does not answer within a few seconds."""
    with current_app.connection_for_write() as broker:
        broker.ensure_connection(max_retries=1, timeout=BROKER_SECONDS)
