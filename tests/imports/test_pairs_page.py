"""The page that makes pairs of the responses that are here."""

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain.roles import Role
from evaluations.imports.pairs import views as pairs_views
from evaluations.models.comparisons import Query
from evaluations.models.evaluations import Evaluation
from tests.factories.evaluations import make_comparison, make_evaluation, make_member, make_response

pytestmark = pytest.mark.django_db


@pytest.fixture
def evaluation() -> Evaluation:
    return make_evaluation()


@pytest.fixture
def manager(client: Client, evaluation: Evaluation) -> Client:
    client.force_login(make_member(evaluation, Role.MANAGER))
    return client


def page(client: Client, evaluation: Evaluation) -> str:
    return client.get(reverse("pairs", args=[evaluation.slug])).content.decode()


def add_response(evaluation: Evaluation, candidate: str) -> None:
    make_response(Query.objects.get(evaluation=evaluation), candidate, "Else.")


def test_without_responses_it_says_where_they_come_from(manager: Client, evaluation: Evaluation) -> None:
    assert "There are no responses yet" in page(manager, evaluation)


def test_where_every_pair_is_made_it_says_so(manager: Client, evaluation: Evaluation) -> None:
    make_comparison(evaluation)
    assert "Every pair of the responses that are here is made" in page(manager, evaluation)


def test_very_many_are_confirmed_and_few_are_not_asked_about(
    manager: Client, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_comparison(evaluation)
    add_response(evaluation, "gamma")
    assert 'name="confirmed"' not in page(manager, evaluation)
    monkeypatch.setattr(pairs_views, "CONFIRMED_ABOVE", 1)
    assert 'name="confirmed"' in page(manager, evaluation)
