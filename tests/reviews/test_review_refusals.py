"""Steps of a review that are refused: what is incomplete, what no page sends, and what another tab stored meanwhile."""

import re
from dataclasses import replace

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain.reviews import ReviewState
from evaluations.evaluation_settings.services import change_evaluation, move_to_archive
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.verdicts import Review, Span
from evaluations.rubrics.services import create_next_version
from tests.factories.evaluations import make_comparison
from tests.factories.review_page import (
    HTMX,
    build_choices,
    get_review_page,
    make_judged_comparison,
    post_first_choices,
    read_hidden_fields,
    review_url,
)
from tests.factories.verdicts import SIX_ASPECT_KEYS
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("judge_shown"), pytest.mark.any_database]


def versions(html: str) -> dict[str, tuple[str, str]]:
    """Aspect → what is stored and what was entered, as the page says it."""
    table = html[html.index('<table class="table versions"') : html.index("</table>")]
    found = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td><td>(.*?)</td>', table)
    return {name: (re.sub("<.*?>", "", stored), re.sub("<.*?>", "", entered)) for name, stored, entered in found}


def test_a_missing_choice_is_named_and_the_others_stay_in_their_fields(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    response = browser.post(review_url("review_save", comparison), {**build_choices("B", depth=""), "note": "So far"})
    html = html_of(response)
    assert response.status_code == 422
    assert "Depth is still missing." in html
    assert html.count(" checked") == 5
    assert "So far" in html
    assert not Review.objects.exists()


@pytest.mark.parametrize("field", [{"choice_depth": "C"}, {"version": "-1"}, {"version": ""}, {"note": "a\x00b"}])
def test_what_no_page_of_ours_sends_is_refused_in_words(
    browser: Client, evaluation: Evaluation, field: dict[str, str]
) -> None:
    response = browser.post(review_url("review_save", make_comparison(evaluation)), {**build_choices(), **field})
    assert response.status_code == 422
    assert "Nothing was stored" in html_of(response)
    assert not Review.objects.exists()


def test_a_second_tab_is_told_what_is_stored_and_what_is_not(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_judged_comparison(evaluation)
    post_first_choices(browser, comparison)
    response = browser.post(review_url("review_save", comparison), build_choices("B"))
    html = html_of(response)
    assert response.status_code == 422
    assert "those are shown" in html.lower()
    assert versions(html)["Helpfulness"] == ("A", "B ≠not saved")
    assert len(versions(html)) == len(SIX_ASPECT_KEYS)
    assert 'data-stage="confirm"' in html
    assert Review.objects.get().version == 1


def test_a_double_click_makes_one_review(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_judged_comparison(evaluation)
    assert post_first_choices(browser, comparison).status_code == 302
    assert post_first_choices(browser, comparison).status_code == 302
    assert Event.objects.filter(verb="saved first choices").count() == 1


def test_what_was_entered_in_a_second_tab_can_be_stored_as_final_choices(
    browser: Client, evaluation: Evaluation
) -> None:
    comparison = make_judged_comparison(evaluation)
    post_first_choices(browser, comparison)
    html = html_of(browser.post(review_url("review_save", comparison), {**build_choices("B"), "note": "Mine"}))
    assert "Save mine as final choices" in html
    browser.post(review_url("review_confirm", comparison), read_hidden_fields(html, "apply"))
    review = Review.objects.get()
    assert (review.state, review.note) == (ReviewState.FINAL, "Mine")
    assert len(set(review.verdicts.values_list("stage", "choice"))) == 2  # the first choices are those stored first


def test_what_was_entered_after_the_review_was_finished_comes_back_to_the_fields(
    browser: Client, evaluation: Evaluation
) -> None:
    comparison = make_comparison(evaluation)
    post_first_choices(browser, comparison)
    html = html_of(browser.post(review_url("review_save", comparison), build_choices("tie")))
    assert versions(html)["Depth"] == ("A", "Tie ≠not saved")
    assert "Undo the saved ones and enter mine" in html
    reopened = html_of(
        browser.post(review_url("review_undo", comparison), read_hidden_fields(html, "apply"), follow=True)
    )
    assert 'data-stage="choose"' in reopened
    assert reopened.count('value="tie" required checked') == len(SIX_ASPECT_KEYS)


def test_after_a_skip_in_another_tab_what_was_entered_stays_in_its_fields(
    browser: Client, evaluation: Evaluation
) -> None:
    comparison = make_comparison(evaluation)
    browser.post(review_url("review_skip", comparison), {"version": "0"})
    html = html_of(browser.post(review_url("review_save", comparison), build_choices("B")))
    assert "changed elsewhere" in html
    assert html.count('value="B" required checked') == len(SIX_ASPECT_KEYS)
    assert read_hidden_fields(html, "choices")["version"] == "1"


# ---- the rubric was changed, or nothing can be reviewed any more


def asks_otherwise(evaluation: Evaluation) -> None:
    """The rubric in force gets another wording."""
    version = evaluation.review_rubric
    assert version is not None
    spec = version.spec()
    aspects = tuple(replace(aspect, definition=f"Not: {aspect.definition}") for aspect in spec.aspects)
    changed = create_next_version(version.rubric, replace(spec, aspects=aspects), user=None)
    change_evaluation(evaluation, {"review_rubric": changed}, user=None)


def page_fields(browser: Client, comparison: Comparison, form: str = "choices") -> dict[str, str]:
    return read_hidden_fields(get_review_page(browser, comparison), form)


def test_answers_to_an_older_wording_are_not_stored_as_answers_to_the_new(
    browser: Client, evaluation: Evaluation
) -> None:
    comparison = make_comparison(evaluation)
    fields = {**page_fields(browser, comparison), "active_ms": "1200"}
    asks_otherwise(evaluation)
    answer = browser.post(review_url("review_save", comparison), {**build_choices("B"), **fields, "note": "So far"})
    html = html_of(answer)
    assert answer.status_code == 422
    assert "The rubric changed while this page was open" in html
    assert html.count('value="B" required checked') == len(SIX_ASPECT_KEYS)
    assert "So far</textarea>" in html
    assert "Not: " in html
    assert not Review.objects.exists()
    again = {**build_choices("B"), **read_hidden_fields(html, "choices"), "active_ms": "1200"}
    assert browser.post(review_url("review_save", comparison), again).status_code == 302
    assert Review.objects.get().rubric_version.number == 2


@pytest.mark.parametrize("step", ["skip", "undo", "reopen", "draft"])
def test_no_other_step_is_taken_by_an_older_wording(step: str, browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    fields = page_fields(browser, comparison)
    asks_otherwise(evaluation)
    sent = {"version": "0", "number": "0", "rubric": fields["rubric"]}
    answer = browser.post(review_url(f"review_{step}", comparison), sent)
    assert answer.status_code == 422
    assert "The rubric changed while this page was open" in html_of(answer)
    assert not Review.objects.exists()


def test_final_words_by_an_older_wording_stay_in_view(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_judged_comparison(evaluation)
    post_first_choices(browser, comparison)
    fields = page_fields(browser, comparison)
    asks_otherwise(evaluation)
    sent = {
        **build_choices(),
        **fields,
        "active_ms": "1200",
        "note_depth": "Both are shallow",
        "reason_depth": "position",
    }
    html = html_of(browser.post(review_url("review_confirm", comparison), sent))
    assert 'data-stage="choose"' in html
    assert versions(html)["Depth, note"] == ("–", "Both are shallow ≠not saved")
    assert 'form="apply"' not in html
    assert Review.objects.get().state == ReviewState.FIRST


def test_a_draft_by_an_older_wording_stands_in_the_fields_of_the_new(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    fields = {**page_fields(browser, comparison), "active_ms": "1200"}
    browser.post(review_url("review_draft", comparison), {**fields, "number": "0", "choice_depth": "B", "note": "Long"})
    asks_otherwise(evaluation)
    html = get_review_page(browser, comparison)
    assert "The rubric changed since this draft" in html
    assert 'name="choice_depth" value="B" required checked' in html
    assert "Long</textarea>" in html


def shut(evaluation: Evaluation, how: str) -> None:
    if how == "archived":
        move_to_archive(evaluation, user=None)
    else:
        change_evaluation(evaluation, {"review_rubric": None}, user=None)


@pytest.mark.parametrize("how", ["archived", "without a rubric"])
@pytest.mark.parametrize("step", ["save", "confirm", "skip", "undo", "reopen", "span"])
def test_where_nothing_can_be_reviewed_any_more_a_step_is_refused_in_words(
    step: str, how: str, browser: Client, evaluation: Evaluation
) -> None:
    comparison = make_comparison(evaluation)
    shut(evaluation, how)
    for headers, words in (({}, "Reviews are closed"), (HTMX, '{"message": ')):
        answer = browser.post(review_url(f"review_{step}", comparison), build_choices(), headers=headers)
        assert answer.status_code == 422
        assert words in html_of(answer)
        assert "Nothing was stored." in html_of(answer)
    assert not Review.objects.exists()


def test_a_passage_marked_before_is_not_changed_in_an_archived_evaluation(
    browser: Client, evaluation: Evaluation
) -> None:
    comparison = make_comparison(evaluation)
    quote = comparison.response_a.messages[0]["content"]
    for side in "ab":
        browser.post(review_url("review_span", comparison), {"side": side, "quote": quote})
    span = Span.objects.get()
    move_to_archive(evaluation, user=None)
    for step in ("review_span_change", "review_span_remove"):
        answer = browser.post(reverse(step, args=[evaluation.slug, span.pk]), {"comment": "new"}, headers=HTMX)
        assert answer.status_code == 422
        assert "archived" in answer.json()["message"]
    assert Span.objects.get().comment == ""


# ---- words


def test_a_note_from_a_second_tab_is_not_dropped_as_a_double_click(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    post_first_choices(browser, comparison)
    answer = browser.post(review_url("review_save", comparison), {**build_choices(), "note": "Important"})
    assert answer.status_code == 422
    assert versions(html_of(answer))["Note"] == ("–", "Important ≠not saved")
    browser.post(review_url("review_undo", comparison), read_hidden_fields(html_of(answer), "apply"))
    assert "Important</textarea>" in get_review_page(browser, comparison)


def test_a_reason_from_a_second_tab_is_not_dropped_as_a_double_click(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_judged_comparison(evaluation)
    post_first_choices(browser, comparison)
    final = {**build_choices("tie"), "version": "1", "note_clarity": "First"}
    assert browser.post(review_url("review_confirm", comparison), final).status_code == 302
    assert browser.post(review_url("review_confirm", comparison), final).status_code == 302  # a double click
    answer = browser.post(
        review_url("review_confirm", comparison), {**final, "note_clarity": "Second", "reason_clarity": "position"}
    )
    said = versions(html_of(answer))
    assert answer.status_code == 422
    assert said["Clarity, note"] == ("First", "Second ≠not saved")
    assert said["Clarity, reason"][0] == "–"
    assert set(Review.objects.get().verdicts.values_list("note", flat=True)) == {"", "First"}


def test_a_refusal_names_the_aspect_as_the_page_does(browser: Client, evaluation: Evaluation) -> None:
    html = html_of(
        browser.post(
            review_url("review_save", make_comparison(evaluation)), {**build_choices(), "choice_helpfulness": "C"}
        )
    )
    assert "Nothing was stored: Helpfulness: Select a valid choice." in html
