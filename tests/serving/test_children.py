"""What becomes of a child that dies, and of one that will not."""

import signal
import sys
import time
from pathlib import Path

import pytest

from judgeweb import children
from judgeweb.children import MOST_QUICK_DEATHS, Child, GaveUp, keep_alive, stop


def make_child(folder: Path, program: str) -> Child:
    return Child("worker", [sys.executable, "-c", program], folder / "worker.log", {})


def live_through_a_death(child: Child, said: list[str]) -> None:
    child.start_at = 0
    keep_alive(child, said.append)
    assert child.process is not None
    child.process.wait()
    keep_alive(child, said.append)


def test_a_child_that_died_is_due_again_after_a_longer_wait_each_time(tmp_path: Path) -> None:
    child = make_child(tmp_path, "raise SystemExit(3)")
    said: list[str] = []
    for _ in range(3):
        live_through_a_death(child, said)
    assert [line.partition(". See")[0] for line in said] == [
        f"The worker died (exit code 3); it starts again in {seconds} s" for seconds in (1, 2, 4)
    ]
    keep_alive(child, said.append)
    assert child.process is None, "it is not due yet"


def test_a_child_that_keeps_dying_is_given_up_with_its_last_words(tmp_path: Path) -> None:
    child = make_child(tmp_path, "print('no such broker'); raise SystemExit(1)")
    for _ in range(MOST_QUICK_DEATHS - 1):
        live_through_a_death(child, [])
    with pytest.raises(GaveUp, match=r"The worker keeps dying \(exit code 1\): no such broker See .*worker.log"):
        live_through_a_death(child, [])


def test_a_child_that_lived_a_while_begins_again_with_a_short_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "QUICK_DEATH_SECONDS", 0)
    child = make_child(tmp_path, "pass")
    said: list[str] = []
    for _ in range(MOST_QUICK_DEATHS + 1):
        live_through_a_death(child, said)
    assert all("again in 1 s" in line for line in said)


def test_a_child_that_will_not_stop_is_killed_after_the_grace(tmp_path: Path) -> None:
    child = make_child(
        tmp_path, "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=1); time.sleep(60)"
    )
    keep_alive(child, print)
    process = child.process
    assert process is not None
    while child.log.read_text() == "":
        time.sleep(0.02)
    started = time.monotonic()
    stop([child], grace_seconds=0.3, in_a_hurry=lambda: False)
    assert time.monotonic() - started >= 0.3
    assert process.returncode == -signal.SIGKILL
    assert child.process is None


def test_asked_twice_to_stop_nobody_waits_for_the_grace(tmp_path: Path) -> None:
    child = make_child(
        tmp_path, "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=1); time.sleep(60)"
    )
    keep_alive(child, print)
    process = child.process
    assert process is not None
    while child.log.read_text() == "":
        time.sleep(0.02)
    started = time.monotonic()
    stop([child], grace_seconds=30, in_a_hurry=lambda: True)
    assert time.monotonic() - started < 3
    assert process.returncode == -signal.SIGKILL


def test_a_large_log_is_set_aside_at_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "KEPT_LOG_BYTES", 10)
    child = make_child(tmp_path, "print('new')")
    child.log.write_text("old" * 10)
    live_through_a_death(child, [])
    assert (tmp_path / "worker.log.1").read_text() == "old" * 10
    assert child.log.read_text() == "new\n"
