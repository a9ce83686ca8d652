"""Where a run stands: its counts, what it cost as far as that is known, and how long it still takes."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone

from evaluations.domain.judges import CallState, RunState
from evaluations.judges.runs import planner
from evaluations.judges.runs import selectors as runs_selectors
from evaluations.judges.runs.planner import plan_run_calls
from evaluations.judges.runs.selectors import count_calls_by_state, measure_run_progress
from evaluations.judges.runs.services import cancel_run, start_run
from evaluations.models.judges import Judge
from evaluations.models.runs import Attempt, Call, Run
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_baseline_judge, make_llm_judge, run_judge_here

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def judge() -> Judge:
    evaluation = make_evaluation()
    for _ in range(5):
        make_comparison(evaluation)
    return make_llm_judge(evaluation, "http://127.0.0.1:9/v1")


@pytest.fixture
def run(judge: Judge) -> Run:
    run = start_run(judge, user=None)
    plan_run_calls(run.pk, until=float("inf"))
    return Run.objects.get(pk=run.pk)


def attempted(run: Run, call: Call, *, number: int = 1, **columns: Any) -> Attempt:
    said = {"outcome": "answered", "http_status": 200, "latency_ms": 1, **columns}
    return Attempt.objects.create(call=call, run=run, number=number, **said)


def settled(run: Run, number: int) -> list[Call]:
    calls = list(Call.objects.filter(run=run).order_by("pk")[:number])
    Call.objects.filter(pk__in=[call.pk for call in calls]).update(state=CallState.ANSWERED)
    return calls


def test_cost_is_the_known_part_and_a_count_of_what_nobody_knows(run: Run) -> None:
    assert (measure_run_progress(run).cost, measure_run_progress(run).unpriced) == (0, 0)
    one, two, three, four, five = settled(run, 5)
    attempted(run, one, cost=None)
    assert (measure_run_progress(run).cost, measure_run_progress(run).unpriced) == (None, 1)
    attempted(run, two, cost=300)
    attempted(run, two, number=2, cost=200, step="repair")
    # A lost request and one whose answer never came may have cost something; an error did not.
    attempted(run, three, outcome="lost", http_status=None)
    attempted(run, four, outcome="retry", http_status=None)
    attempted(run, five, outcome="retry", http_status=429)
    told = measure_run_progress(run)
    assert (told.cost, told.priced, told.unpriced) == (500, 2, 3)
    assert (told.repeated, told.retried) == (1, 2)


def test_the_rate_counts_calls_where_a_call_takes_several_requests(run: Run) -> None:
    for call in settled(run, 4):
        attempted(run, call, number=1, step="ask")
        attempted(run, call, number=2, step="score")
    Run.objects.filter(pk=run.pk).update(started_at=timezone.now() - timedelta(hours=1))
    run.refresh_from_db()
    told = measure_run_progress(run)
    # Eight requests in the last minute settled four calls; the six that are left take a minute and a half.
    assert told.per_minute == pytest.approx(4)
    assert told.seconds_left == pytest.approx(90)


def test_requests_of_more_than_a_minute_ago_are_no_part_of_the_rate(run: Run) -> None:
    (call,) = settled(run, 1)
    attempted(run, call)
    Attempt.objects.update(created_at=timezone.now() - timedelta(minutes=5))
    assert measure_run_progress(run).per_minute is None


def test_repaired_and_copied_answers_are_counted(run: Run) -> None:
    one, two, three = settled(run, 3)
    Call.objects.filter(pk=one.pk).update(repaired=True)
    Call.objects.filter(pk__in=[two.pk, three.pk]).update(copied_from=one)
    told = measure_run_progress(run)
    assert (told.repaired, told.copied, told.settled) == (1, 2, 3)


def test_the_requests_of_a_large_run_at_work_are_counted_seldom(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.clear()
    monkeypatch.setattr(runs_selectors, "LARGE_RUN_CALLS", 1)
    monkeypatch.setattr(runs_selectors, "RECOUNT_AFTER_FACTOR", 10**9)
    one, two = settled(run, 2)
    attempted(run, one, cost=1)
    assert measure_run_progress(run).cost == 1
    attempted(run, two, cost=1)
    assert measure_run_progress(run).cost == 1
    # The states of calls are counted each time, and everything once the run has ended.
    settled(run, 3)
    assert measure_run_progress(run).settled == 3
    Run.objects.filter(pk=run.pk).update(state=RunState.DONE)
    run.refresh_from_db()
    assert measure_run_progress(run).cost == 2


def test_the_calls_of_a_judge_are_counted_over_all_its_runs(judge: Judge, run: Run) -> None:
    settled(run, 4)
    cancel_run(run, user=None)
    plan_run_calls(start_run(judge, user=None).pk, until=float("inf"))
    counts = count_calls_by_state(judge)
    assert (counts["answered"], counts["pending"], counts["failed"]) == (4, 6, 0)


def test_a_rule_costs_nothing(judge: Judge) -> None:
    assert measure_run_progress(run_judge_here(make_baseline_judge(judge.evaluation))).cost == 0


def test_postgresql_knows_how_many_calls_a_run_has_once_it_is_planned(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyzed: list[type] = []
    monkeypatch.setattr(planner, "refresh_statistics", lambda *models: analyzed.extend(models))
    run = start_run(judge, user=None)
    plan_run_calls(run.pk, until=float("inf"))
    assert analyzed == [Call]
    plan_run_calls(run.pk, until=float("inf"))
    assert analyzed == [Call], "nothing was planned"
