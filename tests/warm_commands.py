"""Management commands without a new Python for each: a process that is ready forks itself for every command.

``python -m tests.warm_commands`` reads a line of JSON, the arguments, and answers with one: how the command ended and
what it said.
"""

import json
import os
import sys
from tempfile import TemporaryFile
from typing import IO

import django
from django.core.management import execute_from_command_line
from django.urls import get_resolver


def run(arguments: list[str]) -> dict[str, int | str]:
    with TemporaryFile() as out, TemporaryFile() as error:
        child = os.fork()
        if child == 0:  # leaves as manage.py would
            os.dup2(out.fileno(), sys.stdout.fileno())
            os.dup2(error.fileno(), sys.stderr.fileno())
            execute_from_command_line(["manage.py", *arguments])
            sys.exit()
        _, status = os.waitpid(child, 0)
        return {"returncode": os.waitstatus_to_exitcode(status), "stdout": written(out), "stderr": written(error)}


def written(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "judgeweb.settings")
    django.setup()
    _ = get_resolver().url_patterns  # every module that the checks before a command import
    for line in sys.stdin:
        sys.stdout.write(f"{json.dumps(run(json.loads(line)))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
