"""The page that makes pairs of the responses that are here."""

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.imports.pairs import views as pairs_views
from evaluations.models.comparisons import Query
from evaluations.models.evaluations import Evaluation
from tests.factories.evaluations import make_comparison, make_response

pytestmark = pytest.mark.django_db


def page(client: Client, evaluation: Evaluation) -> str:
    return client.get(reverse("pairs", args=[evaluation.slug])).content.decode()


def add_response(evaluation: Evaluation, candidate: str) -> None:
    make_response(Query.objects.get(evaluation=evaluation), candidate, "Else.")


def test_without_responses_it_says_where_they_come_from(manager_signed_in: Client, evaluation: Evaluation) -> None:
    assert "No responses yet" in page(manager_signed_in, evaluation)


def test_where_every_pair_is_made_it_says_so(manager_signed_in: Client, evaluation: Evaluation) -> None:
    make_comparison(evaluation)
    assert "All pairs exist." in page(manager_signed_in, evaluation)


def test_very_many_are_confirmed_and_few_are_not_asked_about(
    manager_signed_in: Client, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_comparison(evaluation)
    add_response(evaluation, "gamma")
    assert 'name="confirmed"' not in page(manager_signed_in, evaluation)
    monkeypatch.setattr(pairs_views, "CONFIRMED_ABOVE", 1)
    assert 'name="confirmed"' in page(manager_signed_in, evaluation)
