"""Whole runs over real HTTP: every call ends in the right state, whatever the server does."""

import json
import threading
import time
from typing import Any

import pytest
from django.conf import LazySettings

from evaluations.domain import AspectSpec, AttemptOutcome, CallState, RunState
from evaluations.judge.retrying import Patience
from evaluations.models import Attempt, Call, Endpoint, Evaluation, Event, Judge, Run, Verdict
from evaluations.services.judging import answering, consolidating, running, sharing, working
from evaluations.services.judging.progressing import progress
from tests.faults import worked_to_the_end
from tests.judges import IMPATIENT, make_baseline, make_judge, pasted_rubric, run_through, work_off
from tests.llm_server import (
    Question,
    Script,
    Told,
    always,
    failing,
    fenced,
    filtered,
    first,
    good,
    hanging,
    llm_server,
    refusing,
    truncated,
    web_page,
    without_formats,
)
from tests.making import make_comparison, make_evaluation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("true_ballots")]


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
        return run_through(make_judge(evaluation, server.base_url, **settings))


def counts(run: Run) -> dict[str, int]:
    return {state: count for state, count in running.counts_by_state(run).items() if count}


def outcomes(run: Run) -> list[str]:
    return sorted(Attempt.objects.filter(run=run).values_list("outcome", flat=True))


def test_a_run_asks_every_call_once_and_keeps_what_was_said(evaluation: Evaluation) -> None:
    with llm_server() as server:
        run = run_through(make_judge(evaluation, server.base_url, temperature=0.0))
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
    run = run_against(always("A"), evaluation)
    pairs = set(Verdict.objects.filter(call__run=run).values_list("shown", "choice"))
    assert pairs == {("as_stored", "A"), ("swapped", "B")}
    ids = list(evaluation.comparisons.values_list("pk", flat=True))
    told = consolidating.judge_choices(run.judge.raters.get(), ids)
    assert {(one.choice, one.inconsistent) for aspects in told.values() for one in aspects.values()} == {("tie", True)}


@pytest.mark.parametrize(
    ("script", "state", "outcome"),
    [
        (fenced, "answered", "answered"),
        (refusing, "refused", "refused"),
        (filtered, "refused", "refused"),
        (truncated, "truncated", "truncated"),
        (failing(400, "maximum context length is 8 tokens"), "too_long", "too_long"),
        (failing(400, "something odd"), "failed", "failed"),
    ],
)
def test_a_reply_that_is_no_verdict_is_a_state_of_its_call(
    evaluation: Evaluation, script: Script, state: str, outcome: str
) -> None:
    run = run_against(script, evaluation)
    assert (run.state, counts(run), outcomes(run)) == (RunState.DONE, {state: 6}, [outcome] * 6)
    assert Verdict.objects.filter(call__run=run).exists() == (state == "answered")
    assert all(bool(error) == (state != "answered") for error in Call.objects.values_list("error", flat=True))


@pytest.mark.parametrize("fault", [failing(500), failing(503), failing(429, retry_after=0)])
def test_a_fault_that_passes_is_asked_again_until_it_is_answered(evaluation: Evaluation, fault: Script) -> None:
    with llm_server(first([fault, fault])) as server:
        run = worked_to_the_end(running.start_run(make_judge(evaluation, server.base_url), user=None))
    assert (run.state, counts(run)) == (RunState.DONE, {"answered": 6})
    assert outcomes(run) == ["answered"] * 6 + ["retry"] * 12
    assert set(server.asked.values()) == {3}
    assert progress(run).retried == 12


def test_a_request_that_hangs_is_asked_again_after_the_timeout(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine a good answer can be late as well: it is then one more request, and counted.
    monkeypatch.setattr(sharing, "LOCAL_TIMEOUT_SECONDS", 2.0)
    with llm_server(first([hanging, hanging])) as server:
        run = run_through(make_judge(evaluation, server.base_url))
    assert (run.state, counts(run)) == (RunState.DONE, {"answered": 6})
    again = sum(server.asked.values()) - 6
    assert again >= 12
    assert outcomes(run) == ["answered"] * 6 + ["retry"] * again
    assert progress(run).retried == again


def test_a_call_that_times_out_at_a_slow_server_fails_after_few_tries_and_says_what_to_do() -> None:
    evaluation = study_of(1)
    with llm_server(hanging) as server:
        judge = make_judge(evaluation, server.base_url, mode="json_schema")
        Endpoint.objects.update(timeout_seconds=1)
        patience = Patience(first_seconds=0.01, tries=9, tries_timed_out=2, most_seconds_timed_out=0.01)
        run = work_off(running.start_run(judge, user=None, orders="as-stored"), patience=patience)
    assert (run.state, counts(run), outcomes(run)) == (RunState.DONE, {"failed": 1}, ["failed", "retry"])
    assert Call.objects.get().error == (
        "Asked 2 times, and no answer came within 1 seconds. "
        "Raise the endpoint's timeout or lower its requests at once."
    )


def test_timeouts_and_other_faults_are_counted_apart() -> None:
    """Two of either, and three are too many: counted together, the third would have ended it."""
    evaluation = study_of(1)
    with llm_server(first([hanging, failing(500), hanging, failing(500)])) as server:
        judge = make_judge(evaluation, server.base_url, mode="json_schema")
        Endpoint.objects.update(timeout_seconds=1)
        patience = Patience(
            first_seconds=0.01, most_seconds=0.01, tries=3, tries_timed_out=3, most_seconds_timed_out=0.01
        )
        run = work_off(running.start_run(judge, user=None, orders="as-stored"), patience=patience)
    assert (run.state, counts(run)) == (RunState.DONE, {"answered": 1})
    assert outcomes(run) == ["answered", *["retry"] * 4]


def test_a_call_that_timed_out_is_left_alone_as_long_as_its_server_may_be_at_work_on_it() -> None:
    evaluation = study_of(1)
    with llm_server(hanging) as server:
        judge = make_judge(evaluation, server.base_url, mode="json_schema")
        Endpoint.objects.update(timeout_seconds=1)
        run = running.start_run(judge, user=None, orders="as-stored")
        work_off(run, seconds=2, patience=Patience(most_seconds_timed_out=3600))
        attempt, call = Attempt.objects.get(), Call.objects.get()
    assert (call.state, attempt.outcome) == (CallState.PENDING, AttemptOutcome.RETRY)
    assert call.not_before is not None
    assert 1 <= (call.not_before - attempt.created_at).total_seconds() <= 1.1


def test_a_bout_at_a_slow_server_lasts_for_two_of_its_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    run = running.start_run(make_judge(study_of(1), "http://127.0.0.1:9/v1"), user=None)
    running.plan(run.pk, until=time.monotonic() + 60)
    bout = working.begin(run.pk, IMPATIENT)
    assert bout is not None
    began = time.monotonic()
    monkeypatch.setattr(sharing, "latency_at", lambda endpoint: 50.0)
    assert 100 <= answering.slow_end(bout) - began < 150
    monkeypatch.setattr(sharing, "latency_at", lambda endpoint: 5000.0)
    assert answering.slow_end(bout) - began < 650


def test_a_fault_that_stays_fails_the_call_after_a_bounded_number_of_tries(
    evaluation: Evaluation, settings: LazySettings
) -> None:
    settings.PAUSE_AFTER_FAILURES = 0
    run = run_against(failing(500, "overloaded"), evaluation)
    assert (run.state, counts(run)) == (RunState.DONE, {"failed": 6})
    assert outcomes(run) == ["failed"] * 6 + ["retry"] * 18
    assert set(Call.objects.values_list("error", flat=True)) == {
        "Asked 4 times without an answer. The server answered 500: overloaded"
    }


def test_a_failed_call_is_asked_again_by_the_next_run_with_its_tries_counted_anew(
    evaluation: Evaluation, settings: LazySettings
) -> None:
    settings.PAUSE_AFTER_FAILURES = 0
    with llm_server(failing(500)) as server:
        judge = make_judge(evaluation, server.base_url)
        run_through(judge)
        server.script = first([], good)
        run = run_through(judge)
    assert (run.planned, counts(run)) == (6, {"answered": 6})


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (failing(401), "wants a key (401)"),
        (failing(404, "model not found", code="model_not_found"), "does not know the model “test-model”"),
        (failing(404), "is the base URL right?"),
        (web_page, "something other than JSON"),
    ],
)
def test_what_a_person_must_mend_stops_the_run_with_one_clear_sentence(script: Script, words: str) -> None:
    evaluation = study_of(30)
    with llm_server(script, latency=0.01) as server:
        run = run_through(make_judge(evaluation, server.base_url, max_in_flight=8))
    assert run.state == RunState.STOPPED
    assert words in run.stop_reason
    assert counts(run) == {"pending": 60}
    # What was in flight when the first answer came, and nothing after that.
    assert len(server.questions) <= 8 * 3
    assert Event.objects.filter(verb="stopped", object_id=run.pk).count() == 1


def test_a_stopped_run_is_taken_over_by_the_next(evaluation: Evaluation) -> None:
    with llm_server(failing(401)) as server:
        judge = make_judge(evaluation, server.base_url)
        run_through(judge)
        server.script = good
        run = run_through(judge)
    assert (run.state, run.planned, counts(run)) == (RunState.DONE, 6, {"answered": 6})


def test_an_address_where_nobody_listens_stops_the_run(evaluation: Evaluation) -> None:
    run = run_through(make_judge(evaluation, "http://127.0.0.1:9/v1"))
    assert run.state == RunState.STOPPED
    assert run.stop_reason == "Nobody answers at http://127.0.0.1:9/v1: is the address right, and is it up?"


def test_a_key_that_is_not_set_stops_the_run_before_anything_is_sent(evaluation: Evaluation) -> None:
    with llm_server() as server:
        run = run_through(make_judge(evaluation, server.base_url, key_variable="JUDGEWEB_KEY_ABSENT"))
        assert not server.questions
    assert run.state == RunState.STOPPED
    assert run.stop_reason.startswith("JUDGEWEB_KEY_ABSENT is not set where the worker runs")


def test_a_server_without_structured_output_is_asked_in_plain_text_from_then_on(evaluation: Evaluation) -> None:
    with llm_server(without_formats) as server:
        judge = make_judge(evaluation, server.base_url)
        run = run_through(judge)
        assert counts(run) == {"answered": 6}
        judge.refresh_from_db()
        assert judge.asked_as == "text"
        make_comparison(evaluation, response_a="new")
        before = len(server.questions)
        run_through(judge)
        assert [question.schema for question in server.questions[before:]] == [None, None]


def test_a_judge_told_to_use_structured_output_stops_where_it_is_not_taken(evaluation: Evaluation) -> None:
    run = run_against(without_formats, evaluation, mode="json_schema")
    assert run.state == RunState.STOPPED
    assert "does not take structured output" in run.stop_reason


def test_a_text_verdict_is_asked_without_a_schema() -> None:
    evaluation = study_of(2)
    labels = {"A": "Output (a)", "B": "Output (b)"}
    version = pasted_rubric(
        evaluation,
        "{q}\n1: {x}\n2: {y}",
        {"{q}": "query", "{x}": "response_a", "{y}": "response_b"},
        AspectSpec("overall", "Overall", "", offers_tie=False, labels=labels),
        answer_format="text",
    )

    def longer_name(question: Question) -> Told:
        return Told("I prefer it.\nOutput (b)")

    with llm_server(longer_name) as server:
        run = run_through(make_judge(evaluation, server.base_url, version=version))
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
        run = run_through(make_judge(evaluation, server.base_url, max_in_flight=5))
    assert counts(run) == {"answered": 40}
    assert server.most_in_flight == 5


def test_a_message_delivered_twice_asks_nothing_twice() -> None:
    evaluation = study_of(30)
    with llm_server(latency=0.02) as server:
        run = running.start_run(make_judge(evaluation, server.base_url), user=None)
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
        work_off(run)
    finally:
        connections.close_all()


def test_time_that_is_up_hands_the_rest_to_a_successor() -> None:
    evaluation = study_of(40)
    handed: list[int] = []
    with llm_server(latency=0.4) as server:  # all 80 take 8 seconds on the fastest machine
        run = running.start_run(make_judge(evaluation, server.base_url, max_in_flight=4), user=None)
        running.plan(run.pk, until=float("inf"))
        answering.work(run.pk, hand_over=lambda: handed.append(1), seconds=4, patience=IMPATIENT)
        assert handed == [1]
        middle = counts(run)
        assert set(middle) == {"answered", "pending"}
        server.latency = 0
        work_off(run)
    assert counts(run) == {"answered": 80}
    assert list(server.asked.values()) == [1] * 80


def test_a_run_that_is_cancelled_keeps_what_was_in_flight_and_asks_no_more() -> None:
    evaluation = study_of(40)
    with llm_server(latency=0.05) as server:
        run = running.start_run(make_judge(evaluation, server.base_url, max_in_flight=4), user=None)
        worker = threading.Thread(target=work_and_close, args=(run,))
        worker.start()
        while len(server.questions) < 8:
            time.sleep(0.01)
        running.cancel(run, user=None)
        worker.join()
    done = counts(run)
    assert done["answered"] == len(server.questions) < 40
    assert done["answered"] + done["pending"] == 80


def test_the_baseline_chooses_the_longer_response_for_every_aspect_without_an_attempt() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation, response_a="x" * 100, response_b="x" * 94)
    make_comparison(evaluation, response_a="x" * 100, response_b="x" * 95)
    run = run_through(make_baseline(evaluation))
    assert (run.state, counts(run)) == (RunState.DONE, {"answered": 4})
    assert not Attempt.objects.exists()
    choices = Verdict.objects.filter(rater__judge=run.judge).values_list("comparison__response_b__characters", "choice")
    assert sorted(choices) == [(94, "A")] * 12 + [(95, "tie")] * 12


def test_text_that_no_database_takes_is_stored_without_what_it_refuses(evaluation: Evaluation) -> None:
    choices = dict.fromkeys(("helpfulness", "factuality", "clarity", "depth", "engagement", "safety"), "A")
    odd = json.dumps({"rationale": "nul \x00 and \ud800", "choices": choices}).replace("\\u0000", "\x00")
    run = run_against(lambda question: Told("odd \x00 \ud800 " + odd), evaluation)
    assert sum(counts(run).values()) == 6
    assert not Call.objects.filter(state=CallState.RUNNING).exists()


def test_progress_counts_by_state_failures_by_kind_and_tokens(evaluation: Evaluation) -> None:
    run = run_against(first([failing(500)], truncated), evaluation)
    told = progress(run)
    assert (told.total, told.settled, told.failures) == (6, 6, {"truncated": 6})
    assert (told.retried, told.repeated) == (6, 0)
    assert told.tokens_out == 6 * 20
    assert (told.per_minute, told.seconds_left) == (None, None)


def test_lost_requests_are_counted_as_repeated(evaluation: Evaluation) -> None:
    run = run_against(good, evaluation)
    call = Call.objects.filter(run=run).first()
    assert call is not None
    Attempt.objects.create(call=call, run=run, number=9, outcome=AttemptOutcome.LOST, latency_ms=0)
    assert progress(run).repeated == 1


def test_a_judge_is_judged_by_its_settings_not_by_what_was_found_out(evaluation: Evaluation) -> None:
    with llm_server(without_formats) as server:
        judge: Judge = make_judge(evaluation, server.base_url)
        before = judge.fingerprint
        run_through(judge)
    judge.refresh_from_db()
    assert judge.fingerprint == before
