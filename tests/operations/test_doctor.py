"""How every part of the product stands: what is found, and what is said about it."""

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone
from pytest_django.fixtures import Settings

from evaluations.jobs.queue import enqueue_job
from evaluations.models.jobs import Job, Lease, Worker
from evaluations.models.judges import Endpoint
from evaluations.models.webhooks import OutboxEntry
from evaluations.operations.doctor import run_checks
from evaluations.operations.findings import Finding, Health
from evaluations.operations.status import GIGABYTE, SWEEP_LEASE
from evaluations.webhooks.services import create_webhook
from tests.factories.evaluations import make_evaluation
from tests.helpers.llm_server import LLMServer, answer_well, llm_server

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture(autouse=True)
def data(tmp_path: Path, settings: Settings) -> Path:
    """A data folder in which everything is as it should be."""
    settings.DATA_DIR, settings.STATIC_ROOT, settings.DEBUG = tmp_path, tmp_path / "static", False
    settings.STATIC_ROOT.mkdir()
    (settings.STATIC_ROOT / "staticfiles.json").write_text("{}")
    (tmp_path / "secret_key").touch(mode=0o600)
    return tmp_path


@pytest.fixture
def worker(settings: Settings) -> Worker:
    now = timezone.now()
    return Worker.objects.create(
        name="here:1:a5b2f7", host="here", pid=1, version=settings.VERSION, started_at=now, seen_at=now
    )


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with llm_server(answer_well) as server:
        yield server


def found(health: Health) -> list[str]:
    return [f"{one.part}: {one.summary}" for one in run_checks(lambda: None) if one.health is health]


def the_only(health: Health) -> Finding:
    [finding] = [one for one in run_checks(lambda: None) if one.health is health]
    return finding


def test_nothing_is_wrong_where_nothing_is(worker: Worker) -> None:
    assert found(Health.PROBLEM) == found(Health.WARNING) == []
    assert {one.part for one in run_checks(lambda: None)} == {
        *("settings", "disk", "broker", "database", "workers", "sweep", "queue", "calls")
    }


def test_a_worker_is_named_by_its_host_and_number(worker: Worker) -> None:
    (summary,) = (one.summary for one in run_checks(lambda: None) if one.part == "workers")
    assert summary == f"1 running: here:1 since {worker.started_at:%Y-%m-%d %H:%M}"


def test_whatever_is_found_to_be_mended_comes_with_what_to_do(data: Path) -> None:
    (data / "static" / "staticfiles.json").unlink()
    assert all(one.advice for one in run_checks(lambda: None) if one.health is not Health.OK)


def test_no_worker_is_a_problem(data: Path) -> None:
    assert the_only(Health.PROBLEM).summary.startswith("No worker is running")


def test_what_waits_is_told_where_no_worker_runs_too(data: Path) -> None:
    long_ago = timezone.now() - timedelta(hours=2)
    Lease.objects.create(name=SWEEP_LEASE, until=long_ago, ended_at=long_ago)
    job = enqueue_job("render_ahead", 1, evaluation=make_evaluation())
    Job.objects.filter(pk=job.pk).update(queued_at=timezone.now() - timedelta(hours=1))
    told = {one.part: (one.health, one.summary) for one in run_checks(lambda: None)}
    assert told["sweep"] == (Health.WARNING, "The last sweep was 2 hours ago.")
    assert told["queue"][0] is Health.WARNING
    assert told["queue"][1].endswith("the oldest for 1 hour.")


def test_a_worker_of_another_version_is_named(worker: Worker) -> None:
    Worker.objects.update(version="0.0.1")
    assert the_only(Health.WARNING).summary == "here:1 runs a different version of judgeweb."


def test_what_no_sweep_has_put_right_is_a_problem(worker: Worker) -> None:
    webhook = create_webhook(make_evaluation(), url="https://example.org", kinds=["run.finished"], user=None)
    OutboxEntry.objects.create(webhook=webhook, kind="test", subject=1)
    assert found(Health.PROBLEM) == []
    OutboxEntry.objects.update(created_at=timezone.now() - timedelta(minutes=3))
    assert the_only(Health.PROBLEM).summary.startswith("1 notes for webhooks")


def test_a_broker_that_does_not_answer_is_a_problem_in_its_own_words(worker: Worker) -> None:
    def refuse() -> None:
        raise ConnectionError("nobody listens.\n")

    [finding] = [one for one in run_checks(refuse) if one.health is Health.PROBLEM]
    assert finding.summary == "filesystem does not answer: nobody listens." or finding.summary.endswith(
        ": nobody listens."
    )


@pytest.mark.parametrize(("free", "health"), [(0.5, Health.PROBLEM), (3, Health.WARNING), (6, Health.OK)])
def test_little_room_is_told_before_there_is_none(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, free: float, health: Health
) -> None:
    usage = SimpleNamespace(free=int(free * GIGABYTE))
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    [finding] = [one for one in run_checks(lambda: None) if one.part == "disk"]
    assert finding.health is health
    assert f"{free:.1f} GB are free" in finding.summary


def test_a_folder_that_cannot_be_written_is_a_problem(worker: Worker, data: Path, settings: Settings) -> None:
    settings.DATA_DIR = data / "gone"
    [finding] = [one for one in run_checks(lambda: None) if one.part == "disk"]
    assert (finding.health, finding.summary) == (
        Health.PROBLEM,
        f"Cannot write to {data / 'gone'}: No such file or directory.",
    )


def test_a_key_that_others_can_read_is_told(worker: Worker, data: Path) -> None:
    (data / "secret_key").chmod(0o644)
    assert the_only(Health.WARNING).advice == f"chmod 600 {data / 'secret_key'}"


def test_debug_pages_at_a_public_address_are_a_problem(worker: Worker, settings: Settings) -> None:
    settings.ADDRESS = "https://judgeweb.example.org"
    settings.DEBUG = True
    assert "error pages show source code" in the_only(Health.PROBLEM).summary


def test_passwords_without_encryption_are_told(worker: Worker, settings: Settings) -> None:
    settings.ADDRESS = "http://judgeweb.example.org"
    assert "has no encryption" in the_only(Health.WARNING).summary


def test_migrations_that_wait_are_a_problem_and_nothing_behind_them_is_asked(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MigrationExecutor, "migration_plan", lambda self, targets: [1, 2])
    assert found(Health.PROBLEM) == ["database: 2 migrations are not applied."]
    assert "workers" not in {one.part for one in run_checks(lambda: None)}


def test_endpoints_are_asked_for_their_models(worker: Worker, server: LLMServer) -> None:
    Endpoint.objects.create(name="here", base_url=server.base_url)
    Endpoint.objects.create(name="nowhere", base_url="http://127.0.0.1:9/v1")
    Endpoint.objects.create(name="without", base_url=server.base_url, key_variable="MISSING_API_KEY")
    told = {one.part: (one.health, one.summary) for one in run_checks(lambda: None)}
    assert told["endpoint here"] == (Health.OK, f"{server.base_url} responds; no judge uses it yet")
    assert told["endpoint nowhere"][0] is Health.WARNING
    assert told["endpoint nowhere"][1].startswith("It does not answer (")
    assert told["endpoint without"][1].startswith("MISSING_API_KEY is not set where the worker runs")
