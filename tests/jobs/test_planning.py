"""Runs are planned by jobs."""

import pytest

from evaluations.domain.judges import RunState
from evaluations.jobs.queue import enqueue_job
from evaluations.judges.runs.services import start_run
from evaluations.models.runs import Run
from evaluations.tasks import plan_run
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_baseline_judge
from tests.helpers.job_work import kill_worker_at

pytestmark = pytest.mark.django_db


def test_a_run_whose_planning_kills_its_worker_is_stopped_with_the_reason() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    run = start_run(make_baseline_judge(evaluation), user=None)
    enqueue_job("plan_run", run.pk, evaluation=evaluation)
    for _ in range(2):
        kill_worker_at("plan_run", run.pk)
    run = Run.objects.get(pk=run.pk)
    assert run.state == RunState.STOPPED
    assert run.stop_reason.startswith("Set aside: the worker died 2 times")
    plan_run(run.pk)
    another = start_run(run.judge, user=None)
    plan_run(another.pk)
    assert Run.objects.get(pk=another.pk).state == RunState.RUNNING
