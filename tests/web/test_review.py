"""The review page through a browser's requests: what is in the HTML, and what is not."""

import re
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain import Choice, Reveal, ReviewState, Role, RubricOrigin, RubricSpec, Shown, Stage
from evaluations.judge.builtin import SIX_ASPECT
from evaluations.models import Comparison, Evaluation, Event, Rater, Review, User
from evaluations.services.preparing.preparing import add_rubric, archive, change_evaluation
from evaluations.services.reviewing.drawing import order_shown
from tests.making import make_comparison, make_evaluation, make_member, make_user
from tests.saying import SIX, import_votes, judge_says, make_judge, make_scorer, scorer_says

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


@pytest.fixture
def evaluation() -> Evaluation:
    evaluation = make_evaluation()
    return change_evaluation(evaluation, {"shown_judge": make_judge(evaluation, "longest wins").judge}, user=None)


@pytest.fixture
def person(evaluation: Evaluation) -> User:
    return make_member(evaluation, Role.REVIEWER)


@pytest.fixture
def browser(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def judged(evaluation: Evaluation, **columns: Any) -> Comparison:
    """A comparison on which the judge chose response A everywhere, but is torn about depth."""
    comparison = make_comparison(evaluation, candidates=("gpt-secret", "llama-secret"), **columns)
    said = dict.fromkeys(SIX, Choice.A)
    judge_says(
        comparison,
        judge="longest wins",
        rationale="Judge thinks so",
        as_stored=said,
        swapped={**said, "depth": Choice.B},
    )
    return comparison


def address(name: str, comparison: Comparison) -> str:
    return reverse(name, args=[comparison.evaluation.slug, comparison.pk])


def choices(value: str = "A", **others: str) -> dict[str, str]:
    chosen = {f"choice_{key}": others.get(key, value) for key in SIX}
    return {"version": "0", "active_ms": "1200", **chosen}


def save(browser: Client, comparison: Comparison, **how: Any) -> Any:
    return browser.post(address("review_save", comparison), choices(), **how)


def page_of(browser: Client, comparison: Comparison) -> str:
    return browser.get(address("review_comparison", comparison)).content.decode()


# ---- the way in


def test_review_leads_to_the_next_comparison(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    response = browser.get(reverse("review", args=[evaluation.slug]))
    assert response["Location"] == address("review_comparison", comparison)


def test_an_evaluation_without_comparisons_says_how_to_get_some(evaluation: Evaluation, client: Client) -> None:
    client.force_login(make_member(evaluation, Role.OWNER))
    html = client.get(reverse("review", args=[evaluation.slug])).content.decode()
    assert "There are no comparisons yet" in html
    assert reverse("import_new", args=[evaluation.slug]) in html


def test_an_evaluation_without_a_rubric_says_so(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    change_evaluation(evaluation, {"review_rubric": None}, user=None)
    assert browser.get(address("review_comparison", comparison)).status_code == 302
    assert "no rubric for reviews yet" in browser.get(reverse("review", args=[evaluation.slug])).content.decode()


def test_a_pointwise_rubric_says_that_it_scores_one_response_at_a_time(browser: Client, evaluation: Evaluation) -> None:
    make_comparison(evaluation)
    scale = RubricSpec(**{**vars(SIX_ASPECT), "kind": "pointwise"})
    version = add_rubric(evaluation, name="scores", spec=scale, origin=RubricOrigin.OWN, user=None)
    Evaluation.objects.update(review_rubric=version)  # no service lets that happen any more
    html = browser.get(reverse("review", args=[evaluation.slug])).content.decode()
    assert "one response at a time" in html


def test_when_all_is_reviewed_the_page_says_so_and_leads_to_the_report(browser: Client, evaluation: Evaluation) -> None:
    save(browser, make_comparison(evaluation))
    save(browser, make_comparison(evaluation))
    html = browser.get(reverse("review", args=[evaluation.slug])).content.decode()
    assert "You have reviewed all 2" in html
    assert reverse("report", args=[evaluation.slug]) in html


def test_an_archived_evaluation_takes_no_reviews(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    archive(evaluation, user=None)
    assert save(browser, comparison)["Location"] == reverse("review", args=[evaluation.slug])
    assert not Review.objects.exists()


@pytest.mark.parametrize("name", ["review_comparison", "review_save", "review_confirm", "review_skip", "review_undo"])
def test_a_stranger_cannot_tell_that_the_page_exists(name: str, evaluation: Evaluation, client: Client) -> None:
    comparison = make_comparison(evaluation)
    client.force_login(make_user())
    method = client.get if name == "review_comparison" else client.post
    assert method(address(name, comparison)).status_code == 404


def test_a_viewer_may_not_review(evaluation: Evaluation, client: Client) -> None:
    client.force_login(make_member(evaluation, Role.VIEWER))
    assert save(client, make_comparison(evaluation)).status_code == 403


def test_a_comparison_of_another_evaluation_is_not_here(browser: Client, evaluation: Evaluation) -> None:
    other = make_comparison(make_evaluation())
    assert browser.get(reverse("review_comparison", args=[evaluation.slug, other.pk])).status_code == 404


# ---- what is in the HTML


def test_names_of_candidates_are_nowhere_in_the_html(browser: Client, evaluation: Evaluation) -> None:
    comparison = judged(evaluation)
    assert "-secret" not in page_of(browser, comparison)
    assert "-secret" not in save(browser, comparison, headers=HTMX).content.decode()
    assert "-secret" not in page_of(browser, comparison)


def test_before_the_first_save_the_judge_is_nowhere_in_the_html(browser: Client, evaluation: Evaluation) -> None:
    html = page_of(browser, judged(evaluation))
    assert "longest wins" not in html
    assert "Judge thinks so" not in html
    assert "data-judge" not in html


def test_votes_of_other_people_are_nowhere_in_the_html(browser: Client, evaluation: Evaluation) -> None:
    comparison = judged(evaluation)
    import_votes(comparison, "annotator1", {"depth": "B"})
    save(browser, comparison)
    assert "annotator1" not in page_of(browser, comparison)


def test_nothing_tells_which_response_is_stored_first(evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation, response_a="same words", response_b="same words")
    pages: dict[Shown, str] = {}
    while len(pages) < 2:
        person = make_member(evaluation, Role.REVIEWER)
        client = Client()
        client.force_login(person)
        html = page_of(client, comparison)
        html = re.sub(r'csrfmiddlewaretoken" value="\w+"|"X-CSRFToken": "\w+"', "", html).replace(str(person), "")
        pages[order_shown(person, comparison)] = html
    assert pages[Shown.AS_STORED] == pages[Shown.SWAPPED]


def test_the_left_response_is_called_a_whichever_is_stored_first(
    browser: Client, person: User, evaluation: Evaluation
) -> None:
    comparison = judged(evaluation, response_a="first stored", response_b="second stored")
    while order_shown(person, comparison) != Shown.SWAPPED:
        comparison = judged(evaluation, response_a="first stored", response_b="second stored")
    html = page_of(browser, comparison)
    assert html.index('id="side-a"') < html.index("second stored") < html.index('id="side-b"')
    save(browser, comparison)
    review = Review.objects.get(comparison=comparison)
    assert review.shown == Shown.SWAPPED
    assert set(review.verdicts.values_list("choice", flat=True)) == {"B"}


def test_looking_writes_nothing(browser: Client, evaluation: Evaluation) -> None:
    page_of(browser, judged(evaluation))
    assert not Review.objects.exists()
    assert not Rater.objects.filter(kind="human").exists()


def test_text_of_responses_cannot_become_markup(browser: Client, evaluation: Evaluation) -> None:
    html = page_of(browser, make_comparison(evaluation, response_a="<img src=x onerror=alert(1)>"))
    assert "<img src=x" not in html
    assert "&lt;img src=x" in html


def test_the_page_has_nothing_inline(browser: Client, evaluation: Evaluation) -> None:
    comparison = judged(evaluation, response_a="| a |\n|:-:|\n| 1 |\n\n```python\nx = 1\n```")
    for html in (page_of(browser, comparison), save(browser, comparison, follow=True).content.decode()):
        assert not re.search(r"\sstyle=|\son\w+=|<style|<script(?![^>]*src=)", html)


def test_turns_of_a_conversation_say_who_speaks(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]
    comparison.query.messages = [*turns, {"role": "user", "content": "Why?"}]
    comparison.query.save()
    assert page_of(browser, comparison).count('class="speaker"') == 3


# ---- the whole way without JavaScript


def test_the_whole_way_works_with_plain_forms(browser: Client, evaluation: Evaluation) -> None:
    comparison = judged(evaluation)
    after_save = save(browser, comparison, follow=True)
    assert after_save.redirect_chain == [(address("review_comparison", comparison), 302)]
    html = after_save.content.decode()
    assert "longest wins" in html
    assert "baseline, not an LLM" in html
    assert "both orders agree" in html
    assert "inconsistent → tie" in html
    assert "Judge thinks so" in html
    final = {**choices(depth="tie"), "version": "1", "note_depth": "Really equal.", "note": "Fine."}
    done = browser.post(address("review_confirm", comparison), final, follow=True)
    assert 'data-stage="done"' in done.content.decode()
    review = Review.objects.get()
    assert (review.state, review.note, review.active_ms) == (ReviewState.FINAL, "Fine.", 2400)
    depth = review.verdicts.get(stage=Stage.FINAL, aspect__key="depth")
    assert (depth.choice, depth.note) == ("tie", "Really equal.")


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


def test_where_there_is_no_judge_the_save_leads_to_the_next(browser: Client, evaluation: Evaluation) -> None:
    first, second = make_comparison(evaluation), make_comparison(evaluation)
    response = save(browser, first)
    assert response["Location"] == address("review_comparison", second)


def test_confirming_can_lead_on_at_once(browser: Client, evaluation: Evaluation) -> None:
    first, second = judged(evaluation), judged(evaluation)
    save(browser, first)
    response = browser.post(address("review_confirm", first), {**choices(), "version": "1", "then": "next"})
    assert response["Location"] == address("review_comparison", second)


def test_skipping_stores_the_reason_and_leads_on(browser: Client, evaluation: Evaluation) -> None:
    first, second = judged(evaluation), judged(evaluation)
    response = browser.post(address("review_skip", first), {"version": "0", "reason": "Too long"})
    assert response["Location"] == address("review_comparison", second)
    html = page_of(browser, second)
    assert "0 of 2, 1 skipped" in html
    assert "You skipped this one: Too long" in page_of(browser, first)


def test_undo_leads_back_with_what_was_chosen(browser: Client, evaluation: Evaluation) -> None:
    comparison, _ = make_comparison(evaluation), make_comparison(evaluation)
    browser.post(address("review_save", comparison), choices("A", depth="tie"))
    response = browser.post(address("review_undo", comparison), {"version": "1"}, follow=True)
    html = response.content.decode()
    assert response.redirect_chain == [(address("review_comparison", comparison), 302)]
    assert re.search(r'name="choice_depth" value="tie" required checked', html)
    assert re.search(r'name="choice_clarity" value="A" required checked', html)
    assert Review.objects.get().state == ReviewState.DRAFT


def test_undo_after_the_reveal_touches_the_final_choices_only(browser: Client, evaluation: Evaluation) -> None:
    comparison = judged(evaluation)
    save(browser, comparison)
    browser.post(address("review_confirm", comparison), {**choices("tie"), "version": "1"})
    html = browser.post(address("review_undo", comparison), {"version": "2"}, follow=True).content.decode()
    assert 'data-stage="confirm"' in html
    assert re.search(r'name="choice_depth" value="tie" required checked', html)
    assert Review.objects.get().verdicts.filter(stage=Stage.FIRST).count() == len(SIX)


def test_what_was_undone_and_saved_again_does_not_come_up_elsewhere(browser: Client, evaluation: Evaluation) -> None:
    comparison, other = make_comparison(evaluation), make_comparison(evaluation)
    save(browser, comparison)
    browser.post(address("review_undo", comparison), {"version": "1"})
    browser.post(address("review_save", comparison), {**choices("B"), "version": "2"})
    assert " checked" not in page_of(browser, other)


def test_the_way_back_leads_to_the_earlier_review(browser: Client, evaluation: Evaluation) -> None:
    first, second = make_comparison(evaluation), make_comparison(evaluation)
    save(browser, first)
    assert f'href="{address("review_comparison", first)}"' in page_of(browser, second)


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


# ---- what goes wrong


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
    assert "Not stored: Helpfulness B, Factuality B" in html
    assert 'data-stage="confirm"' in html
    assert Review.objects.get().version == 1


def test_a_double_click_makes_one_review(browser: Client, evaluation: Evaluation) -> None:
    comparison = judged(evaluation)
    assert save(browser, comparison).status_code == 302
    assert save(browser, comparison).status_code == 302
    assert Event.objects.filter(verb="saved first choices").count() == 1


def test_someone_who_saw_verdicts_before_is_not_blind(browser: Client, person: User, evaluation: Evaluation) -> None:
    comparison = judged(evaluation)
    Event.objects.create(
        user=person, evaluation=evaluation, verb="saw verdicts", object_type="comparison", object_id=comparison.pk
    )
    save(browser, comparison)
    assert not Review.objects.get().blind


# ---- with htmx


def test_saving_swaps_the_panel_alone(browser: Client, evaluation: Evaluation) -> None:
    response = save(browser, judged(evaluation), headers=HTMX)
    html = response.content.decode()
    assert html.lstrip().startswith('<section id="panel"')
    assert 'id="side-a"' not in html


def test_the_next_comparison_takes_the_place_of_this_one_under_its_own_address(
    browser: Client, evaluation: Evaluation
) -> None:
    first, second = make_comparison(evaluation), make_comparison(evaluation)
    response = save(browser, first, headers=HTMX)
    assert response["HX-Push-Url"] == address("review_comparison", second)
    assert response["HX-Retarget"] == "#workbench"
    assert "<html" not in response.content.decode()


def test_after_the_last_one_the_browser_goes_to_the_closing_page(browser: Client, evaluation: Evaluation) -> None:
    response = save(browser, make_comparison(evaluation), headers=HTMX)
    assert response["HX-Redirect"] == reverse("review", args=[evaluation.slug])


def test_a_refusal_goes_into_the_panel(browser: Client, evaluation: Evaluation) -> None:
    response = browser.post(address("review_save", make_comparison(evaluation)), choices("A", depth=""), headers=HTMX)
    assert (response.status_code, response["HX-Retarget"]) == (422, "#panel")


def test_going_back_in_history_brings_the_whole_page(browser: Client, evaluation: Evaluation) -> None:
    headers = {**HTMX, "HX-History-Restore-Request": "true"}
    response = browser.get(address("review_comparison", make_comparison(evaluation)), headers=headers)
    assert "<html" in response.content.decode()


# ---- other ways of revealing


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


# ---- how much it costs


def queries_for(browser: Client, comparison: Comparison) -> int:
    with CaptureQueriesContext(connection) as queries:
        page_of(browser, comparison)
    return len(queries)


def test_the_number_of_queries_does_not_grow(browser: Client, evaluation: Evaluation) -> None:
    comparison, first = judged(evaluation), judged(evaluation)
    save(browser, first)
    few = queries_for(browser, comparison)
    for _ in range(8):
        save(browser, judged(evaluation))
    assert queries_for(browser, comparison) == few
    assert few <= 26
