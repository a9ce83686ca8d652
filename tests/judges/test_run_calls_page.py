"""The calls of a run, by state."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain.judges import AttemptOutcome, CallState
from evaluations.domain.roles import Role
from evaluations.models.evaluations import Evaluation
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.users import User
from tests.factories.evaluations import make_comparison, make_evaluation, make_member, make_user
from tests.factories.judges import make_baseline_judge, make_llm_judge, run_judge_here
from tests.helpers.browser_client import sign_in_client
from tests.helpers.llm_server import ServerAnswer, answer_broken, llm_server

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.fixture(autouse=True)
def two_comparisons(evaluation: Evaluation) -> None:
    for _ in range(2):
        make_comparison(evaluation)


def address(run: Run) -> str:
    return reverse("run_calls", args=["study", run.pk])


def page(user: User, run: Run, **parameters: Any) -> str:
    answer = sign_in_client(user).get(address(run), parameters)
    assert answer.status_code == 200
    return answer.content.decode()


def test_failures_are_shown_by_kind_with_what_came_back(owner: User, evaluation: Evaluation) -> None:
    def one_of_each(question: Any) -> ServerAnswer:
        return answer_broken(question) if len(server.questions) % 2 else ServerAnswer(refusal="I will not.")

    with llm_server(one_of_each) as server:
        run = run_judge_here(make_llm_judge(evaluation, server.base_url, max_in_flight=1, repairs=False))
    shown = page(owner, run)
    assert "JSON object that is broken" in shown
    assert "I will not." in shown
    one_kind = page(owner, run, state="refused")
    assert "I will not." in one_kind
    assert "JSON object that is broken" not in one_kind
    assert page(owner, run, state="unusable").count("<summary>Reply</summary>") == 4


@pytest.mark.parametrize("state", list(CallState))
def test_calls_of_every_state_can_be_listed_alone(owner: User, evaluation: Evaluation, state: CallState) -> None:
    run = run_judge_here(make_baseline_judge(evaluation))
    first, *others = Call.objects.order_by("pk")
    Call.objects.filter(pk=first.pk).update(state=state)
    other = CallState.REFUSED if state != CallState.REFUSED else CallState.FAILED
    Call.objects.filter(pk__in=[call.pk for call in others]).update(state=other)
    assert page(owner, run).count('scope="row"') == 4
    alone = page(owner, run, state=state)
    assert alone.count('scope="row"') == 1
    assert reverse("call", args=["study", first.pk]) in alone


def test_repaired_and_copied_calls_can_be_listed_alone(owner: User, evaluation: Evaluation) -> None:
    run = run_judge_here(make_baseline_judge(evaluation))
    repaired, copied, *_ = Call.objects.order_by("pk")
    Call.objects.filter(pk=repaired.pk).update(repaired=True)
    Call.objects.filter(pk=copied.pk).update(copied_from=repaired)
    assert page(owner, run, state="repaired").count('scope="row"') == 1
    assert reverse("call", args=["study", copied.pk]) in page(owner, run, state="copied")


def test_each_call_says_what_it_cost_in_this_run(owner: User, evaluation: Evaluation) -> None:
    run = run_judge_here(make_baseline_judge(evaluation))
    known, partly, unknown, tried = Call.objects.order_by("pk")
    for call, costs in (
        (known, [1_500_000_000]),
        (partly, [42_000_000, None]),
        (unknown, [None]),
        (tried, [7 * 10**9]),
    ):
        for number, cost in enumerate(costs, start=1):
            outcome = AttemptOutcome.ANSWERED
            Attempt.objects.create(call=call, run=run, number=number, outcome=outcome, cost=cost, latency_ms=1)
    # An error costs nothing: what the call cost is known.
    Attempt.objects.create(call=tried, run=run, number=2, outcome="retry", http_status=500, latency_ms=1)
    shown = page(owner, run)
    assert "$1.50" in shown
    assert "≥ $7.00" not in shown
    assert "$7.00" in shown
    assert "≥ $0.042" in shown
    assert "unknown</span>" in shown


def test_a_kind_that_is_none_and_another_evaluations_run_are_not_found(owner: User, evaluation: Evaluation) -> None:
    run = run_judge_here(make_baseline_judge(evaluation))
    other = make_evaluation(slug="other")
    make_comparison(other)
    client = sign_in_client(owner)
    assert client.get(address(run), {"state": "lazy"}).status_code == 404
    assert client.get(address(run_judge_here(make_baseline_judge(other)))).status_code == 404
    assert "No too long calls" in page(owner, run, state="too_long")


def test_replies_are_not_for_reviewers(evaluation: Evaluation) -> None:
    run = run_judge_here(make_baseline_judge(evaluation))
    assert sign_in_client(make_member(evaluation, Role.REVIEWER)).get(address(run)).status_code == 403
    assert sign_in_client(make_member(evaluation, Role.VIEWER)).get(address(run)).status_code == 200
    assert sign_in_client(make_user()).get(address(run)).status_code == 404


def test_a_long_list_goes_on_without_more_queries(owner: User, evaluation: Evaluation) -> None:
    judge = make_baseline_judge(evaluation)
    run = run_judge_here(judge)
    client = sign_in_client(owner)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(address(run)).status_code == 200
        return len(captured)

    def add_calls(count: int) -> None:
        made = [make_comparison(evaluation) for _ in range(count)]
        Call.objects.bulk_create(Call(judge=judge, run=run, comparison=one, state="refused") for one in made)

    Call.objects.update(state="refused")
    add_calls(50)  # more than a page, so that they are counted
    few = queries()
    add_calls(50)
    assert queries() == few
    first = page(owner, run, state="refused")
    assert first.count('scope="row"') == 50
    last = page(owner, run, state="refused", after=Call.objects.order_by("pk")[99].pk)
    assert last.count('scope="row"') == 4
