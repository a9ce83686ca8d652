"""Asking again what failed: chosen, estimated, then bought."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain.judges import CallState, RunState
from evaluations.domain.roles import Role
from evaluations.jobs.nudges import WorkerTask
from evaluations.judges.runs.planner import plan_run_calls
from evaluations.judges.runs.services import start_run
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Price
from evaluations.models.runs import Call, Run
from evaluations.models.users import User
from tests.factories.evaluations import make_comparison, make_member, make_user
from tests.factories.judges import make_baseline_judge, make_llm_judge
from tests.helpers.browser_client import sign_in_client
from tests.helpers.job_work import Nudges
from tests.helpers.page_text import html_of
from tests.helpers.work_sessions import CLOSED_ADDRESS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.fixture(autouse=True)
def three_comparisons(evaluation: Evaluation) -> None:
    for _ in range(3):
        make_comparison(evaluation)


@pytest.fixture
def run(evaluation: Evaluation) -> Run:
    """Done, with six calls: answered, failed, three unreadable, too long."""
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS, max_tokens=100)
    run = start_run(judge, user=None)
    plan_run_calls(run.pk, until=float("inf"))
    states = ("answered", "failed", "unreadable", "unreadable", "unreadable", "too_long")
    for call, state in zip(Call.objects.order_by("pk"), states, strict=True):
        Call.objects.filter(pk=call.pk).update(state=state)
    Run.objects.filter(pk=run.pk).update(state=RunState.DONE)
    return Run.objects.get(pk=run.pk)


def address(run: Run) -> str:
    return reverse("run_retry", args=["study", run.pk])


def page(user: User, run: Run, **chosen: Any) -> str:
    answer = sign_in_client(user).get(address(run), chosen)
    assert answer.status_code == 200
    return html_of(answer)


def post(user: User, run: Run, **chosen: Any) -> Any:
    return sign_in_client(user).post(address(run), chosen)


def test_what_was_paid_for_is_asked_again_only_if_that_is_chosen(owner: User, run: Run) -> None:
    shown = page(owner, run)
    assert 'value="failed" checked' in shown
    assert 'value="unreadable">' in shown
    assert 'value="too_long">' in shown
    assert "Retry 1 call" in shown


def test_the_cost_is_shown_before_anything_is_asked(owner: User, run: Run) -> None:
    shown = page(owner, run, states=["failed", "unreadable"])
    assert "Retry 4 calls" in shown
    assert "price unknown" in shown
    assert run.judge.endpoint is not None
    prices = dict.fromkeys(("tokens_in", "tokens_cached", "tokens_out"), 10**9)
    Price.objects.create(endpoint=run.judge.endpoint, model=run.judge.model, **prices)
    chosen = {"states": ["failed", "unreadable"]}
    assert "<dt>cost</dt><dd>$0.0" in page(owner, run, **chosen)
    part = html_of(sign_in_client(owner).get(address(run), chosen, headers={"HX-Request": "true"}))
    assert "<html" not in part
    assert " ".join(part.split()) in " ".join(page(owner, run, **chosen).split())
    assert Run.objects.count() == 1


def test_exactly_the_chosen_states_are_asked_again_in_a_new_run(owner: User, run: Run, nudges: Nudges) -> None:
    nudges.clear()  # what began the run
    answer = post(owner, run, states=["unreadable"])
    again = Run.objects.exclude(pk=run.pk).get()
    assert answer["Location"] == reverse("run", args=["study", again.pk])
    assert nudges == [(WorkerTask.WORK_RUN, (again.pk,))]
    plan_run_calls(again.pk, until=float("inf"))
    states = dict(Call.objects.order_by("pk").values_list("pk", "state"))
    assert list(states.values()) == ["answered", "failed", *["pending"] * 3, "too_long"]
    assert Call.objects.filter(run=again).count() == 3


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({}, "Choose which calls to retry."),
        ({"states": "answered"}, "not one of the available choices"),
        ({"states": "refused"}, "calls to retry"),
        ({"states": "failed", "budget": "2"}, "No price is set"),
    ],
)
def test_what_cannot_be_asked_again_is_refused(owner: User, run: Run, chosen: dict[str, str], sentence: str) -> None:
    answer = post(owner, run, **chosen)
    assert answer.status_code == 422
    assert sentence in html_of(answer)
    assert Run.objects.count() == 1


def test_calls_of_a_run_at_work_are_left_to_it(owner: User, run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING)
    assert "Nothing to retry" in page(owner, run)


def test_run_calls_and_overview_lead_there(owner: User, evaluation: Evaluation, run: Run) -> None:
    client = sign_in_client(owner)
    assert address(run) in html_of(client.get(reverse("run", args=["study", run.pk])))
    calls = html_of(client.get(reverse("run_calls", args=["study", run.pk]), {"state": "unreadable"}))
    assert f"{address(run)}?states=unreadable" in calls
    overview = reverse("evaluation", args=["study"])
    assert f'href="{address(run)}">5 failed calls' in html_of(client.get(overview))
    other = start_run(make_baseline_judge(evaluation), user=None)
    plan_run_calls(other.pk, until=float("inf"))
    Call.objects.filter(run=other).update(state=CallState.FAILED)
    assert f'href="{reverse("runs", args=["study"])}">11 failed calls' in html_of(client.get(overview))


def test_only_those_who_manage_ask_again(evaluation: Evaluation, run: Run) -> None:
    for role in (Role.REVIEWER, Role.VIEWER, Role.ADJUDICATOR):
        member = make_member(evaluation, role)
        assert sign_in_client(member).get(address(run)).status_code == 403
        assert post(member, run, states=["failed"]).status_code == 403
        assert address(run) not in html_of(sign_in_client(member).get(reverse("run", args=["study", run.pk])))
    assert post(make_user(), run, states=["failed"]).status_code == 404
    assert Run.objects.count() == 1


def test_many_failures_cost_no_more_queries(owner: User, run: Run) -> None:
    client = sign_in_client(owner)

    def queries() -> int:
        client.get(address(run), {"states": "failed"})
        with CaptureQueriesContext(connection) as captured:
            assert client.get(address(run), {"states": "failed"}).status_code == 200
        return len(captured)

    few = queries()
    Call.objects.exclude(state=CallState.ANSWERED).update(state=CallState.FAILED)
    assert queries() == few
