"""The words in which two responses differ: asked for by the page, or in it without a script."""

import pytest
from django.test import Client

from evaluations.domain.roles import Role
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from tests.factories.evaluations import make_comparison, make_evaluation, make_member, make_user
from tests.factories.review_page import review_url

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture
def comparison() -> Comparison:
    return make_comparison(
        make_evaluation(make_user()),
        response_a="The sky is blue <b>today</b>.",
        response_b="The sky is grey <b>today</b>.",
        candidates=("gpt-secret", "llama-secret"),
    )


@pytest.fixture
def browser(comparison: Comparison) -> Client:
    client = Client()
    client.force_login(make_member(comparison.evaluation, Role.REVIEWER))
    return client


def test_words_of_one_side_alone_are_marked_and_nothing_becomes_markup(browser: Client, comparison: Comparison) -> None:
    html = browser.get(review_url("review_diff", comparison)).content.decode()
    assert html.count("<del") == html.count("<ins") == 1
    assert html.index("<del") < html.index('data-diff-side="b"') < html.index("<ins")
    assert "&lt;b&gt;today&lt;/b&gt;" in html
    assert "-secret" not in html


def test_turns_are_compared_pair_by_pair_after_those_that_both_share(browser: Client, comparison: Comparison) -> None:
    begun = {"role": "assistant", "content": "Which sky?"}
    for response, words in ((comparison.response_a, ["One.", "More."]), (comparison.response_b, ["Other."])):
        response.messages = [begun, *({"role": "assistant", "content": word} for word in words)]
        response.save()
    html = browser.get(review_url("review_diff", comparison)).content.decode()
    assert "Which sky?" not in html
    assert html.count('class="plain-text"') == 3
    assert html.count("Assistant") == 2


def test_without_a_script_the_page_itself_shows_them(browser: Client, comparison: Comparison) -> None:
    page = review_url("review_comparison", comparison)
    html = browser.get(page).content.decode()
    assert f'href="{page}?diff=1"' in html
    assert "<del" not in html
    html = browser.get(page, {"diff": "1"}).content.decode()
    assert html.count("<del") == html.count("<ins") == 1
    assert f'href="{page}"' in html


def test_texts_that_are_too_long_and_too_different_say_so(
    browser: Client, comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluations.rendering.word_diff.MAX_COMPARED", 0)
    answer = browser.get(review_url("review_diff", comparison))
    assert answer.status_code == 200
    assert answer.content.decode().count("read them side by side") == 2


def test_who_may_not_review_may_not_compare(client: Client, comparison: Comparison) -> None:
    client.force_login(make_member(comparison.evaluation, Role.VIEWER))
    assert client.get(review_url("review_diff", comparison)).status_code == 403
    client.force_login(make_user())
    assert client.get(review_url("review_diff", comparison)).status_code == 404


def test_where_nothing_can_be_reviewed_it_leads_to_the_page_that_says_why(
    browser: Client, comparison: Comparison
) -> None:
    Evaluation.objects.update(review_rubric=None)
    assert browser.get(review_url("review_diff", comparison)).status_code == 302
