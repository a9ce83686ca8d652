"""The overview through the API."""

import pytest

from evaluations.domain.roles import Role
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from tests.factories.evaluations import make_comparison, make_human, make_member
from tests.factories.verdicts import ALL_A, ALL_B, make_review
from tests.helpers.api_client import ApiClient, token_for

pytestmark = pytest.mark.django_db


def test_progress_and_the_next_step(evaluation: Evaluation, owner: User) -> None:
    make_review(make_human(evaluation, "ann"), make_comparison(evaluation), ALL_A)
    found = ApiClient(token_for(owner)).get("/evaluations/study").json()
    assert (found["members"], found["queries"], found["next_step"]) == (1, 1, "judge")
    assert found["progress"]["reviews_per_comparison"] == 1
    assert found["progress"]["open_disagreements"] == 0


def test_a_reviewer_does_not_learn_how_many_disagree(evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    make_review(make_human(evaluation, "ann"), comparison, ALL_A)
    make_review(make_human(evaluation, "ben"), comparison, ALL_B)
    reviewer = make_member(evaluation, Role.REVIEWER)
    found = ApiClient(token_for(reviewer)).get("/evaluations/study").json()
    assert found["progress"]["open_disagreements"] is None


def test_events_name_the_user(evaluation: Evaluation, owner: User) -> None:
    events = ApiClient(token_for(owner)).get("/evaluations/study/events").json()["items"]
    assert {event["user"]["username"] for event in events if event["user"]} == {owner.username}
