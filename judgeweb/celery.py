"""The Celery application: where tasks are found, and the two threads of a worker: its heartbeat and periodic work."""

import logging
import os
import threading
import time
from typing import Any, Final

from celery import Celery
from celery.signals import celeryd_after_setup, task_postrun, task_prerun, worker_shutdown, worker_shutting_down

from judgeweb.processor_turns import give_way, shorten_turns

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "judgeweb.settings")

SWEEP_SECONDS: Final = 5.0
SWEEP_RETRY_SECONDS: Final = 1.0  # while another worker sweeps, or has just done so
LOOK_SECONDS: Final = 60.0
LEAVE_SECONDS: Final = 5.0

# The ids of tasks that messages brought. Celery's own count keeps those for ever that could not be acknowledged
# because the connection broke just then, and which it never began.
TASKS_AT_WORK: Final[set[str]] = set()

logger = logging.getLogger(__name__)

app = Celery("judgeweb")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@celeryd_after_setup.connect
def start_work(instance: Any, **details: object) -> None:
    """Before the first connection to the broker, without which a worker works too."""
    from django.conf import settings  # noqa: PLC0415 - Django is set up only now

    from evaluations.jobs.direct_work import offer_slots  # noqa: PLC0415

    shorten_turns()
    give_way(settings.WORKER_NICENESS)
    offer_slots(instance.concurrency, count_busy=lambda: len(TASKS_AT_WORK))
    HEART.start()
    TIMER.start()


@task_prerun.connect
def note_begun_task(task_id: str, task: Any, **details: object) -> None:
    if not task.request.is_eager:  # work that no message brought is counted where it is taken
        TASKS_AT_WORK.add(task_id)


@task_postrun.connect
def note_ended_task(task_id: str, **details: object) -> None:
    TASKS_AT_WORK.discard(task_id)


@worker_shutting_down.connect
def stop_work(**details: object) -> None:
    """Asked to stop: what is in flight is waited for, and nothing more is begun."""
    from evaluations.models.transactions import PROCESS_STOPPING  # noqa: PLC0415 - Django is set up only now

    PROCESS_STOPPING.set()


@worker_shutdown.connect
def take_leave(**details: object) -> None:
    """Announce that nothing is in flight before this process ends."""
    for thread in (TIMER, HEART):
        if thread.is_alive():
            thread.join(LEAVE_SECONDS)


def beat_heart() -> None:
    from evaluations.judges.calls.worker_registry import send_heartbeats  # noqa: PLC0415 - Django is set up only now
    from evaluations.models.transactions import PROCESS_STOPPING  # noqa: PLC0415

    send_heartbeats(PROCESS_STOPPING)


def run_periodic_tasks() -> None:
    """Sweep and look for a local server at once, and again whenever it is time, until this process stops."""
    from evaluations.models.transactions import PROCESS_STOPPING  # noqa: PLC0415 - Django is set up only now

    next_look = time.monotonic()
    while not PROCESS_STOPPING.is_set():
        try:
            was_ours = sweep_once()
            if time.monotonic() >= next_look:
                look_once()
                next_look = time.monotonic() + LOOK_SECONDS
        except Exception:
            logger.exception("Periodic work failed and goes on")
            was_ours = False
        PROCESS_STOPPING.wait(SWEEP_SECONDS if was_ours else SWEEP_RETRY_SECONDS)


def sweep_once() -> bool:
    """Sweep in this thread, with a connection that works. Celery logs what fails."""
    from django.db import close_old_connections  # noqa: PLC0415 - Django is set up only now

    from evaluations.tasks import sweep  # noqa: PLC0415

    close_old_connections()
    return sweep.apply().result is True  # a sweep that failed has its error as its result


def look_once() -> None:
    from evaluations.tasks import look_for_local_server  # noqa: PLC0415 - Django is set up only now

    look_for_local_server.apply()


HEART: Final = threading.Thread(target=beat_heart, name="heartbeat", daemon=True)
TIMER: Final = threading.Thread(target=run_periodic_tasks, name="timer", daemon=True)
