"""Workers killed again and again at random moments, and a broker that forgets everything."""

import random
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from django.db.models import Count, Q

from evaluations.domain.judges import AttemptOutcome, CallState, RunState
from evaluations.judges.calls.lease_sweeper import MAX_LOST_ATTEMPTS
from evaluations.judges.runs.services import start_run
from evaluations.models.runs import Call, Run
from tests.factories.judges import make_llm_judge
from tests.helpers.llm_faults import assert_nothing_was_bought_twice, evaluation_of_size
from tests.helpers.llm_server import LLMServer, llm_server
from tests.helpers.running_product import ROOT
from tests.helpers.worker_processes import WORKER, WarmWorkers, environment_on_test_database, run_celery, until

pytestmark = [pytest.mark.worker, pytest.mark.django_db(transaction=True)]

KILLS = 20
IN_FLIGHT = 8
COMPARISONS = 600


def state_of(run: Run) -> str:
    return Run.objects.values_list("state", flat=True).get(pk=run.pk)


def test_a_worker_killed_at_twenty_random_moments_buys_no_stored_answer_twice(tmp_path: Path) -> None:
    moments = random.Random(20)
    environment = environment_on_test_database(tmp_path, lease_seconds=3)
    with llm_server(latency=0.05) as server:
        run = start_run(
            make_llm_judge(evaluation_of_size(COMPARISONS), server.base_url, max_in_flight=IN_FLIGHT), user=None
        )
        with closing(WarmWorkers(environment)) as workers:
            for _ in range(KILLS):
                worker = workers.start(*WORKER)
                wait_for_some_work(server, moments)
                workers.kill(worker)
            assert state_of(run) == RunState.RUNNING, "it ended before the last kill"
            workers.start(*WORKER)
            until(lambda: state_of(run) == RunState.DONE)
    calls = Call.objects.filter(run=run)
    lost = Count("attempts", filter=Q(attempts__outcome=AttemptOutcome.LOST))
    # What is asked first after each start may be caught by kill after kill, until it is given up: by no other end.
    given_up = calls.exclude(state=CallState.ANSWERED).annotate(lost=lost).values_list("state", "lost")
    assert set(given_up) <= {(CallState.FAILED, MAX_LOST_ATTEMPTS)}
    assert calls.count() == 2 * COMPARISONS
    # In flight, or answered and not stored yet: at the most one of each for every place and kill.
    assert_nothing_was_bought_twice(run, server, in_flight_at_kills=KILLS * 2 * IN_FLIGHT)


def wait_for_some_work(server: LLMServer, moments: random.Random) -> None:
    """Return some time after a worker planned a call or asked one: wherever that finds it."""
    began = done(server)
    until(lambda: done(server) > began)
    time.sleep(moments.uniform(0, 0.25))


def done(server: LLMServer) -> int:
    return Call.objects.count() + sum(server.asked.values())


def test_a_broker_that_loses_every_message_loses_no_run(tmp_path: Path) -> None:
    environment = environment_on_test_database(tmp_path)
    with llm_server(latency=0.05) as server, run_celery(environment, *WORKER):
        run = start_run(make_llm_judge(evaluation_of_size(100), server.base_url, max_in_flight=4), user=None)
        for asked in (20, 60, 120):
            until(lambda asked=asked: sum(server.asked.values()) > asked)  # type: ignore[misc]
            empty_broker(environment)
        until(lambda: state_of(run) == RunState.DONE)
    assert Call.objects.filter(run=run, state=CallState.ANSWERED).count() == 200
    assert list(server.asked.values()) == [1] * 200
    assert_nothing_was_bought_twice(run, server)


def empty_broker(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "celery", "-A", "judgeweb", "purge", "--force"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
