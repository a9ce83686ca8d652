"""The review page through a browser's requests: the way in, and the whole way without JavaScript."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain.choices import Stage
from evaluations.domain.reviews import ReviewState
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import change_evaluation, move_to_archive
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.verdicts import Review
from tests.factories.evaluations import make_comparison, make_evaluation, make_member, make_user
from tests.factories.review_page import (
    build_choices,
    get_review_page,
    make_judged_comparison,
    post_first_choices,
    review_url,
)
from tests.factories.verdicts import SIX_ASPECT_KEYS
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("judge_shown"), pytest.mark.any_database]


def test_review_leads_to_the_next_comparison(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    response = browser.get(reverse("review", args=[evaluation.slug]))
    assert response["Location"] == review_url("review_comparison", comparison)


def test_an_evaluation_without_comparisons_says_how_to_get_some(evaluation: Evaluation, client: Client) -> None:
    client.force_login(make_member(evaluation, Role.OWNER))
    html = html_of(client.get(reverse("review", args=[evaluation.slug])))
    assert "No comparisons yet" in html
    assert reverse("import_new", args=[evaluation.slug]) in html


def test_an_evaluation_without_a_rubric_says_so(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    change_evaluation(evaluation, {"review_rubric": None}, user=None)
    assert browser.get(review_url("review_comparison", comparison)).status_code == 302
    assert "no rubric for reviews yet" in html_of(browser.get(reverse("review", args=[evaluation.slug])))


def test_when_all_is_reviewed_the_page_says_so_and_leads_to_the_report(browser: Client, evaluation: Evaluation) -> None:
    post_first_choices(browser, make_comparison(evaluation))
    post_first_choices(browser, make_comparison(evaluation))
    html = html_of(browser.get(reverse("review", args=[evaluation.slug])))
    assert "You reviewed all 2 comparisons" in html
    assert reverse("report", args=[evaluation.slug]) in html


def test_an_archived_evaluation_takes_no_reviews(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    move_to_archive(evaluation, user=None)
    assert browser.get(review_url("review_comparison", comparison)).status_code == 302
    assert post_first_choices(browser, comparison).status_code == 422
    assert not Review.objects.exists()


@pytest.mark.parametrize("name", ["review_comparison", "review_save", "review_confirm", "review_skip", "review_undo"])
def test_a_stranger_cannot_tell_that_the_page_exists(name: str, evaluation: Evaluation, client: Client) -> None:
    comparison = make_comparison(evaluation)
    client.force_login(make_user())
    method = client.get if name == "review_comparison" else client.post
    assert method(review_url(name, comparison)).status_code == 404


def test_a_viewer_may_not_review(evaluation: Evaluation, client: Client) -> None:
    client.force_login(make_member(evaluation, Role.VIEWER))
    assert post_first_choices(client, make_comparison(evaluation)).status_code == 403


def test_a_comparison_of_another_evaluation_is_not_here(browser: Client, evaluation: Evaluation) -> None:
    other = make_comparison(make_evaluation())
    assert browser.get(reverse("review_comparison", args=[evaluation.slug, other.pk])).status_code == 404


def test_who_is_done_before_the_others_is_told_so(browser: Client, evaluation: Evaluation, client: Client) -> None:
    first, second = make_comparison(evaluation), make_comparison(evaluation)
    client.force_login(make_member(evaluation, Role.REVIEWER))
    post_first_choices(client, first)
    post_first_choices(browser, second)
    html = html_of(browser.get(reverse("review", args=[evaluation.slug])))
    assert "You reviewed 1 of 2" in html


def test_the_whole_way_works_with_plain_forms(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_judged_comparison(evaluation)
    after_save = post_first_choices(browser, comparison, follow=True)
    assert after_save.redirect_chain == [(review_url("review_comparison", comparison), 302)]
    html = html_of(after_save)
    assert "longest wins" in html
    assert "rule-based" in html
    assert "one order only" not in html
    assert "flips with order (counted as tie)" in html
    assert "Judge thinks so" in html
    final = {**build_choices(depth="tie"), "version": "1", "note_depth": "Really equal.", "note": "Fine."}
    done = browser.post(review_url("review_confirm", comparison), final, follow=True)
    assert 'data-stage="done"' in html_of(done)
    review = Review.objects.get()
    assert (review.state, review.note, review.active_ms) == (ReviewState.FINAL, "Fine.", 2400)
    depth = review.verdicts.get(stage=Stage.FINAL, aspect__key="depth")
    assert (depth.choice, depth.note) == ("tie", "Really equal.")


def test_where_there_is_no_judge_the_save_leads_to_the_next(browser: Client, evaluation: Evaluation) -> None:
    first, second = make_comparison(evaluation), make_comparison(evaluation)
    response = post_first_choices(browser, first)
    assert response["Location"] == review_url("review_comparison", second)


def test_confirming_can_lead_on_at_once(browser: Client, evaluation: Evaluation) -> None:
    first, second = make_judged_comparison(evaluation), make_judged_comparison(evaluation)
    post_first_choices(browser, first)
    response = browser.post(review_url("review_confirm", first), {**build_choices(), "version": "1", "then": "next"})
    assert response["Location"] == review_url("review_comparison", second)


def test_skipping_stores_the_reason_and_leads_on(browser: Client, evaluation: Evaluation) -> None:
    first, second = make_judged_comparison(evaluation), make_judged_comparison(evaluation)
    response = browser.post(review_url("review_skip", first), {"version": "0", "reason": "Too long"})
    assert response["Location"] == review_url("review_comparison", second)
    html = get_review_page(browser, second)
    assert "0 of 2, 1 skipped" in html
    assert "You skipped this one: Too long" in get_review_page(browser, first)


def test_undo_leads_back_with_what_was_chosen(browser: Client, evaluation: Evaluation) -> None:
    comparison, _ = make_comparison(evaluation), make_comparison(evaluation)
    browser.post(review_url("review_save", comparison), build_choices("A", depth="tie"))
    response = browser.post(review_url("review_undo", comparison), {"version": "1"}, follow=True)
    html = html_of(response)
    assert response.redirect_chain == [(review_url("review_comparison", comparison), 302)]
    assert re.search(r'name="choice_depth" value="tie" required checked', html)
    assert re.search(r'name="choice_clarity" value="A" required checked', html)
    assert Review.objects.get().state == ReviewState.DRAFT


def test_undo_after_the_reveal_touches_the_final_choices_only(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_judged_comparison(evaluation)
    post_first_choices(browser, comparison)
    browser.post(review_url("review_confirm", comparison), {**build_choices("tie"), "version": "1"})
    html = html_of(browser.post(review_url("review_undo", comparison), {"version": "2"}, follow=True))
    assert 'data-stage="confirm"' in html
    assert re.search(r'name="choice_depth" value="tie" required checked', html)
    assert Review.objects.get().verdicts.filter(stage=Stage.FIRST).count() == len(SIX_ASPECT_KEYS)


def test_what_was_undone_and_saved_again_does_not_come_up_elsewhere(browser: Client, evaluation: Evaluation) -> None:
    comparison, other = make_comparison(evaluation), make_comparison(evaluation)
    post_first_choices(browser, comparison)
    browser.post(review_url("review_undo", comparison), {"version": "1"})
    browser.post(review_url("review_save", comparison), {**build_choices("B"), "version": "2"})
    assert " checked" not in get_review_page(browser, other)


def test_the_way_back_leads_to_the_earlier_review(browser: Client, evaluation: Evaluation) -> None:
    first, second = make_comparison(evaluation), make_comparison(evaluation)
    post_first_choices(browser, first)
    assert f'href="{review_url("review_comparison", first)}"' in get_review_page(browser, second)


def queries_for(browser: Client, comparison: Comparison) -> int:
    with CaptureQueriesContext(connection) as queries:
        get_review_page(browser, comparison)
    return len(queries)


def test_the_number_of_queries_does_not_grow(browser: Client, evaluation: Evaluation) -> None:
    comparison, first = make_judged_comparison(evaluation), make_judged_comparison(evaluation)
    post_first_choices(browser, first)
    get_review_page(browser, first)  # the frozen rubric is read once by a process
    few = queries_for(browser, comparison)
    for _ in range(8):
        post_first_choices(browser, make_judged_comparison(evaluation))
    assert queries_for(browser, comparison) == few
    assert few <= 15
