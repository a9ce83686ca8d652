"""`make run`: the whole product under one process in the foreground.

    serving ┬─ make_ready   copies the database, migrates, loads the example; ends
            ├─ collectstatic   meanwhile; ends
            ├─ web          gunicorn, on a socket that this process holds
            └─ worker       Celery, works what was asked for in the background and what comes round

With ``--reload`` the children start again whenever a source file changes.
"""

import errno
import fcntl
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import IO
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from judgeweb.children import Child, GaveUp, die_with_parent, keep_alive, stop

START_SECONDS = 90
WORKER_SECONDS = 20
STOP_SECONDS = 8
# Children of a killed predecessor hold the lock until they are gone too.
LOCK_SECONDS = 3


class Refused(Exception):
    """The start is impossible: the sentence says why and what to do."""


class StopRequests:
    """Counts the signals to stop this process; two mean at once."""

    def __init__(self) -> None:
        self.times = 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.note)

    def note(self, number: int, frame: FrameType | None) -> None:
        self.times += 1

    def to_stop(self) -> bool:
        return self.times > 0

    def to_hurry(self) -> bool:
        return self.times > 1


def main(arguments: Sequence[str]) -> int:
    try:
        stop_requests = StopRequests()
        lock = lock_data(settings.DATA_DIR / "serving.lock")
        with closing(lock), closing(listen(settings.HOST, settings.PORT)) as listener:
            say(f"Starting judgeweb {settings.VERSION}.")
            link = make_ready(stop_requests)
            children = build_children(listener, lock)
            if not stop_requests.to_stop():
                serve(children, link, stop_requests, reload="--reload" in arguments)
    except (Refused, GaveUp, ImproperlyConfigured) as refusal:
        say(f"judgeweb stopped: {refusal}")
        return 1
    return 0


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - this is a program for a terminal


def lock_data(path: Path) -> IO[str]:
    """Lock the data folder, so that no two supervisors migrate its database."""
    try:
        lock = path.open("a+")
    except OSError as error:
        raise Refused(f"{path} cannot be written ({error.strerror}).") from None
    deadline = time.monotonic() + LOCK_SECONDS
    while not try_lock(lock):
        if time.monotonic() > deadline:
            lock.seek(0)
            raise Refused(f"it runs already on {path.parent} ({lock.read().strip()}). Stop that one first.")
        time.sleep(0.1)
    lock.truncate(0)
    lock.write(f"process {os.getpid()}, {settings.ADDRESS}")
    lock.flush()
    return lock


def try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def listen(host: str, port: int) -> socket.socket:
    """Open the socket in this process, so that no connection is refused while the web server restarts."""
    try:
        family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise Refused(explain_listen_error(error, host, port)) from None


def explain_listen_error(error: OSError, host: str, port: int) -> str:
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"JUDGEWEB_HOST is {host!r}: this machine has no such address."
    reason = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
    other = port + 1 if 1024 <= port < 65535 else 8001
    return f"port {port} {reason}. Choose another: PORT={other} make run"


def make_ready(stop_requests: StopRequests) -> str:
    """Prepare the data and, meanwhile, the static files. Returns the path of a new sign-in link, or an empty text."""
    data = start_preparation("make_ready", "--no-color", "--no-static")
    static_files = [] if settings.DEBUG else [start_preparation("collectstatic", "--no-input", "--verbosity", "0")]
    preparations = [data, *static_files]
    while any(preparation.poll() is None for preparation in preparations):
        if stop_requests.to_stop():
            for preparation in preparations:
                preparation.terminate()
        time.sleep(0.02)
    if any(preparation.returncode for preparation in preparations) and not stop_requests.to_stop():
        raise Refused("its data could not be made ready, see above.")
    assert data.stdout is not None
    return data.stdout.read().strip()


def start_preparation(*command: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "manage.py", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        cwd=settings.BASE_DIR,
        env=build_environment(),
        start_new_session=True,
        preexec_fn=die_with_parent,
    )


def build_environment() -> dict[str, str]:
    """The environment of child processes: the same data folder from any working directory."""
    return {**os.environ, "JUDGEWEB_DATA_DIR": str(settings.DATA_DIR), "PYTHONPATH": str(settings.BASE_DIR)}


def build_children(listener: socket.socket, lock: IO[str]) -> list[Child]:
    """Start child processes. They inherit the lock, so the data is in use while one of them lives."""
    settings.LOG_DIR.mkdir(exist_ok=True)
    celery = [sys.executable, "-m", "celery", "--quiet", "--app", "judgeweb"]
    commands = {
        "web": build_web_command(listener.fileno()),
        "worker": [*celery, "worker", "--without-gossip", "--without-mingle", "--loglevel", "WARNING"],
    }
    inherits = (listener.fileno(), lock.fileno())
    return [
        Child(name, command, settings.LOG_DIR / f"{name}.log", build_environment(), inherits)
        for name, command in commands.items()
    ]


def build_web_command(socket_number: int) -> list[str]:
    options = {
        "bind": f"fd://{socket_number}",
        "worker-class": "judgeweb.web_worker.WebWorker",
        "workers": settings.WEB_PROCESSES,
        "threads": settings.WEB_THREADS,
        "timeout": 60,
        "graceful-timeout": 5,
        "log-level": "warning",
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    return [sys.executable, "-m", "gunicorn", *flags, "--no-control-socket", "judgeweb.wsgi"]


def serve(children: Sequence[Child], link: str, stop_requests: StopRequests, *, reload: bool) -> None:
    try:
        wait_until_ready(children, stop_requests)
        if not stop_requests.to_stop():
            announce(link)
        keep_all_alive(children, stop_requests, reload=reload)
    finally:
        say("Stopping.")
        stop(children, STOP_SECONDS, stop_requests.to_hurry)


def wait_until_ready(children: Sequence[Child], stop_requests: StopRequests) -> None:
    """Wait until the site answers, and a while longer for the worker, so that the first page does not warn."""
    began = time.monotonic()
    while not stop_requests.to_stop():
        for child in children:
            keep_alive(child, say)
        answer = fetch_health()
        waited = time.monotonic() - began
        if answer == "ok\n" or (answer and waited > WORKER_SECONDS):
            return
        if waited > START_SECONDS:
            raise GaveUp(f"the site does not answer after {START_SECONDS} s. See {settings.LOG_DIR}.")
        time.sleep(0.1)


def fetch_health() -> str:
    """The health that the site reports under its own name; empty if it does not answer."""
    with closing(http.client.HTTPConnection(settings.HOST, settings.PORT, timeout=1)) as connection:
        try:
            connection.request("GET", "/healthz", headers={"Host": urlsplit(settings.ADDRESS).netloc})
            answer = connection.getresponse()
            return answer.read().decode() if answer.status == http.HTTPStatus.OK else ""
        except (OSError, http.client.HTTPException):
            return ""


def announce(link: str) -> None:
    say(f"judgeweb is ready at {settings.ADDRESS}")
    if link:
        say(f"Sign in once, within {settings.SIGN_IN_LINK_HOURS} hours: {settings.ADDRESS}{link}")
    say(f"Logs: {settings.LOG_DIR}. Ctrl-C stops everything.")


def keep_all_alive(children: Sequence[Child], stop_requests: StopRequests, *, reload: bool) -> None:
    seen = find_newest_source_time() if reload else 0.0
    while not stop_requests.to_stop():
        for child in children:
            keep_alive(child, say)
        time.sleep(0.2)
        if reload and (newest := find_newest_source_time()) > seen:
            seen = newest
            say("A source file changed: starting again.")
            stop(children, 1, stop_requests.to_hurry)


def find_newest_source_time() -> float:
    folders = [settings.BASE_DIR / name for name in ("judgeweb", "evaluations", "templates")]
    paths = (path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".html"))
    return max(path.stat().st_mtime for path in paths)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
