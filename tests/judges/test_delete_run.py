"""A run is deleted where nothing was asked in it, and stays where anything was."""

from typing import Any

import pytest
from django.urls import reverse

from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import CallState, RunState
from evaluations.domain.roles import Role
from evaluations.judges.runs.planner import plan_run_calls
from evaluations.judges.runs.services import cancel_run, delete_run, start_run
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.users import User
from tests.factories.evaluations import make_comparison, make_member
from tests.factories.judges import make_llm_judge
from tests.helpers.browser_client import sign_in_client
from tests.helpers.page_text import html_of
from tests.helpers.work_sessions import CLOSED_ADDRESS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.fixture
def run(evaluation: Evaluation) -> Run:
    """Planned, and cancelled before anything was asked."""
    make_comparison(evaluation)
    run = start_run(make_llm_judge(evaluation, CLOSED_ADDRESS), user=None)
    plan_run_calls(run.pk, until=float("inf"))
    cancel_run(run, user=None)
    return Run.objects.get(pk=run.pk)


def test_a_run_in_which_nothing_was_asked_is_deleted_from_its_page(owner: User, run: Run) -> None:
    client = sign_in_client(owner)
    assert "Delete run" in html_of(client.get(reverse("run", args=["study", run.pk])))
    answer = client.post(reverse("run_delete", args=["study", run.pk]), follow=True)
    assert f"Run {run.pk} deleted." in html_of(answer)
    assert not Run.objects.exists()
    assert not Call.all_rows.exists()
    event = Event.objects.get(verb="deleted", object_type="run")
    assert (event.object_id, event.user, event.before["judge"]) == (run.pk, owner, "judge")


def paid(run: Run, call: Call) -> None:
    Attempt.objects.create(call=call, run=run, number=1, outcome="failed", latency_ms=1)


def paid_in_an_earlier_run(run: Run, call: Call) -> None:
    earlier = Run.objects.create(evaluation=run.evaluation, judge=run.judge, batch=run.batch, state=RunState.DONE)
    paid(earlier, call)


def answered(run: Run, call: Call) -> None:
    Call.all_rows.filter(pk=call.pk).update(state=CallState.ANSWERED)


def active(run: Run, call: Call) -> None:
    Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING)


@pytest.mark.parametrize("happened", [paid, paid_in_an_earlier_run, answered, active])
def test_any_other_run_stays(owner: User, run: Run, happened: Any) -> None:
    happened(run, Call.all_rows.order_by("pk")[0])
    client, kept = sign_in_client(owner), Run.objects.get(pk=run.pk)
    assert "Delete run" not in html_of(client.get(reverse("run", args=["study", run.pk])))
    assert client.post(reverse("run_delete", args=["study", run.pk])).status_code == 422
    with pytest.raises(InputRefused, match=r"Cancel the run first|already asked"):
        delete_run(kept, user=owner)
    assert Run.objects.filter(pk=run.pk).exists()
    assert Call.all_rows.filter(run=run).count() == 2


def test_those_who_only_look_delete_nothing(evaluation: Evaluation, run: Run) -> None:
    for role in (Role.VIEWER, Role.REVIEWER, Role.ADJUDICATOR):
        client = sign_in_client(make_member(evaluation, role))
        assert "Delete run" not in html_of(client.get(reverse("run", args=["study", run.pk])))
        assert client.post(reverse("run_delete", args=["study", run.pk])).status_code == 403
    assert Run.objects.exists()
