"""What a server takes is found out once, by the first real verdict, and then it is kept."""

from typing import Any

import pytest

from evaluations.domain.judges import ReplyShape, RunState
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Judge
from evaluations.models.runs import Attempt, Call, Run
from tests.factories.evaluations import make_comparison
from tests.factories.judges import make_llm_judge, run_judge_here
from tests.helpers.llm_server import (
    LLMServer,
    Script,
    accept_shapes,
    alternate_scripts,
    answer_always,
    answer_in_turn,
    answer_text,
    answer_well,
    fail_with,
    llm_server,
    refuse_answer,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.fixture(autouse=True)
def four_comparisons(evaluation: Evaluation) -> None:
    for number in range(4):
        make_comparison(evaluation, response_a=f"a{number}")


def run_against(script: Script, evaluation: Evaluation, **settings: Any) -> tuple[Run, Judge, LLMServer]:
    with llm_server(script, latency=0.02) as server:
        judge = make_llm_judge(evaluation, server.base_url, **settings)
        run = run_judge_here(judge)
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
    run, judge, server = run_against(accept_shapes(*taken), evaluation)
    found = tried[-1]
    assert (run.state, judge.reply_shape) == (RunState.DONE, found)
    assert set(Call.objects.values_list("state", flat=True)) == {"answered"}
    assert [question.shape for question in server.questions] == [*tried, *[found] * 7]
    assert Attempt.objects.filter(outcome="retry").count() == len(tried) - 1
    assert Event.objects.filter(verb="found out", object_id=judge.pk).count() == 1


def test_one_request_is_in_flight_until_an_answer_came(evaluation: Evaluation) -> None:
    at_once: list[int] = []
    server: LLMServer

    def watched(question: Any) -> Any:
        at_once.append(server.in_flight)
        return accept_shapes()(question)

    with llm_server(watched, latency=0.05) as server:
        run_judge_here(make_llm_judge(evaluation, server.base_url))
    assert at_once[:3] == [1, 1, 1]
    assert server.most_in_flight > 1


def test_a_fault_that_passes_says_nothing_about_the_shape(evaluation: Evaluation) -> None:
    _, judge, server = run_against(
        answer_in_turn([fail_with(500), fail_with(429, retry_after=0)], accept_shapes("json_object")), evaluation
    )
    assert judge.reply_shape == ReplyShape.JSON_OBJECT
    assert [question.shape for question in server.questions[:4]] == ["json_schema"] * 3 + ["json_object"]


def test_any_answer_tells_that_a_shape_is_taken(evaluation: Evaluation) -> None:
    _, judge, _ = run_against(answer_in_turn([refuse_answer]), evaluation)
    assert judge.reply_shape == ReplyShape.JSON_SCHEMA
    assert Call.objects.filter(state="refused").count() == 1


def test_a_shape_that_is_refused_later_stops_the_run_with_the_reason(evaluation: Evaluation) -> None:
    run, judge, _ = run_against(answer_in_turn([answer_well], accept_shapes()), evaluation)
    assert (run.state, judge.reply_shape) == (RunState.STOPPED, ReplyShape.JSON_SCHEMA)
    assert "does not take structured output (json_schema)" in run.stop_reason
    assert "Create a new judge to detect its capabilities again" in run.stop_reason
    assert Call.objects.filter(state="answered").count() == 1


@pytest.mark.parametrize("mode", ["json_schema", "json_object"])
def test_a_shape_that_was_chosen_is_not_exchanged_for_another(evaluation: Evaluation, mode: str) -> None:
    run, judge, server = run_against(accept_shapes(), evaluation, mode=mode)
    assert (run.state, judge.reply_shape) == (RunState.STOPPED, "")
    assert f"does not take structured output ({mode})" in run.stop_reason
    assert "with another output format, or auto" in run.stop_reason
    assert {question.shape for question in server.questions} == {mode}


@pytest.mark.parametrize("mode", ["json_schema", "json_object", "text"])
def test_a_mode_that_was_chosen_needs_no_probe(evaluation: Evaluation, mode: str) -> None:
    run, judge, server = run_against(answer_well, evaluation, mode=mode)
    assert (run.state, judge.reply_shape) == (RunState.DONE, "")
    assert {question.shape for question in server.questions} == {mode}
    assert set(Call.objects.values_list("state", flat=True)) == {"answered"}


def test_in_two_steps_the_second_is_what_is_found_out_about(evaluation: Evaluation) -> None:
    script = accept_shapes("json_object", then=alternate_scripts(answer_text("Fine."), answer_always("A")))
    run, judge, server = run_against(script, evaluation, mode="two_step")
    assert (run.state, judge.reply_shape) == (RunState.DONE, ReplyShape.JSON_OBJECT)
    shapes = [(question.turns, question.shape) for question in server.questions]
    assert shapes[:3] == [(0, "text"), (1, "json_schema"), (1, "json_object")]
    assert set(shapes[3:]) == {(0, "text"), (1, "json_object")}
    assert set(Call.objects.values_list("state", flat=True)) == {"answered"}


def test_what_was_found_out_holds_for_the_next_run(evaluation: Evaluation) -> None:
    with llm_server(accept_shapes("json_object")) as server:
        judge = make_llm_judge(evaluation, server.base_url)
        run_judge_here(judge, orders="as-stored")
        before = len(server.questions)
        run_judge_here(judge, orders="swapped")
    assert {question.shape for question in server.questions[before:]} == {"json_object"}
