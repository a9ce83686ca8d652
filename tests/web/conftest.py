"""What the tests of pages share."""

import pytest
from django.test import Client

from evaluations.domain import Role
from evaluations.models import Evaluation, User
from evaluations.services.preparing.preparing import change_evaluation
from tests.making import make_evaluation, make_member
from tests.saying import make_judge


@pytest.fixture
def evaluation() -> Evaluation:
    """One whose reviewers are shown the judge “longest wins”. Tests of other pages make their own."""
    evaluation = make_evaluation()
    return change_evaluation(evaluation, {"shown_judge": make_judge(evaluation, "longest wins").judge}, user=None)


@pytest.fixture
def person(evaluation: Evaluation) -> User:
    return make_member(evaluation, Role.REVIEWER)


@pytest.fixture
def browser(person: User) -> Client:
    """That person's, signed in."""
    client = Client()
    client.force_login(person)
    return client


@pytest.fixture
def nudged(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The runs that are sent to workers, instead of sending them."""
    from evaluations.tasks import work_run

    sent: list[tuple[int, ...]] = []
    monkeypatch.setattr(work_run, "apply_async", lambda ids, **options: sent.append(ids))
    return sent
