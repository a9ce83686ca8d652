"""Steps of a review that are refused: what is incomplete, what no page sends, and what another tab stored meanwhile."""

import re

import pytest
from django.test import Client

from evaluations.domain import ReviewState
from evaluations.models import Evaluation, Event, Review
from tests.making import make_comparison
from tests.review_page import address, choices, hidden, judged, save
from tests.saying import SIX

pytestmark = pytest.mark.django_db


def versions(html: str) -> dict[str, tuple[str, str]]:
    """Aspect → what is stored and what was entered, as the page says it."""
    table = html[html.index('<table class="table versions"') : html.index("</table>")]
    found = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td><td>(.*?)</td>', table)
    return {name: (re.sub("<.*?>", "", stored), re.sub("<.*?>", "", entered)) for name, stored, entered in found}


def test_a_missing_choice_is_named_and_the_others_stay_in_their_fields(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    response = browser.post(address("review_save", comparison), {**choices("B", depth=""), "note": "So far"})
    html = response.content.decode()
    assert response.status_code == 422
    assert "Choose for Depth too" in html
    assert html.count(" checked") == 5
    assert "So far" in html
    assert not Review.objects.exists()


@pytest.mark.parametrize("field", [{"choice_depth": "C"}, {"version": "-1"}, {"version": ""}, {"note": "a\x00b"}])
def test_what_no_page_of_ours_sends_is_refused_in_words(
    browser: Client, evaluation: Evaluation, field: dict[str, str]
) -> None:
    response = browser.post(address("review_save", make_comparison(evaluation)), {**choices(), **field})
    assert response.status_code == 422
    assert "Nothing was stored" in response.content.decode()
    assert not Review.objects.exists()


def test_a_second_tab_is_told_what_is_stored_and_what_is_not(browser: Client, evaluation: Evaluation) -> None:
    comparison = judged(evaluation)
    save(browser, comparison)
    response = browser.post(address("review_save", comparison), choices("B"))
    html = response.content.decode()
    assert response.status_code == 422
    assert "those are shown" in html.lower()
    assert versions(html)["Helpfulness"] == ("A", "B ≠not stored")
    assert len(versions(html)) == len(SIX)
    assert 'data-stage="confirm"' in html
    assert Review.objects.get().version == 1


def test_a_double_click_makes_one_review(browser: Client, evaluation: Evaluation) -> None:
    comparison = judged(evaluation)
    assert save(browser, comparison).status_code == 302
    assert save(browser, comparison).status_code == 302
    assert Event.objects.filter(verb="saved first choices").count() == 1


def test_what_was_entered_in_a_second_tab_can_be_stored_as_final_choices(
    browser: Client, evaluation: Evaluation
) -> None:
    comparison = judged(evaluation)
    save(browser, comparison)
    html = browser.post(address("review_save", comparison), {**choices("B"), "note": "Mine"}).content.decode()
    assert "Store what you entered as your final choices" in html
    browser.post(address("review_confirm", comparison), hidden(html, "apply"))
    review = Review.objects.get()
    assert (review.state, review.note) == (ReviewState.FINAL, "Mine")
    assert len(set(review.verdicts.values_list("stage", "choice"))) == 2  # the first choices are those stored first


def test_what_was_entered_after_the_review_was_finished_comes_back_to_the_fields(
    browser: Client, evaluation: Evaluation
) -> None:
    comparison = make_comparison(evaluation)
    save(browser, comparison)
    html = browser.post(address("review_save", comparison), choices("tie")).content.decode()
    assert versions(html)["Depth"] == ("A", "Tie ≠not stored")
    assert "Take the stored ones back and enter yours" in html
    reopened = browser.post(address("review_undo", comparison), hidden(html, "apply"), follow=True).content.decode()
    assert 'data-stage="choose"' in reopened
    assert reopened.count('value="tie" required checked') == len(SIX)


def test_after_a_skip_in_another_tab_what_was_entered_stays_in_its_fields(
    browser: Client, evaluation: Evaluation
) -> None:
    comparison = make_comparison(evaluation)
    browser.post(address("review_skip", comparison), {"version": "0"})
    html = browser.post(address("review_save", comparison), choices("B")).content.decode()
    assert "changed elsewhere" in html
    assert html.count('value="B" required checked') == len(SIX)
    assert hidden(html, "choices")["version"] == "1"
