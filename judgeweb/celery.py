"""The Celery application: where tasks are found, when the periodic ones run, and how a worker shows that it lives."""

import os
import threading
from typing import Final

from celery import Celery
from celery.signals import worker_ready, worker_shutdown, worker_shutting_down

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "judgeweb.settings")

SWEEP_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 60.0
LEAVE_SECONDS: Final = 5.0

app = Celery("judgeweb")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# An entry that nobody took within one interval is worthless: the next one is there.
app.conf.beat_schedule = {
    "sweep": {
        "task": "evaluations.tasks.sweep",
        "schedule": SWEEP_SECONDS,
        "options": {"expires": SWEEP_SECONDS},
    },
    "look for a local server": {
        "task": "evaluations.tasks.look_for_local_server",
        "schedule": LOOK_SECONDS,
        "options": {"expires": LOOK_SECONDS},
    },
}


@worker_ready.connect
def start_work(**told: object) -> None:
    """Sweep work of an earlier worker at once, without waiting for the timer."""
    from evaluations.tasks import look_for_local_server, sweep  # noqa: PLC0415 - Django is set up only now

    sweep.delay()
    look_for_local_server.delay()
    HEART.start()


@worker_shutting_down.connect
def stop_work(**told: object) -> None:
    """Asked to stop: what is in flight is waited for, and nothing more is begun."""
    from evaluations.models.transactions import PROCESS_STOPPING  # noqa: PLC0415 - Django is set up only now

    PROCESS_STOPPING.set()


@worker_shutdown.connect
def take_leave(**told: object) -> None:
    """Announce that nothing is in flight before this process ends."""
    if HEART.is_alive():
        HEART.join(LEAVE_SECONDS)


def beat_heart() -> None:
    from evaluations.judges.calls.worker_registry import send_heartbeats  # noqa: PLC0415 - Django is set up only now
    from evaluations.models.transactions import PROCESS_STOPPING  # noqa: PLC0415

    send_heartbeats(PROCESS_STOPPING)


HEART: Final = threading.Thread(target=beat_heart, name="heartbeat", daemon=True)
