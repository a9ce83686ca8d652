"""A background job that killed its worker twice is not worked on a third time."""

import io

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from evaluations.domain.judges import RunState
from evaluations.jobs.crashes import list_jobs_set_aside, watch_job
from evaluations.judges.calls.worker_registry import own_worker_name
from evaluations.judges.runs.services import start_run
from evaluations.models.jobs import JobStart, Worker
from evaluations.models.runs import Run
from evaluations.operations.doctor import check_jobs
from evaluations.tasks import (
    fill_queue,
    look_after_batch,
    plan_run,
    render_ahead,
    reread_replies,
    store_import,
    tag_all,
)
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_baseline_judge

pytestmark = pytest.mark.django_db


def killed_at(kind: str, subject: int, worker: str) -> None:
    """A worker that began this and is no more."""
    JobStart.objects.create(kind=kind, subject=subject, worker=worker)


def may_be_worked_on(kind: str, subject: int) -> bool:
    with watch_job(kind, subject, own_worker_name()) as stretch:
        return stretch is not None


def test_a_job_is_set_aside_after_two_deaths_and_named_by_the_doctor_until_it_is_retried() -> None:
    killed_at("tag_all", 7, "host:1")
    assert may_be_worked_on("tag_all", 7)
    for worker in ("host:2", "host:3"):
        killed_at("tag_all", 7, worker)
    assert not may_be_worked_on("tag_all", 7)
    assert may_be_worked_on("tag_all", 8)
    assert list_jobs_set_aside() == [("tag_all", 7)]
    (finding,) = check_jobs()
    assert "tag_all 7 killed its worker twice" in finding.says
    call_command("retry_job", "tag_all", "7", stdout=io.StringIO())
    assert may_be_worked_on("tag_all", 7)
    with pytest.raises(CommandError, match="No job “tag_all 7” is set aside"):
        call_command("retry_job", "tag_all", "7")


def test_a_worker_that_lives_has_not_died_at_it() -> None:
    now = timezone.now()
    for pid in (1, 2):
        Worker.objects.create(name=f"host:{pid}", host="host", pid=pid, version="1", started_at=now, seen_at=now)
        killed_at("tag_all", 7, f"host:{pid}")
    assert may_be_worked_on("tag_all", 7)
    assert not JobStart.objects.filter(died=True).exists()


def test_a_fault_is_no_death_and_an_end_forgets_the_deaths_before_it() -> None:
    killed_at("tag_all", 7, "host:1")
    for _ in range(3):
        with pytest.raises(ValueError, match="fault"), watch_job("tag_all", 7, own_worker_name()):
            raise ValueError("fault")
    assert may_be_worked_on("tag_all", 7)
    assert not JobStart.objects.exists()


def test_a_job_that_goes_on_keeps_the_death_before_it() -> None:
    killed_at("tag_all", 7, "host:1")
    with watch_job("tag_all", 7, own_worker_name()) as stretch:
        assert stretch
        stretch.goes_on = True
    assert JobStart.objects.filter(died=True).count() == 1


def test_a_run_whose_planning_kills_its_worker_is_stopped_with_the_reason() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    run = start_run(make_baseline_judge(evaluation), user=None)
    for worker in ("host:1", "host:2"):
        killed_at("plan_run", run.pk, worker)
    plan_run(run.pk)
    run = Run.objects.get(pk=run.pk)
    assert run.state == RunState.STOPPED
    assert run.stop_reason.startswith("Set aside: the worker died 2 times")
    another = start_run(run.judge, user=None)
    plan_run(another.pk)
    assert Run.objects.get(pk=another.pk).state == RunState.RUNNING


@pytest.mark.parametrize(
    ("task", "kind", "subject"),
    [
        (store_import, "store_import", 7),
        (reread_replies, "reread_replies", 7),
        (tag_all, "tag_all", 7),
        (render_ahead, "render_ahead", 7),
        (fill_queue, "fill_queue", 7),
        (look_after_batch, "look_after_batch", 7),
    ],
)
def test_no_task_begins_a_job_that_is_set_aside(task: object, kind: str, subject: int) -> None:
    """The row is not even there: whatever began would fail."""
    for worker in ("host:1", "host:2"):
        killed_at(kind, subject, worker)
    task(subject)  # type: ignore[operator]
    assert list_jobs_set_aside() == [(kind, subject)]
