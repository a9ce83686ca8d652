"""The comparison after this one, through a browser's requests; and whose requests they are."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.evaluation_settings.services import move_to_archive
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.models.verdicts import Review
from evaluations.reviews.queues.calibration import create_calibration
from tests.factories.evaluations import make_comparison, make_user
from tests.factories.review_page import review_url
from tests.factories.verdicts import SIX_ASPECT_KEYS, make_imported_votes

pytestmark = pytest.mark.django_db

SAVED = {"version": "0", "active_ms": "0", "then": "ahead", **{f"choice_{key}": "A" for key in SIX_ASPECT_KEYS}}


@pytest.fixture
def browser(reviewer: User) -> Client:
    client = Client(headers={"HX-Request": "true"})
    client.force_login(reviewer)
    return client


def ahead(browser: Client, evaluation: Evaluation, *besides: Comparison) -> Any:
    query = {"besides": [str(comparison.pk) for comparison in besides]}
    return browser.get(reverse("review_ahead", args=[evaluation.slug]), query_params=query)


def test_the_next_comparison_comes_with_its_address(browser: Client, evaluation: Evaluation) -> None:
    one, two = make_comparison(evaluation), make_comparison(evaluation)
    answer = ahead(browser, evaluation, one)
    assert answer["HX-Push-Url"] == review_url("review_comparison", two)
    html = answer.content.decode()
    assert f'data-comparison="{two.pk}"' in html
    assert "<html" not in html
    assert "no-store" in answer["Cache-Control"]


def test_where_nothing_else_is_left_nothing_comes(browser: Client, evaluation: Evaluation) -> None:
    assert ahead(browser, evaluation, make_comparison(evaluation)).status_code == 204
    move_to_archive(evaluation, user=None)
    assert ahead(browser, evaluation).status_code == 204


def test_a_number_that_is_none_is_passed_over(browser: Client, evaluation: Evaluation) -> None:
    make_comparison(evaluation)
    answer = browser.get(
        reverse("review_ahead", args=[evaluation.slug]), query_params={"besides": ["x", "-1", "9" * 40, "²"]}
    )
    assert answer.status_code == 200


def test_a_finished_step_of_a_page_that_has_the_next_one_is_answered_in_a_word(
    browser: Client, evaluation: Evaluation
) -> None:
    comparison = make_comparison(evaluation)
    make_comparison(evaluation)
    answer = browser.post(review_url("review_save", comparison), SAVED)
    assert (answer.status_code, answer.content) == (204, b"")
    assert Review.objects.get().comparison == comparison


def test_who_has_just_finished_a_calibration_is_led_to_its_result(
    browser: Client, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = make_comparison(evaluation)
    finished = SimpleNamespace(pk=7)
    monkeypatch.setattr("evaluations.reviews.page.find_unseen_calibration", lambda calibrations, rater: finished)
    answer = browser.post(review_url("review_save", comparison), SAVED)
    assert answer["HX-Redirect"] == reverse("calibration", args=[evaluation.slug, 7])


def test_after_the_last_comparison_of_a_calibration_nothing_is_fetched_ahead_of_its_result(
    browser: Client, evaluation: Evaluation
) -> None:
    one, two, _ = make_comparison(evaluation), make_comparison(evaluation), make_comparison(evaluation)
    for comparison in (one, two):
        make_imported_votes(comparison, "gold", dict.fromkeys(SIX_ASPECT_KEYS, "A"), kind="gold")
    calibration = create_calibration(evaluation, name="Before you begin", comparisons=[one.pk, two.pk], user=None)
    assert ahead(browser, evaluation, one)["HX-Push-Url"] == review_url("review_comparison", two)
    assert ahead(browser, evaluation, one, two).status_code == 204  # the first is on its way to be saved
    browser.post(review_url("review_save", one), SAVED)
    assert ahead(browser, evaluation, two).status_code == 204
    answer = browser.post(review_url("review_save", two), {**SAVED, "then": "next"})
    assert answer["HX-Redirect"] == reverse("calibration", args=[evaluation.slug, calibration.pk])


def test_a_page_of_long_texts_is_sent_compressed(browser: Client, evaluation: Evaluation) -> None:
    make_comparison(evaluation, response_a="Paris is the capital of France. " * 3000)
    answer = browser.get(reverse("review_ahead", args=[evaluation.slug]), headers={"Accept-Encoding": "gzip"})
    assert answer["Content-Encoding"] == "gzip"
    assert len(answer.content) < 20_000


@pytest.mark.parametrize("step", ["review_save", "review_draft"])
def test_what_was_entered_on_another_persons_page_is_not_stored_as_mine(
    step: str, browser: Client, evaluation: Evaluation
) -> None:
    comparison = make_comparison(evaluation)
    theirs = {"X-Person": str(make_user().pk)}
    answer = browser.post(review_url(step, comparison), {**SAVED, "number": "0", "tab": "one"}, headers=theirs)
    assert answer.status_code == 409
    assert answer["X-Person"] == "another"
    assert not Review.objects.exists()


def test_what_was_entered_on_my_own_page_is_stored(browser: Client, evaluation: Evaluation, reviewer: User) -> None:
    comparison = make_comparison(evaluation)
    answer = browser.post(review_url("review_save", comparison), SAVED, headers={"X-Person": str(reviewer.pk)})
    assert answer.status_code == 204
    assert Review.objects.exists()
