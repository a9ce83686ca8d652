"""A run whose requests all fail in one way is paused with the reason, and goes on when it is resumed."""

from typing import Any

import pytest
from django.utils import timezone

from evaluations.domain.judges import CallState, RunState
from evaluations.judges.calls.worker_registry import ENDPOINT_SHARES
from evaluations.judges.runs.services import resume_run, start_run
from evaluations.llm.retry_policy import RetryPolicy
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Endpoint
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.verdicts import Verdict
from tests.factories.evaluations import make_comparison
from tests.factories.judges import make_llm_judge, run_judge_here, work_run_here
from tests.helpers.llm_faults import work_run_through_faults
from tests.helpers.llm_server import (
    LLMServer,
    Script,
    ServerAnswer,
    answer_in_turn,
    answer_text,
    answer_well,
    fail_with,
    llm_server,
    refuse_answer,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
# Gives up long after the breaker should have acted.
STUDY = 40
STUBBORN = RetryPolicy(first_seconds=0.01, most_seconds=0.02, tries=50, tries_when_busy=50)
CRASHED = fail_with(500, "The model has crashed without additional information. (Exit code: 6)")


@pytest.fixture(autouse=True)
def comparisons(evaluation: Evaluation) -> None:
    for number in range(STUDY):
        make_comparison(evaluation, response_a=f"a{number}")


def run_against(script: Script, evaluation: Evaluation, **settings: Any) -> tuple[Run, LLMServer]:
    with llm_server(script) as server:
        judge = make_llm_judge(evaluation, server.base_url, **settings)
        return work_run_here(start_run(judge, user=None, orders="as-stored"), retry_policy=STUBBORN), server


def test_twelve_equal_failures_without_a_success_pause_the_run_with_the_reason(evaluation: Evaluation) -> None:
    run, server = run_against(CRASHED, evaluation)
    assert run.state == RunState.PAUSED
    assert "12 requests in a row failed the same way. Last error: The server answered 500" in run.stop_reason
    assert "The model has crashed" in run.stop_reason
    assert len(server.questions) == 12  # one in flight, since nothing was found yet
    assert Event.objects.get(verb="paused", object_id=run.pk).after == {"reason": run.stop_reason}


def test_errors_that_are_recorded_on_calls_pause_the_run_too(evaluation: Evaluation) -> None:
    run, server = run_against(fail_with(400, "template error 17"), evaluation)
    assert run.state == RunState.PAUSED
    assert "template error 17" in run.stop_reason
    assert Call.objects.filter(state=CallState.FAILED).count() == len(server.questions) == 12


@pytest.mark.parametrize(
    ("script", "settings", "words"),
    [
        (answer_text("Both are fine."), {}, "replies in a row could not be parsed"),
        (answer_text("Both are fine."), {"repairs": False}, "replies in a row could not be parsed"),
        (answer_text(""), {}, "replies in a row could not be parsed"),
        (lambda question: ServerAnswer("{", finish_reason="length"), {}, "replies in a row were cut off"),
        (fail_with(400, "maximum context length is 9"), {}, "prompts in a row were too long"),
    ],
)
def test_replies_that_all_fail_alike_pause_the_run(
    evaluation: Evaluation, script: Script, settings: dict[str, Any], words: str
) -> None:
    run, _ = run_against(script, evaluation, **settings)
    assert run.state == RunState.PAUSED
    assert words in run.stop_reason
    assert not Verdict.objects.exists()
    ended = Call.objects.exclude(state__in=(CallState.PENDING, CallState.RUNNING)).count()
    assert 12 <= ended <= 24  # no more than as many again were under way


def test_refusals_pause_nothing(evaluation: Evaluation) -> None:
    run, _ = run_against(refuse_answer, evaluation)
    assert run.state == RunState.DONE
    assert Call.objects.filter(state=CallState.REFUSED).count() == STUDY


def test_a_success_among_them_pauses_nothing(evaluation: Evaluation) -> None:
    odd = fail_with(400, "odd")
    run, _ = run_against(answer_in_turn([answer_well, *[odd] * 8, answer_well, *[odd] * 8], answer_well), evaluation)
    assert run.state == RunState.DONE
    assert Call.objects.filter(state=CallState.FAILED).count() == 16


def test_a_server_that_has_answered_may_be_away_for_a_moment(evaluation: Evaluation) -> None:
    """It is set aside, and a probe lets the run go on."""
    with llm_server(answer_in_turn([answer_well, *[fail_with(503)] * 30], answer_well)) as server:
        judge = make_llm_judge(evaluation, server.base_url, mode="json_schema")
        run = work_run_through_faults(start_run(judge, user=None, orders="as-stored"))
    assert run.state == RunState.DONE
    assert Call.objects.filter(state=CallState.ANSWERED).count() == STUDY


def test_failures_of_different_kinds_are_counted_apart(evaluation: Evaluation) -> None:
    kinds = [fail_with(400, "odd"), fail_with(400, "strange")]
    run, _ = run_against(answer_in_turn([kinds[n % 2] for n in range(20)], answer_well), evaluation)
    assert run.state == RunState.DONE


def test_a_paused_run_goes_on_and_earlier_failures_are_forgotten(evaluation: Evaluation) -> None:
    with llm_server(CRASHED) as server:
        run = work_run_here(
            start_run(make_llm_judge(evaluation, server.base_url), user=None, orders="as-stored"), retry_policy=STUBBORN
        )
        assert run.state == RunState.PAUSED
        server.script = answer_in_turn([CRASHED], answer_well)
        resume_run(run, user=None)
        run = work_run_here(run, retry_policy=STUBBORN)
    assert (run.state, run.stop_reason) == (RunState.DONE, "")
    assert Call.objects.filter(state=CallState.ANSWERED).count() == STUDY


def test_the_breaker_can_be_switched_off(evaluation: Evaluation, settings: Any) -> None:
    settings.PAUSE_AFTER_FAILURES = 0
    run, _ = run_against(fail_with(400, "odd"), evaluation)
    assert run.state == RunState.DONE
    assert Call.objects.filter(state=CallState.FAILED).count() == STUDY


# ---- quotas ----------------------------------------------------------------------------------


QUOTA = fail_with(429, "Rate limit reached on tokens per day (TPD): Limit 100000. Please try again in 14m24.5s.")


def test_a_daily_quota_pauses_the_endpoint_until_its_time_and_costs_no_call_its_tries(evaluation: Evaluation) -> None:
    with llm_server(answer_in_turn([answer_well, QUOTA], answer_well)) as server:
        run = run_judge_here(make_llm_judge(evaluation, server.base_url), orders="as-stored")
        endpoint = Endpoint.objects.get()
        assert endpoint.paused_until is not None
        assert 860 < (endpoint.paused_until - timezone.now()).total_seconds() < 960
        assert "quota is used up" in endpoint.pause_reason
        assert "tokens per day" in endpoint.pause_reason
        assert run.state == RunState.RUNNING
        assert not Call.objects.filter(state=CallState.FAILED).exists()
        asked = len(server.questions)
        work_run_here(run)
        assert len(server.questions) == asked  # nothing is asked before its time
        Endpoint.objects.update(paused_until=timezone.now())
        Call.objects.update(not_before=None)
        ENDPOINT_SHARES.clear()  # what this process remembers of the wait
        assert work_run_here(run).state == RunState.DONE
    assert Attempt.objects.filter(outcome="answered").count() == STUDY
