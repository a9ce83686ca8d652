"""Messages that wake a worker. Each may be lost or come twice, since the rows hold the work.

A thread of each process sends them, so that no page waits for a broker.
"""

import atexit
import logging
import os
import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from queue import Full, Queue
from typing import Final

from celery import current_app
from django.db import transaction

from evaluations.jobs import direct_work

BROKER_SECONDS: Final = 5
# Within a second in all, if the broker refuses: then the sweep finds the work.
RETRIES: Final = {"max_retries": 2, "interval_start": 0.1, "interval_step": 0.2, "interval_max": 0.5}
# After a message could not be sent, others are not tried for so long.
REST_SECONDS: Final = 2.0
MESSAGES_KEPT: Final = 1000
# How long a process that ends waits for its last messages to be sent.
LAST_MESSAGES_SECONDS: Final = 1.0

logger = logging.getLogger(__name__)


class WorkerTask(StrEnum):
    """The names of the tasks, so that senders need not import the worker's code."""

    WORK_ON_JOB = "evaluations.tasks.work_on_job"
    WORK_RUN = "evaluations.tasks.work_run"


@dataclass(frozen=True)
class Nudge:
    task: WorkerTask
    ids: tuple[int, ...]
    expires: float | None


@dataclass
class Broker:
    """What the sending thread of this process knows of the broker."""

    is_away: bool = False
    rests_until: float = 0.0


BROKER: Final = Broker()
MESSAGES: Final[Queue[Nudge]] = Queue(MESSAGES_KEPT)
SENDERS: Final[dict[int, threading.Thread]] = {}  # by process, because a fork has none
SENDERS_LOCK: Final = threading.Lock()


def nudge(task: WorkerTask, *ids: int, expires: float | None = None) -> None:
    """Wake a worker once the rows are committed."""

    def send() -> None:  # no partial: of a robust callback that fails, Django logs the name
        send_nudge(task, ids, expires)

    transaction.on_commit(send, robust=True)


def send_nudge(task: WorkerTask, ids: tuple[int, ...], expires: float | None) -> None:
    message = Nudge(task, ids, expires)
    try:
        MESSAGES.put_nowait(message)
    except Full:
        direct_work.take(message.task, message.ids)
    else:
        start_sender()


def start_sender() -> None:
    with SENDERS_LOCK:
        thread = SENDERS.get(os.getpid())
        if thread is None or not thread.is_alive():
            SENDERS[os.getpid()] = threading.Thread(target=send_messages, name="messages", daemon=True)
            SENDERS[os.getpid()].start()


def send_messages() -> None:
    while True:
        message = MESSAGES.get()
        try:
            send_or_work(message)
        finally:
            MESSAGES.task_done()


def send_or_work(message: Nudge) -> None:
    """Send the message. If the broker is away, a worker does the work itself; elsewhere the sweep will find it."""
    if time.monotonic() >= BROKER.rests_until:
        try:
            publish(message)
        except Exception as error:  # noqa: BLE001 - each broker has its own errors, and none may end this thread
            if not BROKER.is_away:
                logger.warning(
                    "The broker does not take messages, so work starts later: %s", " ".join(str(error).split())
                )
            BROKER.is_away, BROKER.rests_until = True, time.monotonic() + REST_SECONDS
        else:
            if BROKER.is_away:
                logger.warning("The broker takes messages again.")
            BROKER.is_away = False
            return
    direct_work.take(message.task, message.ids)


def publish(message: Nudge) -> None:
    current_app.send_task(
        message.task.value,
        message.ids,
        expires=message.expires,
        retry=True,
        retry_policy=RETRIES,
        timeout=BROKER_SECONDS,
        confirm_timeout=BROKER_SECONDS,
    )


@atexit.register
def send_last_messages() -> None:
    """Let a command that ends send what it has put."""
    with MESSAGES.all_tasks_done:
        MESSAGES.all_tasks_done.wait_for(lambda: not MESSAGES.unfinished_tasks, LAST_MESSAGES_SECONDS)


def reach_broker(seconds: int = BROKER_SECONDS) -> None:
    """Raise the broker's error if it does not answer within a few seconds."""
    with current_app.connection_for_write(connect_timeout=seconds) as broker:
        broker.ensure_connection(max_retries=1, timeout=seconds)
