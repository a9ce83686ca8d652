"""The review page through a browser's requests: what is in the HTML, and what is not."""

import re
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain import (
    AspectSpec,
    AssignmentState,
    Choice,
    PickedBy,
    Reveal,
    ReviewState,
    Role,
    RubricKind,
    RubricOrigin,
    RubricSpec,
    Shown,
    Stage,
)
from evaluations.judge.builtin import SIX_ASPECT
from evaluations.models import Assignment, Comparison, Evaluation, Event, QueueItem, Rater, Review, User
from evaluations.services.preparing.preparing import add_rubric, archive, change_evaluation
from evaluations.services.reviewing.drawing import order_shown
from evaluations.services.reviewing.keeping import keep
from evaluations.services.reviewing.reviewing import rater_for, review_for
from tests.making import make_comparison, make_evaluation, make_member, make_user
from tests.review_page import address, page_of
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


def choices(value: str = "A", **others: str) -> dict[str, str]:
    chosen = {f"choice_{key}": others.get(key, value) for key in SIX}
    return {"version": "0", "active_ms": "1200", **chosen}


def save(browser: Client, comparison: Comparison, **how: Any) -> Any:
    return browser.post(address("review_save", comparison), choices(), **how)


def ask_for_scores(evaluation: Evaluation, **scale: Any) -> None:
    """The rubric in force asks for scores of clarity, from 1 to 5 in whole steps."""
    asked = AspectSpec("clarity", "Clarity", "", **{"scale_min": 1, "scale_max": 5, "scale_step": 1, **scale})
    spec = RubricSpec(RubricKind.POINTWISE, "Rate.", (asked,), ("clarity",))
    version = add_rubric(evaluation, name="scores", spec=spec, origin=RubricOrigin.OWN, user=None)
    change_evaluation(evaluation, {"review_rubric": version}, user=None)


def versions(html: str) -> dict[str, tuple[str, str]]:
    """Aspect → what is stored and what was entered, as the page says it."""
    table = html[html.index('<table class="table versions"') : html.index("</table>")]
    found = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td><td>(.*?)</td>', table)
    return {name: (re.sub("<.*?>", "", stored), re.sub("<.*?>", "", entered)) for name, stored, entered in found}


def hidden(html: str, form: str) -> dict[str, str]:
    """The hidden fields of a form, by its id."""
    start = html.index(f'<form id="{form}"') if f'<form id="{form}"' in html else html.index(f'id="{form}" method')
    return dict(
        re.findall(r'<input type="hidden" name="(\w+)" value="(.*?)"', html[start : html.index("</form>", start)])
    )


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


def test_a_pointwise_rubric_leads_to_a_page_with_scales(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    ask_for_scores(evaluation)
    assert browser.get(reverse("review", args=[evaluation.slug]))["Location"] == address(
        "review_comparison", comparison
    )
    assert len(re.findall(r'<input type="radio" name="(?:left|right)_clarity"', page_of(browser, comparison))) == 10


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
        of_the_person = r'csrfmiddlewaretoken" value="\w+"|"X-CSRFToken": "\w+"|data-person="\d+"'
        html = re.sub(of_the_person, "", html).replace(str(person), "")
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
    assert versions(html)["Helpfulness"] == ("A", "B ≠not stored")
    assert len(versions(html)) == len(SIX)
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
    assert few <= 18


# ---- what the page says to the script that drives it


def after_save(html: str) -> str:
    found = re.search(r'<section id="panel"[^>]* data-after-save="(\w+)"', html)
    assert found
    return found.group(1)


def test_the_panel_says_whether_saving_reveals_a_judge_or_leads_on(browser: Client, evaluation: Evaluation) -> None:
    comparison = judged(evaluation)
    assert after_save(page_of(browser, comparison)) == "reveal"
    assert after_save(save(browser, comparison, headers=HTMX).content.decode()) == "next"
    for reveal in (Reveal.NEVER, Reveal.SHOWN):
        change_evaluation(evaluation, {"reveal": reveal}, user=None)
        assert after_save(page_of(browser, judged(evaluation))) == "next"


def test_every_step_names_its_page(browser: Client, evaluation: Evaluation) -> None:
    html = page_of(browser, judged(evaluation))
    assert html.count('name="tab"') == html.count('name="version"') == 2


def test_the_panel_says_state_and_version_in_its_headers(browser: Client, evaluation: Evaluation) -> None:
    response = save(browser, judged(evaluation), headers=HTMX)
    assert (response["X-Review-State"], response["X-Review-Version"]) == ("first", "1")


def test_a_script_that_has_the_next_one_already_is_told_that_the_review_is_finished(
    browser: Client, evaluation: Evaluation
) -> None:
    response = browser.post(address("review_save", make_comparison(evaluation)), {**choices(), "then": "ahead"})
    assert (response.status_code, response.content) == (204, b"")
    assert (response["X-Review-State"], response["X-Review-Version"]) == ("final", "1")
    skipped = browser.post(address("review_skip", make_comparison(evaluation)), {"version": "0", "then": "ahead"})
    assert (skipped.status_code, skipped["X-Review-State"]) == (204, "skipped")


def test_it_gets_the_panel_where_the_judge_is_revealed_and_goes_on_from_there(
    browser: Client, evaluation: Evaluation
) -> None:
    comparison = judged(evaluation)
    revealed = browser.post(address("review_save", comparison), {**choices(), "then": "ahead"})
    assert revealed.status_code == 200
    assert revealed.content.decode().lstrip().startswith('<section id="panel"')
    again = browser.post(address("review_save", comparison), {**choices(), "then": "ahead"})
    assert again.status_code == 200  # the answer was lost: the same step is the same
    done = browser.post(address("review_confirm", comparison), {**choices(), "version": "1", "then": "ahead"})
    assert done.status_code == 204


def test_it_gets_the_panel_and_one_sentence_where_the_step_is_refused(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    response = browser.post(address("review_save", comparison), {**choices(depth=""), "then": "ahead"})
    assert (response.status_code, response["X-Review-Version"]) == (422, "0")
    assert response.content.decode().lstrip().startswith('<section id="panel"')


# ---- two versions


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


# ---- reasons, and a judge that answers later


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
    assert "Nothing was stored: reason depth" in response.content.decode()


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


def test_who_is_done_before_the_others_is_told_so(browser: Client, evaluation: Evaluation, client: Client) -> None:
    first, second = make_comparison(evaluation), make_comparison(evaluation)
    client.force_login(make_member(evaluation, Role.REVIEWER))
    save(client, first)
    save(browser, second)
    html = browser.get(reverse("review", args=[evaluation.slug])).content.decode()
    assert "You have reviewed 1 of 2" in html


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


# ---- scores


def test_the_whole_way_with_scores_works_with_plain_forms(
    browser: Client, person: User, evaluation: Evaluation
) -> None:
    """The judge gave the left response 5 and the right one 2; the person 2 and 4, then 4 and 3."""
    ask_for_scores(evaluation, scale_labels={"5": "plain as day"})
    scorer = make_scorer(evaluation, aspect="clarity")
    change_evaluation(evaluation, {"shown_judge": scorer.judge}, user=None)
    comparison = make_comparison(evaluation)
    sides = [comparison.response_a, comparison.response_b]
    left, right = sides if order_shown(person, comparison) == Shown.AS_STORED else sides[::-1]
    scorer_says(scorer, left, 5, aspect="clarity", rationale="Because.")
    scorer_says(scorer, right, 2, aspect="clarity")
    page = page_of(browser, comparison)
    assert "plain as day" in page
    assert "Because." not in page
    assert page.count('<div class="scale ') == 2
    given = {"version": "0", "left_clarity": "2", "right_clarity": "4"}
    revealed = browser.post(address("review_save", comparison), given, follow=True).content.decode()
    assert "Judge <b>A</b>" in revealed
    assert "5 to 2, derived from scores, margin 0.0" in revealed
    assert "differs" in revealed
    assert re.search(r'name="left_clarity" value="2" data-side="left" required checked', revealed)
    final = {"version": "1", "left_clarity": "4", "right_clarity": "3", "reason_clarity": "my_mistake"}
    done = browser.post(address("review_confirm", comparison), final, follow=True).content.decode()
    assert 'data-first="B" data-final="A"' in done
    assert "2 to 4: B" in done
    assert "4 to 3: A" in done
    assert "my mistake" in done
    assert dict(Review.objects.get().scores.filter(stage=Stage.FINAL).values_list("response_id", "value")) == {
        left.pk: 4.0,
        right.pk: 3.0,
    }


def test_a_scale_of_many_values_is_a_field_with_its_ends_and_step(browser: Client, evaluation: Evaluation) -> None:
    ask_for_scores(evaluation, scale_min=0, scale_max=10, scale_step=0.5)
    html = page_of(browser, make_comparison(evaluation))
    assert re.search(r'type="number" name="right_clarity"[^>]* min="0" max="10" step="0.5" required', html)


def test_a_score_off_the_scale_is_refused_and_stays_in_its_field(browser: Client, evaluation: Evaluation) -> None:
    ask_for_scores(evaluation, scale_min=0, scale_max=10, scale_step=0.5)
    comparison = make_comparison(evaluation)
    given = {"version": "0", "left_clarity": "3.25", "right_clarity": "4"}
    response = browser.post(address("review_save", comparison), given)
    html = response.content.decode()
    assert response.status_code == 422
    assert "The score for Clarity must be a number from 0 to 10 in steps of 0.5, not 3.25" in html
    assert re.search(r'name="left_clarity" value="3.25"', html)
    words = browser.post(address("review_save", comparison), {**given, "left_clarity": "three"})
    assert "score of A for Clarity" in words.content.decode()


# ---- the time of a draft


def test_time_spent_on_a_draft_counts_with_the_save_that_follows(
    browser: Client, person: User, evaluation: Evaluation
) -> None:
    comparison = make_comparison(evaluation)
    review = review_for(person, comparison)
    keep(review, version=0, fields={"choice_depth": "B"}, number=0, tab="this", active_ms=4000)
    html = page_of(browser, comparison)
    assert 'name="choice_depth" value="B" required checked' in html
    assert hidden(html, "choices")["active_ms"] == "4000"


def test_time_spent_here_is_not_sent_with_an_undo_of_another_comparison(
    browser: Client, evaluation: Evaluation
) -> None:
    first, second = make_comparison(evaluation), make_comparison(evaluation)
    save(browser, first)
    assert "active_ms" not in hidden(page_of(browser, second), "undo")
    assert "active_ms" in hidden(page_of(browser, first), "undo")
