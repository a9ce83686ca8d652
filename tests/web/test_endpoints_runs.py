"""Site administrators see the open runs of every evaluation, and cancel any of them."""

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain import RunState
from evaluations.models import Event, Run, User
from evaluations.services.judging.running import start_run
from evaluations.web import endpoints
from tests.asking import Asking, token_for
from tests.judges import make_baseline
from tests.making import make_comparison, make_evaluation, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def root() -> User:
    return make_user("root", is_superuser=True)


@pytest.fixture
def run(root: User) -> Run:
    evaluation = make_evaluation(make_user("owner"), slug="foreign")
    make_comparison(evaluation)
    return start_run(make_baseline(evaluation), user=None)


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
    monkeypatch.setattr(endpoints, "MOST_RUNS", 1)
    assert "The 1 oldest of 2." in client.get(reverse("endpoints")).content.decode()


def test_nobody_else_does(client: Client, run: Run) -> None:
    client.force_login(User.objects.get(username="owner"))
    assert client.post(reverse("endpoints_run_cancel", args=[run.pk])).status_code == 404
    run.refresh_from_db()
    assert run.state != RunState.CANCELLED


def test_a_program_of_an_administrator_does_the_same(root: User, run: Run) -> None:
    asking = Asking(token_for(root))
    (listed,) = asking.get("/runs").json()["items"]
    assert (listed["id"], listed["evaluation"]) == (run.pk, "foreign")
    assert asking.post(f"/runs/{run.pk}/cancel").json()["state"] == "cancelled"
    assert asking.get("/runs").json()["items"] == []
    assert asking.post(f"/runs/{run.pk}/cancel").status_code == 404
    assert Asking(token_for(User.objects.get(username="owner"))).get("/runs").status_code == 404
