"""Keep a small database of the present schema, which later versions must be able to migrate.

    python -m tests.upgrades.make_copy        a copy for SQLite
    DATABASE_URL=postgres://… python -m tests.upgrades.make_copy      one for PostgreSQL, by pg_dump

Run it on the last commit of a version, before its schema changes: the folder is named after the last migration.
"""

import gzip
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.helpers.running_product import environment_for, manage, own_database

DATABASES: Final = Path(__file__).parent / "databases"
FULL_EVALUATION: Final = "from tests.factories.full_evaluation import make_full_evaluation; make_full_evaluation(9000)"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, own_database() as database:
        environment = environment_for(Path(folder), **database)
        manage(environment, "make_ready", "--no-color")
        manage(environment, "shell", "--command", FULL_EVALUATION)
        migrations = manage(environment, "showmigrations", "evaluations", "--plan").stdout.split()
        kept = DATABASES / migrations[-1].partition(".")[2]
        kept.mkdir(parents=True, exist_ok=True)
        is_sqlite = not database["DATABASE_URL"]
        facts = run_python(environment, "tests.upgrades.facts", "facts")
        write_gzip(kept / f"{'sqlite' if is_sqlite else 'postgresql'}.json.gz", facts.encode())
        if is_sqlite:
            write_gzip(kept / "sqlite.sqlite3.gz", copy_sqlite(Path(folder, "judgeweb.sqlite3")))
        else:
            write_gzip(kept / "postgresql.sql.gz", dump_postgresql(database["DATABASE_URL"]))


def run_python(environment: Mapping[str, str], *module: str) -> str:
    done = subprocess.run([sys.executable, "-m", *module], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout


def copy_sqlite(path: Path) -> bytes:
    copy = path.with_name("copy.sqlite3")
    with sqlite3.connect(path) as database:
        database.execute("VACUUM INTO ?", [str(copy)])
    return copy.read_bytes()


def dump_postgresql(url: str) -> bytes:
    """Statements that any client can execute: no COPY, none of psql's own commands."""
    command = ["pg_dump", "--inserts", "--rows-per-insert=200", "--no-owner", "--no-privileges", url.partition("?")[0]]
    dump = subprocess.run(command, capture_output=True, check=True).stdout
    return b"".join(line for line in dump.splitlines(keepends=True) if not line.startswith((b"\\", b"--")))


def write_gzip(path: Path, content: bytes) -> None:
    path.write_bytes(gzip.compress(content, compresslevel=9, mtime=0))
    print(f"{path}: {path.stat().st_size:,} bytes", file=sys.stderr)  # noqa: T201 - a program for a terminal


if __name__ == "__main__":
    main()
