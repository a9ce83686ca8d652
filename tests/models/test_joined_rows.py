"""Rows of written-out statements are the same as those that Django's query builder reads."""

import pytest
from django.db.models import Model
from django.test import Client
from django.utils import timezone

from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.memberships import find_membership
from evaluations.models.sign_ins import Session, find_session
from evaluations.models.users import Membership, User
from evaluations.models.verdicts import Review
from evaluations.reviews.sql import find_comparison, find_comparison_with_texts, find_earlier_reviews
from tests.factories.evaluations import make_comparison
from tests.factories.review_page import post_first_choices

pytestmark = pytest.mark.django_db


def read_columns(row: Model | None) -> dict[str, object]:
    assert row is not None
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def assert_same(row: Model | None, expected: Model | None) -> None:
    assert type(row) is type(expected)
    assert read_columns(row) == read_columns(expected)


@pytest.fixture
def reviewed(evaluation: Evaluation, reviewer: User, client: Client) -> Comparison:
    client.force_login(reviewer)
    comparison = make_comparison(evaluation)
    assert post_first_choices(client, comparison).status_code < 400
    return comparison


def test_a_membership_comes_with_its_evaluation_rubric_and_rater(reviewed: Comparison, reviewer: User) -> None:
    membership, rater = find_membership(reviewer, "study")
    expected = Membership.objects.select_related("evaluation__review_rubric__rubric").get(user=reviewer)
    assert_same(membership, expected)
    assert membership is not None
    assert_same(membership.evaluation, expected.evaluation)
    version, expected_version = membership.evaluation.review_rubric, expected.evaluation.review_rubric
    assert_same(version, expected_version)
    assert version is not None
    assert expected_version is not None
    assert_same(version.rubric, expected_version.rubric)
    assert_same(rater, Rater.objects.get(user=reviewer))


def test_a_membership_without_a_rubric_or_a_rater_has_none(evaluation: Evaluation, owner: User) -> None:
    Evaluation.objects.update(review_rubric=None)
    membership, rater = find_membership(owner, evaluation.slug)
    assert membership is not None
    assert (membership.evaluation.review_rubric, rater) == (None, None)


def test_a_comparison_comes_with_its_texts_and_the_review_of_this_rater(
    reviewed: Comparison, evaluation: Evaluation, reviewer: User
) -> None:
    version, rater = evaluation.review_rubric, Rater.objects.get(user=reviewer)
    assert version is not None
    comparison, review = find_comparison_with_texts(evaluation, reviewed.pk, version, rater)
    expected = Comparison.objects.select_related("query", "response_a", "response_b").get(pk=reviewed.pk)
    assert comparison is not None
    for row in (comparison, find_comparison(evaluation, reviewed.pk)):
        assert_same(row, expected)
    assert_same(comparison.query, expected.query)
    assert_same(comparison.response_a, expected.response_a)
    assert_same(comparison.response_b, expected.response_b)
    assert_same(review, Review.objects.get(comparison=reviewed))
    assert find_comparison_with_texts(evaluation, reviewed.pk, version, None)[1] is None


def test_the_earlier_review_is_the_one_finished_last(
    reviewed: Comparison, evaluation: Evaluation, reviewer: User
) -> None:
    rater, review = Rater.objects.get(user=reviewer), Review.objects.get(comparison=reviewed)
    finished = Review.objects.filter(pk=review.pk)
    finished.update(finished_at=timezone.now())
    review.refresh_from_db()
    assert_same(find_earlier_reviews(rater, evaluation.review_rubric_id, None)[0], review)
    assert find_earlier_reviews(rater, evaluation.review_rubric_id, review.finished_at) == []


def test_a_session_comes_with_its_user(client: Client, owner: User) -> None:
    client.force_login(owner)
    expected = Session.objects.select_related("user").get()
    session = find_session(expected.pk, timezone.now())
    assert_same(session, expected)
    assert session is not None
    assert_same(session.user, owner)
    assert find_session(expected.pk, expected.expire_date) is None
