"""What there is to read on the review page, and how it is arranged."""

import pytest
from django.test import Client

from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.reviews.texts import LONG_RESPONSE_CHARACTERS, count_shared_turns, is_long_response
from tests.factories.evaluations import make_comparison
from tests.factories.review_page import get_review_page

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture
def browser(evaluation: Evaluation, client: Client) -> Client:
    client.force_login(evaluation.memberships.get().user)
    return client


def said(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def with_turns(comparison: Comparison, one: list[dict[str, str]], other: list[dict[str, str]]) -> Comparison:
    for response, turns in ((comparison.response_a, one), (comparison.response_b, other)):
        response.messages = turns
        response.save()
    return comparison


def test_turns_that_both_responses_begin_with_are_shown_once(browser: Client, evaluation: Evaluation) -> None:
    begun = [said("assistant", "Which one?"), said("user", "The blue one.")]
    comparison = with_turns(
        make_comparison(evaluation),
        [*begun, said("assistant", "Blue is fine.")],
        [*begun, said("assistant", "Take red instead.")],
    )
    html = get_review_page(browser, comparison)
    assert html.count("The blue one.") == 1
    assert html.index("Which one?") < html.index("The blue one.") < html.index('id="side-a"')
    assert html.count("Blue is fine.") == html.count("Take red instead.") == 1


def test_of_equal_responses_each_keeps_its_last_turn() -> None:
    turns = [said("assistant", "One"), said("assistant", "Two")]
    assert count_shared_turns(turns, turns) == 1  # type: ignore[arg-type]
    assert count_shared_turns(turns[:1], turns) == 0  # type: ignore[arg-type]


def test_a_passage_is_counted_in_the_turns_of_its_response_not_of_the_page(
    browser: Client, evaluation: Evaluation
) -> None:
    begun = [said("assistant", "Which one?"), said("user", "The blue one.")]
    comparison = with_turns(
        make_comparison(evaluation), [*begun, said("assistant", "Blue.")], [*begun, said("assistant", "Red.")]
    )
    assert get_review_page(browser, comparison).count('data-turn="2"') == 2


def test_long_earlier_turns_open_collapsed_and_short_ones_open(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    for words, is_open in (("Short.", True), ("Long. " * 500, False)):
        comparison.query.messages = [said("user", words), said("assistant", "Yes?"), said("user", "Why?")]
        comparison.query.save()
        html = get_review_page(browser, comparison)
        assert ('<details class="earlier" open>' in html) is is_open
        assert "2 earlier turns" in html


def test_a_long_response_offers_to_show_all_of_it(browser: Client, evaluation: Evaluation) -> None:
    long = make_comparison(evaluation, response_a="word " * 1_000, response_b="word " * 1_001)
    assert get_review_page(browser, long).count("data-show-all") == 2
    assert "data-show-all" not in get_review_page(browser, make_comparison(evaluation))


def test_many_short_lines_are_long_too() -> None:
    assert is_long_response(["line\n" * 100])
    assert is_long_response(["x" * (LONG_RESPONSE_CHARACTERS + 1)])
    assert not is_long_response(["x" * LONG_RESPONSE_CHARACTERS])


def test_the_length_of_each_response_stands_in_its_head(browser: Client, evaluation: Evaluation) -> None:
    html = get_review_page(browser, make_comparison(evaluation, response_a="x" * 1_234, response_b="y"))
    assert "1,234 characters" in html
    assert "1 character<" in html


def test_drawers_are_there_only_for_what_there_is(browser: Client, evaluation: Evaluation) -> None:
    html = get_review_page(browser, make_comparison(evaluation))
    assert 'class="drawer"' not in html
    Evaluation.objects.update(guidelines="Be **fair**.")
    html = get_review_page(browser, make_comparison(evaluation, context="The context.", reference="The reference."))
    assert html.count('class="drawer"') == 2
    assert "<strong>fair</strong>" in html
    assert "Context and reference" in html


def test_an_empty_response_says_so(browser: Client, evaluation: Evaluation) -> None:
    assert "Empty response" in get_review_page(browser, make_comparison(evaluation, response_a=" \n"))
