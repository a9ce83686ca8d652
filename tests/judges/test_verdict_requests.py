"""One call's conversation, from its messages to what became of it: real HTTP, real rows."""

import json
from typing import Any

import pytest

from evaluations.domain.choices import Choice
from evaluations.domain.judges import AttemptOutcome, AttemptStep, CallState, RunState
from evaluations.domain.rubrics import AspectSpec, RubricOrigin
from evaluations.judge_prompts.builtin_rubrics import BUILTIN_RUBRICS
from evaluations.judges.endpoints import selectors as endpoints_selectors
from evaluations.judges.runs.services import start_run
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.rubrics import RubricVersion
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.verdicts import Score, Verdict
from evaluations.rubrics.services import add_rubric
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_llm_judge, make_pasted_rubric, run_judge_here, work_run_here
from tests.helpers.llm_server import (
    LLMServer,
    Question,
    Script,
    ServerAnswer,
    alternate_scripts,
    answer_always,
    answer_broken,
    answer_filtered,
    answer_first,
    answer_in_turn,
    answer_text,
    answer_truncated,
    answer_well,
    answer_with_logprobs,
    fail_with,
    hang,
    llm_server,
    refuse_answer,
    refuse_setting,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

ASK, SCORE, REPAIR = AttemptStep.ASK, AttemptStep.SCORE, AttemptStep.REPAIR


@pytest.fixture(autouse=True)
def one_comparison(evaluation: Evaluation) -> None:
    make_comparison(evaluation, response_a="one", response_b="two")


def run_against(script: Script, evaluation: Evaluation, **settings: Any) -> tuple[Run, LLMServer]:
    """A judge of this one comparison as it is stored, in a mode that needs no probe."""
    with llm_server(script) as server:
        judge = make_llm_judge(evaluation, server.base_url, **{"mode": "json_schema", **settings})
        return run_judge_here(judge, orders="as-stored"), server


def steps(call: Call) -> list[tuple[str, str]]:
    return list(call.attempts.order_by("number").values_list("step", "outcome"))


def only_call() -> Call:
    return Call.objects.get()


# ---- one repair ----------------------------------------------------------------------------


def test_a_reply_that_cannot_be_read_is_answered_once_with_what_was_wrong(evaluation: Evaluation) -> None:
    run, server = run_against(alternate_scripts(answer_broken, answer_always("B")), evaluation)
    call = only_call()
    assert (call.state, call.repaired, call.error) == (CallState.ANSWERED, True, "")
    assert steps(call) == [(ASK, "unreadable"), (REPAIR, "answered")]
    assert set(Verdict.objects.values_list("choice", flat=True)) == {Choice.B}
    asked, repairing = (question.body["messages"] for question in server.questions)
    assert repairing[: len(asked)] == asked
    reply, complaint = repairing[len(asked) :]
    unread = call.attempts.get(number=1)
    assert (reply["role"], reply["content"]) == ("assistant", unread.raw)
    assert "The reply holds a JSON object that is broken." in complaint["content"]
    assert unread.error in complaint["content"]
    assert run.state == RunState.DONE


def test_what_was_read_at_once_is_not_marked_as_repaired(evaluation: Evaluation) -> None:
    run_against(answer_well, evaluation)
    assert not only_call().repaired


def test_there_is_no_second_repair_and_the_first_fault_stays(evaluation: Evaluation) -> None:
    run, server = run_against(alternate_scripts(answer_broken, answer_text("I cannot."), answer_well), evaluation)
    call = only_call()
    assert (call.state, call.repaired) == (CallState.UNREADABLE, False)
    assert call.error == "The reply holds a JSON object that is broken."
    assert steps(call) == [(ASK, "unreadable"), (REPAIR, "unreadable")]
    assert call.attempts.get(number=2).error == "The reply holds no JSON object."
    assert (len(server.questions), run.state) == (2, RunState.DONE)
    assert not Verdict.objects.exists()


@pytest.mark.parametrize(
    ("repair", "outcome"),
    [
        (refuse_answer, "refused"),
        (answer_truncated, "truncated"),
        (fail_with(400, "maximum context length is 8 tokens"), "too_long"),
        (fail_with(400, "odd"), "failed"),
        (fail_with(500), "failed"),
    ],
)
def test_a_repair_that_brings_no_verdict_leaves_the_call_as_it_was(
    evaluation: Evaluation, repair: Script, outcome: str
) -> None:
    run, _ = run_against(alternate_scripts(answer_broken, repair), evaluation)
    call = only_call()
    assert (call.state, run.state) == (CallState.UNREADABLE, RunState.DONE)
    assert call.error == "The reply holds a JSON object that is broken."
    assert steps(call)[0] == (ASK, "unreadable")
    assert steps(call)[-1] == (REPAIR, outcome)


@pytest.mark.parametrize(
    "script", [refuse_answer, answer_filtered, answer_truncated, fail_with(400, "prompt is too long")]
)
def test_nothing_but_an_unreadable_text_is_repaired(evaluation: Evaluation, script: Script) -> None:
    _, server = run_against(script, evaluation)
    assert len(server.questions) == 1
    assert only_call().state in (CallState.REFUSED, CallState.TRUNCATED, CallState.UNREADABLE, CallState.TOO_LONG)


@pytest.mark.parametrize("mode", ["auto", "two_step"])
def test_an_empty_reply_is_asked_for_once_more_and_then_it_is_unreadable(evaluation: Evaluation, mode: str) -> None:
    _, server = run_against(answer_text(" \n"), evaluation, mode=mode)
    assert len(server.questions) == 2
    assert (only_call().state, [step for _, step in steps(only_call())]) == ("unreadable", ["retry", "unreadable"])
    assert only_call().error


def test_an_empty_reply_costs_nothing_but_its_repetition(evaluation: Evaluation) -> None:
    _, server = run_against(answer_in_turn([answer_text("")]), evaluation)
    assert (only_call().state, only_call().repaired, len(server.questions)) == ("answered", False, 2)
    assert steps(only_call()) == [(ASK, "retry"), (ASK, "answered")]


def test_repairs_can_be_switched_off(evaluation: Evaluation) -> None:
    _, server = run_against(alternate_scripts(answer_broken, answer_well), evaluation, repairs=False)
    assert (only_call().state, len(server.questions)) == (CallState.UNREADABLE, 1)


def test_a_repair_that_meets_a_fault_is_asked_again_and_what_was_bought_is_kept(evaluation: Evaluation) -> None:
    run_against(alternate_scripts(answer_broken, answer_first([fail_with(500)], answer_well)), evaluation)
    call = only_call()
    assert (call.state, call.repaired) == (CallState.ANSWERED, True)
    assert steps(call) == [(ASK, "unreadable"), (REPAIR, "retry"), (REPAIR, "answered")]


def test_a_declared_text_is_repaired_too(evaluation: Evaluation) -> None:
    places = {"{x}": "response_a", "{y}": "response_b"}
    version = make_pasted_rubric(evaluation, "{x} or {y}?", places, AspectSpec("x", "X", ""), answer_format="text")
    run_against(
        alternate_scripts(answer_text("The first, I think."), answer_text("It is better.\nA")),
        evaluation,
        version=version,
    )
    call = only_call()
    assert (call.state, call.repaired) == (CallState.ANSWERED, True)
    assert list(Verdict.objects.values_list("choice", flat=True)) == ["A"]


# ---- two steps -----------------------------------------------------------------------------


def test_in_two_steps_the_evaluation_comes_first_and_the_verdict_follows_from_it(evaluation: Evaluation) -> None:
    said = "Both are short; the second says more."
    run, server = run_against(alternate_scripts(answer_text(said), answer_always("B")), evaluation, mode="two_step")
    call = only_call()
    assert (call.state, call.rationale, call.repaired) == (CallState.ANSWERED, said, False)
    assert steps(call) == [(ASK, "answered"), (SCORE, "answered")]
    assert set(Verdict.objects.values_list("choice", flat=True)) == {Choice.B}
    evaluating, scoring = server.questions
    assert (evaluating.shape, scoring.shape) == ("text", "json_schema")
    assert scoring.schema is not None
    assert list(scoring.schema["properties"]) == ["choices"]
    assert scoring.body["messages"][:2] == evaluating.body["messages"]
    assert scoring.body["messages"][2] == {"role": "assistant", "content": said}
    assert call.attempts.get(number=1).raw == said
    assert run.state == RunState.DONE


@pytest.mark.parametrize(
    ("script", "state"),
    [
        (alternate_scripts(refuse_answer), CallState.REFUSED),
        (alternate_scripts(answer_truncated), CallState.TRUNCATED),
    ],
)
def test_an_evaluation_that_did_not_come_asks_for_no_verdict(
    evaluation: Evaluation, script: Script, state: CallState
) -> None:
    _, server = run_against(script, evaluation, mode="two_step")
    assert (only_call().state, len(server.questions)) == (state, 1)
    assert only_call().error


@pytest.mark.parametrize(
    ("score", "state"),
    [
        (refuse_answer, CallState.REFUSED),
        (answer_truncated, CallState.TRUNCATED),
        (fail_with(400, "odd"), CallState.FAILED),
    ],
)
def test_a_verdict_that_did_not_come_is_the_state_of_the_call(
    evaluation: Evaluation, score: Script, state: CallState
) -> None:
    run_against(alternate_scripts(answer_text("Fine."), score), evaluation, mode="two_step")
    call = only_call()
    assert (call.state, steps(call)) == (state, [(ASK, "answered"), (SCORE, state)])


def test_the_verdict_of_two_steps_is_repaired_in_the_same_conversation(evaluation: Evaluation) -> None:
    _, server = run_against(
        alternate_scripts(answer_text("Fine."), answer_text("B, all over"), answer_always("B")),
        evaluation,
        mode="two_step",
    )
    call = only_call()
    assert (call.state, call.repaired, call.rationale) == (CallState.ANSWERED, True, "Fine.")
    assert steps(call) == [(ASK, "answered"), (SCORE, "unreadable"), (REPAIR, "answered")]
    roles = [message["role"] for message in server.questions[-1].body["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    assert server.questions[-1].shape == "json_schema"


def test_an_evaluation_that_was_paid_for_is_not_bought_again_when_its_verdict_failed(evaluation: Evaluation) -> None:
    with llm_server(alternate_scripts(answer_text("Fine."), fail_with(500))) as server:
        judge = make_llm_judge(evaluation, server.base_url, mode="two_step")
        run_judge_here(judge, orders="as-stored")
        assert only_call().state == CallState.FAILED
        server.script = alternate_scripts(answer_text("Another."), answer_always("A"))
        run_judge_here(judge, orders="as-stored")
    call = only_call()
    assert (call.state, call.rationale) == (CallState.ANSWERED, "Fine.")
    assert [step for step, _ in steps(call)].count(ASK) == 1


# ---- pointwise -----------------------------------------------------------------------------


def version_of(evaluation: Evaluation, name: str) -> RubricVersion:
    spec = BUILTIN_RUBRICS[name]
    return add_rubric(evaluation, name=name, spec=spec, origin=RubricOrigin.BUILTIN, user=None)


def run_pointwise(script: Script, evaluation: Evaluation, rubric: str, **settings: Any) -> tuple[Run, LLMServer]:
    with llm_server(script) as server:
        version = version_of(evaluation, rubric)
        judge = make_llm_judge(evaluation, server.base_url, version=version, **settings)
        return run_judge_here(judge), server


def test_a_summary_is_rated_in_two_steps_and_both_replies_are_kept(evaluation: Evaluation) -> None:
    run, server = run_pointwise(
        alternate_scripts(answer_text("Grounded and short."), answer_always("4")), evaluation, "summary-rating"
    )
    assert run.state == RunState.DONE
    assert list(Score.objects.order_by("pk").values_list("value", "aspect__key")) == [(4.0, "overall")] * 2
    assert set(Call.objects.values_list("state", "rationale", "shown")) == {
        ("answered", "Grounded and short.", "as_stored")
    }
    assert all(steps(call) == [(ASK, "answered"), (SCORE, "answered")] for call in Call.objects.all())
    scored = [question for question in server.questions if question.turns]
    assert scored[0].schema is not None
    assert scored[0].schema["properties"]["score"]["enum"] == ["1", "2", "3", "4", "5"]


def test_a_reference_metric_is_read_as_a_number_and_one_off_its_scale_is_unreadable(evaluation: Evaluation) -> None:
    run_pointwise(answer_always("0.7"), evaluation, "reference-metric")
    assert set(Score.objects.values_list("value", flat=True)) == {0.7}
    other = make_evaluation()
    make_comparison(other)
    run_pointwise(answer_always("1.2"), other, "reference-metric")
    calls = Call.objects.filter(judge__evaluation=other)
    assert set(calls.values_list("state", flat=True)) == {"unreadable"}
    assert "1.2" in calls[0].error
    assert {tuple(steps(call)) for call in calls} == {((ASK, "unreadable"), (REPAIR, "unreadable"))}


# ---- settings ------------------------------------------------------------------------------


def test_every_sample_has_a_seed_of_its_own(evaluation: Evaluation) -> None:
    with llm_server() as server:
        judge = make_llm_judge(evaluation, server.base_url, mode="json_schema", temperature=0.0, seed=40)
        run_judge_here(judge, orders="as-stored", samples=3)
    assert sorted(question.body["seed"] for question in server.questions) == [40, 41, 42]
    assert Verdict.objects.values("sample").distinct().count() == 3


def test_a_reasoning_effort_is_sent_with_the_limit_that_goes_with_it(evaluation: Evaluation) -> None:
    _, server = run_against(answer_well, evaluation, reasoning_effort="low", max_tokens=500)
    body = server.questions[0].body
    assert (body["reasoning_effort"], body["max_completion_tokens"], "max_tokens" in body) == ("low", 500, False)


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"logprobs": True}, "logprobs"), ({"reasoning_effort": "low"}, "reasoning_effort"), ({"seed": 1}, "seed")],
)
def test_a_setting_that_the_model_refuses_is_left_out_and_the_judge_says_so(
    evaluation: Evaluation, settings: dict[str, Any], name: str
) -> None:
    run, server = run_against(refuse_setting(name), evaluation, **settings)
    assert run.state == RunState.DONE
    assert steps(only_call()) == [(ASK, "retry"), (ASK, "answered")]
    run.judge.refresh_from_db()
    assert run.judge.request_shape == {"limit_name": "", "left_out": [name], "system_folded": False}
    assert [name in question.body for question in server.questions] == [True, False]
    found = Event.objects.get(verb="found out", object_id=run.judge.pk)
    assert found.after == {"left_out": [name]}


def test_a_limit_that_goes_by_another_name_is_sent_by_it(evaluation: Evaluation) -> None:
    run, server = run_against(refuse_setting("max_tokens"), evaluation, max_tokens=300)
    assert run.state == RunState.DONE
    assert [(q.body.get("max_tokens"), q.body.get("max_completion_tokens")) for q in server.questions] == [
        (300, None),
        (None, 300),
    ]


def test_a_model_without_a_system_role_is_sent_one_user_turn(evaluation: Evaluation) -> None:
    def script(question: Question) -> ServerAnswer:
        if question.body["messages"][0]["role"] == "system":
            return fail_with(500 - 100, "System role not supported")(question)
        return answer_well(question)

    run, server = run_against(script, evaluation)
    assert (run.state, only_call().state) == (RunState.DONE, "answered")
    first, second = (question.body["messages"] for question in server.questions)
    assert second == [{"role": "user", "content": f"{first[0]['content']}\n\n{first[1]['content']}"}]


def test_a_setting_that_is_refused_once_a_verdict_came_stops_the_run_and_is_named(evaluation: Evaluation) -> None:
    with llm_server(answer_in_turn([answer_well], refuse_setting("seed"))) as server:
        run = run_judge_here(make_llm_judge(evaluation, server.base_url, seed=1), orders="as-stored", samples=2)
    assert run.state == RunState.STOPPED
    assert "does not take this judge's seed: " in run.stop_reason


def test_a_choice_is_weighed_beside_the_hard_one_in_terms_of_a_and_b(evaluation: Evaluation) -> None:
    with llm_server(answer_with_logprobs({"A": 0.6, "tie": 0.3, "B": 0.1})) as server:
        run_judge_here(make_llm_judge(evaluation, server.base_url, logprobs=True))
    told = set(Verdict.objects.values_list("shown", "choice", "weighted"))
    # 0.6 + 0.3 / 2 for the one shown first, the rest for the other.
    assert told == {("as_stored", "A", 0.75), ("swapped", "B", 0.25)}
    kept: Any = Attempt.objects.order_by("pk")[0].logprobs
    assert set(kept) == {"helpfulness", "factuality", "clarity", "depth", "engagement", "safety"}
    assert kept["depth"] == [["A", -0.5108, [["A", -0.5108], ["tie", -1.204], ["B", -2.3026]]]]


def test_a_score_is_weighed_beside_the_one_given(evaluation: Evaluation) -> None:
    script = alternate_scripts(answer_text("Fine."), answer_with_logprobs({"4": 0.5, "5": 0.3, "3": 0.2}))
    _, server = run_pointwise(script, evaluation, "summary-rating", logprobs=True)
    assert set(Score.objects.values_list("value", "weighted")) == {(4.0, 4.1)}
    assert {question.turns: question.body.get("logprobs") for question in server.questions} == {0: None, 1: True}


def test_a_server_that_tells_no_probabilities_leaves_the_weight_open(evaluation: Evaluation) -> None:
    run_against(answer_well, evaluation, logprobs=True)
    assert set(Verdict.objects.values_list("weighted", flat=True)) == {None}
    assert only_call().attempts.get().logprobs is None


def test_a_call_whose_step_waited_goes_on_after_its_run_was_stopped(evaluation: Evaluation) -> None:
    """The key was withdrawn between the reply and its repair: the next run repairs, and asks nothing twice."""

    def withdrawn(question: Question) -> ServerAnswer:
        return fail_with(401)(question)

    with llm_server(alternate_scripts(answer_broken, withdrawn)) as server:
        judge = make_llm_judge(evaluation, server.base_url, mode="json_schema")
        assert run_judge_here(judge, orders="as-stored").state == RunState.STOPPED
        assert (only_call().state, only_call().step) == (CallState.PENDING, REPAIR)
        server.script = alternate_scripts(answer_broken, answer_well)
        run = work_run_here(start_run(judge, user=None, orders="as-stored"))
    assert run.state == RunState.DONE
    assert steps(only_call()) == [(ASK, "unreadable"), (REPAIR, "stopped"), (REPAIR, "answered")]


def test_a_reply_of_a_repair_is_read_by_the_same_rules(evaluation: Evaluation) -> None:
    """A label inside prose never counts, in a repair as little as in a first reply."""
    run_against(alternate_scripts(answer_broken, answer_text("I choose A everywhere.")), evaluation)
    assert only_call().state == CallState.UNREADABLE


def test_the_prompts_sum_holds_the_shape_that_was_asked_for(evaluation: Evaluation) -> None:
    run_against(answer_well, evaluation, name="one")
    run_against(answer_well, evaluation, name="two", mode="json_object")
    sums = {call.judge.name: call.prompt_sha256 for call in Call.objects.all()}
    assert len(set(sums.values())) == 2
    assert all(len(one) == 64 for one in sums.values())


def test_a_hanging_second_step_is_asked_again(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints_selectors, "LOCAL_TIMEOUT_SECONDS", 2.0)
    run_against(
        alternate_scripts(answer_text("Fine."), answer_first([hang], answer_always("A"))), evaluation, mode="two_step"
    )
    call = only_call()
    assert call.state == CallState.ANSWERED
    assert steps(call)[0] == (ASK, "answered")
    assert (SCORE, AttemptOutcome.RETRY) in steps(call)
    assert [step for step, _ in steps(call)].count(ASK) == 1
    assert json.loads(call.attempts.order_by("number").last().raw)  # type: ignore[union-attr]
