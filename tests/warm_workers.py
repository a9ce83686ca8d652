"""Celery workers without a new Python for each: a process that has imported the product forks itself for every worker.

``python -m tests.warm_workers`` reads lines of JSON: a list, the arguments of a worker, is answered with its pid; a
pid is answered with the exit code of that worker, once it has ended. At the end of its input it kills what is left.
"""

import json
import os
import signal
import sys
from contextlib import suppress

import django
from celery.__main__ import main as run_celery


def fork_worker(arguments: list[str]) -> int:
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        sys.argv = ["celery", "-A", "judgeweb", *arguments]
        run_celery()
        sys.exit()
    return pid


def wait_for(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "judgeweb.settings")
    django.setup()
    running = set()
    for line in sys.stdin:
        asked = json.loads(line)
        if isinstance(asked, list):
            answer = fork_worker(asked)
            running.add(answer)
        else:
            answer = wait_for(asked)
            running.discard(asked)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
    for pid in running:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            wait_for(pid)


if __name__ == "__main__":
    main()
