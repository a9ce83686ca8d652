"""What all tests share."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.db.backends.postgresql.operations import DatabaseOperations
from django.test import Client
from hypothesis import settings

from evaluations.evaluation_settings.services import change_evaluation
from evaluations.jobs.nudges import WorkerTask
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from tests.factories.evaluations import make_evaluation, restart_numbers
from tests.factories.packed_votes import assert_packed_votes_match
from tests.factories.verdicts import make_judge_rater
from tests.helpers.api_client import ApiClient, token_for
from tests.helpers.running_product import Product, environment_for, own_database, start, stop
from tests.personas import ADJUDICATOR, MANAGER, OWNER, REVIEWERS, STRANGER, VIEWER


@pytest.hookimpl(tryfirst=True)  # before xdist and -m look at marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what differs by database and what one process has to itself, and let what takes longest begin.

    The tests of one file stay together, and so do all that ask the one running product: it is started once, and not by
    every process. They come first, then those that wait for real workers, then the files with most tests, so that none
    of them is left for one process at the end.
    """
    workers = {item.path for item in items if "worker" in item.keywords}
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (not asks_product(item), item.path not in workers, -tests[item.path], str(item.path)))
    for item in items:
        group = "product" if asks_product(item) else str(item.path).replace("/", ".")  # xdist wants none after the @
        item.add_marker(pytest.mark.xdist_group(group))
        if asks_servers(item) and "any_database" not in item.keywords:
            item.add_marker(pytest.mark.database)


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


def empty_what_is_filled(_: DatabaseOperations, __: Any, tables: Sequence[str], **___: Any) -> list[str]:
    """After a test with transactions of its own. Truncating takes a new file for each of 48 tables and 150 indexes.

    Foreign keys are checked when the transaction ends, so that the order of the tables is all the same.
    What Django would fill in again at once stays.
    """
    looked_at = (table for table in tables if table not in ("auth_permission", "django_content_type"))
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(f"(SELECT '{table}' FROM {table} LIMIT 1)" for table in looked_at))
        return [f"DELETE FROM {table}" for (table,) in cursor.fetchall()]


@pytest.fixture(scope="session", autouse=True)
def quick_flush() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseOperations, "sql_flush", empty_what_is_filled)
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
    for module, name in (("cut_prompts", "KNOWN"), ("answering", "SLOTS_TOLD")):
        if loaded := sys.modules.get(f"evaluations.services.judging.{module}"):
            getattr(loaded, name).clear()


@pytest.fixture(autouse=True)
def job_messages(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The jobs that workers are told of, instead of telling them."""
    sent: list[int] = []
    monkeypatch.setattr("evaluations.jobs.messages.send_job_message", lambda pk, expires=None: sent.append(pk))
    return sent


@pytest.fixture(autouse=True)
def nudges(monkeypatch: pytest.MonkeyPatch) -> list[tuple[WorkerTask, tuple[int, ...]]]:
    """What would be sent to workers: no test in this process reaches a broker."""
    sent: list[tuple[WorkerTask, tuple[int, ...]]] = []
    monkeypatch.setattr("evaluations.jobs.nudges.send_nudge", lambda task, ids, expires: sent.append((task, ids)))
    return sent


@pytest.fixture
def nudged_at_once(
    monkeypatch: pytest.MonkeyPatch, nudges: list[tuple[WorkerTask, tuple[int, ...]]]
) -> list[tuple[WorkerTask, tuple[int, ...]]]:
    """The same without waiting for the commit, for tests whose transaction is rolled back."""
    at_once = SimpleNamespace(on_commit=lambda send, robust: send())
    monkeypatch.setattr("evaluations.jobs.nudges.transaction", at_once)
    return nudges


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
    """The owner's program, with a token for everything."""
    return ApiClient(token_for(owner))
