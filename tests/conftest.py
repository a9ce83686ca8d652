"""What all tests share."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from django.apps import apps
from django.conf import LazySettings
from django.db import connection
from django.db.backends.base.operations import BaseDatabaseOperations
from django.test import Client
from hypothesis import settings
from pytest_django import DjangoDbBlocker
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from evaluations.evaluation_settings.services import change_evaluation
from evaluations.judges.calls.live_worker import REPORTED_SLOTS
from evaluations.judges.calls.prompt_truncation import WATCHES
from evaluations.models.evaluations import Evaluation
from evaluations.models.search_index import clear_orphaned_words
from evaluations.models.users import User
from tests.factories.evaluations import give_rights, make_evaluation, restart_numbers
from tests.factories.packed_votes import assert_packed_votes_match
from tests.factories.verdicts import make_judge_rater
from tests.helpers.api_client import ApiClient, token_for
from tests.helpers.job_work import Nudges
from tests.helpers.running_product import Product, environment_for, own_database, start, stop
from tests.helpers.shared_rows import rows_taken_back
from tests.personas import ADJUDICATOR, MANAGER, OWNER, REVIEWERS, STRANGER, VIEWER

TABLES_FILLED_BY_MIGRATE: Final = ("auth_permission", "django_content_type")


class FilesTogether(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """The tests of one file run in one process, and so do those of a folder that asks the running product.

    xdist's own groups are suffixes of node ids, which pytest 9.2 no longer lets a plugin change.
    """

    PRODUCT_FOLDERS: Final = ("tests/browser", "tests/serving")  # each process that asks it starts it

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        folder = file.rpartition("/")[0]
        return folder if folder in self.PRODUCT_FOLDERS else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    return FilesTogether(config, log) if config.getoption("dist") in ("loadfile", "loadgroup") else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what differs by database, before -m looks at marks."""
    if asks_servers(item) and "any_database" not in item.keywords:
        item.add_marker(pytest.mark.database)


@pytest.hookimpl(trylast=True)  # after pytest-django, which puts tests without a database last
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let what takes longest begin.

    First come tests that ask the running product, then those that wait for real workers or are marked as long, then
    the files with most tests, so that none of them is left for one process at the end.
    """
    long = {item.path for item in items if not {"worker", "long"}.isdisjoint(item.keywords)}
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (not asks_product(item), item.path not in long, -tests[item.path], str(item.path)))


def asks_product(item: pytest.Item) -> bool:
    return "product" in getattr(item, "fixturenames", ())


def asks_servers(item: pytest.Item) -> bool:
    """Whether it asks a database or a broker, itself or through a product."""
    fixtures = {"db", "transactional_db", "product", "own_product"}
    marks = {"django_db", "worker"}
    return not marks.isdisjoint(item.keywords) or not fixtures.isdisjoint(getattr(item, "fixturenames", ()))


# How long an example takes says something about the machine only.
settings.register_profile("judgeweb", deadline=None)

settings.load_profile("judgeweb")


def empty_filled_tables(_: BaseDatabaseOperations, __: Any, tables: Sequence[str], **___: Any) -> list[str]:
    """Delete the rows of all tables that have some, after a test with transactions of its own.

    PostgreSQL's truncating takes a new file for each of 48 tables and 150 indexes. Foreign keys are checked when the
    transaction ends, so the order of the tables is of no matter.
    """
    looked_at = (table for table in tables if table not in TABLES_FILLED_BY_MIGRATE)
    with connection.cursor() as cursor:
        parts = (f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {table})" for table in looked_at)
        cursor.execute(" UNION ALL ".join(parts))
        return [f"DELETE FROM {table}" for (table,) in cursor.fetchall()]


def clear_words(*_: object, **__: object) -> None:
    clear_orphaned_words(apps.get_app_config("evaluations"))


@pytest.fixture(scope="session", autouse=True)
def quick_flush() -> Iterator[None]:
    """Django would fill the kept tables in again after each flush, by a hundred queries.

    Words of comparisons that are gone go as after any other flush.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(connection.ops), "sql_flush", empty_filled_tables)
        patch.setattr("django.core.management.commands.flush.emit_post_migrate_signal", clear_words)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_waiting_and_no_broker() -> Iterator[None]:
    """Leave no pauses for other writers, of which the tests have none; send no nudges; let no heartbeat fall due.

    A heartbeat on a slow machine would wait in another connection for the transaction of the test.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in ("models.transactions", "judges.calls.claims", "judges.calls.live_worker"):
            patch.setattr(f"evaluations.{module}.write_pause_seconds", lambda _: 0.0)
        patch.setattr("evaluations.jobs.nudges.send_nudge", lambda *_: None)
        patch.setattr("evaluations.jobs.kinds.HEARTBEAT_SECONDS", 3600.0)
        yield


@pytest.fixture(scope="module")
def rows_for_module(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Let fixtures of module scope store rows that all tests of the module find; each test takes back its own."""
    with django_db_blocker.unblock(), rows_taken_back():
        yield


@pytest.fixture(autouse=True)
def same_names_in_any_order() -> None:
    restart_numbers()


@pytest.fixture
def owner() -> User:
    return OWNER.make()


@pytest.fixture
def evaluation(owner: User) -> Evaluation:
    """An empty one, with the built-in rubric; its address is `study`."""
    return make_evaluation(owner, slug="study")


@pytest.fixture
def manager(evaluation: Evaluation) -> User:
    return MANAGER.join(evaluation)


@pytest.fixture
def reviewer(evaluation: Evaluation) -> User:
    return REVIEWERS[0].join(evaluation)


@pytest.fixture
def second_reviewer(evaluation: Evaluation) -> User:
    return REVIEWERS[1].join(evaluation)


@pytest.fixture
def adjudicator(evaluation: Evaluation) -> User:
    return ADJUDICATOR.join(evaluation)


@pytest.fixture
def viewer(evaluation: Evaluation) -> User:
    return VIEWER.join(evaluation)


@pytest.fixture
def stranger() -> User:
    return STRANGER.make()


@pytest.fixture
def consistent_packed_votes() -> Iterator[None]:
    """After the test the packed votes are what a recount of its verdicts gives."""
    yield
    assert_packed_votes_match()


@pytest.fixture(scope="session")
def acceptance_data() -> Path:
    """Real data sets that are not part of the project."""
    folder = os.environ.get("JUDGEWEB_ACCEPTANCE_DATA")
    if not folder:
        pytest.skip("JUDGEWEB_ACCEPTANCE_DATA does not name a folder with the real data sets")
    return Path(folder)


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The real product with its worker and beat, started once and left running."""
    with own_database() as database:
        running = start(environment_for(tmp_path_factory.mktemp("product"), **database))
        yield running
        stop(running)


@pytest.fixture
def kept(settings: LazySettings, tmp_path: Path) -> Callable[[], list[str]]:
    """What is kept of files here, and what was left of unpacking and receiving them."""
    folder = tmp_path / "kept"
    for name in ("MEDIA_ROOT", "SCRATCH_DIR", "FILE_UPLOAD_TEMP_DIR"):
        (folder / name).mkdir(parents=True)
        setattr(settings, name, folder / name)
    return lambda: [path.name for path in folder.rglob("*") if path.is_file()]


@pytest.fixture(autouse=True)
def nothing_known_of_servers() -> None:
    """What a process learned of a server: another test may have one at the same address."""
    WATCHES.clear()
    REPORTED_SLOTS.clear()


@pytest.fixture(autouse=True)
def nudges(monkeypatch: pytest.MonkeyPatch) -> Nudges:
    """What would be sent to workers: no test in this process reaches a broker."""
    sent: Nudges = []
    monkeypatch.setattr("evaluations.jobs.nudges.send_nudge", lambda task, ids, expires: sent.append((task, ids)))
    return sent


@pytest.fixture
def owner_signed_in(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


@pytest.fixture
def manager_signed_in(client: Client, manager: User) -> Client:
    client.force_login(manager)
    return client


@pytest.fixture
def judge_shown(evaluation: Evaluation) -> None:
    """Reviewers are shown the judge “longest wins”."""
    change_evaluation(evaluation, {"shown_judge": make_judge_rater(evaluation, "longest wins").judge}, user=None)


@pytest.fixture
def browser(reviewer: User) -> Client:
    """The reviewer's, signed in."""
    client = Client()
    client.force_login(reviewer)
    return client


@pytest.fixture
def asking(owner: User, evaluation: Evaluation) -> ApiClient:
    """The program of an owner who has every right of site policy, with a token for everything."""
    return ApiClient(token_for(give_rights(owner)))
