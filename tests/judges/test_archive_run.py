"""An archived run is off the list of runs; its verdicts, its costs and what is latest are as before."""

import json

import pytest
from django.urls import reverse

from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import RunState
from evaluations.domain.reports import ReportRules
from evaluations.domain.roles import Role
from evaluations.judges.runs.services import archive_run, restore_run, resume_run
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Endpoint
from evaluations.models.runs import Run
from evaluations.models.users import User
from evaluations.overview.event_texts import describe_event
from evaluations.reports.selectors import get_full_report
from tests.factories.evaluations import make_comparison, make_member
from tests.factories.judges import make_baseline_judge
from tests.factories.verdicts import ALL_A, make_judge_verdicts
from tests.helpers.browser_client import sign_in_client
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

ARCHIVED_BADGE = '<span class="badge">archived</span>'


@pytest.fixture
def run(evaluation: Evaluation) -> Run:
    """The one run of a judge that answered, over."""
    make_judge_verdicts(make_comparison(evaluation), judge="gpt", kind="llm", as_stored=ALL_A)
    Run.objects.update(state=RunState.DONE)
    return Run.objects.get()


def test_it_is_archived_and_restored_and_both_are_recorded(owner: User, run: Run) -> None:
    for _ in range(2):  # the second time changes nothing
        archive_run(run, user=owner)
    run.refresh_from_db()
    assert run.archived_at is not None
    for _ in range(2):
        restore_run(run, user=owner)
    run.refresh_from_db()
    assert run.archived_at is None
    events = Event.objects.filter(object_type="run", object_id=run.pk, user=owner).order_by("pk")
    assert [describe_event(event) for event in events] == ["Run archived", "Run restored"]
    assert [event.after for event in events] == [{"judge": "gpt"}] * 2


@pytest.mark.parametrize("state", [RunState.PLANNING, RunState.RUNNING, RunState.PAUSED])
def test_a_run_that_is_not_over_stays(owner: User, run: Run, state: RunState) -> None:
    Run.objects.update(state=state)
    sentence = "Only ended runs can be archived: wait for this one to finish, or cancel it."
    with pytest.raises(InputRefused) as refused:
        archive_run(run, user=owner)
    assert str(refused.value) == sentence
    client = sign_in_client(owner)
    assert "Archive</button>" not in html_of(client.get(reverse("run", args=["study", run.pk])))
    answer = client.post(reverse("run_archive", args=["study", run.pk]))
    assert (answer.status_code, sentence in html_of(answer)) == (422, True)
    run.refresh_from_db()
    assert run.archived_at is None


@pytest.mark.parametrize("state", [RunState.DONE, RunState.CANCELLED, RunState.STOPPED])
def test_any_run_that_is_over_can_be_archived(run: Run, state: RunState) -> None:
    Run.objects.update(state=state)
    archive_run(run, user=None)
    run.refresh_from_db()
    assert run.archived_at is not None


def test_an_archived_run_is_not_resumed(owner: User, run: Run) -> None:
    Run.objects.update(state=RunState.STOPPED)
    run.calls.update(state="pending")
    client, page = sign_in_client(owner), reverse("run", args=["study", run.pk])
    assert "Resume</button>" in html_of(client.get(page))
    archive_run(run, user=owner)
    assert "Resume</button>" not in html_of(client.get(page))
    with pytest.raises(InputRefused, match=rf"^Run {run.pk} is archived\. Restore it first\.$"):
        resume_run(run, user=owner)
    restore_run(run, user=owner)
    Endpoint.objects.update(is_offered=True)
    resume_run(run, user=owner)
    run.refresh_from_db()
    assert run.is_at_work


def test_its_verdicts_count_as_before(evaluation: Evaluation, run: Run) -> None:
    before = get_full_report(evaluation, ReportRules()).as_json()
    archive_run(run, user=None)
    after = get_full_report(evaluation, ReportRules()).as_json()
    assert "gpt" in json.dumps(after)
    assert after == before


def test_the_pages_archive_and_restore_and_the_list_shows_it_apart(owner: User, run: Run) -> None:
    client = sign_in_client(owner)
    page, listed = reverse("run", args=["study", run.pk]), reverse("runs", args=["study"])
    assert "archived" not in html_of(client.get(listed))
    assert "Archive</button>" in html_of(client.get(page))
    after = html_of(client.post(reverse("run_archive", args=["study", run.pk]), follow=True))
    assert f"Run {run.pk} archived. Its verdicts still count in results." in after
    assert f'action="{reverse("run_restore", args=["study", run.pk])}"' in after  # Undo
    current = html_of(client.get(listed))
    assert page not in current
    assert "Show archived runs" in current
    assert "All runs are archived" in current
    apart = html_of(client.get(listed, {"archived": ""}))
    assert page in apart
    assert ARCHIVED_BADGE in apart
    assert "Show current runs" in apart
    shown = html_of(client.get(page))
    assert ARCHIVED_BADGE in shown
    assert "Restore</button>" in shown
    assert "Archive</button>" not in shown
    assert "Its verdicts still count in results" in shown
    restored = html_of(client.post(reverse("run_restore", args=["study", run.pk]), follow=True))
    assert f"Run {run.pk} restored." in restored
    assert ARCHIVED_BADGE not in restored
    assert page in html_of(client.get(listed))
    assert "No archived runs" in html_of(client.get(listed, {"archived": ""}))


def test_it_stays_the_latest_run_of_its_judge(owner: User, run: Run) -> None:
    archive_run(run, user=owner)
    client, page = sign_in_client(owner), reverse("run", args=["study", run.pk])
    for listing in (reverse("judges", args=["study"]), reverse("judge", args=["study", run.judge_id])):
        assert page in html_of(client.get(listing)), listing


def test_of_a_panel_only_the_archived_run_leaves_the_list(owner: User, evaluation: Evaluation, run: Run) -> None:
    other = make_baseline_judge(evaluation)
    kept = Run.objects.create(evaluation=evaluation, judge=other, batch=run.batch, state=RunState.DONE)
    archive_run(run, user=owner)
    listed = html_of(sign_in_client(owner).get(reverse("runs", args=["study"])))
    assert reverse("run", args=["study", kept.pk]) in listed
    assert reverse("run", args=["study", run.pk]) not in listed


@pytest.mark.parametrize("role", [Role.VIEWER, Role.REVIEWER, Role.ADJUDICATOR])
def test_those_who_only_look_archive_and_restore_nothing(evaluation: Evaluation, run: Run, role: Role) -> None:
    client = sign_in_client(make_member(evaluation, role))
    assert client.post(reverse("run_archive", args=["study", run.pk])).status_code == 403
    archive_run(run, user=None)
    assert "Restore</button>" not in html_of(client.get(reverse("run", args=["study", run.pk])))
    assert client.post(reverse("run_restore", args=["study", run.pk])).status_code == 403
    run.refresh_from_db()
    assert run.archived_at is not None
