"""Making the data ready: what is copied before it is touched, and what the first start makes."""

import fcntl
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import LazySettings, settings
from django.core.management import CommandError, call_command
from django.db import OperationalError

from evaluations.domain import disk_space
from evaluations.management.commands import make_ready
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import SignInLink, User
from evaluations.operations import database_copy
from evaluations.operations.database_copy import copy_database
from tests.factories.evaluations import make_user
from tests.helpers.running_product import ROOT, environment_for, manage, own_database

needs_postgresql = pytest.mark.skipif(settings.USES_SQLITE, reason="pg_dump copies PostgreSQL databases")
needs_sqlite = pytest.mark.skipif(not settings.USES_SQLITE, reason="copies are made of SQLite databases only")


@pytest.fixture(autouse=True)
def own_static_files(settings: LazySettings, tmp_path: Path) -> None:
    """All processes of the suite share one folder for collected files, and other tests expect it to be empty."""
    settings.STATIC_ROOT = tmp_path / "static"


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    with own_database() as database:
        yield environment_for(tmp_path, **database)


@needs_sqlite
@pytest.mark.django_db(transaction=True)
def test_the_last_three_copies_are_kept_and_each_is_whole(tmp_path: Path) -> None:
    copies = []
    for number in range(5):
        make_user(f"person{number}")
        copies.append(copy_database(tmp_path / "copies"))
    assert sorted((tmp_path / "copies").iterdir()) == copies[2:]
    for copy, people in zip(copies[2:], (3, 4, 5), strict=True):
        with sqlite3.connect(copy) as database:
            assert database.execute("SELECT count(*) FROM evaluations_user").fetchone() == (people,)


@needs_sqlite
@pytest.mark.django_db(transaction=True)
def test_a_copy_that_fails_leaves_nothing_and_takes_the_place_of_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "copies"
    copies = [copy_database(folder) for _ in range(3)]

    def fail(path: Path) -> None:
        path.write_bytes(b"the first part")
        raise OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(database_copy, "copy_sqlite_database", fail)
        for _ in range(3):
            with pytest.raises(OperationalError):
                copy_database(folder)
    assert sorted(folder.iterdir()) == copies
    last = copy_database(folder)
    assert sorted(folder.iterdir()) == [*copies[1:], last]


@needs_sqlite
@pytest.mark.django_db(transaction=True)
def test_the_part_of_a_killed_process_is_removed_and_that_of_a_living_one_stays(tmp_path: Path) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    (folder / "test-1.sqlite3.part").write_bytes(b"x")
    living = folder / "test-2.sqlite3.part"
    with living.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        copy = copy_database(folder)
        assert sorted(folder.iterdir()) == sorted([living, copy])
    assert copy.stat().st_mode & 0o777 == 0o600


@pytest.mark.django_db
def test_without_room_for_a_copy_nothing_is_migrated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: LazySettings
) -> None:
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(disk_space, "count_free_bytes", lambda folder: settings.DISK_RESERVE_BYTES - 1)
    monkeypatch.setattr(make_ready, "has_unapplied_migrations", lambda: True)
    monkeypatch.setattr(make_ready, "call_command", lambda name, **options: pytest.fail(name))
    with pytest.raises(CommandError, match=r"no room for a copy of it first\. Make room"):
        call_command("make_ready")
    assert not (tmp_path / "backups").exists()


@needs_postgresql
def test_a_start_that_is_stopped_while_it_dumps_leaves_neither_a_part_nor_the_program(
    environment: dict[str, str], tmp_path: Path
) -> None:
    manage(environment, "make_ready")
    manage(environment, "migrate", "evaluations", "0006_accounts")
    programs, number = tmp_path / "programs", tmp_path / "number"
    programs.mkdir()
    (programs / "pg_dump").write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo pg_dump 99 && exit\necho $$ > {number}\necho part\nexec sleep 60\n'
    )
    (programs / "pg_dump").chmod(0o755)
    started = subprocess.Popen(
        [sys.executable, "manage.py", "make_ready"],
        cwd=ROOT,
        env={**environment, "PATH": f"{programs}:{environment['PATH']}"},
    )
    while not (number.exists() and number.read_text()):
        assert started.poll() is None
        time.sleep(0.05)
    started.terminate()
    started.wait(timeout=20)
    assert list((tmp_path / "backups").iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(number.read_text()), 0)


@needs_sqlite
def test_a_database_is_copied_before_a_migration_and_at_no_other_start(
    environment: dict[str, str], tmp_path: Path
) -> None:
    first = manage(environment, "make_ready")
    again = manage(environment, "make_ready")
    assert "copy" not in first.stderr + again.stderr
    assert not (tmp_path / "backups").exists()
    manage(environment, "migrate", "sessions", "zero")
    third = manage(environment, "make_ready")
    (copy,) = (tmp_path / "backups").iterdir()
    assert third.stderr == f"Kept a copy of the database: {copy}\n"
    with sqlite3.connect(copy) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    assert "evaluations_user" in tables
    assert "django_session" not in tables


@needs_postgresql
def test_a_postgresql_database_is_dumped_before_a_migration_for_its_owner_alone(
    environment: dict[str, str], tmp_path: Path
) -> None:
    manage(environment, "make_ready")
    assert not (tmp_path / "backups").exists()
    manage(environment, "migrate", "evaluations", "0006_accounts")
    manage(environment, "make_ready")
    (copy,) = (tmp_path / "backups").iterdir()
    assert copy.stat().st_mode & 0o777 == 0o600
    listed = subprocess.run(["pg_restore", "--list", str(copy)], capture_output=True, text=True, check=True)
    assert "TABLE DATA public evaluations_user" in listed.stdout


@needs_postgresql
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("program", "why"), [(None, "pg_dump is not installed"), ("pg_dump 9.6.1", "pg_dump 9 is older than the server")]
)
def test_without_a_program_that_can_copy_the_start_stops_until_it_is_told_to_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: LazySettings, program: str | None, why: str
) -> None:
    settings.DATA_DIR = tmp_path
    if program is not None:
        (tmp_path / "pg_dump").write_text(f"#!/bin/sh\necho {program}\n")
        (tmp_path / "pg_dump").chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda name: str(tmp_path / name) if program else None)
    monkeypatch.setattr(make_ready, "has_unapplied_migrations", lambda: True)
    migrated: list[str] = []
    monkeypatch.setattr(make_ready, "call_command", lambda name, **options: migrated.append(name))
    with pytest.raises(CommandError, match=f"no copy of it can be made first: {why}.*--no-copy"):
        call_command("make_ready")
    assert migrated == []
    call_command("make_ready", no_copy=True)
    settings.MIGRATE_WITHOUT_COPY = True
    call_command("make_ready")
    assert migrated.count("migrate") == 2


@pytest.mark.django_db
def test_the_first_start_makes_an_administrator_and_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("make_ready")
    owner = User.objects.get(is_active=True)  # the account of sample texts cannot sign in
    assert not User.objects.exclude(pk=owner.pk).exclude(password__startswith="!").exists()
    assert (owner.username, owner.is_superuser, owner.has_usable_password()) == ("owner", True, False)
    assert Evaluation.objects.get().is_example
    assert capsys.readouterr().out.startswith("/sign-in/")


@pytest.mark.django_db
def test_a_later_start_makes_only_a_fresh_link_for_the_first_administrator() -> None:
    User.objects.create_superuser("first", is_active=False)
    second = User.objects.create_superuser("second")
    User.objects.create_superuser("third")
    call_command("make_ready")
    assert SignInLink.objects.get().user == second
    assert not Evaluation.objects.exists()


@pytest.mark.django_db
def test_without_an_administrator_there_is_no_link(capsys: pytest.CaptureFixture[str]) -> None:
    make_user()
    call_command("make_ready")
    assert capsys.readouterr().out == ""


def test_a_database_that_cannot_be_opened_is_one_clear_line(environment: dict[str, str]) -> None:
    unreachable = {**environment, "DATABASE_URL": "sqlite:////nowhere/judgeweb.sqlite3"}
    with pytest.raises(subprocess.CalledProcessError) as failed:
        manage(unreachable, "make_ready")
    assert failed.value.stderr == ("CommandError: the database could not be prepared: unable to open database file\n")
