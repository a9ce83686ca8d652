"""Which worker processes are there: they report themselves, and tell when they leave."""

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import Error, close_old_connections, connections
from django.db.models.functions import Now

from evaluations.models import Worker
from evaluations.services.judging import sharing

FORGOTTEN_AFTER: Final = timedelta(days=1)
HEARTBEAT_SECONDS: Final = 5.0
# One that is told to leave stays on the list while requests of its are in flight.
LOOK_SECONDS: Final = 0.05

logger = logging.getLogger(__name__)


def report_worker(name: str, *, host: str, pid: int, version: str, in_flight: int = 0) -> None:
    """Say that this process lives, by the database's clock."""
    if not Worker.objects.filter(name=name).update(seen_at=Now(), in_flight=in_flight):
        Worker.objects.create(name=name, host=host, pid=pid, version=version, started_at=Now(), seen_at=Now())
        Worker.objects.filter(seen_at__lt=Now() - FORGOTTEN_AFTER).delete()


def dismiss_worker(name: str) -> None:
    Worker.objects.filter(name=name).delete()


def attend(leaving: threading.Event) -> None:
    """Report this process every five seconds until it leaves, whatever becomes of the database meanwhile."""
    name = own_name()
    while not leaving.is_set() or sharing.in_flight():
        close_old_connections()
        began = time.monotonic()
        try:
            report_worker(
                name,
                host=socket.gethostname(),
                pid=os.getpid(),
                version=settings.VERSION,
                in_flight=sharing.in_flight(),
            )
            sharing.take_place(name, began)
            sharing.apply_shares()
        except Error as error:
            logger.warning("The heartbeat was not stored: %s", error)
        rest(leaving)
    take_leave(name)


def own_name() -> str:
    """What this process is called among workers."""
    return f"{socket.gethostname()}:{os.getpid()}"


def rest(leaving: threading.Event) -> None:
    """Until the next report; once leaving, until what is in flight has ended, if that is sooner."""
    until = time.monotonic() + HEARTBEAT_SECONDS
    leaving.wait(HEARTBEAT_SECONDS)
    while sharing.in_flight() and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)


def take_leave(name: str) -> None:
    sharing.forget_standing()
    try:
        dismiss_worker(name)
    except Error as error:
        logger.warning("The worker's leave was not stored: %s", error)
    finally:
        connections.close_all()


@contextmanager
def attendance() -> Iterator[None]:
    """Count as a worker for a while."""
    leaving = threading.Event()
    thread = threading.Thread(target=attend, args=(leaving,), name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        leaving.set()
        thread.join()
