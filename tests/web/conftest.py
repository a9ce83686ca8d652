"""What the tests of pages share."""

import pytest
from django.test import Client

from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from tests.factories.evaluations import make_evaluation, make_member
from tests.factories.verdicts import make_judge_rater


@pytest.fixture
def evaluation() -> Evaluation:
    """One whose reviewers are shown the judge “longest wins”. Tests of other pages make their own."""
    evaluation = make_evaluation()
    return change_evaluation(evaluation, {"shown_judge": make_judge_rater(evaluation, "longest wins").judge}, user=None)


@pytest.fixture
def person(evaluation: Evaluation) -> User:
    return make_member(evaluation, Role.REVIEWER)


@pytest.fixture
def browser(person: User) -> Client:
    """That person's, signed in."""
    client = Client()
    client.force_login(person)
    return client
