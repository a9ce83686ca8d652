"""What the tests of pages share."""

import pytest
from django.test import Client

from evaluations.evaluation_settings.services import change_evaluation
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from tests.factories.verdicts import make_judge_rater


@pytest.fixture
def owner_signed_in(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


@pytest.fixture
def manager_signed_in(client: Client, manager: User) -> Client:
    client.force_login(manager)
    return client


@pytest.fixture
def judge_shown(evaluation: Evaluation) -> None:
    """Reviewers are shown the judge “longest wins”."""
    change_evaluation(evaluation, {"shown_judge": make_judge_rater(evaluation, "longest wins").judge}, user=None)


@pytest.fixture
def browser(reviewer: User) -> Client:
    """The reviewer's, signed in."""
    client = Client()
    client.force_login(reviewer)
    return client
