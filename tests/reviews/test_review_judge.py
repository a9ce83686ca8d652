"""When a reviewer sees the judge, what the page says of it, and what a reviewer says where it differs."""

from dataclasses import replace

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain.choices import Choice
from evaluations.domain.reviews import AssignmentState, Reveal, ReviewState, SelectionMethod
from evaluations.domain.rubrics import RubricOrigin
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.judge_prompts.builtin_rubrics import SIX_ASPECT
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import get_or_create_rater
from evaluations.models.queues import Assignment, QueueItem
from evaluations.models.users import User
from evaluations.models.verdicts import Disclosure, Review
from evaluations.rubrics.services import add_rubric
from tests.factories.evaluations import make_comparison
from tests.factories.review_page import (
    build_choices,
    get_review_page,
    make_judged_comparison,
    post_first_choices,
    read_hidden_fields,
    review_url,
)
from tests.factories.verdicts import SIX_ASPECT_KEYS, make_judge_score, make_judge_verdicts, make_scoring_judge
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("judge_shown"), pytest.mark.any_database]


def test_where_the_judge_is_shown_from_the_start_it_is_in_the_html(browser: Client, evaluation: Evaluation) -> None:
    change_evaluation(evaluation, {"reveal": Reveal.SHOWN}, user=None)
    comparison = make_judged_comparison(evaluation)
    assert "longest wins" in get_review_page(browser, comparison)
    post_first_choices(browser, comparison)
    review = Review.objects.get()
    assert (review.blind, review.state) == (False, ReviewState.FINAL)


def test_where_the_judge_is_never_shown_it_is_in_no_html(browser: Client, evaluation: Evaluation) -> None:
    change_evaluation(evaluation, {"reveal": Reveal.NEVER}, user=None)
    comparison = make_judged_comparison(evaluation)
    post_first_choices(browser, comparison)
    html = get_review_page(browser, comparison)
    assert 'data-stage="done"' in html
    assert "longest wins" not in html


def test_a_reason_can_be_given_where_the_judge_differs_and_is_shown_afterwards(
    browser: Client, evaluation: Evaluation
) -> None:
    comparison = make_judged_comparison(evaluation)
    html = html_of(browser.post(review_url("review_save", comparison), build_choices("tie"), follow=True))
    assert '<option value="" selected>Reason</option>' in html
    assert 'name="reason_clarity"' in html
    assert 'name="reason_depth"' not in html  # torn, so a tie: the same
    said = {"version": "1", "reason_clarity": "length_or_format", "note_clarity": "It likes lists."}
    done = browser.post(review_url("review_confirm", comparison), {**build_choices("tie"), **said}, follow=True)
    assert "judged by length or format: It likes lists." in html_of(done)


def test_a_reason_that_no_page_offers_is_refused_in_words(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_judged_comparison(evaluation)
    post_first_choices(browser, comparison)
    odd = {**build_choices(), "version": "1", "reason_depth": "boredom"}
    response = browser.post(review_url("review_confirm", comparison), odd)
    assert response.status_code == 422
    assert "Nothing was stored: reason on Depth: Select a valid choice." in html_of(response)


def later_judged(browser: Client, evaluation: Evaluation) -> Comparison:
    """Reviewed first, judged afterwards."""
    comparison = make_comparison(evaluation)
    post_first_choices(browser, comparison)
    said = dict.fromkeys(SIX_ASPECT_KEYS, Choice.A)
    make_judge_verdicts(comparison, judge="longest wins", rationale="Judge thinks so", as_stored=said, swapped=said)
    return comparison


def test_a_review_without_the_judge_comes_back_when_it_has_answered(browser: Client, evaluation: Evaluation) -> None:
    comparison = later_judged(browser, evaluation)
    html = get_review_page(browser, comparison)
    assert "The judge answered after your review" in html
    assert "Judge thinks so" not in html
    assert "data-judge" not in html
    after = html_of(
        browser.post(review_url("review_reopen", comparison), read_hidden_fields(html, "again"), follow=True)
    )
    assert 'data-stage="confirm"' in after
    assert "Judge thinks so" in after
    assert after.count(" checked") == len(SIX_ASPECT_KEYS)


def test_it_can_be_left_as_it_is(browser: Client, evaluation: Evaluation) -> None:
    comparison = later_judged(browser, evaluation)
    browser.post(review_url("review_reopen", comparison), {"version": "1", "then": "leave"})
    html = get_review_page(browser, comparison)
    assert "answered after your review" not in html
    assert "Judge thinks so" not in html
    assert Review.objects.get().state == ReviewState.FINAL


def test_a_judge_shown_later_by_the_settings_is_not_shown_on_what_was_final_without_it(
    browser: Client, evaluation: Evaluation
) -> None:
    change_evaluation(evaluation, {"reveal": Reveal.NEVER}, user=None)
    comparison = make_judged_comparison(evaluation)
    post_first_choices(browser, comparison)
    change_evaluation(evaluation, {"reveal": Reveal.SHOWN}, user=None)
    # Undo would open the first choices again: they must not have met the judge.
    assert "Judge thinks so" not in get_review_page(browser, comparison)


def test_the_way_leads_back_to_it_and_on_from_it(browser: Client, evaluation: Evaluation) -> None:
    comparison = later_judged(browser, evaluation)
    way_in = reverse("review", args=[evaluation.slug])
    assert browser.get(way_in)["Location"] == review_url("review_comparison", comparison)
    browser.post(review_url("review_reopen", comparison), {"version": "1", "then": "leave"})
    assert "You reviewed the only comparison" in html_of(browser.get(way_in))


def test_an_answer_that_cannot_be_shown_does_not_call_anyone_back(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    post_first_choices(browser, comparison)
    make_judge_verdicts(comparison, judge="longest wins", as_stored={"overall": "A"}, swapped={"overall": "A"})
    way_in = reverse("review", args=[evaluation.slug])
    assert browser.get(way_in).status_code == 200
    later_judged(browser, evaluation)
    change_evaluation(evaluation, {"reveal": Reveal.NEVER}, user=None)
    assert browser.get(way_in).status_code == 200


@pytest.mark.parametrize("reveal", [Reveal.BLIND, Reveal.SHOWN])
def test_in_a_calibration_queue_the_judge_is_in_no_html(
    browser: Client, reviewer: User, evaluation: Evaluation, reveal: Reveal
) -> None:
    change_evaluation(evaluation, {"reveal": reveal}, user=None)
    comparison, rubric = make_judged_comparison(evaluation), evaluation.review_rubric
    assert rubric is not None
    item = QueueItem.objects.create(rubric_version=rubric, comparison=comparison, position=1, wanted=1)
    Assignment.objects.create(
        item=item,
        rater=get_or_create_rater(reviewer, evaluation),
        selection_method=SelectionMethod.CALIBRATION,
        state=AssignmentState.ASSIGNED,
    )
    before = get_review_page(browser, comparison)
    post_first_choices(browser, comparison)
    review = Review.objects.get()
    assert (review.selection_method, review.state) == (SelectionMethod.CALIBRATION, ReviewState.FINAL)
    for html in (before, get_review_page(browser, comparison)):
        assert "longest wins" not in html
        assert "Judge thinks so" not in html
        assert "calibration" not in html.lower()


def test_before_the_first_save_the_judge_is_nowhere_in_the_html(browser: Client, evaluation: Evaluation) -> None:
    html = get_review_page(browser, make_judged_comparison(evaluation))
    assert "longest wins" not in html
    assert "Judge thinks so" not in html
    assert "data-judge" not in html


def test_a_choice_derived_from_scores_says_so_where_it_is_revealed(browser: Client, evaluation: Evaluation) -> None:
    scorer = make_scoring_judge(evaluation, aspect="clarity")
    change_evaluation(evaluation, {"shown_judge": scorer.judge}, user=None)
    comparison = make_comparison(evaluation)
    for response, score in ((comparison.response_a, 4), (comparison.response_b, 2)):
        make_judge_score(scorer, response, score, aspect="clarity", rationale="Because.")
    html = html_of(post_first_choices(browser, comparison, follow=True))
    assert "derived from scores, margin 0.0" in html
    assert "Rationale for A" in html
    assert "one order only" not in html


def test_where_both_bad_is_offered_a_torn_judge_is_not_said_to_find_both_good(
    browser: Client, evaluation: Evaluation
) -> None:
    aspects = tuple(replace(aspect, offers_both_bad=True) for aspect in SIX_ASPECT.aspects)
    version = add_rubric(
        evaluation, name="both bad", spec=replace(SIX_ASPECT, aspects=aspects), origin=RubricOrigin.OWN, user=None
    )
    change_evaluation(evaluation, {"review_rubric": version}, user=None)
    comparison = make_judged_comparison(evaluation)
    html = html_of(browser.post(review_url("review_save", comparison), build_choices("both_bad"), follow=True))
    assert "Both good" in html
    assert "Judge <b>Tie</b>" in html
    assert set(Review.objects.get().verdicts.values_list("choice", flat=True)) == {"both_bad"}


def test_someone_who_saw_verdicts_before_is_not_blind(browser: Client, reviewer: User, evaluation: Evaluation) -> None:
    comparison = make_judged_comparison(evaluation)
    Disclosure.objects.create(user=reviewer, evaluation=evaluation, comparison=comparison)
    post_first_choices(browser, comparison)
    assert not Review.objects.get().blind
