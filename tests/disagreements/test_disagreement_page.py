"""One disagreement: everyone's choices and reasons, resolving, discussing, and all that happened to it."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain.choices import Choice
from evaluations.domain.events import SAW_VERDICTS
from evaluations.domain.reviews import DifferenceReason, Reveal
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import change_evaluation, move_to_archive
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Rater
from evaluations.models.users import User
from evaluations.models.verdicts import Adjudication, Comment, Label, Mention, Review, Span, Verdict
from evaluations.reviews.selectors import get_order_shown
from evaluations.reviews.services import save_final_choices, save_first_choices, undo_last_step
from evaluations.reviews.spans import create_span, delete_span
from evaluations.verdicts.votes import update_labels
from tests.factories.evaluations import make_comparison, make_human, make_member
from tests.factories.verdicts import (
    ALL_A,
    get_or_make_aspect,
    make_imported_votes,
    make_judge_rater,
    make_judge_verdicts,
    make_review,
)
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

A, B, TIE = Choice.A, Choice.B, Choice.TIE


@pytest.fixture
def comparison(evaluation: Evaluation) -> Comparison:
    """Pat and Quin differ on clarity and agree on depth."""
    made = make_comparison(evaluation)
    for name, choice in (("pat", A), ("quin", B)):
        make_review(make_human(evaluation, name), made, {"clarity": choice, "depth": A})
    update_labels([made.pk])
    return made


@pytest.fixture
def as_ada(client: Client, evaluation: Evaluation) -> Client:
    """An adjudicator."""
    client.force_login(make_member(evaluation, Role.ADJUDICATOR, "ada"))
    return client


def address(name: str, pk: int, **query: object) -> str:
    return reverse(name, args=["study", pk], query=query)


def page(client: Client, comparison: Comparison, **query: object) -> str:
    answer = client.get(address("disagreement", comparison.pk, **query))
    assert answer.status_code == 200
    return html_of(answer)


def words(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def history_of(text: str) -> str:
    return words(text[text.index('id="history"') :])


def resolve(client: Client, comparison: Comparison, status: int = 302, **given: Any) -> str:
    sent = {"aspect": "clarity", "choice": "B", "reason": "B is clearer.", "version": 0, **given}
    key = sent.pop("aspect")
    sent |= {f"{name}_{key}": sent.pop(name) for name in ("choice", "version")}
    answer = client.post(address("disagreement_resolve", comparison.pk), sent)
    assert answer.status_code == status
    return html_of(answer)


def member(evaluation: Evaluation, name: str) -> tuple[User, Rater]:
    user = make_member(evaluation, Role.REVIEWER, name)
    return user, Rater.objects.create(evaluation=evaluation, kind="human", name=name, user=user)


# ---- what stands there ----------------------------------------------------------------------


def test_it_shows_first_and_final_choices_with_order_reason_and_note(as_ada: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    review = make_review(
        make_human(evaluation, "pat"),
        comparison,
        {"clarity": A},
        final={"clarity": B},
        shown="swapped",
        blind=False,
        note="A hard one.",
    )
    Verdict.objects.filter(review=review, stage="final").update(
        reason=DifferenceReason.POSITION, note="The first looked better."
    )
    make_review(make_human(evaluation, "quin"), comparison, {"clarity": A})
    make_imported_votes(comparison, "rae", {"clarity": TIE})
    make_imported_votes(comparison, "expert", {"clarity": A}, kind="gold")
    update_labels([comparison.pk])
    text = words(page(as_ada, comparison))
    assert "pat not blind B first A → changed to B judged by position The first looked better." in text
    assert "Overall: A hard one." in text
    assert "quin A first A" in text
    assert "rae imported tie" in text
    assert "expert gold A" in text


def test_a_judge_stands_with_its_consistency_and_its_rationale(
    as_ada: Client, evaluation: Evaluation, comparison: Comparison
) -> None:
    make_judge_verdicts(comparison, rationale="Because **so**.", as_stored={"clarity": A}, swapped={"clarity": B})
    text = page(as_ada, comparison)
    assert "flips" in text
    assert "<strong>so</strong>" in text


def test_the_label_says_where_it_comes_from(as_ada: Client, comparison: Comparison) -> None:
    text = words(page(as_ada, comparison))
    assert "1 Clarity A Tie B pat A" in text
    assert re.search(r"aspects? with consensus.* Depth A 2 of 2", text)


def test_what_nobody_differs_on_is_out_of_the_way(as_ada: Client, comparison: Comparison) -> None:
    text = page(as_ada, comparison)
    assert text.index('id="aspect-clarity"') < text.index('class="agreed"') < text.index('id="aspect-depth"')


def test_marked_passages_of_everyone_stand_there(as_ada: Client, comparison: Comparison) -> None:
    review = Review.objects.get(rater__name="pat")
    Span.objects.create(
        review=review, response=comparison.response_b, start=0, end=11, quote="The capital", comment="*Wrong* city."
    )
    text = page(as_ada, comparison)
    assert "The capital" in text
    assert 'data-side="B" data-turn="0" data-start="0" data-end="11"' in text
    assert "*Wrong* city. pat" in words(text)


def test_it_costs_the_same_however_many_spoke(as_ada: Client, evaluation: Evaluation, comparison: Comparison) -> None:
    def queries() -> int:
        page(as_ada, comparison)
        with CaptureQueriesContext(connection) as captured:
            page(as_ada, comparison)
        return len(captured)

    def speak(number: int) -> None:
        make_review(make_human(evaluation), comparison, {"clarity": A, "depth": B, f"aspect-{number}": A})
        make_judge_verdicts(comparison, judge=f"judge-{number}", rationale="So.", as_stored={"clarity": A})
        Comment.objects.create(comparison=comparison, user=make_member(evaluation, Role.VIEWER), text="x")
        update_labels([comparison.pk])

    speak(0)
    few = queries()
    for number in range(1, 9):
        speak(number)
    assert queries() == few


# ---- who may see it -------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["draft", "skipped", None])
def test_a_reviewer_finds_nothing_before_their_first_save(
    client: Client, evaluation: Evaluation, comparison: Comparison, state: str | None
) -> None:
    user, rater = member(evaluation, "rita")
    assert evaluation.review_rubric is not None
    if state:
        Review.objects.create(
            rater=rater, comparison=comparison, rubric_version=evaluation.review_rubric, shown="as_stored", state=state
        )
    client.force_login(user)
    for method in (client.get, client.post):
        for name in ("disagreement", "disagreement_comment", "disagreement_explain"):
            assert method(address(name, comparison.pk)).status_code in (404, 405)
    assert client.post(address("disagreement_comment", comparison.pk), {"text": "hello"}).status_code == 404


def test_after_it_they_read_and_discuss_and_do_not_resolve(
    client: Client, evaluation: Evaluation, comparison: Comparison
) -> None:
    user, rater = member(evaluation, "rita")
    make_review(rater, comparison, {"clarity": A, "depth": A})
    client.force_login(user)
    text = page(client, comparison)
    assert "rita you A" in words(text)
    assert 'name="choice_clarity"' not in text
    resolve(client, comparison, status=403)
    assert client.post(address("disagreement_comment", comparison.pk), {"text": "hello"}).status_code == 302


def test_a_viewer_reads_and_does_nothing(client: Client, evaluation: Evaluation, comparison: Comparison) -> None:
    client.force_login(make_member(evaluation, Role.VIEWER))
    text = page(client, comparison)
    assert "<textarea" not in text
    assert client.post(address("disagreement_comment", comparison.pk), {"text": "hello"}).status_code == 403
    resolve(client, comparison, status=403)


def test_where_judges_are_never_shown_a_reviewer_sees_none(
    client: Client, evaluation: Evaluation, comparison: Comparison
) -> None:
    make_judge_verdicts(comparison, rationale="Secret words.", as_stored={"clarity": A})
    change_evaluation(
        evaluation,
        {
            "reveal": Reveal.NEVER,
            "shown_judge": make_judge_rater(evaluation).judge,
            "resolve_judge_disagreements": True,
        },
        user=None,
    )
    user, rater = member(evaluation, "rita")
    make_review(rater, comparison, {"clarity": A})
    client.force_login(user)
    text = page(client, comparison)
    assert "Secret words" not in text
    assert "longest" not in text


def test_opening_it_is_put_on_record_for_who_may_review(as_ada: Client, comparison: Comparison) -> None:
    page(as_ada, comparison)
    page(as_ada, comparison)
    assert Event.objects.filter(verb=SAW_VERDICTS, object_id=comparison.pk).count() == 1


def test_a_reviewer_who_saved_before_opening_it_is_put_on_record_too(
    client: Client, evaluation: Evaluation, comparison: Comparison
) -> None:
    user, rater = member(evaluation, "rita")
    make_review(rater, comparison, {"clarity": A})
    client.force_login(user)
    page(client, comparison)
    assert Event.objects.get(verb=SAW_VERDICTS).user == user


def test_an_adjudicator_who_reviewed_it_is_told_so(
    as_ada: Client, evaluation: Evaluation, comparison: Comparison
) -> None:
    assert "You reviewed this comparison" not in page(as_ada, comparison)
    ada = Rater.objects.create(evaluation=evaluation, kind="human", name="ada", user=User.objects.get(username="ada"))
    make_review(ada, comparison, {"clarity": A})
    assert "You reviewed this comparison" in page(as_ada, comparison)


# ---- resolving -------------------------------------------------------------------------------


def test_resolving_makes_the_label_and_says_by_whom_and_why(as_ada: Client, comparison: Comparison) -> None:
    resolve(as_ada, comparison)
    label = Label.objects.get(aspect__key="clarity")
    assert (label.choice, label.source) == ("B", "adjudicated")
    text = words(page(as_ada, comparison))
    assert "Resolved as B by ada" in text
    assert "B is clearer." in text
    assert "resolved by ada" in text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"choice": ""}, "at least one aspect"),
        ({"choice": "C"}, "Clarity: Select a valid choice"),
        ({"category": "my_mistake"}, "one of the listed reasons"),
        ({"version": "x"}, "Clarity: Enter a whole number"),
    ],
)
def test_what_is_missing_is_said_and_what_was_entered_stays(
    as_ada: Client, evaluation: Evaluation, comparison: Comparison, given: dict[str, str], said: str
) -> None:
    ask_about(evaluation, "clarity")
    text = resolve(as_ada, comparison, status=422, **{"reason": "Kept words.", **given})
    alert = re.search(r'role="alert">([^<]*)<', text)
    assert alert
    assert said in alert.group(1)
    assert 'value="Kept words."' in text
    assert not Adjudication.objects.exists()


def test_of_two_who_resolve_at_once_the_second_sees_both(
    as_ada: Client, evaluation: Evaluation, comparison: Comparison
) -> None:
    ask_about(evaluation, "clarity")
    other = Client()
    other.force_login(make_member(evaluation, Role.ADJUDICATOR, "bea"))
    resolve(other, comparison, choice="A", reason="A names its source.")
    text = resolve(as_ada, comparison, status=422)
    assert "bea resolved Clarity as “A” (“A names its source.”) in the meantime" in text
    assert 'value="B is clearer."' in text
    assert re.search(r'name="choice_clarity" value="B" checked', text)
    resolve(as_ada, comparison, version=Adjudication.objects.get().version)
    assert Adjudication.objects.get().choice == "B"


def test_it_can_be_opened_again(as_ada: Client, comparison: Comparison) -> None:
    resolve(as_ada, comparison)
    made = Adjudication.objects.get()
    assert as_ada.post(address("resolution_withdraw", made.pk), {"version": made.version}).status_code == 302
    assert not Adjudication.objects.exists()
    assert Label.objects.get(aspect__key="clarity").source == "split"


def test_nothing_is_resolved_or_said_in_an_archived_evaluation(
    as_ada: Client, evaluation: Evaluation, comparison: Comparison
) -> None:
    move_to_archive(evaluation, user=None)
    text = page(as_ada, comparison)
    assert 'name="choice_clarity"' not in text
    assert "<textarea" not in text
    assert "archived" in resolve(as_ada, comparison, status=422)


def test_next_and_previous_keep_to_the_line_they_came_from(as_ada: Client, evaluation: Evaluation) -> None:
    first, _, last = (two_who_differ(evaluation, aspect) for aspect in ("clarity", "depth", "clarity"))
    text = page(as_ada, first, aspect="clarity")
    assert f'rel="next" href="/e/study/review/disagreements/{last.pk}?aspect=clarity"' in text
    assert 'rel="prev"' not in text
    assert f'rel="prev" href="/e/study/review/disagreements/{first.pk}?aspect=clarity"' in page(
        as_ada, last, aspect="clarity"
    )
    answer = as_ada.post(
        address("disagreement_resolve", first.pk, aspect="clarity"),
        {"choice_clarity": "A", "then": "next"},
    )
    assert answer.headers["Location"].endswith(f"/{last.pk}?aspect=clarity")
    answer = as_ada.post(
        address("disagreement_resolve", last.pk, aspect="clarity"), {"choice_clarity": "A", "then": "next"}
    )
    assert answer.headers["Location"].endswith("/disagreements?aspect=clarity")


def two_who_differ(evaluation: Evaluation, aspect: str) -> Comparison:
    comparison = make_comparison(evaluation)
    for choice in (A, B):
        make_review(make_human(evaluation), comparison, {aspect: choice})
    update_labels([comparison.pk])
    return comparison


def ask_about(evaluation: Evaluation, key: str) -> None:
    """The rubric in force asks about it: only then can it be resolved."""
    assert get_or_make_aspect(evaluation, key).rubric_aspects.exists()


# ---- why one differs, said afterwards ---------------------------------------------------------


def test_ones_own_reason_can_be_given_afterwards(
    client: Client, evaluation: Evaluation, comparison: Comparison
) -> None:
    user, rater = member(evaluation, "rita")
    review = make_review(rater, comparison, {"clarity": A})
    client.force_login(user)
    sent = {"review": review.pk, "aspect": "clarity", "reason": DifferenceReason.MY_MISTAKE, "note": "I misread it."}
    assert client.post(address("disagreement_explain", comparison.pk), sent).status_code == 302
    kept = Verdict.objects.get(review=review, stage="final")
    assert (kept.reason, kept.note, kept.choice) == ("my_mistake", "I misread it.", "A")
    assert Verdict.objects.get(review=review, stage="first").reason == ""
    assert "rita explained: Clarity: reason my mistake ; note I misread it." in history_of(page(client, comparison))


def test_nobody_explains_the_choices_of_others(as_ada: Client, comparison: Comparison) -> None:
    review = Review.objects.get(rater__name="pat")
    sent = {"review": review.pk, "aspect": "clarity", "reason": DifferenceReason.MY_MISTAKE, "note": ""}
    assert as_ada.post(address("disagreement_explain", comparison.pk), sent).status_code == 404


# ---- discussing -----------------------------------------------------------------------------


def test_a_comment_is_shown_as_markdown_and_never_as_markup(as_ada: Client, comparison: Comparison) -> None:
    as_ada.post(
        address("disagreement_comment", comparison.pk),
        {"text": "**Look** <img src=x onerror=alert(1)>", "about": "clarity"},
    )
    text = page(as_ada, comparison)
    assert "<strong>Look</strong>" in text
    assert "<img" not in text.replace('<img src="/static', "")
    assert "ada" in words(text)


def test_who_is_called_is_told_and_who_is_nobody_is_said(
    as_ada: Client, evaluation: Evaluation, comparison: Comparison
) -> None:
    make_member(evaluation, Role.REVIEWER, "blind")
    answer = as_ada.post(
        address("disagreement_comment", comparison.pk), {"text": "@olive, @blind, see this"}, follow=True
    )
    assert [mention.user.username for mention in Mention.objects.all()] == ["olive"]
    assert "“blind” can’t see this comparison and was not notified." in html_of(answer)


def test_ones_own_words_are_withdrawn_and_their_place_stays(as_ada: Client, comparison: Comparison) -> None:
    as_ada.post(address("disagreement_comment", comparison.pk), {"text": "hasty words"})
    said = Comment.objects.get()
    assert as_ada.post(address("comment_withdraw", said.pk)).status_code == 302
    text = page(as_ada, comparison)
    assert "hasty words" not in text
    assert "deleted" in text


def test_nobody_withdraws_the_words_of_others(as_ada: Client, comparison: Comparison) -> None:
    said = Comment.objects.create(comparison=comparison, user=User.objects.get(username="olive"), text="mine")
    assert as_ada.post(address("comment_withdraw", said.pk)).status_code == 404
    assert Comment.objects.get().withdrawn_at is None


def test_an_empty_comment_is_refused_where_it_was_written(as_ada: Client, comparison: Comparison) -> None:
    answer = as_ada.post(address("disagreement_comment", comparison.pk), {"text": "  "})
    assert answer.status_code == 422
    assert "Write a comment first." in html_of(answer)


# ---- everything that happened -----------------------------------------------------------------


def test_every_change_stands_in_the_history_from_what_to_what(as_ada: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    make_judge_verdicts(comparison, as_stored=ALL_A)
    change_evaluation(evaluation, {"shown_judge": make_judge_rater(evaluation).judge}, user=None)
    comparison.refresh_from_db()
    rita = make_member(evaluation, Role.REVIEWER, "rita")
    key = next(iter(ALL_A))
    name = get_or_make_aspect(evaluation, key).name
    swapped = get_order_shown(rita, comparison) == "swapped"
    as_b, as_a = (A, B) if swapped else (B, A)
    review = save_first_choices(rita, comparison, choices=dict.fromkeys(ALL_A, as_a), version=0, note="Hard.")
    span = create_span(review, comparison.response_a, None, None, None, "Paris.", "Right.", "", rita)
    delete_span(span, rita)
    changed = {**dict.fromkeys(ALL_A, as_a), key: as_b}
    words = {"notes": {key: "It invents a river."}, "reasons": {key: "missed_error"}, "note": "Easy."}
    review = save_final_choices(rita, comparison, choices=changed, version=review.version, **words)  # type: ignore[arg-type]
    undo_last_step(rita, review, version=review.version)
    resolve(as_ada, comparison, aspect=key, choice="B", reason="Look at the numbers.")
    made = Adjudication.objects.get()
    resolve(as_ada, comparison, aspect=key, choice="tie", reason="On second thoughts.", version=made.version)
    made.refresh_from_db()
    as_ada.post(address("resolution_withdraw", made.pk), {"version": made.version})
    as_ada.post(address("disagreement_comment", comparison.pk), {"text": "private-words"})
    as_ada.post(address("comment_withdraw", Comment.objects.get().pk))
    text = page(as_ada, comparison)
    told = history_of(text)
    for said in (
        "rita saved first choices",
        f"{name} A",
        "rita highlighted a passage",
        "rita removed a highlight",
        f"rita saved final choices: {name} A → B ; note Hard. → Easy. ; reason on {name}",
        f"note on {name} It invents a river.",
        "rita undid their last step",
        f"note on {name} It invents a river. → none",
        f"ada resolved: {name}: choice B ; reason Look at the numbers.",
        f"ada resolved: {name}: choice B → tie ; reason Look at the numbers. → On second thoughts.",
        f"ada reopened: {name}: choice tie → none",
        "ada commented",
        "ada deleted a comment",
    ):
        assert said in told, said
    assert "private-words" not in text
    about = Event.objects.filter(object_type__in=["comparison", "review", "span", "comment", "adjudication"])
    assert text[text.index('id="history"') :].count("<li>") == about.count()


def test_the_history_of_one_comparison_tells_nothing_of_others(
    as_ada: Client, evaluation: Evaluation, comparison: Comparison
) -> None:
    other = two_who_differ(evaluation, "clarity")
    resolve(as_ada, other, reason="Other words.")
    assert "Other words" not in page(as_ada, comparison)
