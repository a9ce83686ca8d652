"""The Celery application: where tasks are found, and the two threads of a worker: its heartbeat and periodic work."""

import os
import threading
import time
from typing import Final

from celery import Celery
from celery.signals import worker_ready, worker_shutdown, worker_shutting_down

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "judgeweb.settings")

SWEEP_SECONDS: Final = 5.0
SWEEP_RETRY_SECONDS: Final = 1.0  # while another worker sweeps, or has just done so
LOOK_SECONDS: Final = 60.0
LEAVE_SECONDS: Final = 5.0

app = Celery("judgeweb")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_ready.connect
def start_work(**details: object) -> None:
    HEART.start()
    TIMER.start()


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
    from django.db import close_old_connections  # noqa: PLC0415 - Django is set up only now

    from evaluations.models.transactions import PROCESS_STOPPING  # noqa: PLC0415
    from evaluations.tasks import look_for_local_server, sweep  # noqa: PLC0415

    next_look = time.monotonic()
    while not PROCESS_STOPPING.is_set():
        close_old_connections()
        was_ours = sweep.apply().result  # in this thread; Celery logs what fails
        if time.monotonic() >= next_look:
            look_for_local_server.apply()
            next_look = time.monotonic() + LOOK_SECONDS
        PROCESS_STOPPING.wait(SWEEP_SECONDS if was_ours else SWEEP_RETRY_SECONDS)


HEART: Final = threading.Thread(target=beat_heart, name="heartbeat", daemon=True)
TIMER: Final = threading.Thread(target=run_periodic_tasks, name="timer", daemon=True)
