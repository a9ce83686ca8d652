"""Celery workers on the tests' own database."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from django.db import connection

from tests.helpers.running_product import ROOT, environment_for

WORKER: Final = ("worker", "--pool", "threads", "--concurrency", "4")


def environment_on_test_database(data_dir: Path, lease_seconds: int = 6) -> dict[str, str]:
    """For a worker on the tests' own database, with leases that run out soon."""
    given = os.environ.get("DATABASE_URL", "")
    name = str(connection.settings_dict["NAME"])
    database = (
        urlsplit(given)._replace(path=f"/{name}").geturl() if given.startswith("postgres") else f"sqlite:///{name}"
    )
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


def until(ready: Callable[[], bool], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
