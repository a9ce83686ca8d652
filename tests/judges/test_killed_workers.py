"""A worker killed in the middle of a run: nothing stored is lost, and only what was in flight is asked again."""

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from evaluations.domain.judges import AttemptOutcome, CallState, RunState
from evaluations.judges.runs.selectors import measure_run_progress
from evaluations.judges.runs.services import start_run
from evaluations.models.jobs import Worker
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.verdicts import Verdict
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_baseline_judge, make_llm_judge
from tests.helpers.llm_server import LLMServer, llm_server
from tests.helpers.running_product import processes_of
from tests.helpers.worker_processes import WORKER, environment_on_test_database, run_celery, until

pytestmark = [pytest.mark.worker, pytest.mark.django_db(transaction=True)]

IN_FLIGHT = 16


def state_of(run: Run) -> str:
    return Run.objects.values_list("state", flat=True).get(pk=run.pk)


def test_a_killed_worker_loses_no_answer_and_repeats_only_what_was_in_flight(tmp_path: Path) -> None:
    evaluation = make_evaluation()
    for number in range(250):
        make_comparison(evaluation, query=f"Question {number}?")
    environment = environment_on_test_database(tmp_path)
    with llm_server(latency=0.1) as server:
        run = start_run(make_llm_judge(evaluation, server.base_url, max_in_flight=IN_FLIGHT), user=None)
        with run_celery(environment, *WORKER) as worker:
            until(lambda: len(server.questions) > 180)
            worker.kill()
            worker.wait()
        assert no_orphan_sends(server, tmp_path)
        assert 0 < Attempt.objects.count() < 500
        with run_celery(environment, *WORKER):
            until(lambda: state_of(run) == RunState.DONE)
    run.refresh_from_db()
    assert Call.objects.filter(run=run, state=CallState.ANSWERED).count() == 500
    assert Attempt.objects.filter(outcome=AttemptOutcome.ANSWERED).count() == 500
    assert Verdict.objects.count() == 500 * 6
    asked_again = sum(server.asked.values()) - 500
    lost = measure_run_progress(run).repeated
    # In flight, answered and not stored yet, or claimed a moment ahead: at the most so many for every place.
    assert asked_again <= lost <= 4 * IN_FLIGHT
    assert max(server.asked.values()) <= 2
    # Nothing but those lost was asked twice.
    lost_calls = Attempt.objects.filter(outcome=AttemptOutcome.LOST).values("call")
    assert Call.objects.filter(run=run).exclude(pk__in=lost_calls).count() == 500 - lost


def no_orphan_sends(server: LLMServer, data_dir: Path) -> bool:
    """Whether the worker left no process behind, and nothing is asked any more."""
    left = [command for command in processes_of(data_dir).values() if " worker " in command]
    asked = len(server.questions)
    time.sleep(1)
    return not left and len(server.questions) == asked


def test_a_worker_asked_to_stop_keeps_what_is_in_flight_and_leaves_the_rest_to_the_next(tmp_path: Path) -> None:
    evaluation = make_evaluation()
    for number in range(100):
        make_comparison(evaluation, query=f"Question {number}?")
    environment = environment_on_test_database(tmp_path)
    with llm_server(latency=0.2) as server:
        run = start_run(make_llm_judge(evaluation, server.base_url, max_in_flight=4), user=None)
        with run_celery(environment, *WORKER) as worker:
            until(lambda: len(server.questions) > 20)
            worker.terminate()
            assert worker.wait(20) == 0
        assert 20 < Attempt.objects.count() == len(server.questions) < 200
        with run_celery(environment, *WORKER):
            until(lambda: state_of(run) == RunState.DONE)
    assert list(server.asked.values()) == [1] * 200
    assert not Attempt.objects.exclude(outcome=AttemptOutcome.ANSWERED).exists()


def test_two_workers_share_a_run_and_a_worker_tells_that_it_lives_and_that_it_leaves(tmp_path: Path) -> None:
    evaluation = make_evaluation()
    for number in range(40):
        make_comparison(evaluation, query=f"Question {number}?")
    environment = environment_on_test_database(tmp_path)
    with ExitStack() as stack:
        server = stack.enter_context(llm_server(latency=0.05))
        workers = [stack.enter_context(run_celery(environment, *WORKER, "-n", name)) for name in ("one", "two")]
        until(lambda: Worker.objects.alive().count() == 2)
        judge = make_llm_judge(evaluation, server.base_url, max_in_flight=8)
        runs = [start_run(judge, user=None), start_run(make_baseline_judge(evaluation), user=None)]
        until(lambda: all(state_of(run) == RunState.DONE for run in runs))
        assert server.most_in_flight <= 8
        for worker in workers:
            worker.terminate()
            assert worker.wait(20) == 0
    assert list(server.asked.values()) == [1] * 80
    assert Call.objects.filter(state=CallState.ANSWERED).count() == 160
    assert not Worker.objects.exists()


def test_a_killed_worker_buys_no_aspect_twice_but_those_in_flight(tmp_path: Path) -> None:
    evaluation = make_evaluation()
    for number in range(20):
        make_comparison(evaluation, query=f"Question {number}?")
    environment = environment_on_test_database(tmp_path)
    with llm_server(latency=0.1) as server:
        judge = make_llm_judge(evaluation, server.base_url, max_in_flight=4, one_aspect_per_call=True)
        run = start_run(judge, user=None)
        with run_celery(environment, *WORKER) as worker:
            until(lambda: len(server.questions) > 60)
            worker.kill()
            worker.wait()
        with run_celery(environment, *WORKER):
            until(lambda: state_of(run) == RunState.DONE)
    run.refresh_from_db()
    assert Call.objects.filter(run=run, state=CallState.ANSWERED).count() == 40
    assert Verdict.objects.count() == 40 * 6
    assert Attempt.objects.filter(outcome=AttemptOutcome.ANSWERED).count() == 40 * 6
    assert len(server.asked) == 40 * 6
    # Everything else was answered once: asked again was only what was in flight, or answered and not stored yet.
    assert sum(server.asked.values()) - 40 * 6 <= measure_run_progress(run).repeated <= 4 * 4
    assert max(server.asked.values()) <= 2
