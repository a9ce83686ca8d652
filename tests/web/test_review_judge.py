"""When a reviewer sees the judge, what the page says of it, and what a reviewer says where it differs."""

from dataclasses import replace

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain import AssignmentState, Choice, PickedBy, Reveal, ReviewState, RubricOrigin
from evaluations.judge.builtin import SIX_ASPECT
from evaluations.models import Assignment, Comparison, Evaluation, Event, QueueItem, Review, User
from evaluations.services.preparing.preparing import add_rubric, change_evaluation
from evaluations.services.reviewing.reviewing import rater_for
from tests.making import make_comparison
from tests.review_page import address, choices, hidden, judged, page_of, save
from tests.saying import SIX, judge_says, make_scorer, scorer_says

pytestmark = pytest.mark.django_db


def test_where_the_judge_is_shown_from_the_start_it_is_in_the_html(browser: Client, evaluation: Evaluation) -> None:
    change_evaluation(evaluation, {"reveal": Reveal.SHOWN}, user=None)
    comparison = judged(evaluation)
    assert "longest wins" in page_of(browser, comparison)
    save(browser, comparison)
    review = Review.objects.get()
    assert (review.blind, review.state) == (False, ReviewState.FINAL)


def test_where_the_judge_is_never_shown_it_is_in_no_html(browser: Client, evaluation: Evaluation) -> None:
    change_evaluation(evaluation, {"reveal": Reveal.NEVER}, user=None)
    comparison = judged(evaluation)
    save(browser, comparison)
    html = page_of(browser, comparison)
    assert 'data-stage="done"' in html
    assert "longest wins" not in html


def test_a_reason_can_be_given_where_the_judge_differs_and_is_shown_afterwards(
    browser: Client, evaluation: Evaluation
) -> None:
    comparison = judged(evaluation)
    html = browser.post(address("review_save", comparison), choices("tie"), follow=True).content.decode()
    assert '<option value="" selected>Reason (optional)</option>' in html
    assert 'name="reason_clarity"' in html
    assert 'name="reason_depth"' not in html  # torn, so a tie: the same
    said = {"version": "1", "reason_clarity": "length_or_format", "note_clarity": "It likes lists."}
    done = browser.post(address("review_confirm", comparison), {**choices("tie"), **said}, follow=True)
    assert "judged by length or format: It likes lists." in done.content.decode()


def test_a_reason_that_no_page_offers_is_refused_in_words(browser: Client, evaluation: Evaluation) -> None:
    comparison = judged(evaluation)
    save(browser, comparison)
    odd = {**choices(), "version": "1", "reason_depth": "boredom"}
    response = browser.post(address("review_confirm", comparison), odd)
    assert response.status_code == 422
    assert "Nothing was stored: reason on Depth: Select a valid choice." in response.content.decode()


def later_judged(browser: Client, evaluation: Evaluation) -> Comparison:
    """Reviewed first, judged afterwards."""
    comparison = make_comparison(evaluation)
    save(browser, comparison)
    said = dict.fromkeys(SIX, Choice.A)
    judge_says(comparison, judge="longest wins", rationale="Judge thinks so", as_stored=said, swapped=said)
    return comparison


def test_a_review_without_the_judge_comes_back_when_it_has_answered(browser: Client, evaluation: Evaluation) -> None:
    comparison = later_judged(browser, evaluation)
    html = page_of(browser, comparison)
    assert "The judge has answered since you reviewed this" in html
    assert "Judge thinks so" not in html
    assert "data-judge" not in html
    after = browser.post(address("review_again", comparison), hidden(html, "again"), follow=True).content.decode()
    assert 'data-stage="confirm"' in after
    assert "Judge thinks so" in after
    assert after.count(" checked") == len(SIX)


def test_it_can_be_left_as_it_is(browser: Client, evaluation: Evaluation) -> None:
    comparison = later_judged(browser, evaluation)
    browser.post(address("review_again", comparison), {"version": "1", "then": "leave"})
    html = page_of(browser, comparison)
    assert "has answered since" not in html
    assert "Judge thinks so" not in html
    assert Review.objects.get().state == ReviewState.FINAL


def test_a_judge_shown_later_by_the_settings_is_not_shown_on_what_was_final_without_it(
    browser: Client, evaluation: Evaluation
) -> None:
    change_evaluation(evaluation, {"reveal": Reveal.NEVER}, user=None)
    comparison = judged(evaluation)
    save(browser, comparison)
    change_evaluation(evaluation, {"reveal": Reveal.SHOWN}, user=None)
    # Undo would open the first choices again: they must not have met the judge.
    assert "Judge thinks so" not in page_of(browser, comparison)


def test_the_way_leads_back_to_it_and_on_from_it(browser: Client, evaluation: Evaluation) -> None:
    comparison = later_judged(browser, evaluation)
    way_in = reverse("review", args=[evaluation.slug])
    assert browser.get(way_in)["Location"] == address("review_comparison", comparison)
    browser.post(address("review_again", comparison), {"version": "1", "then": "leave"})
    assert "You have reviewed the only comparison" in browser.get(way_in).content.decode()


def test_an_answer_that_cannot_be_shown_does_not_call_anyone_back(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    save(browser, comparison)
    judge_says(comparison, judge="longest wins", as_stored={"overall": "A"}, swapped={"overall": "A"})
    way_in = reverse("review", args=[evaluation.slug])
    assert browser.get(way_in).status_code == 200
    later_judged(browser, evaluation)
    change_evaluation(evaluation, {"reveal": Reveal.NEVER}, user=None)
    assert browser.get(way_in).status_code == 200


@pytest.mark.parametrize("reveal", [Reveal.BLIND, Reveal.SHOWN])
def test_in_a_calibration_round_the_judge_is_in_no_html(
    browser: Client, person: User, evaluation: Evaluation, reveal: Reveal
) -> None:
    change_evaluation(evaluation, {"reveal": reveal}, user=None)
    comparison, rubric = judged(evaluation), evaluation.review_rubric
    assert rubric is not None
    item = QueueItem.objects.create(rubric_version=rubric, comparison=comparison, position=1, wanted=1)
    Assignment.objects.create(
        item=item, rater=rater_for(person, evaluation), picked_by=PickedBy.CALIBRATION, state=AssignmentState.NAMED
    )
    before = page_of(browser, comparison)
    save(browser, comparison)
    review = Review.objects.get()
    assert (review.picked_by, review.state) == (PickedBy.CALIBRATION, ReviewState.FINAL)
    for html in (before, page_of(browser, comparison)):
        assert "longest wins" not in html
        assert "Judge thinks so" not in html
        assert "calibration" not in html.lower()


def test_before_the_first_save_the_judge_is_nowhere_in_the_html(browser: Client, evaluation: Evaluation) -> None:
    html = page_of(browser, judged(evaluation))
    assert "longest wins" not in html
    assert "Judge thinks so" not in html
    assert "data-judge" not in html


def test_a_choice_derived_from_scores_says_so_where_it_is_revealed(browser: Client, evaluation: Evaluation) -> None:
    scorer = make_scorer(evaluation, aspect="clarity")
    change_evaluation(evaluation, {"shown_judge": scorer.judge}, user=None)
    comparison = make_comparison(evaluation)
    for response, score in ((comparison.response_a, 4), (comparison.response_b, 2)):
        scorer_says(scorer, response, score, aspect="clarity", rationale="Because.")
    html = save(browser, comparison, follow=True).content.decode()
    assert "derived from scores, margin 0.0" in html
    assert "Rationale on A" in html
    assert "asked in one order" not in html


def test_where_both_bad_is_offered_a_torn_judge_is_not_said_to_find_both_good(
    browser: Client, evaluation: Evaluation
) -> None:
    aspects = tuple(replace(aspect, offers_both_bad=True) for aspect in SIX_ASPECT.aspects)
    version = add_rubric(
        evaluation, name="both bad", spec=replace(SIX_ASPECT, aspects=aspects), origin=RubricOrigin.OWN, user=None
    )
    change_evaluation(evaluation, {"review_rubric": version}, user=None)
    comparison = judged(evaluation)
    html = browser.post(address("review_save", comparison), choices("both_bad"), follow=True).content.decode()
    assert "Both good" in html
    assert "Judge <b>Tie</b>" in html
    assert set(Review.objects.get().verdicts.values_list("choice", flat=True)) == {"both_bad"}


def test_someone_who_saw_verdicts_before_is_not_blind(browser: Client, person: User, evaluation: Evaluation) -> None:
    comparison = judged(evaluation)
    Event.objects.create(
        user=person, evaluation=evaluation, verb="saw verdicts", object_type="comparison", object_id=comparison.pk
    )
    save(browser, comparison)
    assert not Review.objects.get().blind
