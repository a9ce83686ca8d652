"""Faults of an LLM server, as many as a test says."""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta

from django.db.models import Count, F, Max, Q
from django.db.models.functions import Now

from evaluations.domain.judges import AttemptOutcome, CallState, RunState
from evaluations.jobs.runner import work_on_due_jobs
from evaluations.judges.calls.lease_sweeper import finish_ended_runs, return_expired_calls
from evaluations.judges.endpoints.outages import PROBE_ENDPOINT
from evaluations.judges.runs.selectors import count_calls_by_state
from evaluations.llm.retry_policy import RetryPolicy
from evaluations.models.jobs import Job
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.verdicts import Score, Verdict
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import work_run_here
from tests.helpers.llm_server import LLMServer, Question, Script, answer_well

# Never gives up within a test, and never waits long.
PERSISTENT_RETRIES = RetryPolicy(
    first_seconds=0.01,
    most_seconds=0.1,
    tries=60,
    tries_when_busy=500,
    tries_unreachable=60,
    tries_timed_out=60,
    most_seconds_timed_out=0.01,
)
ASPECTS = 6


def evaluation_of_size(comparisons: int):  # type: ignore[no-untyped-def]
    evaluation = make_evaluation()
    for number in range(comparisons):
        make_comparison(evaluation, query=f"Question {number}?", response_a=f"a{number}", response_b=f"b{number}")
    return evaluation


def true_for_share(share: float) -> Callable[[], bool]:
    """A function that is true for exactly this share of its calls, spread evenly. Several threads may call it."""
    calls = itertools.count(1)

    def is_due() -> bool:
        call = next(calls)
        return int(call * share) > int((call - 1) * share)

    return is_due


def fail_sometimes(fault: Script, share: float, then: Script = answer_well) -> Script:
    """The fault on exactly this share of the requests, spread evenly over the order in which they come."""
    is_due = true_for_share(share)
    return lambda question: (fault if is_due() else then)(question)


def fail_in_bursts(fault: Script, bursts: Sequence[range], then: Script = answer_well) -> Script:
    """The fault on the requests of these places in the order in which they come."""
    requests = Counter[str]()

    def script(question: Question):  # type: ignore[no-untyped-def]
        requests["all"] += 1
        return (fault if any(requests["all"] in burst for burst in bursts) else then)(question)

    return script


def work_run_through_faults(run: Run) -> Run:
    """As many stretches of work as it takes, with the sweep between them.

    A claim whose confirmation was lost with its connection is nobody's until its lease lapses, which is not waited for.
    """
    for stretch in range(40):
        run = work_run_here(run, retry_policy=PERSISTENT_RETRIES)
        if run.state not in (RunState.PLANNING, RunState.RUNNING):
            return run
        if stretch >= 20:
            claimed = Call.objects.filter(run=run, state=CallState.RUNNING)
            claimed.update(lease_until=Now() - timedelta(seconds=1))
        return_expired_calls()
        finish_ended_runs()
        Job.objects.filter(kind=PROBE_ENDPOINT).update(not_before=None)
        work_on_due_jobs(PROBE_ENDPOINT)
    raise AssertionError(f"not at its end: {count_calls_by_state(run)}")


def assert_nothing_was_bought_twice(run: Run, server: LLMServer, *, in_flight_at_kills: int = 0) -> None:
    """Every call of the run has its one outcome, and once an answer was stored nothing more was asked.

    Requests in flight at a kill are the only ones that may have been repeated, and each is counted.
    """
    calls = Call.objects.filter(run=run)
    answered = calls.filter(state=CallState.ANSWERED)
    answered_attempts = Count("attempts", filter=Q(attempts__outcome=AttemptOutcome.ANSWERED))
    last_told = Max("attempts__number", filter=Q(attempts__outcome=AttemptOutcome.ANSWERED))
    whole = answered.annotate(told=answered_attempts, last=Max("attempts__number"), last_told=last_told)
    assert not whole.exclude(told=1).exists()
    assert not whole.exclude(last=F("last_told")).exists()
    assert Verdict.objects.filter(call__in=answered).count() == answered.count() * ASPECTS
    assert not Verdict.objects.filter(call__in=calls.exclude(state=CallState.ANSWERED)).exists()
    assert not Score.objects.filter(call__in=calls.exclude(state=CallState.ANSWERED)).exists()
    attempts = Attempt.objects.filter(run=run)
    lost = attempts.filter(outcome=AttemptOutcome.LOST).count()
    requests = sum(server.asked.values())
    # A lost Attempt stands for a request that was sent, or for one that was just about to be.
    assert attempts.count() - lost <= requests <= attempts.count()
    assert lost <= in_flight_at_kills
