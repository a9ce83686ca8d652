"""Site administrators see the open runs of every evaluation, and cancel any of them."""

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain.judges import RunState
from evaluations.judges.endpoints import views as endpoints_views
from evaluations.judges.runs.services import start_run
from evaluations.models.evaluations import Event
from evaluations.models.runs import Run
from evaluations.models.users import User
from tests.factories.evaluations import make_comparison, make_evaluation, make_user
from tests.factories.judges import make_baseline_judge
from tests.helpers.api_client import ApiClient, token_for

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture
def root() -> User:
    return make_user("root", is_superuser=True)


@pytest.fixture
def run(root: User) -> Run:
    evaluation = make_evaluation(make_user("owner"), slug="foreign")
    make_comparison(evaluation)
    return start_run(make_baseline_judge(evaluation), user=None)


def test_an_administrator_cancels_a_run_of_an_evaluation_that_is_not_theirs(
    client: Client, root: User, run: Run
) -> None:
    client.force_login(root)
    assert client.get(reverse("run", args=["foreign", run.pk])).status_code == 404
    assert "Study foreign" in client.get(reverse("endpoints")).content.decode()
    client.post(reverse("endpoints_run_cancel", args=[run.pk]))
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED
    assert Event.objects.get(verb="cancelled", object_type="run").user == root
    page = client.get(reverse("endpoints")).content.decode()
    assert "Study foreign" not in page.partition("Open runs")[2]
    assert client.post(reverse("endpoints_run_cancel", args=[run.pk])).status_code == 404


def test_a_list_that_is_not_whole_says_so(
    client: Client, root: User, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_run(run.judge, user=None)
    client.force_login(root)
    assert "oldest of" not in client.get(reverse("endpoints")).content.decode()
    monkeypatch.setattr(endpoints_views, "MAX_RUNS_SHOWN", 1)
    assert "Oldest 1 of 2." in client.get(reverse("endpoints")).content.decode()


def test_nobody_else_does(client: Client, run: Run) -> None:
    client.force_login(User.objects.get(username="owner"))
    assert client.post(reverse("endpoints_run_cancel", args=[run.pk])).status_code == 404
    run.refresh_from_db()
    assert run.state != RunState.CANCELLED


def test_a_program_of_an_administrator_does_the_same(root: User, run: Run) -> None:
    asking = ApiClient(token_for(root))
    (listed,) = asking.get("/runs").json()["items"]
    assert (listed["id"], listed["evaluation"]) == (run.pk, "foreign")
    assert asking.post(f"/runs/{run.pk}/cancel").json()["state"] == "cancelled"
    assert asking.get("/runs").json()["items"] == []
    assert asking.post(f"/runs/{run.pk}/cancel").status_code == 404
    assert ApiClient(token_for(User.objects.get(username="owner"))).get("/runs").status_code == 404
