"""The Celery application: where tasks are found, when the periodic ones run, and how a worker shows that it lives."""

import logging
import os
import socket
import threading
from typing import Any, Final

from celery import Celery
from celery.signals import worker_ready, worker_shutting_down

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "judgeweb.settings")

SWEEP_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 60.0
HEARTBEAT_SECONDS: Final = 5.0
WORKER_NAME: Final = f"{socket.gethostname()}:{os.getpid()}"

logger = logging.getLogger(__name__)

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
def start_work(**told: Any) -> None:
    """What an earlier worker left is swept at once, not only when the timer comes round; so is looking round."""
    from evaluations.tasks import look_for_local_server, sweep  # noqa: PLC0415 - Django is set up only now

    sweep.delay()
    look_for_local_server.delay()
    threading.Thread(target=beat_heart, name="heartbeat", daemon=True).start()


@worker_shutting_down.connect
def stop_work(**told: Any) -> None:
    """Asked to stop: what is in flight is waited for, and nothing more is begun."""
    from evaluations.services.pacing import LEAVING  # noqa: PLC0415 - Django is set up only now

    LEAVING.set()


def beat_heart() -> None:
    """Report this process every five seconds, whatever becomes of the database meanwhile."""
    from django.conf import settings  # noqa: PLC0415 - Django is set up only now
    from django.db import Error, close_old_connections, connections  # noqa: PLC0415

    from evaluations.services.judging.attending import dismiss_worker, report_worker  # noqa: PLC0415
    from evaluations.services.pacing import LEAVING  # noqa: PLC0415

    host, version = socket.gethostname(), settings.VERSION
    while True:
        close_old_connections()
        try:
            report_worker(WORKER_NAME, host=host, pid=os.getpid(), version=version)
            if LEAVING.wait(HEARTBEAT_SECONDS):
                dismiss_worker(WORKER_NAME)
                connections.close_all()
                return
        except Error as error:
            logger.warning("The heartbeat was not stored: %s", error)
            LEAVING.wait(HEARTBEAT_SECONDS)
