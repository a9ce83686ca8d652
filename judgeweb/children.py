"""Processes kept alive as children of this one, and never outliving it."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

QUICK_DEATH_SECONDS = 10
MOST_QUICK_DEATHS = 5
KEPT_LOG_BYTES = 10 * 1024 * 1024

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class GaveUp(Exception):
    """A child cannot be kept alive: stop everything and show the sentence."""


@dataclass
class Child:
    """A program to keep running, and its state."""

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str]
    inherits: Sequence[int] = ()  # open files that it goes on using
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    started_at: float = field(default=0.0, init=False)
    start_at: float = field(default=0.0, init=False)
    quick_deaths: int = field(default=0, init=False)


def die_with_parent() -> None:
    """Runs in the child before its program: Linux then kills it with its parent, kill -9 included."""
    if LIBC is not None:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start(child: Child) -> None:
    """Start the child in its own session, so that Ctrl-C reaches only this process."""
    set_large_log_aside(child.log)
    with child.log.open("ab") as log:
        child.process = subprocess.Popen(
            child.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=child.environment,
            pass_fds=child.inherits,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
    child.started_at = time.monotonic()


def set_large_log_aside(log: Path) -> None:
    if log.exists() and log.stat().st_size > KEPT_LOG_BYTES:
        log.replace(log.with_name(f"{log.name}.1"))


def keep_alive(child: Child, say: Callable[[str], None]) -> None:
    """Start the child when it is due. If it died, schedule its restart."""
    if child.process is None:
        if time.monotonic() >= child.start_at:
            start(child)
    elif child.process.poll() is not None:
        note_death(child, child.process.returncode, say)


def note_death(child: Child, code: int, say: Callable[[str], None]) -> None:
    signal_group(child, signal.SIGKILL)
    child.process = None
    quick = time.monotonic() - child.started_at < QUICK_DEATH_SECONDS
    child.quick_deaths = child.quick_deaths + 1 if quick else 1
    how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    if child.quick_deaths >= MOST_QUICK_DEATHS:
        raise GaveUp(f"The {child.name} keeps dying ({how}): {read_last_line(child.log)} See {child.log}.")
    delay = 2 ** (child.quick_deaths - 1)
    child.start_at = time.monotonic() + delay
    say(f"The {child.name} died ({how}); it starts again in {delay} s. See {child.log}.")


def read_last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "it said nothing."


def stop(children: Sequence[Child], grace_seconds: float, in_a_hurry: Callable[[], bool]) -> None:
    """Ask all to finish, wait a little, and kill what is left of their process groups."""
    for child in children:
        signal_group(child, signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    while any(is_running(child) for child in children) and time.monotonic() < deadline and not in_a_hurry():
        time.sleep(0.05)
    for child in children:
        signal_group(child, signal.SIGKILL)
        if child.process is not None:
            child.process.wait()
            child.process = None


def is_running(child: Child) -> bool:
    return child.process is not None and child.process.poll() is None


def signal_group(child: Child, number: signal.Signals) -> None:
    if child.process is not None:
        with suppress(ProcessLookupError):
            os.killpg(child.process.pid, number)
