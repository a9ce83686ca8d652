"""An answer that is stored is never bought again, by any run of any judge."""

import hashlib
import json
from dataclasses import replace

import pytest

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.judges import CallState, ReplyShape
from evaluations.domain.rubrics import RubricOrigin
from evaluations.judge_prompts.builtin_rubrics import SIX_ASPECT
from evaluations.judges.calls.answer_cache import hash_judge_settings
from evaluations.judges.calls.claims import claim_calls
from evaluations.judges.calls.outcome_store import store_outcomes
from evaluations.judges.calls.work_session import WorkSession
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.rubrics import RubricVersion
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.verdicts import Score, Verdict
from evaluations.rubrics.services import add_rubric
from evaluations.verdicts.changes import read_rater_states
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_llm_judge
from tests.helpers.work_sessions import (
    CLOSED_ADDRESS,
    answered_outcome,
    claim_session_calls,
    evaluated_outcome,
    make_calls_due,
    make_rating_judge,
    start_run_session,
    unreadable_outcome,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("consistent_packed_votes")]

TEMPLATE = "{q}\n1: {a}\n2: {b}\nWhich is better?"
FIELDS = {"{q}": "query", "{a}": "response_a", "{b}": "response_b"}
TEXTS = {"query": "Which?", "response_a": "This.", "response_b": "That."}


def pasted(evaluation: Evaluation) -> RubricVersion:
    """A rubric without delimiters, whose prompts are the same in every evaluation."""
    spec = replace(SIX_ASPECT, instructions=TEMPLATE, placeholders=FIELDS)
    return add_rubric(evaluation, name="pasted", spec=spec, origin=RubricOrigin.OWN, user=None)


def judge_of(evaluation: Evaluation, **settings: object) -> Judge:
    settings = {"mode": "json_schema", "version": pasted(evaluation), **settings}
    return make_llm_judge(evaluation, CLOSED_ADDRESS, **settings)  # type: ignore[arg-type]


def evaluation_with(*candidates: str) -> Evaluation:
    evaluation = make_evaluation()
    make_comparison(evaluation, candidates=candidates or ("alpha", "beta"), **TEXTS)  # type: ignore[arg-type]
    return evaluation


def answer_all(session: WorkSession, choice: Choice = Choice.A) -> None:
    claimed = claim_session_calls(session)
    store_outcomes(
        session,
        [
            answered_outcome(session, one, choice if one.shown == ShownOrder.AS_STORED else Choice.TIE)
            for one in claimed
        ],
    )


def choices_of(run: Run) -> set[tuple[str, str]]:
    return set(Verdict.objects.filter(call__run=run).values_list("shown", "choice"))


def test_another_evaluation_that_asks_the_same_gets_the_answers_at_no_cost() -> None:
    first = start_run_session(judge_of(evaluation_with()))
    answer_all(first)
    session = start_run_session(judge_of(evaluation_with()))
    assert not claim_calls(session, 64).calls
    calls = Call.objects.filter(run=session.run)
    assert [call.state for call in calls] == ["answered", "answered"]
    sources = {call.copied_from_id for call in calls}
    assert sources == set(Call.objects.filter(run=first.run).values_list("pk", flat=True))
    assert {call.rationale for call in calls} == {"Because."}
    assert choices_of(session.run) == choices_of(first.run) == {("as_stored", "A"), ("swapped", "tie")}
    assert Verdict.objects.filter(call__run=session.run).count() == 12
    session.run.refresh_from_db()
    assert (session.run.reused, session.run.spent) == (2, 0)
    assert not Attempt.objects.filter(run=session.run).exists()
    assert read_rater_states(session.judge.raters.all())[session.rater_id].changes == 2


def test_a_copy_of_a_copy_names_the_call_that_was_asked() -> None:
    first = start_run_session(judge_of(evaluation_with()))
    answer_all(first)
    for _ in range(2):
        session = start_run_session(judge_of(evaluation_with()))
        claim_calls(session, 64)
        asked = set(Call.objects.filter(run=first.run).values_list("pk", flat=True))
        assert set(Call.objects.filter(run=session.run).values_list("copied_from", flat=True)) == asked


def test_where_the_text_shown_first_is_b_the_copied_choice_is_turned() -> None:
    """There “This.” is alpha's and A; here it is zeta's, so that it is B, and shown first when swapped."""
    first = start_run_session(judge_of(evaluation_with()))
    answer_all(first)
    evaluation = make_evaluation()
    turned = {"query": "Which?", "response_a": "That.", "response_b": "This."}
    make_comparison(evaluation, **turned)  # type: ignore[arg-type]
    session = start_run_session(judge_of(evaluation))
    assert not claim_session_calls(session)
    assert choices_of(session.run) == {("swapped", "B"), ("as_stored", "tie")}


def test_probabilities_are_turned_with_the_choice() -> None:
    first = start_run_session(judge_of(evaluation_with()))
    one = next(claimed for claimed in claim_session_calls(first) if claimed.shown == ShownOrder.AS_STORED)
    store_outcomes(first, [replace(answered_outcome(first, one), weighted={"clarity": 0.75})])
    evaluation = make_evaluation()
    make_comparison(evaluation, query="Which?", response_a="That.", response_b="This.")
    session = start_run_session(judge_of(evaluation))
    claim_calls(session, 64)
    copied = Verdict.objects.filter(call__run=session.run, aspect__key="clarity").values_list("choice", "weighted")
    assert list(copied) == [("B", 0.25)]


def test_scores_are_copied_too() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    first = start_run_session(make_rating_judge(evaluation, mode="json_schema"))
    store_outcomes(first, [evaluated_outcome(one) for one in claim_session_calls(first)])
    store_outcomes(first, [answered_outcome(first, one) for one in claim_session_calls(first)])
    again = make_rating_judge(evaluation, mode="auto", name="again")
    session = start_run_session(again)
    assert not claim_session_calls(session)
    assert Score.objects.filter(rater__judge=again).count() == 2
    assert Call.objects.filter(judge=again, state="answered", copied_from__judge=first.judge).count() == 2


@pytest.mark.parametrize(
    "settings",
    [{"temperature": 0.5}, {"max_tokens": 100}, {"model": "another"}, {"seed": 3}, {"mode": "text"}],
    ids=str,
)
def test_another_question_is_asked(settings: dict[str, object]) -> None:
    answer_all(start_run_session(judge_of(evaluation_with())))
    assert len(claim_session_calls(start_run_session(judge_of(evaluation_with(), **settings)))) == 2


def test_another_sample_is_another_question() -> None:
    evaluation = evaluation_with()
    answer_all(start_run_session(judge_of(evaluation)))
    session = start_run_session(Judge.objects.get(evaluation=evaluation), samples=2)
    assert [one.sample for one in claim_session_calls(session)] == [1, 1]


def test_what_could_not_be_read_is_no_answer() -> None:
    first = start_run_session(judge_of(evaluation_with()))
    store_outcomes(first, [unreadable_outcome(one) for one in claim_session_calls(first)])
    assert len(claim_session_calls(start_run_session(judge_of(evaluation_with())))) == 2


def test_a_repaired_answer_is_none_for_a_judge_without_repairs() -> None:
    first = start_run_session(judge_of(evaluation_with()))
    store_outcomes(first, [replace(answered_outcome(first, one), repaired=True) for one in claim_session_calls(first)])
    assert len(claim_session_calls(start_run_session(judge_of(evaluation_with(), repairs=False)))) == 2
    session = start_run_session(judge_of(evaluation_with()))
    assert not claim_session_calls(session)
    assert set(Call.objects.filter(run=session.run).values_list("repaired", flat=True)) == {True}


def test_before_it_is_known_what_a_server_takes_answers_in_every_shape_count() -> None:
    answer_all(start_run_session(judge_of(evaluation_with())))
    assert not claim_session_calls(start_run_session(judge_of(evaluation_with(), mode="auto")))


# ---- equal questions at once -----------------------------------------------------------------


def twins() -> WorkSession:
    evaluation = evaluation_with()
    make_comparison(evaluation, **TEXTS)  # type: ignore[arg-type]
    return start_run_session(judge_of(evaluation), orders="as-stored")


def test_of_two_equal_questions_one_is_asked_and_the_other_waits_for_its_answer() -> None:
    session = twins()
    (asked,) = claim_session_calls(session)
    make_calls_due()
    assert not claim_session_calls(session)
    assert claim_calls(session, 64).wait is not None
    store_outcomes(session, [answered_outcome(session, asked)])
    make_calls_due()
    assert not claim_session_calls(session)
    assert set(Call.objects.filter(run=session.run).values_list("state", flat=True)) == {CallState.ANSWERED}
    assert Attempt.objects.count() == 1


def test_the_other_is_asked_where_the_first_got_no_answer() -> None:
    session = twins()
    (asked,) = claim_session_calls(session)
    store_outcomes(session, [unreadable_outcome(asked)])
    make_calls_due()
    (other,) = claim_session_calls(session)
    assert other.call_id != asked.call_id


def test_extras_of_an_endpoint_or_a_judge_make_other_keys_and_none_leave_keys_as_they_were() -> None:
    plain = judge_of(evaluation_with())
    session, shape = start_run_session(plain), ReplyShape.JSON_SCHEMA
    assert plain.rubric_version is not None
    settings = [CLOSED_ADDRESS, "test-model", False, "json_schema", None, None, "", False, plain.rubric_version.sha256]
    before = hashlib.sha256(json.dumps(settings).encode()).hexdigest()
    assert hash_judge_settings(session, shape) == before

    with_body = start_run_session(judge_of(evaluation_with(), extra_body={"top_p": 0.5}))
    of_judge = hash_judge_settings(with_body, shape)
    Endpoint.objects.update(extra_query={"version": "2"})
    of_endpoint = hash_judge_settings(start_run_session(judge_of(evaluation_with(), name="again")), shape)
    assert len({before, of_judge, of_endpoint}) == 3
