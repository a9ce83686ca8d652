"""What is in the HTML of the review page, and what is not."""

import re

import pytest
from django.test import Client

from evaluations.domain.choices import ShownOrder
from evaluations.domain.roles import Role
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.users import User
from evaluations.models.verdicts import Review
from evaluations.reviews.selectors import get_order_shown
from tests.factories.evaluations import make_comparison, make_member
from tests.factories.review_page import HTMX, get_review_page, make_judged_comparison, post_first_choices
from tests.factories.verdicts import make_imported_votes

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("judge_shown"), pytest.mark.any_database]


def test_names_of_candidates_are_nowhere_in_the_html(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_judged_comparison(evaluation)
    assert "-secret" not in get_review_page(browser, comparison)
    assert "-secret" not in post_first_choices(browser, comparison, headers=HTMX).content.decode()
    assert "-secret" not in get_review_page(browser, comparison)


def test_votes_of_other_people_are_nowhere_in_the_html(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_judged_comparison(evaluation)
    make_imported_votes(comparison, "annotator1", {"depth": "B"})
    post_first_choices(browser, comparison)
    assert "annotator1" not in get_review_page(browser, comparison)


def test_nothing_tells_which_response_is_stored_first(evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation, response_a="same words", response_b="same words")
    pages: dict[ShownOrder, str] = {}
    while len(pages) < 2:
        person = make_member(evaluation, Role.REVIEWER)
        client = Client()
        client.force_login(person)
        html = get_review_page(client, comparison)
        of_the_person = r'csrfmiddlewaretoken" value="\w+"|"X-CSRFToken": "\w+"|data-person="\d+"'
        html = re.sub(of_the_person, "", html).replace(str(person), "")
        pages[get_order_shown(person, comparison)] = html
    assert pages[ShownOrder.AS_STORED] == pages[ShownOrder.SWAPPED]


def test_the_left_response_is_called_a_whichever_is_stored_first(
    browser: Client, reviewer: User, evaluation: Evaluation
) -> None:
    comparison = make_judged_comparison(evaluation, response_a="first stored", response_b="second stored")
    while get_order_shown(reviewer, comparison) != ShownOrder.SWAPPED:
        comparison = make_judged_comparison(evaluation, response_a="first stored", response_b="second stored")
    html = get_review_page(browser, comparison)
    assert html.index('id="side-a"') < html.index("second stored") < html.index('id="side-b"')
    post_first_choices(browser, comparison)
    review = Review.objects.get(comparison=comparison)
    assert review.shown == ShownOrder.SWAPPED
    assert set(review.verdicts.values_list("choice", flat=True)) == {"B"}


def test_looking_writes_nothing(browser: Client, evaluation: Evaluation) -> None:
    get_review_page(browser, make_judged_comparison(evaluation))
    assert not Review.objects.exists()
    assert not Rater.objects.filter(kind="human").exists()


def test_text_of_responses_cannot_become_markup(browser: Client, evaluation: Evaluation) -> None:
    html = get_review_page(browser, make_comparison(evaluation, response_a="<img src=x onerror=alert(1)>"))
    assert "<img src=x" not in html
    assert "&lt;img src=x" in html


def test_the_page_has_nothing_inline(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_judged_comparison(evaluation, response_a="| a |\n|:-:|\n| 1 |\n\n```python\nx = 1\n```")
    for html in (
        get_review_page(browser, comparison),
        post_first_choices(browser, comparison, follow=True).content.decode(),
    ):
        assert not re.search(r"\sstyle=|\son\w+=|<style|<script(?![^>]*src=)", html)


def test_turns_of_a_conversation_say_who_speaks(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]
    comparison.query.messages = [*turns, {"role": "user", "content": "Why?"}]
    comparison.query.save()
    assert get_review_page(browser, comparison).count('class="speaker"') == 3
