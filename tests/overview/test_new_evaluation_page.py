"""Beginning an evaluation."""

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.access import Right
from evaluations.domain.roles import Role
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from tests.factories.evaluations import give_rights, make_evaluation, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture
def me(client: Client) -> User:
    user = give_rights(make_user("ada"), Right.CREATE_EVALUATIONS)
    client.force_login(user)
    return user


def test_whoever_begins_one_owns_it(client: Client, me: User) -> None:
    answer = client.post(reverse("evaluation_new"), {"name": "Support answers, March"})
    evaluation = Evaluation.objects.get(slug="support-answers-march")
    assert answer["Location"] == reverse("imports", args=[evaluation.slug])
    assert evaluation.memberships.get(user=me).role == Role.OWNER
    assert evaluation.reviews_wanted == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": ""}, "This field is required"),
        ({"name": "Second", "slug": "taken"}, "The URL name “taken” is taken"),
        ({"name": "Second", "slug": "Not An Address"}, "is not a valid URL name"),
        ({"name": "評価"}, "Enter a URL name"),
        ({"name": "x" * 201}, "at most 200 characters"),
        ({"name": "with\x00nul"}, "Null characters are not allowed"),
    ],
)
def test_what_cannot_be_taken_comes_back_with_the_reason(
    client: Client, me: User, given: dict[str, str], words: str
) -> None:
    make_evaluation(me, slug="taken")
    answer = client.post(reverse("evaluation_new"), given)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert Evaluation.objects.count() == 1


def test_a_long_name_gives_an_address_that_fits(client: Client, me: User) -> None:
    client.post(reverse("evaluation_new"), {"name": "word " * 40})
    assert len(Evaluation.objects.get().slug) <= 80


def test_an_account_without_the_right_is_not_offered_a_new_evaluation_and_learns_whom_to_ask(client: Client) -> None:
    client.force_login(make_user("sam"))
    page = client.get(reverse("evaluations")).content.decode()
    assert reverse("evaluation_new") not in page
    assert "ask a site administrator" in page
    make_evaluation(slug="taken")
    for answer in (
        client.get(reverse("evaluation_new")),
        client.post(reverse("evaluation_new"), {"name": "Second"}),
        client.post(reverse("evaluation_new"), {"name": "Second", "slug": "taken"}),
    ):
        assert answer.status_code == 403
        assert "Your account may not create evaluations. Ask a site administrator." in answer.content.decode()
    assert Evaluation.objects.count() == 1
