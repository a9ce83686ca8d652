"""Whole runs over real HTTP: every call ends in the right state, whatever the server does."""

import json
import threading
import time
from typing import Any

import pytest
from django.conf import LazySettings

from evaluations.domain.judges import AttemptOutcome, CallState, RunState
from evaluations.domain.rubrics import AspectSpec
from evaluations.judges.calls import worker_registry
from evaluations.judges.calls.live_worker import slow_session_end, work_run_calls
from evaluations.judges.calls.work_session import begin_work_session
from evaluations.judges.endpoints import selectors as endpoints_selectors
from evaluations.judges.runs.planner import plan_run_calls
from evaluations.judges.runs.selectors import count_calls_by_state, measure_run_progress
from evaluations.judges.runs.services import cancel_run, start_run
from evaluations.llm.retry_policy import RetryPolicy
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.verdicts import Verdict
from evaluations.verdicts.judge_choices import load_judge_choices
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import (
    FAST_RETRIES,
    make_baseline_judge,
    make_llm_judge,
    make_pasted_rubric,
    run_judge_here,
    work_run_here,
)
from tests.helpers.llm_faults import work_run_through_faults
from tests.helpers.llm_server import (
    Question,
    Script,
    ServerAnswer,
    answer_always,
    answer_fenced,
    answer_filtered,
    answer_first,
    answer_truncated,
    answer_web_page,
    answer_well,
    fail_with,
    hang,
    llm_server,
    refuse_answer,
    without_formats,
)

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("consistent_packed_votes"),
    pytest.mark.any_database,
]


@pytest.fixture
def evaluation() -> Evaluation:
    return study_of(3)


def study_of(comparisons: int) -> Evaluation:
    evaluation = make_evaluation()
    for number in range(comparisons):
        make_comparison(evaluation, query=f"Question {number}?", response_a=f"a{number}", response_b=f"b{number}")
    return evaluation


def run_against(script: Script, evaluation: Evaluation, **settings: Any) -> Run:
    with llm_server(script) as server:
        return run_judge_here(make_llm_judge(evaluation, server.base_url, **settings))


def counts(run: Run) -> dict[str, int]:
    return {state: count for state, count in count_calls_by_state(run).items() if count}


def outcomes(run: Run) -> list[str]:
    return sorted(Attempt.objects.filter(run=run).values_list("outcome", flat=True))


def test_a_run_asks_every_call_once_and_keeps_what_was_said(evaluation: Evaluation) -> None:
    with llm_server() as server:
        run = run_judge_here(make_llm_judge(evaluation, server.base_url, temperature=0.0))
    assert (run.state, counts(run)) == (RunState.DONE, {"answered": 6})
    assert list(server.asked.values()) == [1] * 6
    assert {question.body["temperature"] for question in server.questions} == {0.0}
    attempt = Attempt.objects.filter(run=run).first()
    assert attempt is not None
    assert (attempt.http_status, attempt.finish_reason, attempt.model_returned) == (200, "stop", "test-model")
    assert json.loads(attempt.raw)["rationale"] == "The first one answers the question."
    call = attempt.call
    assert (call.rationale, len(call.prompt_sha256)) == ("The first one answers the question.", 64)


def test_a_judge_that_always_takes_the_first_is_turned_back_when_the_order_was_swapped(evaluation: Evaluation) -> None:
    run = run_against(answer_always("A"), evaluation)
    pairs = set(Verdict.objects.filter(call__run=run).values_list("shown", "choice"))
    assert pairs == {("as_stored", "A"), ("swapped", "B")}
    ids = list(evaluation.comparisons.values_list("pk", flat=True))
    told = load_judge_choices(run.judge.raters.get(), ids)
    assert {(one.choice, one.inconsistent) for aspects in told.values() for one in aspects.values()} == {("tie", True)}


@pytest.mark.parametrize(
    ("script", "state", "outcome"),
    [
        (answer_fenced, "answered", "answered"),
        (refuse_answer, "refused", "refused"),
        (answer_filtered, "refused", "refused"),
        (answer_truncated, "truncated", "truncated"),
        (fail_with(400, "maximum context length is 8 tokens"), "too_long", "too_long"),
        (fail_with(400, "something odd"), "failed", "failed"),
    ],
)
def test_a_reply_that_is_no_verdict_is_a_state_of_its_call(
    evaluation: Evaluation, script: Script, state: str, outcome: str
) -> None:
    run = run_against(script, evaluation)
    assert (run.state, counts(run), outcomes(run)) == (RunState.DONE, {state: 6}, [outcome] * 6)
    assert Verdict.objects.filter(call__run=run).exists() == (state == "answered")
    assert all(bool(error) == (state != "answered") for error in Call.objects.values_list("error", flat=True))


@pytest.mark.parametrize("fault", [fail_with(500), fail_with(408), fail_with(429, retry_after=0)])
def test_a_fault_that_passes_is_asked_again_until_it_is_answered(evaluation: Evaluation, fault: Script) -> None:
    with llm_server(answer_first([fault, fault])) as server:
        run = work_run_through_faults(start_run(make_llm_judge(evaluation, server.base_url), user=None))
    assert (run.state, counts(run)) == (RunState.DONE, {"answered": 6})
    assert outcomes(run) == ["answered"] * 6 + ["retry"] * 12
    assert set(server.asked.values()) == {3}
    assert measure_run_progress(run).retried == 12


def test_a_request_that_hangs_is_asked_again_after_the_timeout(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine a good answer can be late as well: it is then one more request, and counted.
    monkeypatch.setattr(endpoints_selectors, "LOCAL_TIMEOUT_SECONDS", 2.0)
    with llm_server(answer_first([hang, hang])) as server:
        run = run_judge_here(make_llm_judge(evaluation, server.base_url))
    assert (run.state, counts(run)) == (RunState.DONE, {"answered": 6})
    again = sum(server.asked.values()) - 6
    assert again >= 12
    assert outcomes(run) == ["answered"] * 6 + ["retry"] * again
    assert measure_run_progress(run).retried == again


def test_a_call_that_times_out_at_a_slow_server_fails_after_few_tries_and_says_what_to_do() -> None:
    evaluation = study_of(1)
    with llm_server(hang) as server:
        judge = make_llm_judge(evaluation, server.base_url, mode="json_schema")
        Endpoint.objects.update(timeout_seconds=1)
        retry_policy = RetryPolicy(first_seconds=0.01, tries=9, tries_timed_out=2, most_seconds_timed_out=0.01)
        run = work_run_here(start_run(judge, user=None, orders="as-stored"), retry_policy=retry_policy)
    assert (run.state, counts(run), outcomes(run)) == (RunState.DONE, {"failed": 1}, ["failed", "retry"])
    assert Call.objects.get().error == (
        "No answer within 1 seconds after 2 tries. Raise the endpoint’s timeout or lower its max concurrency."
    )


def test_timeouts_and_other_faults_are_counted_apart() -> None:
    """Two of either, and three are too many: counted together, the third would have ended it."""
    evaluation = study_of(1)
    with llm_server(answer_first([hang, fail_with(500), hang, fail_with(500)])) as server:
        judge = make_llm_judge(evaluation, server.base_url, mode="json_schema")
        Endpoint.objects.update(timeout_seconds=1)
        retry_policy = RetryPolicy(
            first_seconds=0.01, most_seconds=0.01, tries=3, tries_timed_out=3, most_seconds_timed_out=0.01
        )
        run = work_run_here(start_run(judge, user=None, orders="as-stored"), retry_policy=retry_policy)
    assert (run.state, counts(run)) == (RunState.DONE, {"answered": 1})
    assert outcomes(run) == ["answered", *["retry"] * 4]


def test_a_call_that_timed_out_is_left_alone_as_long_as_its_server_may_be_at_work_on_it() -> None:
    evaluation = study_of(1)
    with llm_server(hang) as server:
        judge = make_llm_judge(evaluation, server.base_url, mode="json_schema")
        Endpoint.objects.update(timeout_seconds=1)
        run = start_run(judge, user=None, orders="as-stored")
        work_run_here(run, seconds=2, retry_policy=RetryPolicy(most_seconds_timed_out=3600))
        attempt, call = Attempt.objects.get(), Call.objects.get()
    assert (call.state, attempt.outcome) == (CallState.PENDING, AttemptOutcome.RETRY)
    assert call.not_before is not None
    assert 1 <= (call.not_before - attempt.created_at).total_seconds() <= 1.1


def test_a_bout_at_a_slow_server_lasts_for_two_of_its_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    run = start_run(make_llm_judge(study_of(1), "http://127.0.0.1:9/v1"), user=None)
    plan_run_calls(run.pk, until=time.monotonic() + 60)
    session = begin_work_session(run.pk, FAST_RETRIES)
    assert session is not None
    began = time.monotonic()
    monkeypatch.setattr(worker_registry, "endpoint_latency", lambda endpoint: 50.0)
    assert 100 <= slow_session_end(session) - began < 150
    monkeypatch.setattr(worker_registry, "endpoint_latency", lambda endpoint: 5000.0)
    assert slow_session_end(session) - began < 650


def test_a_fault_that_stays_fails_the_call_after_a_bounded_number_of_tries(
    evaluation: Evaluation, settings: LazySettings
) -> None:
    settings.PAUSE_AFTER_FAILURES = 0
    run = run_against(fail_with(500, "overloaded"), evaluation)
    assert (run.state, counts(run)) == (RunState.DONE, {"failed": 6})
    assert outcomes(run) == ["failed"] * 6 + ["retry"] * 18
    assert set(Call.objects.values_list("error", flat=True)) == {
        "No answer after 4 tries. The server answered 500: overloaded"
    }


def test_a_failed_call_is_asked_again_by_the_next_run_with_its_tries_counted_anew(
    evaluation: Evaluation, settings: LazySettings
) -> None:
    settings.PAUSE_AFTER_FAILURES = 0
    with llm_server(fail_with(500)) as server:
        judge = make_llm_judge(evaluation, server.base_url)
        run_judge_here(judge)
        server.script = answer_first([], answer_well)
        run = run_judge_here(judge)
    assert (run.planned, counts(run)) == (6, {"answered": 6})


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (fail_with(401), "requires an API key (401)"),
        (fail_with(404, "model not found", code="model_not_found"), "does not know the model “test-model”"),
        (fail_with(404), "is the base URL right?"),
        (answer_web_page, "something other than JSON"),
    ],
)
def test_what_a_person_must_mend_stops_the_run_with_one_clear_sentence(script: Script, words: str) -> None:
    evaluation = study_of(30)
    with llm_server(script, latency=0.01) as server:
        run = run_judge_here(make_llm_judge(evaluation, server.base_url, max_in_flight=8))
    assert run.state == RunState.STOPPED
    assert words in run.stop_reason
    assert counts(run) == {"pending": 60}
    # What was in flight when the first answer came, and nothing after that.
    assert len(server.questions) <= 8 * 3
    assert Event.objects.filter(verb="stopped", object_id=run.pk).count() == 1


def test_a_stopped_run_is_taken_over_by_the_next(evaluation: Evaluation) -> None:
    with llm_server(fail_with(401)) as server:
        judge = make_llm_judge(evaluation, server.base_url)
        run_judge_here(judge)
        server.script = answer_well
        run = run_judge_here(judge)
    assert (run.state, run.planned, counts(run)) == (RunState.DONE, 6, {"answered": 6})


def test_an_address_where_nobody_listens_stops_the_run(evaluation: Evaluation) -> None:
    run = run_judge_here(make_llm_judge(evaluation, "http://127.0.0.1:9/v1"))
    assert run.state == RunState.STOPPED
    assert run.stop_reason == "Nobody answers at http://127.0.0.1:9/v1: is the address right, and is it up?"


def test_a_key_that_is_not_set_stops_the_run_before_anything_is_sent(evaluation: Evaluation) -> None:
    with llm_server() as server:
        run = run_judge_here(make_llm_judge(evaluation, server.base_url, key_variable="JUDGEWEB_KEY_ABSENT"))
        assert not server.questions
    assert run.state == RunState.STOPPED
    assert run.stop_reason.startswith("JUDGEWEB_KEY_ABSENT is not set where the worker runs")


def test_a_server_without_structured_output_is_asked_in_plain_text_from_then_on(evaluation: Evaluation) -> None:
    with llm_server(without_formats) as server:
        judge = make_llm_judge(evaluation, server.base_url)
        run = run_judge_here(judge)
        assert counts(run) == {"answered": 6}
        judge.refresh_from_db()
        assert judge.reply_shape == "text"
        make_comparison(evaluation, response_a="new")
        before = len(server.questions)
        run_judge_here(judge)
        assert [question.schema for question in server.questions[before:]] == [None, None]


def test_a_judge_told_to_use_structured_output_stops_where_it_is_not_taken(evaluation: Evaluation) -> None:
    run = run_against(without_formats, evaluation, mode="json_schema")
    assert run.state == RunState.STOPPED
    assert "does not take structured output" in run.stop_reason


def test_a_text_verdict_is_asked_without_a_schema() -> None:
    evaluation = study_of(2)
    labels = {"A": "Output (a)", "B": "Output (b)"}
    version = make_pasted_rubric(
        evaluation,
        "{q}\n1: {x}\n2: {y}",
        {"{q}": "query", "{x}": "response_a", "{y}": "response_b"},
        AspectSpec("overall", "Overall", "", offers_tie=False, labels=labels),
        answer_format="text",
    )

    def longer_name(question: Question) -> ServerAnswer:
        return ServerAnswer("I prefer it.\nOutput (b)")

    with llm_server(longer_name) as server:
        run = run_judge_here(make_llm_judge(evaluation, server.base_url, version=version))
    assert counts(run) == {"answered": 4}
    assert all(question.schema is None for question in server.questions)
    assert server.questions[0].prompt in {"Question 0?\n1: a0\n2: b0", "Question 1?\n1: a1\n2: b1"} | {
        "Question 0?\n1: b0\n2: a0",
        "Question 1?\n1: b1\n2: a1",
    }
    assert set(Verdict.objects.values_list("shown", "choice")) == {("as_stored", "B"), ("swapped", "A")}


def test_never_more_requests_are_in_flight_than_the_endpoint_allows() -> None:
    evaluation = study_of(20)
    with llm_server(latency=0.03) as server:
        run = run_judge_here(make_llm_judge(evaluation, server.base_url, max_in_flight=5))
    assert counts(run) == {"answered": 40}
    assert server.most_in_flight == 5


def test_a_message_delivered_twice_asks_nothing_twice() -> None:
    evaluation = study_of(30)
    with llm_server(latency=0.02) as server:
        run = start_run(make_llm_judge(evaluation, server.base_url), user=None)
        workers = [threading.Thread(target=work_and_close, args=(run,)) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    run.refresh_from_db()
    assert (run.state, counts(run)) == (RunState.DONE, {"answered": 60})
    assert list(server.asked.values()) == [1] * 60
    assert outcomes(run) == ["answered"] * 60


def work_and_close(run: Run) -> None:
    from django.db import connections

    try:
        work_run_here(run)
    finally:
        connections.close_all()


def test_time_that_is_up_hands_the_rest_to_a_successor() -> None:
    evaluation = study_of(40)
    handed: list[int] = []
    with llm_server(latency=0.4) as server:  # all 80 take 8 seconds on the fastest machine
        run = start_run(make_llm_judge(evaluation, server.base_url, max_in_flight=4), user=None)
        plan_run_calls(run.pk, until=float("inf"))
        work_run_calls(run.pk, hand_over=lambda: handed.append(1), seconds=4, retry_policy=FAST_RETRIES)
        assert handed == [1]
        middle = counts(run)
        assert set(middle) == {"answered", "pending"}
        server.latency = 0
        work_run_here(run)
    assert counts(run) == {"answered": 80}
    assert list(server.asked.values()) == [1] * 80


def test_a_run_that_is_cancelled_keeps_what_was_in_flight_and_asks_no_more() -> None:
    evaluation = study_of(40)
    with llm_server(latency=0.05) as server:
        run = start_run(make_llm_judge(evaluation, server.base_url, max_in_flight=4), user=None)
        worker = threading.Thread(target=work_and_close, args=(run,))
        worker.start()
        while len(server.questions) < 8:
            time.sleep(0.01)
        cancel_run(run, user=None)
        worker.join()
    done = counts(run)
    assert done["answered"] == len(server.questions) < 40
    assert done["answered"] + done["pending"] == 80


def test_the_baseline_chooses_the_longer_response_for_every_aspect_without_an_attempt() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation, response_a="x" * 100, response_b="x" * 94)
    make_comparison(evaluation, response_a="x" * 100, response_b="x" * 95)
    run = run_judge_here(make_baseline_judge(evaluation))
    assert (run.state, counts(run)) == (RunState.DONE, {"answered": 4})
    assert not Attempt.objects.exists()
    choices = Verdict.objects.filter(rater__judge=run.judge).values_list("comparison__response_b__characters", "choice")
    assert sorted(choices) == [(94, "A")] * 12 + [(95, "tie")] * 12


def test_text_that_no_database_takes_is_stored_without_what_it_refuses(evaluation: Evaluation) -> None:
    choices = dict.fromkeys(("helpfulness", "factuality", "clarity", "depth", "engagement", "safety"), "A")
    odd = json.dumps({"rationale": "nul \x00 and \ud800", "choices": choices}).replace("\\u0000", "\x00")
    run = run_against(lambda question: ServerAnswer("odd \x00 \ud800 " + odd), evaluation)
    assert sum(counts(run).values()) == 6
    assert not Call.objects.filter(state=CallState.RUNNING).exists()


def test_progress_counts_by_state_failures_by_kind_and_tokens(evaluation: Evaluation) -> None:
    run = run_against(answer_first([fail_with(500)], answer_truncated), evaluation)
    told = measure_run_progress(run)
    assert (told.total, told.settled, told.failures) == (6, 6, {"truncated": 6})
    assert (told.retried, told.repeated) == (6, 0)
    assert told.tokens_out == 6 * 20
    assert (told.per_minute, told.seconds_left) == (None, None)


def test_lost_requests_are_counted_as_repeated(evaluation: Evaluation) -> None:
    run = run_against(answer_well, evaluation)
    call = Call.objects.filter(run=run).first()
    assert call is not None
    Attempt.objects.create(call=call, run=run, number=9, outcome=AttemptOutcome.LOST, latency_ms=0)
    assert measure_run_progress(run).repeated == 1


def test_a_judge_is_judged_by_its_settings_not_by_what_was_found_out(evaluation: Evaluation) -> None:
    with llm_server(without_formats) as server:
        judge: Judge = make_llm_judge(evaluation, server.base_url)
        before = judge.fingerprint
        run_judge_here(judge)
    judge.refresh_from_db()
    assert judge.fingerprint == before
