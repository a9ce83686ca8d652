"""Drafts through a browser's requests."""

import re
from typing import Any

import pytest
from django.test import Client

from evaluations.domain.reviews import ReviewState
from evaluations.evaluation_settings.services import move_to_archive
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.models.verdicts import Review
from evaluations.reviews.drafts import save_draft
from evaluations.reviews.services import get_or_create_review
from tests.factories.evaluations import make_comparison
from tests.factories.review_page import HTMX, get_review_page, post_first_choices, read_hidden_fields, review_url
from tests.factories.verdicts import SIX_ASPECT_KEYS

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

STEP = {"version": "0", "active_ms": "2500"}


@pytest.fixture
def comparison(evaluation: Evaluation) -> Comparison:
    return make_comparison(evaluation)


def draft(browser: Client, comparison: Comparison, tab: str = "one", number: int = 0, **fields: str) -> Any:
    return browser.post(review_url("review_draft", comparison), {**STEP, "number": number, "tab": tab, **fields})


def test_a_draft_stands_in_its_fields_when_the_page_is_opened_again(browser: Client, comparison: Comparison) -> None:
    answer = draft(browser, comparison, choice_clarity="B", note="B is shorter")
    assert answer.status_code == 200
    assert answer.json()["number"] == 1
    html = get_review_page(browser, comparison)
    assert html.count(" checked") == 1
    assert 'name="choice_clarity" value="B" required checked' in html
    assert "B is shorter</textarea>" in html
    assert re.search(rf"Draft saved <time [^>]+>{answer.json()['at']}</time>", html)
    assert 'name="active_ms" value="2500"' in html


def test_a_draft_saves_nothing(browser: Client, comparison: Comparison) -> None:
    draft(browser, comparison, choice_clarity="B")
    review = Review.objects.get()
    assert (review.state, review.version, review.verdicts.count()) == (ReviewState.DRAFT, 0, 0)


def test_a_draft_of_another_page_comes_back_with_what_stands_there(browser: Client, comparison: Comparison) -> None:
    draft(browser, comparison, choice_clarity="B")
    answer = draft(browser, comparison, tab="two", choice_clarity="A")
    assert answer.status_code == 409
    assert answer.json()["fields"] == {"choice_clarity": "B"}
    assert answer.json()["number"] == 1
    assert 'value="B" required checked' in get_review_page(browser, comparison)


def test_a_draft_keeps_fields_of_the_panel_and_no_others(browser: Client, comparison: Comparison) -> None:
    draft(browser, comparison, choice_clarity="A", choice_depth="", state="final", probability="1")
    assert Review.objects.get().draft["fields"] == {"choice_clarity": "A"}


def test_a_draft_that_cannot_be_read_is_refused_with_a_reason(browser: Client, comparison: Comparison) -> None:
    answer = draft(browser, comparison, choice_clarity="maybe")
    assert answer.status_code == 422
    assert answer.json()["message"].startswith("Nothing was stored: Clarity: Select a valid choice.")
    assert not Review.objects.exists()


def test_a_draft_after_the_save_is_refused(browser: Client, comparison: Comparison) -> None:
    browser.post(review_url("review_save", comparison), {**STEP, **{f"choice_{key}": "A" for key in SIX_ASPECT_KEYS}})
    answer = draft(browser, comparison, choice_clarity="B")
    assert answer.status_code == 422
    assert "changed elsewhere" in answer.json()["message"]


def test_the_panel_as_it_stands_now_comes_alone(browser: Client, comparison: Comparison) -> None:
    html = browser.get(review_url("review_draft", comparison)).content.decode()
    assert html.lstrip().startswith('<section id="panel"')
    assert 'id="texts"' not in html


def test_an_archived_evaluation_keeps_no_drafts(browser: Client, comparison: Comparison) -> None:
    move_to_archive(comparison.evaluation, user=None)
    answer = browser.post(review_url("review_draft", comparison), {**STEP, "choice_clarity": "B"}, headers=HTMX)
    assert answer.status_code == 422
    assert "This evaluation is archived" in answer.json()["message"]
    assert not Review.objects.exists()


def test_time_spent_on_a_draft_counts_with_the_save_that_follows(
    browser: Client, reviewer: User, comparison: Comparison
) -> None:
    review = get_or_create_review(reviewer, comparison)
    save_draft(review, version=0, fields={"choice_depth": "B"}, number=0, tab="this", active_ms=4000)
    html = get_review_page(browser, comparison)
    assert 'name="choice_depth" value="B" required checked' in html
    assert read_hidden_fields(html, "choices")["active_ms"] == "4000"


def test_time_spent_here_is_not_sent_with_an_undo_of_another_comparison(
    browser: Client, comparison: Comparison
) -> None:
    other = make_comparison(comparison.evaluation)
    post_first_choices(browser, comparison)
    assert "active_ms" not in read_hidden_fields(get_review_page(browser, other), "undo")
    assert "active_ms" in read_hidden_fields(get_review_page(browser, comparison), "undo")
