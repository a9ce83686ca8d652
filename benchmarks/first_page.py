"""From a fresh clone to the first page: `python benchmarks/first_page.py [--environment .venv] [--once]`.

Clones this repository into a temporary folder, runs `make run` there, and prints as JSON: seconds
to the first page (environment and packages included; whether pip had them in its cache is up to
the machine), seconds of a second start and of a stop, megabytes on disk, and the resident memory
of all processes together. With --environment the product starts from that virtual environment, and nothing is
installed; with --once it is started once. Needs Linux, make and git.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--environment", type=Path, help="take this virtual environment in place of a new one")
    parser.add_argument("--once", action="store_true", help="leave the second start out")
    options = parser.parse_args()
    command = ["make", "run"]
    if options.environment:
        command = [str(options.environment.absolute() / "bin" / "python"), "-m", "judgeweb.serving"]
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "judgeweb"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        first, first_seconds = start(clone, command)
        time.sleep(5)  # the worker has settled
        figures = {
            "first_page_seconds": first_seconds,
            "installed_megabytes": megabytes_on_disk(clone),
            **memory_of(first.pid),
            "stop_seconds": stop(first),
        }
        if not options.once:
            second, figures["second_start_seconds"] = start(clone, command)
            stop(second)
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")


def start(clone: Path, command: Sequence[str]) -> tuple[subprocess.Popen[str], float]:
    """The product and the seconds until its sign-in page is there."""
    port = free_port()
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=clone,
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    first_line = next((line for line in process.stdout if line.startswith("judgeweb")), "nothing")
    if "is ready" not in first_line:
        sys.exit(f"it said {first_line}")
    urllib.request.urlopen(f"http://127.0.0.1:{port}/sign-in", timeout=10).read()
    return process, round(time.monotonic() - began, 1)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def stop(process: subprocess.Popen[str]) -> float:
    """Ctrl-C, as a terminal sends it: to make and to what it runs."""
    began = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    process.wait()
    return round(time.monotonic() - began, 1)


def megabytes_on_disk(folder: Path) -> int:
    return int(subprocess.check_output(["du", "-sm", str(folder)], text=True).split()[0])


def memory_of(make: int) -> dict[str, int]:
    """Megabytes of all processes below: resident, and with shared pages counted once."""
    resident = proportional = 0
    for pid in descendants(make):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            name, _, amount = line.partition(":")
            if name == "Rss":
                resident += int(amount.split()[0])
            elif name == "Pss":
                proportional += int(amount.split()[0])
    return {"resident_megabytes": resident // 1024, "resident_shared_once_megabytes": proportional // 1024}


def descendants(pid: int) -> list[int]:
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout.split()
    return [int(child) for child in children] + [below for child in children for below in descendants(int(child))]


if __name__ == "__main__":
    main()
