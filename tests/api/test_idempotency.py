"""A write under a key is done once and answered the same way each time."""

from datetime import timedelta

import pytest
from django.utils import timezone

from evaluations.api.idempotency import begin_request, drop_old_answers, forget_request
from evaluations.api.problems import Problem
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import ApiToken, IdempotencyRecord
from tests.helpers.api_client import ApiClient

pytestmark = pytest.mark.django_db


def test_the_same_request_under_the_same_key_is_answered_again_and_not_done_again(asking: ApiClient) -> None:
    first = asking.post("/evaluations", {"name": "New"}, Idempotency_Key="one")
    again = asking.post("/evaluations", {"name": "New"}, Idempotency_Key="one")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert again["Idempotency-Replayed"] == "true"
    assert Evaluation.objects.filter(name="New").count() == 1


def test_another_request_under_the_same_key_is_refused(asking: ApiClient) -> None:
    asking.post("/evaluations", {"name": "New"}, Idempotency_Key="one")
    other = asking.post("/evaluations", {"name": "Newer"}, Idempotency_Key="one")
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")


def test_what_was_refused_may_be_sent_again_under_its_key(asking: ApiClient) -> None:
    assert asking.post("/evaluations", {"name": "S", "slug": "study"}, Idempotency_Key="one").status_code == 422
    Evaluation.objects.update(slug="moved")
    assert asking.post("/evaluations", {"name": "S", "slug": "study"}, Idempotency_Key="one").status_code == 201


def test_an_answer_of_any_length_is_kept(asking: ApiClient) -> None:
    long = "word " * 90_000
    pair = {
        "query": "Which?",
        "first_candidate": "alpha",
        "first_response": long,
        "second_candidate": "beta",
        "second_response": long + "more",
        "context": long,
    }
    first, again = (asking.post("/evaluations/study/comparisons", pair, Idempotency_Key="one") for _ in range(2))
    assert len(first.content) > 1024 * 1024
    assert (first.status_code, again["Idempotency-Replayed"], again.json()) == (201, "true", first.json())
    assert Comparison.objects.count() == 1


def test_of_two_at_once_the_second_waits(asking: ApiClient) -> None:
    token = ApiToken.objects.get()
    place = begin_request(token, "one", "sum")
    with pytest.raises(Problem, match="is still in progress"):
        begin_request(token, "one", "sum")
    assert isinstance(place, IdempotencyRecord)
    forget_request(place)
    assert begin_request(token, "one", "sum").status is None


def test_an_answer_is_kept_for_a_day(asking: ApiClient) -> None:
    token = ApiToken.objects.get()
    begin_request(token, "one", "sum")
    IdempotencyRecord.objects.update(created_at=timezone.now() - timedelta(hours=25), status=200)
    assert begin_request(token, "one", "other sum").status is None
    IdempotencyRecord.objects.update(created_at=timezone.now() - timedelta(hours=25))
    drop_old_answers()
    assert not IdempotencyRecord.objects.exists()


def test_a_key_that_no_header_can_hold_is_refused(asking: ApiClient) -> None:
    answer = asking.post("/evaluations", {"name": "New"}, Idempotency_Key="x" * 201)
    assert answer.json()["errors"][0]["field"] == "header.Idempotency-Key"


def test_who_has_left_is_not_told_the_answer_again(asking: ApiClient, evaluation: Evaluation) -> None:
    pair = {
        "query": "Which?",
        "first_candidate": "alpha",
        "first_response": "this",
        "second_candidate": "beta",
        "second_response": "that",
    }
    assert asking.post("/evaluations/study/comparisons", pair, Idempotency_Key="one").status_code == 201
    evaluation.memberships.all().delete()
    again = asking.post("/evaluations/study/comparisons", pair, Idempotency_Key="one")
    assert (again.status_code, again.json()["code"]) == (404, "not_found")
