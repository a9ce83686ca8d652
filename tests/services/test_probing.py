"""What a server takes is found out once, by the first real verdict, and then it is kept."""

from typing import Any

import pytest

from evaluations.domain import ReplyShape, RunState
from evaluations.models import Attempt, Call, Evaluation, Event, Judge, Run
from tests.judges import make_judge, run_through
from tests.llm_server import (
    LLMServer,
    Script,
    always,
    by_turn,
    failing,
    good,
    in_turn,
    llm_server,
    refusing,
    saying,
    taking,
)
from tests.making import make_comparison, make_evaluation

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def evaluation() -> Evaluation:
    evaluation = make_evaluation()
    for number in range(4):
        make_comparison(evaluation, response_a=f"a{number}")
    return evaluation


def run_against(script: Script, evaluation: Evaluation, **settings: Any) -> tuple[Run, Judge, LLMServer]:
    with llm_server(script, latency=0.02) as server:
        judge = make_judge(evaluation, server.base_url, **settings)
        run = run_through(judge)
    judge.refresh_from_db()
    return run, judge, server


@pytest.mark.parametrize(
    ("taken", "tried"),
    [
        (["json_schema", "json_object"], ["json_schema"]),
        (["json_object"], ["json_schema", "json_object"]),
        ([], ["json_schema", "json_object", "text"]),
    ],
)
def test_the_first_shape_that_is_taken_is_frozen_and_used_from_then_on(
    evaluation: Evaluation, taken: list[str], tried: list[str]
) -> None:
    run, judge, server = run_against(taking(*taken), evaluation)
    found = tried[-1]
    assert (run.state, judge.asked_as) == (RunState.DONE, found)
    assert set(Call.objects.values_list("state", flat=True)) == {"answered"}
    assert [question.shape for question in server.questions] == [*tried, *[found] * 7]
    assert Attempt.objects.filter(outcome="retry").count() == len(tried) - 1
    assert Event.objects.filter(verb="found out", object_id=judge.pk).count() == 1


def test_one_request_is_in_flight_until_an_answer_came(evaluation: Evaluation) -> None:
    at_once: list[int] = []
    server: LLMServer

    def watched(question: Any) -> Any:
        at_once.append(server.in_flight)
        return taking()(question)

    with llm_server(watched, latency=0.05) as server:
        run_through(make_judge(evaluation, server.base_url))
    assert at_once[:3] == [1, 1, 1]
    assert server.most_in_flight > 1


def test_a_fault_that_passes_says_nothing_about_the_shape(evaluation: Evaluation) -> None:
    _, judge, server = run_against(
        in_turn([failing(500), failing(429, retry_after=0)], taking("json_object")), evaluation
    )
    assert judge.asked_as == ReplyShape.JSON_OBJECT
    assert [question.shape for question in server.questions[:4]] == ["json_schema"] * 3 + ["json_object"]


def test_any_answer_tells_that_a_shape_is_taken(evaluation: Evaluation) -> None:
    _, judge, _ = run_against(in_turn([refusing]), evaluation)
    assert judge.asked_as == ReplyShape.JSON_SCHEMA
    assert Call.objects.filter(state="refused").count() == 1


def test_a_shape_that_is_refused_later_stops_the_run_with_the_reason(evaluation: Evaluation) -> None:
    run, judge, _ = run_against(in_turn([good], taking()), evaluation)
    assert (run.state, judge.asked_as) == (RunState.STOPPED, ReplyShape.JSON_SCHEMA)
    assert "does not take structured output (json_schema)" in run.stop_reason
    assert "make a new judge, which finds out anew what it takes" in run.stop_reason
    assert Call.objects.filter(state="answered").count() == 1


@pytest.mark.parametrize("mode", ["json_schema", "json_object"])
def test_a_shape_that_was_chosen_is_not_exchanged_for_another(evaluation: Evaluation, mode: str) -> None:
    run, judge, server = run_against(taking(), evaluation, mode=mode)
    assert (run.state, judge.asked_as) == (RunState.STOPPED, "")
    assert f"does not take structured output ({mode})" in run.stop_reason
    assert "in another mode, or in mode auto" in run.stop_reason
    assert {question.shape for question in server.questions} == {mode}


@pytest.mark.parametrize("mode", ["json_schema", "json_object", "text"])
def test_a_mode_that_was_chosen_needs_no_probe(evaluation: Evaluation, mode: str) -> None:
    run, judge, server = run_against(good, evaluation, mode=mode)
    assert (run.state, judge.asked_as) == (RunState.DONE, "")
    assert {question.shape for question in server.questions} == {mode}
    assert set(Call.objects.values_list("state", flat=True)) == {"answered"}


def test_in_two_steps_the_second_is_what_is_found_out_about(evaluation: Evaluation) -> None:
    script = taking("json_object", then=by_turn(saying("Fine."), always("A")))
    run, judge, server = run_against(script, evaluation, mode="two_step")
    assert (run.state, judge.asked_as) == (RunState.DONE, ReplyShape.JSON_OBJECT)
    shapes = [(question.turns, question.shape) for question in server.questions]
    assert shapes[:3] == [(0, "text"), (1, "json_schema"), (1, "json_object")]
    assert set(shapes[3:]) == {(0, "text"), (1, "json_object")}
    assert set(Call.objects.values_list("state", flat=True)) == {"answered"}


def test_what_was_found_out_holds_for_the_next_run(evaluation: Evaluation) -> None:
    with llm_server(taking("json_object")) as server:
        judge = make_judge(evaluation, server.base_url)
        run_through(judge, orders="as-stored")
        before = len(server.questions)
        run_through(judge, orders="swapped")
    assert {question.shape for question in server.questions[before:]} == {"json_object"}
