"""The web server's process: one event loop for all connections, and threads for the requests that came in whole.

gunicorn starts it, ends it, and starts another where one died; uvicorn speaks HTTP.
"""

import asyncio
import contextlib
import faulthandler
import logging
import os
import resource
import sys
import time
from typing import Any, Final

import uvicorn
from django.conf import settings
from gunicorn.workers.base import Worker  # type: ignore[import-untyped]

from judgeweb.connections import CONNECTIONS_PER_PROCESS, Connection
from judgeweb.processor_turns import shorten_turns
from judgeweb.wsgi_bridge import WsgiBridge

TICK_SECONDS: Final = 0.1
SWEEP_TICKS: Final = 10  # connections are looked at once a second
# Longer than a proxy or a browser keeps an unused connection, so that it is never closed while a request is on its way:
# Caddy keeps it 120 seconds, Chrome 300, load balancers up to 600. Where too many wait, the oldest are ended early.
KEEP_ALIVE_SECONDS: Final = 620
SPARE_FILES: Final = 200
GRACE_SECONDS: Final = 0.5  # left of gunicorn's own time to end after requests are given up

logger = logging.getLogger(__name__)


class WebWorker(Worker):  # type: ignore[misc]
    """gunicorn's worker class: ``--worker-class judgeweb.web_worker.WebWorker --threads 8``."""

    alive: bool

    def run(self) -> None:
        shorten_turns()
        allow_open_files(CONNECTIONS_PER_PROCESS + SPARE_FILES)
        log = logging.getLogger("uvicorn.error")
        log.handlers, log.propagate = self.log.error_log.handlers, False
        log.setLevel(logging.ERROR)  # what strangers send is no news
        asyncio.run(self.serve())
        if not self.alive:
            leave_stuck_threads()

    async def serve(self) -> None:
        from evaluations.operations.metrics import take_over_counts  # noqa: PLC0415 - as the next one
        from judgeweb.body_admission import refuse_body  # noqa: PLC0415 - gunicorn's master never sets up Django

        if settings.METRICS_DIR is not None:
            take_over_counts(settings.METRICS_DIR)
        threads = max(self.cfg.threads, 1)
        bridge = WsgiBridge(self.wsgi, refuse_body, settings.SCRATCH_DIR, threads=threads)
        server = build_server(bridge, graceful_seconds=max(self.cfg.graceful_timeout - GRACE_SECONDS, GRACE_SECONDS))
        await server.startup(sockets=[listener.sock for listener in self.sockets])
        ticks = 0
        while self.alive and self.ppid == os.getppid():
            if not bridge.is_stuck(time.monotonic(), self.timeout):
                self.notify()
            await server.on_tick(ticks % SWEEP_TICKS)
            if ticks % SWEEP_TICKS == 0:
                sweep_connections(server, time.monotonic())
            ticks += 1
            await asyncio.sleep(TICK_SECONDS)
        self.alive = False
        await server.shutdown()

    def handle_abort(self, sig: int, frame: Any) -> None:
        """gunicorn ends a process that is stuck: note where."""
        faulthandler.dump_traceback(sys.__stderr__ or 2)
        super().handle_abort(sig, frame)


def build_server(app: Any, *, graceful_seconds: float) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # Django alone decides which of a proxy's headers to believe
        server_header=False,
        backlog=1024,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=graceful_seconds,  # type: ignore[arg-type]
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    return server


def sweep_connections(server: uvicorn.Server, now: float) -> None:
    for connection in list(server.server_state.connections):
        if isinstance(connection, Connection):
            connection.end_if_overdue(now)


def allow_open_files(number: int) -> None:
    """Raise the soft limit of open files, which is 1,024 on many systems, as far as the system lets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def leave_stuck_threads() -> None:
    """End without waiting for threads whose time to finish is over: Python would wait for them for ever."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(0)
