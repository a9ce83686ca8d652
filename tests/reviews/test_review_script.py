"""Steps of a review that a script asks for: htmx, and the page that has the next comparison already."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain.reviews import Reveal
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.models.evaluations import Evaluation
from tests.factories.evaluations import make_comparison
from tests.factories.review_page import (
    HTMX,
    build_choices,
    get_review_page,
    make_judged_comparison,
    post_first_choices,
    review_url,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("judge_shown"), pytest.mark.any_database]


def test_saving_swaps_the_panel_alone(browser: Client, evaluation: Evaluation) -> None:
    response = post_first_choices(browser, make_judged_comparison(evaluation), headers=HTMX)
    html = response.content.decode()
    assert html.lstrip().startswith('<section id="panel"')
    assert 'id="side-a"' not in html


def test_the_next_comparison_takes_the_place_of_this_one_under_its_own_address(
    browser: Client, evaluation: Evaluation
) -> None:
    first, second = make_comparison(evaluation), make_comparison(evaluation)
    response = post_first_choices(browser, first, headers=HTMX)
    assert response["HX-Push-Url"] == review_url("review_comparison", second)
    assert response["HX-Retarget"] == "#comparison"
    assert "<html" not in response.content.decode()


def test_after_the_last_one_the_browser_goes_to_the_closing_page(browser: Client, evaluation: Evaluation) -> None:
    response = post_first_choices(browser, make_comparison(evaluation), headers=HTMX)
    assert response["HX-Redirect"] == reverse("review", args=[evaluation.slug])


def test_a_refusal_goes_into_the_panel(browser: Client, evaluation: Evaluation) -> None:
    response = browser.post(
        review_url("review_save", make_comparison(evaluation)), build_choices("A", depth=""), headers=HTMX
    )
    assert (response.status_code, response["HX-Retarget"]) == (422, "#panel")


def test_going_back_in_history_brings_the_whole_page(browser: Client, evaluation: Evaluation) -> None:
    headers = {**HTMX, "HX-History-Restore-Request": "true"}
    response = browser.get(review_url("review_comparison", make_comparison(evaluation)), headers=headers)
    assert "<html" in response.content.decode()


def after_save(html: str) -> str:
    found = re.search(r'<section id="panel"[^>]* data-after-save="(\w+)"', html)
    assert found
    return found.group(1)


def test_the_panel_says_whether_saving_reveals_a_judge_or_leads_on(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_judged_comparison(evaluation)
    assert after_save(get_review_page(browser, comparison)) == "reveal"
    assert after_save(post_first_choices(browser, comparison, headers=HTMX).content.decode()) == "next"
    for reveal in (Reveal.NEVER, Reveal.SHOWN):
        change_evaluation(evaluation, {"reveal": reveal}, user=None)
        assert after_save(get_review_page(browser, make_judged_comparison(evaluation))) == "next"


def test_every_step_names_its_page(browser: Client, evaluation: Evaluation) -> None:
    html = get_review_page(browser, make_judged_comparison(evaluation))
    assert html.count('name="tab"') == html.count('name="version"') == 2


def test_the_panel_says_state_and_version_in_its_headers(browser: Client, evaluation: Evaluation) -> None:
    response = post_first_choices(browser, make_judged_comparison(evaluation), headers=HTMX)
    assert (response["X-Review-State"], response["X-Review-Version"]) == ("first", "1")


def test_a_script_that_has_the_next_one_already_is_told_that_the_review_is_finished(
    browser: Client, evaluation: Evaluation
) -> None:
    response = browser.post(
        review_url("review_save", make_comparison(evaluation)), {**build_choices(), "then": "ahead"}
    )
    assert (response.status_code, response.content) == (204, b"")
    assert (response["X-Review-State"], response["X-Review-Version"]) == ("final", "1")
    skipped = browser.post(review_url("review_skip", make_comparison(evaluation)), {"version": "0", "then": "ahead"})
    assert (skipped.status_code, skipped["X-Review-State"]) == (204, "skipped")


def test_it_gets_the_panel_where_the_judge_is_revealed_and_goes_on_from_there(
    browser: Client, evaluation: Evaluation
) -> None:
    comparison = make_judged_comparison(evaluation)
    revealed = browser.post(review_url("review_save", comparison), {**build_choices(), "then": "ahead"})
    assert revealed.status_code == 200
    assert revealed.content.decode().lstrip().startswith('<section id="panel"')
    again = browser.post(review_url("review_save", comparison), {**build_choices(), "then": "ahead"})
    assert again.status_code == 200  # the answer was lost: the same step is the same
    done = browser.post(review_url("review_confirm", comparison), {**build_choices(), "version": "1", "then": "ahead"})
    assert done.status_code == 204


def test_it_gets_the_panel_and_one_sentence_where_the_step_is_refused(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    response = browser.post(review_url("review_save", comparison), {**build_choices(depth=""), "then": "ahead"})
    assert (response.status_code, response["X-Review-Version"]) == (422, "0")
    assert response.content.decode().lstrip().startswith('<section id="panel"')
