"""A person's pass over a comparison, step by step, and what each step may not do."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from evaluations.domain import Choice, InputRefused, Reveal, ReviewState, RubricOrigin, RubricSpec, Shown, Stage
from evaluations.judge.builtin import SIX_ASPECT
from evaluations.models import Comparison, Evaluation, Event, Rater, Review, User, Verdict
from evaluations.services.preparing.preparing import add_rubric, archive, change_evaluation, next_version
from evaluations.services.reviewing.drawing import order_shown
from evaluations.services.reviewing.presenting import sheet_for
from evaluations.services.reviewing.reviewing import (
    LONGEST_STEP_MS,
    ChangedElsewhere,
    rater_of,
    rubric_in_force,
    save_final,
    save_first,
    skip,
    undo,
)
from tests.making import make_comparison, make_evaluation, make_human, make_user
from tests.saying import ALL_A, ALL_B, ALL_TIE, SIX, judge_says, make_judge

pytestmark = pytest.mark.django_db


@pytest.fixture
def person() -> User:
    return make_user()


@pytest.fixture
def comparison(person: User) -> Comparison:
    evaluation = make_evaluation(person)
    evaluation.shown_judge = make_judge(evaluation).judge
    evaluation.save()
    return make_comparison(evaluation)


def judged(comparison: Comparison) -> Comparison:
    judge_says(comparison, as_stored=ALL_B, swapped=ALL_B, rationale="B is longer.")
    return comparison


def stored(review: Review, stage: Stage) -> dict[str, str]:
    return dict(review.verdicts.filter(stage=stage).values_list("aspect__key", "choice"))


def shown_to(person: User, comparison: Comparison, order: Shown) -> Comparison:
    """The comparison, or another of its evaluation, that this person meets in that order."""
    while order_shown(person, comparison) != order:
        comparison = make_comparison(comparison.evaluation)
    return comparison


def first(person: User, comparison: Comparison, choices: Mapping[str, Choice] = ALL_A, **how: Any) -> Review:
    return save_first(person, comparison, choices=choices, **{"version": 0, **how})


def final(person: User, review: Review, choices: Mapping[str, Choice] = ALL_A, **how: Any) -> Review:
    return save_final(person, review.comparison, choices=choices, **{"version": review.version, "notes": {}, **how})


# ---- first choices


def test_what_is_left_for_the_person_is_stored_in_terms_of_a_and_b_as_stored(
    person: User, comparison: Comparison
) -> None:
    as_stored = first(person, shown_to(person, comparison, Shown.AS_STORED))
    swapped = first(person, shown_to(person, comparison, Shown.SWAPPED))
    assert (as_stored.shown, stored(as_stored, Stage.FIRST)) == (Shown.AS_STORED, ALL_A)
    assert (swapped.shown, stored(swapped, Stage.FIRST)) == (Shown.SWAPPED, ALL_B)
    assert set(swapped.verdicts.values_list("shown", flat=True)) == {Shown.SWAPPED}


def test_ties_stay_ties_whatever_the_order(person: User, comparison: Comparison) -> None:
    assert stored(first(person, shown_to(person, comparison, Shown.SWAPPED), ALL_TIE), Stage.FIRST) == ALL_TIE


def test_where_the_judge_has_not_answered_first_is_final(person: User, comparison: Comparison) -> None:
    review = first(person, comparison)
    assert review.state == ReviewState.FINAL
    assert stored(review, Stage.FIRST) == stored(review, Stage.FINAL)
    assert review.finished_at == review.first_saved_at


def test_where_the_judge_has_answered_first_waits_for_final(person: User, comparison: Comparison) -> None:
    review = first(person, judged(comparison))
    assert review.state == ReviewState.FIRST
    assert stored(review, Stage.FINAL) == {}
    assert review.finished_at is None


def test_an_answer_in_one_order_of_two_is_no_answer_yet(person: User, comparison: Comparison) -> None:
    judge_says(comparison, as_stored=ALL_A, swapped="pending")
    assert first(person, comparison).state == ReviewState.FINAL


def test_a_judge_of_other_aspects_reveals_nothing(person: User, comparison: Comparison) -> None:
    judge_says(comparison, as_stored={"overall": "A"})
    assert first(person, comparison).state == ReviewState.FINAL


def test_where_the_judge_is_never_shown_first_is_final(person: User, comparison: Comparison) -> None:
    change_evaluation(comparison.evaluation, {"reveal": Reveal.NEVER}, user=person)
    review = first(person, judged(comparison))
    assert (review.state, review.blind) == (ReviewState.FINAL, True)


def test_where_the_judge_stands_from_the_start_first_is_final_and_not_blind(
    person: User, comparison: Comparison
) -> None:
    change_evaluation(comparison.evaluation, {"reveal": Reveal.SHOWN}, user=person)
    review = first(person, judged(comparison))
    assert (review.state, review.blind) == (ReviewState.FINAL, False)


def test_blind_or_shown_can_be_drawn_for_every_comparison(person: User, comparison: Comparison) -> None:
    evaluation = change_evaluation(comparison.evaluation, {"reveal": Reveal.RANDOMISED}, user=person)
    reviews = [first(person, judged(make_comparison(evaluation))) for _ in range(24)]
    assert {(review.blind, review.state) for review in reviews} == {
        (True, ReviewState.FIRST),
        (False, ReviewState.FINAL),
    }


def test_a_review_by_someone_who_saw_others_choices_is_not_blind(person: User, comparison: Comparison) -> None:
    assert not first(person, comparison, seen_verdicts=True).blind


def test_a_second_review_by_the_next_rubric_is_not_blind(person: User, comparison: Comparison) -> None:
    evaluation = comparison.evaluation
    assert first(person, comparison).blind
    rubric = evaluation.review_rubric
    assert rubric is not None
    changed = RubricSpec(**{**vars(SIX_ASPECT), "instructions": "Choose."})
    change_evaluation(evaluation, {"review_rubric": next_version(rubric.rubric, changed, user=person)}, user=person)
    assert not first(person, comparison).blind


def test_every_aspect_needs_a_choice(person: User, comparison: Comparison) -> None:
    with pytest.raises(InputRefused, match=r"Depth, Safety"):
        first(person, comparison, {key: Choice.A for key in SIX if key not in ("depth", "safety")})
    assert not Review.objects.exists()


def test_only_what_the_rubric_offers_is_taken(person: User, comparison: Comparison) -> None:
    with pytest.raises(InputRefused, match="does not offer “both_bad”"):
        first(person, comparison, {**ALL_A, "depth": Choice.BOTH_BAD})
    with pytest.raises(InputRefused, match="does not ask about “charm”"):
        first(person, comparison, {**ALL_A, "charm": Choice.A})
    assert not Verdict.objects.exists()


def test_the_rubric_is_frozen_by_its_first_use(person: User, comparison: Comparison) -> None:
    first(person, comparison)
    rubric = comparison.evaluation.review_rubric
    assert rubric is not None
    rubric.refresh_from_db()
    assert rubric.frozen_at is not None


def test_a_save_changes_the_raters_clock_and_writes_one_event(person: User, comparison: Comparison) -> None:
    review = first(person, shown_to(person, comparison, Shown.SWAPPED))
    assert review.rater.verdicts_changed_at is None  # as it was read, before the save
    review.rater.refresh_from_db()
    assert review.rater.verdicts_changed_at is not None
    event = Event.objects.get(verb="saved first choices")
    assert (event.user, event.object_id) == (person, review.pk)
    assert event.after == {"state": "final", "shown": "swapped", "choices": ALL_B, "blind": True}


@pytest.mark.parametrize(("sent", "kept"), [(1500, 1500), (-5, 0), (10**12, LONGEST_STEP_MS)])
def test_active_time_is_bounded(person: User, comparison: Comparison, sent: int, kept: int) -> None:
    assert first(person, comparison, active_ms=sent).active_ms == kept


def test_active_time_of_both_steps_adds_up(person: User, comparison: Comparison) -> None:
    review = first(person, judged(comparison), active_ms=2000)
    assert final(person, review, active_ms=700).active_ms == 2700


# ---- double clicks and second tabs


def test_a_double_click_makes_one_review(person: User, comparison: Comparison) -> None:
    once, twice = first(person, judged(comparison)), first(person, comparison)
    assert once == twice
    assert Verdict.objects.filter(stage=Stage.FIRST, review=once).count() == len(SIX)
    assert Event.objects.filter(verb="saved first choices").count() == 1


def test_a_second_tab_cannot_overwrite_what_the_first_saved(person: User, comparison: Comparison) -> None:
    review = first(person, comparison)
    with pytest.raises(ChangedElsewhere, match="yours now were not stored"):
        first(person, comparison, ALL_B)
    assert len(set(stored(review, Stage.FIRST).values())) == 1
    assert Review.objects.count() == 1


def test_a_step_from_an_older_page_changes_nothing(person: User, comparison: Comparison) -> None:
    skip(person, comparison, reason="", version=0)
    with pytest.raises(ChangedElsewhere):
        first(person, comparison, version=0)
    assert Review.objects.get().state == ReviewState.SKIPPED


def test_skipping_twice_is_skipping_once(person: User, comparison: Comparison) -> None:
    skip(person, comparison, reason="too long", version=0)
    skip(person, comparison, reason="too long", version=0)
    assert Event.objects.filter(verb="skipped").count() == 1


def test_confirming_twice_is_confirming_once(person: User, comparison: Comparison) -> None:
    review = first(person, judged(comparison))
    version = review.version
    final(person, review, version=version)
    final(person, review, version=version)
    assert Event.objects.filter(verb="saved final choices").count() == 1


def test_another_final_choice_from_a_second_tab_is_refused(person: User, comparison: Comparison) -> None:
    review = final(person, first(person, judged(comparison)))
    with pytest.raises(ChangedElsewhere):
        final(person, review, ALL_TIE)
    assert set(stored(review, Stage.FINAL).values()) != {"tie"}


@pytest.mark.django_db(transaction=True)
def test_two_saves_at_the_same_moment_make_one_review() -> None:
    person = make_user()
    comparison = make_comparison(make_evaluation(person))

    def save(choices: Mapping[str, Choice]) -> str:
        try:
            first(person, comparison, choices)
            return "stored"
        except ChangedElsewhere:
            return "refused"
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(save, [ALL_A, ALL_B])) == ["refused", "stored"]
    review = Review.objects.get()
    assert len(set(stored(review, Stage.FIRST).values())) == 1
    assert review.version == 1


# ---- final choices


def test_an_override_is_stored_beside_the_first_choice_with_its_note(person: User, comparison: Comparison) -> None:
    comparison = judged(shown_to(person, comparison, Shown.AS_STORED))
    review = first(person, comparison)
    final(person, review, {**ALL_A, "depth": Choice.B}, notes={"depth": "It lists more."}, note="Hard.")
    assert stored(review, Stage.FIRST)["depth"] == "A"
    assert stored(review, Stage.FINAL) == {**ALL_A, "depth": "B"}
    assert review.verdicts.get(stage=Stage.FINAL, aspect__key="depth").note == "It lists more."
    review.refresh_from_db()
    assert (review.state, review.note) == (ReviewState.FINAL, "Hard.")
    assert review.finished_at is not None


def test_first_choices_never_change_after_the_reveal(person: User, comparison: Comparison) -> None:
    review = first(person, judged(comparison))
    before = stored(review, Stage.FIRST)
    with pytest.raises(ChangedElsewhere):
        first(person, comparison, ALL_B, version=review.version)
    review = final(person, review, ALL_B)
    undo(person, review, version=review.version)
    with pytest.raises(ChangedElsewhere):
        first(person, comparison, ALL_B, version=review.version)
    assert stored(review, Stage.FIRST) == before


def test_final_choices_need_first_ones(person: User, comparison: Comparison) -> None:
    with pytest.raises(ChangedElsewhere):
        save_final(person, comparison, choices=ALL_A, notes={}, version=0)
    assert not Review.objects.exists()


# ---- undo and skip


def test_undo_before_any_reveal_opens_the_review_again_with_what_was_chosen(
    person: User, comparison: Comparison
) -> None:
    review = first(person, comparison)
    taken = undo(person, review, version=review.version)
    assert taken.choices == ALL_A
    assert review.state == ReviewState.DRAFT
    assert not review.verdicts.exists()
    again = first(person, comparison, ALL_B, version=review.version)
    assert (again.pk, again.state) == (review.pk, ReviewState.FINAL)


def test_undo_after_the_reveal_takes_back_the_final_choices_only(person: User, comparison: Comparison) -> None:
    review = final(person, first(person, judged(comparison)), ALL_TIE, notes={"depth": "Equal."})
    before = stored(review, Stage.FIRST)
    taken = undo(person, review, version=review.version)
    assert (taken.choices, taken.notes) == (ALL_TIE, {"depth": "Equal."})
    assert review.state == ReviewState.FIRST
    assert stored(review, Stage.FIRST) == before
    assert stored(review, Stage.FINAL) == {}


def test_undo_keeps_first_choices_of_someone_who_has_seen_others_since(person: User, comparison: Comparison) -> None:
    review = first(person, comparison)
    undo(person, review, version=review.version, seen_verdicts=True)
    assert review.state == ReviewState.FIRST
    assert review.verdicts.filter(stage=Stage.FIRST).count() == len(SIX)


def test_first_choices_that_wait_for_final_ones_cannot_be_undone(person: User, comparison: Comparison) -> None:
    review = first(person, judged(comparison))
    with pytest.raises(InputRefused, match="first choices stay"):
        undo(person, review, version=review.version)


def test_undo_writes_down_what_it_took_away(person: User, comparison: Comparison) -> None:
    review = first(person, shown_to(person, comparison, Shown.AS_STORED), ALL_B)
    undo(person, review, version=review.version)
    event = Event.objects.get(verb="undid")
    assert (event.before["choices"], event.before["state"]) == (ALL_B, "final")
    assert event.after == {"state": "draft"}


def test_undo_from_an_older_page_changes_nothing(person: User, comparison: Comparison) -> None:
    review = first(person, comparison)
    with pytest.raises(ChangedElsewhere):
        undo(person, review, version=review.version - 1)
    assert review.verdicts.exists()


def test_a_skip_keeps_its_reason_and_can_be_undone(person: User, comparison: Comparison) -> None:
    review = skip(person, comparison, reason="I do not read Finnish", version=0)
    assert (review.state, review.skip_reason) == (ReviewState.SKIPPED, "I do not read Finnish")
    undo(person, review, version=review.version)
    assert (review.state, review.skip_reason) == (ReviewState.DRAFT, "")


def test_a_skipped_comparison_can_be_reviewed_later(person: User, comparison: Comparison) -> None:
    review = skip(person, comparison, reason="later", version=0)
    saved = first(person, comparison, version=review.version)
    assert (saved.state, saved.skip_reason) == (ReviewState.FINAL, "")


def test_what_was_saved_is_not_skipped(person: User, comparison: Comparison) -> None:
    review = first(person, comparison)
    with pytest.raises(ChangedElsewhere):
        skip(person, comparison, reason="", version=review.version)


# ---- who and by what


def test_a_person_becomes_a_rater_on_first_need(person: User, comparison: Comparison) -> None:
    sheet_for(person, comparison, rubric_in_force(comparison.evaluation), rater_of(person, comparison.evaluation))
    assert not Rater.objects.filter(kind="human").exists()
    review = first(person, comparison)
    assert (review.rater.user, review.rater.name) == (person, person.username)


def test_a_name_that_an_import_brought_is_told_apart(person: User, comparison: Comparison) -> None:
    make_human(comparison.evaluation, person.username)
    assert first(person, comparison).rater.name == f"{person.username} (account)"


def test_nothing_is_reviewed_in_an_archived_evaluation(person: User, comparison: Comparison) -> None:
    archive(comparison.evaluation, user=person)
    with pytest.raises(InputRefused, match="archived"):
        first(person, comparison)


def test_a_pointwise_rubric_is_refused_in_words(person: User, comparison: Comparison) -> None:
    scale = RubricSpec(**{**vars(SIX_ASPECT), "kind": "pointwise"})
    version = add_rubric(comparison.evaluation, name="scores", spec=scale, origin=RubricOrigin.OWN, user=person)
    with pytest.raises(InputRefused, match="one response at a time"):
        change_evaluation(comparison.evaluation, {"review_rubric": version}, user=person)
    # A row that came past that rule is refused all the same.
    Evaluation.objects.filter(pk=comparison.evaluation_id).update(review_rubric=version)
    comparison.evaluation.refresh_from_db()
    with pytest.raises(InputRefused, match="one response at a time"):
        first(person, comparison)
