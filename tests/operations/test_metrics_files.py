"""The files in which several web processes count their requests."""

import os
import subprocess
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.multiprocess import MultiProcessCollector

from evaluations.operations.metrics import take_over_counts

KEY = mmap_key("requests", "requests_total", ["route"], ["home"], "Requests.")


def count_in(folder: Path, pid: int, requests: float) -> None:
    file = MmapedDict(str(folder / f"counter_{pid}.db"))  # type: ignore[no-untyped-call]
    file.write_value(KEY, requests, 0.0)  # type: ignore[no-untyped-call]
    file.close()  # type: ignore[no-untyped-call]


def read_total(folder: Path) -> float | None:
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]
    return registry.get_sample_value("requests_total", {"route": "home"})


def list_pids(folder: Path) -> set[int]:
    return {int(file.stem.split("_")[1]) for file in folder.glob("counter_*.db")}


@pytest.fixture
def ended() -> list[int]:
    """The numbers of two processes that have ended."""
    processes = [subprocess.Popen(["true"]) for _ in range(2)]
    return [process.pid for process in processes if process.wait() == 0]


def test_a_new_process_goes_on_in_the_file_of_one_that_ended(tmp_path: Path, ended: list[int]) -> None:
    count_in(tmp_path, ended[0], 3)
    count_in(tmp_path, os.getppid(), 4)
    take_over_counts(tmp_path)
    assert list_pids(tmp_path) == {os.getpid(), os.getppid()}
    assert read_total(tmp_path) == 7


def test_each_process_goes_on_in_one_file_and_nothing_is_lost(tmp_path: Path, ended: list[int]) -> None:
    for pid, requests in zip(ended, (3, 4), strict=True):
        count_in(tmp_path, pid, requests)
    for _ in range(2):
        take_over_counts(tmp_path)
        assert len(list_pids(tmp_path) & set(ended)) == 1
        assert read_total(tmp_path) == 7


def test_the_files_of_processes_that_run_are_left_alone(tmp_path: Path) -> None:
    count_in(tmp_path, os.getppid(), 4)
    take_over_counts(tmp_path)
    assert list_pids(tmp_path) == {os.getppid()}
