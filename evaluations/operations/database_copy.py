"""Copies of the database before a migration."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import connection

from evaluations.operations.sql import copy_sqlite_database, read_server_version

KEPT_COPIES: Final = 3
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
    """
    if settings.USES_SQLITE:
        name = Path(settings.DATABASES["default"]["NAME"]).stem
        return make_copy(folder, name, "sqlite3", copy_sqlite_database)
    program = find_pg_dump()
    return make_copy(folder, connection.settings_dict["NAME"], "dump", lambda path: dump_postgresql(program, path))


def make_copy(folder: Path, name: str, suffix: str, write: Callable[[Path], None]) -> Path:
    folder.mkdir(mode=0o700, exist_ok=True)
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    copy = folder / f"{stem}-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}.{suffix}"
    write(copy)
    copy.chmod(0o600)
    for old in sorted(folder.glob(f"{stem}-*.{suffix}"))[:-KEPT_COPIES]:
        old.unlink()
    return copy


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


def dump_postgresql(program: str, path: Path) -> None:
    parameters = connection.get_connection_params()
    named = {name: str(parameters[name]) for name in CONNECTION_SETTINGS if parameters.get(name)}
    address = " ".join(f"{name}={quote_setting(value)}" for name, value in named.items())
    password = parameters.get("password")
    environment = {**os.environ, **({"PGPASSWORD": str(password)} if password else {})}
    command = [program, "--format=custom", "--no-password", f"--dbname={address}"]
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, env=environment, text=True, check=False)
    if done.returncode:
        path.unlink()
        lines = done.stderr.strip().splitlines() or ["pg_dump failed"]
        raise CopyRefused(lines[-1].rstrip("."))


def quote_setting(value: str) -> str:
    """A value in a connection string of libpq."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
