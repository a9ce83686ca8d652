"""A database of each landed schema, migrated with its data by this version."""

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from tests.helpers.running_product import environment_for, manage, own_database
from tests.upgrades.make_copy import DATABASES, run_python

pytestmark = pytest.mark.database

# Tables whose rows a migration makes, moves or drops on purpose → how many there are afterwards is not compared.
CHANGED_BY_MIGRATIONS: Final[set[str]] = set()


@dataclass(frozen=True)
class Upgrade:
    """What was true of a database before and after it was migrated, and its schema beside that of a new one."""

    before: dict[str, Any]
    after: dict[str, Any]
    schema: dict[str, Any]
    new_schema: dict[str, Any]


@pytest.fixture(scope="module", params=sorted(folder.name for folder in DATABASES.iterdir()))
def upgrade(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgrade]:
    kept, folder = DATABASES / request.param, tmp_path_factory.mktemp("upgraded")
    with own_database() as database, own_database() as new_database:
        name = restore(kept, folder, database["DATABASE_URL"])
        before = json.loads(gzip.decompress((kept / f"{name}.json.gz").read_bytes()))
        environment = environment_for(folder, **database)
        manage(environment, "make_ready", "--no-color")
        after = json.loads(run_python(environment, "tests.upgrades.facts", "facts"))
        schema = json.loads(run_python(environment, "tests.upgrades.facts", "schema"))
        new = environment_for(tmp_path_factory.mktemp("new"), **new_database)
        manage(new, "migrate", "--no-color")
        new_schema = json.loads(run_python(new, "tests.upgrades.facts", "schema"))
        yield Upgrade(before, after, schema, new_schema)


def restore(kept: Path, folder: Path, url: str) -> str:
    """Put the kept database where the product looks for it; returns the name of its kind."""
    if not url:
        Path(folder, "judgeweb.sqlite3").write_bytes(gzip.decompress((kept / "sqlite.sqlite3.gz").read_bytes()))
        return "sqlite"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(gzip.decompress((kept / "postgresql.sql.gz").read_bytes()))
    return "postgresql"


def test_a_migrated_database_keeps_its_rows(upgrade: Upgrade) -> None:
    before, after = upgrade.before["rows"], upgrade.after["rows"]
    kept = {table: rows for table, rows in before.items() if table not in CHANGED_BY_MIGRATIONS}
    assert sum(kept.values()) > 1000
    # The start makes a sign-in link; the facts themselves were read through pages, an export and a report.
    added_to = ("event", "signinlink", "disclosure", "export", "job", "session", "securityevent")
    grown = {f"evaluations_{name}" for name in added_to} & kept.keys()
    assert {table: after[table] for table in kept if table not in grown} == {
        table: rows for table, rows in kept.items() if table not in grown
    }
    assert all(after[table] >= kept[table] for table in grown)


def test_a_migrated_database_has_the_schema_of_a_new_one(upgrade: Upgrade) -> None:
    assert upgrade.schema.keys() == upgrade.new_schema.keys()
    for table, schema in upgrade.schema.items():
        assert schema == upgrade.new_schema[table], table


def test_a_migrated_database_gives_the_same_verdicts(upgrade: Upgrade) -> None:
    """A later version may write more columns, and none of the earlier ones otherwise."""
    before, after = upgrade.before["verdicts"], upgrade.after["verdicts"]
    assert len(before) == len(after) > 400
    for earlier, later in zip(before, after, strict=True):
        assert earlier.items() <= later.items()


def test_a_migrated_database_gives_the_same_agreement(upgrade: Upgrade) -> None:
    """Later versions may give their reasons in other words."""
    before, after = upgrade.before["report"]["aspects"], upgrade.after["report"]["aspects"]
    assert before.keys() == after.keys()
    for aspect, numbers in before.items():
        assert drop_reasons(numbers["human_human"]) == drop_reasons(after[aspect]["human_human"])
        for judge, agreement in numbers["judges"].items():
            later = after[aspect]["judges"][judge]
            assert drop_reasons(agreement["judge_human"]) == drop_reasons(later["judge_human"])


def drop_reasons(numbers: Any) -> Any:
    """The numbers without their reasons, and without the digits that depend on the processor."""
    if isinstance(numbers, float):
        return round(numbers, 9)
    if isinstance(numbers, list):
        return [drop_reasons(number) for number in numbers]
    if isinstance(numbers, dict):
        return {key: drop_reasons(value) for key, value in numbers.items() if key not in ("why", "ci95_why")}
    return numbers


def test_every_page_opens_on_a_migrated_database(upgrade: Upgrade) -> None:
    assert set(upgrade.after["pages"].values()) == {200}


def test_a_database_of_the_newest_schema_is_kept() -> None:
    migrations = sorted(file.stem for file in Path("evaluations/migrations").glob("0*.py"))
    kept = {folder.name for folder in DATABASES.iterdir()}
    assert kept <= set(migrations)
    assert migrations[-1] in kept, "make one: python -m tests.upgrades.make_copy, with each database"


def test_a_copy_is_kept_for_both_databases() -> None:
    for folder in DATABASES.iterdir():
        names = {"sqlite.sqlite3.gz", "sqlite.json.gz", "postgresql.sql.gz", "postgresql.json.gz"}
        assert set(os.listdir(folder)) == names
