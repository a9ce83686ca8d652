"""Copies of the database before a migration."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import BinaryIO, Final

from django.conf import settings
from django.db import connection

from evaluations.models.free_space import require_room
from evaluations.operations.sql import copy_sqlite_database, read_server_version
from judgeweb.children import die_with_parent

KEPT_COPIES: Final = 3
PART: Final = ".part"
# Settings of the connection that pg_dump takes too. The password goes through the environment, where `ps` shows none.
CONNECTION_SETTINGS: Final = (
    *("host", "hostaddr", "port", "user", "dbname", "service", "connect_timeout", "target_session_attrs"),
    *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "gssencmode", "channel_binding"),
)


class CopyRefused(Exception):
    """No copy can be made: the sentence says why."""


def copy_database(folder: Path) -> Path:
    """Make a whole and consistent copy while others may write; the last three are kept.

    Raises:
        CopyRefused: the server is PostgreSQL, and there is no `pg_dump` that can copy it.
        DiskFull: the copy would leave less than the reserve.
    """
    if settings.USES_SQLITE:
        path = Path(connection.settings_dict["NAME"])
        require_room(sum(part.stat().st_size for part in (path, path.with_name(f"{path.name}-wal")) if part.exists()))
        return make_copy(folder, path.stem, "sqlite3", lambda part, _: copy_sqlite_database(part))
    program = find_pg_dump()
    require_room()
    with unwind_on_sigterm():
        return make_copy(
            folder, connection.settings_dict["NAME"], "dump", lambda _, file: dump_postgresql(program, file)
        )


def make_copy(folder: Path, name: str, suffix: str, write: Callable[[Path, BinaryIO], None]) -> Path:
    """A copy has its name once it is whole: a part of one would count as one of the last three."""
    folder.mkdir(mode=0o700, exist_ok=True)
    remove_abandoned_parts(folder)
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    copy = folder / f"{stem}-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}.{suffix}"
    part = copy.with_name(f"{copy.name}{PART}")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            write(part, file)
            os.fsync(file.fileno())
        part.rename(copy)
    finally:
        part.unlink(missing_ok=True)
    for old in sorted(folder.glob(f"{stem}-*.{suffix}"))[:-KEPT_COPIES]:
        old.unlink()
    return copy


def remove_abandoned_parts(folder: Path) -> None:
    """Remove what killed processes left. A living one holds the lock of its part."""
    for part in folder.glob(f"*{PART}"):
        with suppress(BlockingIOError, FileNotFoundError), part.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()


@contextmanager
def unwind_on_sigterm() -> Iterator[None]:
    """Let SIGTERM raise SystemExit, so that `finally` removes the part and `subprocess` ends the program."""

    def leave(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the supervisor repeats it
        sys.exit(128 + number)

    former = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def find_pg_dump() -> str:
    """The program, which must not be older than the server."""
    program = shutil.which("pg_dump")
    if program is None:
        raise CopyRefused("pg_dump is not installed")
    server = int(read_server_version().split(".")[0])
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"(\d+)", output)
    if version is None or int(version[1]) < server:
        found = version[1] if version else "of an unknown version"
        raise CopyRefused(f"pg_dump {found} is older than the server, which is {server}")
    return program


def dump_postgresql(program: str, file: BinaryIO) -> None:
    parameters = connection.get_connection_params()
    named = {name: str(parameters[name]) for name in CONNECTION_SETTINGS if parameters.get(name)}
    address = " ".join(f"{name}={quote_setting(value)}" for name, value in named.items())
    password = parameters.get("password")
    environment = {**os.environ, **({"PGPASSWORD": str(password)} if password else {})}
    command = [program, "--format=custom", "--no-password", f"--dbname={address}"]
    done = subprocess.run(
        command,
        stdout=file,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
        check=False,
        preexec_fn=die_with_parent,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["pg_dump failed"]
        raise CopyRefused(lines[-1].rstrip("."))


def quote_setting(value: str) -> str:
    """A value in a connection string of libpq."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
