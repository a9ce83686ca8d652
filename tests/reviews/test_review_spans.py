"""Marking passages through a browser's requests."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain.choices import ShownOrder
from evaluations.domain.reviews import ReviewState
from evaluations.domain.roles import Role
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.models.verdicts import Review, Span
from evaluations.reviews.selectors import get_order_shown
from evaluations.reviews.services import get_or_create_review
from tests.factories.evaluations import make_comparison, make_member
from tests.factories.review_page import get_review_page, review_url

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

HTMX = {"HX-Request": "true"}


def of_span(name: str, span: Span) -> str:
    return reverse(name, args=[span.review.comparison.evaluation.slug, span.pk])


def mark(browser: Client, comparison: Comparison, quote: str, side: str = "a", **how: Any) -> Any:
    fields = {"side": side, "quote": quote, "comment": "Because of this.", "aspect": "depth"}
    return browser.post(review_url("review_span", comparison), fields, **how)


def test_marking_works_with_a_plain_form_and_begins_a_draft(
    browser: Client, reviewer: User, evaluation: Evaluation
) -> None:
    comparison = make_comparison(evaluation, response_a="same words", response_b="same words")
    answer = mark(browser, comparison, "same", follow=True)
    assert answer.redirect_chain == [(f"{review_url('review_comparison', comparison)}#spans-a", 302)]
    html = answer.content.decode()
    assert "Because of this." in html
    assert 'data-stage="choose"' in html
    review = Review.objects.get()
    assert (review.state, review.version) == (ReviewState.DRAFT, 0)


def test_the_side_is_the_one_that_the_person_sees(browser: Client, reviewer: User, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation, response_a="stored first", response_b="stored second")
    swapped = get_order_shown(reviewer, comparison) == ShownOrder.SWAPPED
    mark(browser, comparison, "stored", side="b")
    assert Span.objects.get().response == (comparison.response_a if swapped else comparison.response_b)


def test_a_script_gets_the_list_of_that_response_alone(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation, response_a="same words", response_b="same words")
    html = mark(browser, comparison, "words", side="b", headers=HTMX).content.decode()
    assert 'id="spans-b"' in html
    assert "Because of this." in html
    assert "side-a" not in html
    assert "<html" not in html


def test_a_refusal_keeps_what_was_written(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    for headers in ({}, HTMX):
        answer = mark(browser, comparison, "words that nobody wrote", headers=headers)
        html = answer.content.decode()
        assert answer.status_code == 422
        assert "this text is not in the response" in html
        assert "words that nobody wrote" in html
        assert "Because of this." in html


def test_a_form_that_no_page_of_ours_sends_is_refused(browser: Client, evaluation: Evaluation) -> None:
    assert mark(browser, make_comparison(evaluation), "Paris", side="c").status_code == 422
    assert not Span.objects.exists()


def test_ones_own_can_be_changed_and_removed(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation, response_a="same words", response_b="same words")
    mark(browser, comparison, "same")
    span = Span.objects.get()
    html = browser.post(of_span("review_span_change", span), {"comment": "On second thought."}, follow=True)
    assert "On second thought." in html.content.decode()
    answer = browser.post(of_span("review_span_remove", span), headers=HTMX)
    assert "On second thought." not in answer.content.decode()
    assert not Span.objects.exists()


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.OWNER])
def test_those_of_others_can_be_neither_seen_nor_touched(browser: Client, evaluation: Evaluation, role: Role) -> None:
    comparison = make_comparison(evaluation, response_a="same words", response_b="same words")
    mark(browser, comparison, "same")
    span = Span.objects.get()
    other = Client()
    other.force_login(make_member(evaluation, role))
    assert "Because of this." not in get_review_page(other, comparison)
    for name in ("review_span_change", "review_span_remove"):
        assert other.post(of_span(name, span), {"comment": "Mine."}).status_code == 404
    span.refresh_from_db()
    assert span.comment == "Because of this."


def test_they_stay_with_the_review_when_it_is_saved(browser: Client, reviewer: User, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation, response_a="same words", response_b="same words")
    mark(browser, comparison, "same")
    review = get_or_create_review(reviewer, comparison)
    fields = {f"choice_{aspect.key}": "A" for aspect in review.rubric_version.spec().aspects}
    browser.post(review_url("review_save", comparison), {"version": "0", **fields})
    assert Span.objects.get().review == review
    assert "Because of this." in get_review_page(browser, comparison)
