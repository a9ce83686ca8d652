"""An answer that is stored is never bought again, by any run of any judge."""

import hashlib
import json
from dataclasses import replace

import pytest

from evaluations.domain import CallState, Choice, ReplyShape, RubricOrigin, Shown
from evaluations.judge.builtin import SIX_ASPECT
from evaluations.models import Attempt, Call, Endpoint, Evaluation, Judge, RubricVersion, Run, Score, Verdict
from evaluations.services.judging import claiming, reusing, storing
from evaluations.services.judging.working import Bout
from evaluations.services.preparing.preparing import add_rubric
from tests.bouts import NOWHERE, answered, bout_on, claimed, due_again, evaluated, rating_judge, unreadable
from tests.judges import make_judge
from tests.making import make_comparison, make_evaluation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("true_ballots")]

TEMPLATE = "{q}\n1: {a}\n2: {b}\nWhich is better?"
FIELDS = {"{q}": "query", "{a}": "response_a", "{b}": "response_b"}
TEXTS = {"query": "Which?", "response_a": "This.", "response_b": "That."}


def pasted(evaluation: Evaluation) -> RubricVersion:
    """A rubric without delimiters, whose prompts are the same in every evaluation."""
    spec = replace(SIX_ASPECT, instructions=TEMPLATE, placeholders=FIELDS)
    return add_rubric(evaluation, name="pasted", spec=spec, origin=RubricOrigin.OWN, user=None)


def judge_of(evaluation: Evaluation, **settings: object) -> Judge:
    settings = {"mode": "json_schema", "version": pasted(evaluation), **settings}
    return make_judge(evaluation, NOWHERE, **settings)  # type: ignore[arg-type]


def evaluation_with(*candidates: str) -> Evaluation:
    evaluation = make_evaluation()
    make_comparison(evaluation, candidates=candidates or ("alpha", "beta"), **TEXTS)  # type: ignore[arg-type]
    return evaluation


def answer_all(bout: Bout, choice: Choice = Choice.A) -> None:
    held = claimed(bout)
    storing.store(bout, [answered(bout, one, choice if one.shown == Shown.AS_STORED else Choice.TIE) for one in held])


def choices_of(run: Run) -> set[tuple[str, str]]:
    return set(Verdict.objects.filter(call__run=run).values_list("shown", "choice"))


def test_another_evaluation_that_asks_the_same_gets_the_answers_at_no_cost() -> None:
    first = bout_on(judge_of(evaluation_with()))
    answer_all(first)
    bout = bout_on(judge_of(evaluation_with()))
    assert not claiming.claim(bout, 64).questions
    calls = Call.objects.filter(run=bout.run)
    assert [call.state for call in calls] == ["answered", "answered"]
    sources = {call.copied_from_id for call in calls}
    assert sources == set(Call.objects.filter(run=first.run).values_list("pk", flat=True))
    assert {call.rationale for call in calls} == {"Because."}
    assert choices_of(bout.run) == choices_of(first.run) == {("as_stored", "A"), ("swapped", "tie")}
    assert Verdict.objects.filter(call__run=bout.run).count() == 12
    bout.run.refresh_from_db()
    assert (bout.run.reused, bout.run.spent) == (2, 0)
    assert not Attempt.objects.filter(run=bout.run).exists()
    assert bout.judge.raters.get().verdicts_changed_at is not None


def test_a_copy_of_a_copy_names_the_call_that_was_asked() -> None:
    first = bout_on(judge_of(evaluation_with()))
    answer_all(first)
    for _ in range(2):
        bout = bout_on(judge_of(evaluation_with()))
        claiming.claim(bout, 64)
        asked = set(Call.objects.filter(run=first.run).values_list("pk", flat=True))
        assert set(Call.objects.filter(run=bout.run).values_list("copied_from", flat=True)) == asked


def test_where_the_text_shown_first_is_b_the_copied_choice_is_turned() -> None:
    """There “This.” is alpha's and A; here it is zeta's, so that it is B, and shown first when swapped."""
    first = bout_on(judge_of(evaluation_with()))
    answer_all(first)
    evaluation = make_evaluation()
    turned = {"query": "Which?", "response_a": "That.", "response_b": "This."}
    make_comparison(evaluation, **turned)  # type: ignore[arg-type]
    bout = bout_on(judge_of(evaluation))
    assert not claimed(bout)
    assert choices_of(bout.run) == {("swapped", "B"), ("as_stored", "tie")}


def test_probabilities_are_turned_with_the_choice() -> None:
    first = bout_on(judge_of(evaluation_with()))
    one = next(held for held in claimed(first) if held.shown == Shown.AS_STORED)
    storing.store(first, [replace(answered(first, one), weighted={"clarity": 0.75})])
    evaluation = make_evaluation()
    make_comparison(evaluation, query="Which?", response_a="That.", response_b="This.")
    bout = bout_on(judge_of(evaluation))
    claiming.claim(bout, 64)
    copied = Verdict.objects.filter(call__run=bout.run, aspect__key="clarity").values_list("choice", "weighted")
    assert list(copied) == [("B", 0.25)]


def test_scores_are_copied_too() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    first = bout_on(rating_judge(evaluation, mode="json_schema"))
    storing.store(first, [evaluated(one) for one in claimed(first)])
    storing.store(first, [answered(first, one) for one in claimed(first)])
    again = rating_judge(evaluation, mode="auto", name="again")
    bout = bout_on(again)
    assert not claimed(bout)
    assert Score.objects.filter(rater__judge=again).count() == 2
    assert Call.objects.filter(judge=again, state="answered", copied_from__judge=first.judge).count() == 2


@pytest.mark.parametrize(
    "settings",
    [{"temperature": 0.5}, {"max_tokens": 100}, {"model": "another"}, {"seed": 3}, {"mode": "text"}],
    ids=str,
)
def test_another_question_is_asked(settings: dict[str, object]) -> None:
    answer_all(bout_on(judge_of(evaluation_with())))
    assert len(claimed(bout_on(judge_of(evaluation_with(), **settings)))) == 2


def test_another_sample_is_another_question() -> None:
    evaluation = evaluation_with()
    answer_all(bout_on(judge_of(evaluation)))
    bout = bout_on(Judge.objects.get(evaluation=evaluation), samples=2)
    assert [one.sample for one in claimed(bout)] == [1, 1]


def test_what_could_not_be_read_is_no_answer() -> None:
    first = bout_on(judge_of(evaluation_with()))
    storing.store(first, [unreadable(one) for one in claimed(first)])
    assert len(claimed(bout_on(judge_of(evaluation_with())))) == 2


def test_a_repaired_answer_is_none_for_a_judge_without_repairs() -> None:
    first = bout_on(judge_of(evaluation_with()))
    storing.store(first, [replace(answered(first, one), repaired=True) for one in claimed(first)])
    assert len(claimed(bout_on(judge_of(evaluation_with(), repairs=False)))) == 2
    bout = bout_on(judge_of(evaluation_with()))
    assert not claimed(bout)
    assert set(Call.objects.filter(run=bout.run).values_list("repaired", flat=True)) == {True}


def test_before_it_is_known_what_a_server_takes_answers_in_every_shape_count() -> None:
    answer_all(bout_on(judge_of(evaluation_with())))
    assert not claimed(bout_on(judge_of(evaluation_with(), mode="auto")))


# ---- equal questions at once -----------------------------------------------------------------


def twins() -> Bout:
    evaluation = evaluation_with()
    make_comparison(evaluation, **TEXTS)  # type: ignore[arg-type]
    return bout_on(judge_of(evaluation), orders="as-stored")


def test_of_two_equal_questions_one_is_asked_and_the_other_waits_for_its_answer() -> None:
    bout = twins()
    (asked,) = claimed(bout)
    due_again()
    assert not claimed(bout)
    assert claiming.claim(bout, 64).wait is not None
    storing.store(bout, [answered(bout, asked)])
    due_again()
    assert not claimed(bout)
    assert set(Call.objects.filter(run=bout.run).values_list("state", flat=True)) == {CallState.ANSWERED}
    assert Attempt.objects.count() == 1


def test_the_other_is_asked_where_the_first_got_no_answer() -> None:
    bout = twins()
    (asked,) = claimed(bout)
    storing.store(bout, [unreadable(asked)])
    due_again()
    (other,) = claimed(bout)
    assert other.call_id != asked.call_id


def test_extras_of_an_endpoint_or_a_judge_make_other_keys_and_none_leave_keys_as_they_were() -> None:
    plain = judge_of(evaluation_with())
    bout, shape = bout_on(plain), ReplyShape.JSON_SCHEMA
    assert plain.rubric_version is not None
    settings = [NOWHERE, "test-model", False, "json_schema", None, None, "", False, plain.rubric_version.sha256]
    before = hashlib.sha256(json.dumps(settings).encode()).hexdigest()
    assert reusing.settings_sum(bout, shape) == before

    with_body = bout_on(judge_of(evaluation_with(), extra_body={"top_p": 0.5}))
    of_judge = reusing.settings_sum(with_body, shape)
    Endpoint.objects.update(extra_query={"version": "2"})
    of_endpoint = reusing.settings_sum(bout_on(judge_of(evaluation_with(), name="again")), shape)
    assert len({before, of_judge, of_endpoint}) == 3
