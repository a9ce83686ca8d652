"""Celery workers on the tests' own database."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from django.db import connection

from tests.helpers.running_product import ROOT, environment_for

WORKER: Final = ("worker", "--pool", "threads", "--concurrency", "4")


def environment_on_test_database(data_dir: Path, lease_seconds: int = 6) -> dict[str, str]:
    """For a worker on the tests' own database, with leases that run out soon."""
    url = os.environ.get("DATABASE_URL", "")
    name = str(connection.settings_dict["NAME"])
    database = urlsplit(url)._replace(path=f"/{name}").geturl() if url.startswith("postgres") else f"sqlite:///{name}"
    return environment_for(data_dir, DATABASE_URL=database, JUDGEWEB_LEASE_SECONDS=str(lease_seconds))


@contextmanager
def run_celery(environment: dict[str, str], *arguments: str) -> "Iterator[subprocess.Popen[bytes]]":
    command = [sys.executable, "-m", "celery", "-A", "judgeweb", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class WarmWorkers:
    """Workers forked from one process that has imported the product: for tests that start many."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        command = [sys.executable, "-m", "tests.warm_workers"]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, line: list[str] | int) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{json.dumps(line)}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def start(self, *arguments: str) -> int:
        """Start a worker and return its pid."""
        return self.ask(list(arguments))

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        assert self.ask(pid) == -signal.SIGKILL

    def close(self) -> None:
        """Kill those that still run."""
        self.process.communicate()


def until(ready: Callable[[], bool], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
