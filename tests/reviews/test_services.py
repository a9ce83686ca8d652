"""A person's pass over a comparison, step by step, and what each step may not do."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from evaluations.domain.choices import Choice, ShownOrder, Stage
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import DifferenceReason, Reveal, ReviewState, SelectionMethod
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricOrigin, RubricSpec
from evaluations.evaluation_settings.services import change_evaluation, move_to_archive
from evaluations.judge_prompts.builtin_rubrics import SIX_ASPECT
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Event
from evaluations.models.judges import Judge, Rater, find_rater_of_user
from evaluations.models.users import User
from evaluations.models.verdicts import Label, Review, Verdict
from evaluations.reviews.answers import Answers, ScorePair
from evaluations.reviews.drafts import read_draft, save_draft
from evaluations.reviews.queues import reservations
from evaluations.reviews.queues.reservations import AssignmentOrigin
from evaluations.reviews.selectors import get_order_shown
from evaluations.reviews.services import (
    MAX_STEP_MS,
    ReviewChangedElsewhere,
    get_or_create_review,
    get_review_rubric,
    keep_without_judge,
    reopen_for_judge,
    save_final_choices,
    save_first_choices,
    skip_comparison,
    undo_last_step,
)
from evaluations.reviews.sheet import build_sheet
from evaluations.rubrics.services import add_rubric, create_next_version
from evaluations.verdicts.changes import read_rater_states
from tests.factories.evaluations import make_comparison, make_evaluation, make_human, make_user
from tests.factories.verdicts import (
    ALL_A,
    ALL_B,
    ALL_TIE,
    SIX_ASPECT_KEYS,
    make_judge_rater,
    make_judge_score,
    make_judge_verdicts,
    make_scoring_judge,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("consistent_packed_votes")]


@pytest.fixture
def comparison(owner: User) -> Comparison:
    evaluation = make_evaluation(owner)
    evaluation.shown_judge = make_judge_rater(evaluation).judge
    evaluation.save()
    return make_comparison(evaluation)


def judged(comparison: Comparison) -> Comparison:
    make_judge_verdicts(comparison, as_stored=ALL_B, swapped=ALL_B, rationale="B is longer.")
    return comparison


def stored(review: Review, stage: Stage) -> dict[str, str]:
    return dict(review.verdicts.filter(stage=stage).values_list("aspect__key", "choice"))


def shown_to(owner: User, comparison: Comparison, order: ShownOrder) -> Comparison:
    """The comparison, or another of its evaluation, that this person meets in that order."""
    while get_order_shown(owner, comparison) != order:
        comparison = make_comparison(comparison.evaluation)
    return comparison


def entered(review: Review) -> Mapping[str, str]:
    """What stands in the fields of the page, not saved."""
    draft = read_draft(review)
    return draft.fields if draft else {}


def first(owner: User, comparison: Comparison, choices: Answers = ALL_A, **how: Any) -> Review:
    return save_first_choices(owner, comparison, choices=choices, **{"version": 0, **how})


def final(owner: User, review: Review, choices: Answers = ALL_A, **how: Any) -> Review:
    return save_final_choices(
        owner, review.comparison, choices=choices, **{"version": review.version, "notes": {}, **how}
    )


# ---- first choices


def test_what_is_left_for_the_person_is_stored_in_terms_of_a_and_b_as_stored(
    owner: User, comparison: Comparison
) -> None:
    as_stored = first(owner, shown_to(owner, comparison, ShownOrder.AS_STORED))
    swapped = first(owner, shown_to(owner, comparison, ShownOrder.SWAPPED))
    assert (as_stored.shown, stored(as_stored, Stage.FIRST)) == (ShownOrder.AS_STORED, ALL_A)
    assert (swapped.shown, stored(swapped, Stage.FIRST)) == (ShownOrder.SWAPPED, ALL_B)
    assert set(swapped.verdicts.values_list("shown", flat=True)) == {ShownOrder.SWAPPED}


def test_ties_stay_ties_whatever_the_order(owner: User, comparison: Comparison) -> None:
    assert stored(first(owner, shown_to(owner, comparison, ShownOrder.SWAPPED), ALL_TIE), Stage.FIRST) == ALL_TIE


def test_where_the_judge_has_not_answered_first_is_final(owner: User, comparison: Comparison) -> None:
    review = first(owner, comparison)
    assert review.state == ReviewState.FINAL
    assert stored(review, Stage.FIRST) == stored(review, Stage.FINAL)
    assert review.finished_at == review.first_saved_at


def test_where_the_judge_has_answered_first_waits_for_final(owner: User, comparison: Comparison) -> None:
    review = first(owner, judged(comparison))
    assert review.state == ReviewState.FIRST
    assert stored(review, Stage.FINAL) == {}
    assert review.finished_at is None


def test_an_answer_in_one_order_of_two_is_no_answer_yet(owner: User, comparison: Comparison) -> None:
    make_judge_verdicts(comparison, as_stored=ALL_A, swapped="pending")
    assert first(owner, comparison).state == ReviewState.FINAL


def test_a_judge_of_other_aspects_reveals_nothing(owner: User, comparison: Comparison) -> None:
    make_judge_verdicts(comparison, as_stored={"overall": "A"})
    assert first(owner, comparison).state == ReviewState.FINAL


def test_where_the_judge_is_never_shown_first_is_final(owner: User, comparison: Comparison) -> None:
    change_evaluation(comparison.evaluation, {"reveal": Reveal.NEVER}, user=owner)
    review = first(owner, judged(comparison))
    assert (review.state, review.blind) == (ReviewState.FINAL, True)


def test_where_the_judge_stands_from_the_start_first_is_final_and_not_blind(
    owner: User, comparison: Comparison
) -> None:
    change_evaluation(comparison.evaluation, {"reveal": Reveal.SHOWN}, user=owner)
    review = first(owner, judged(comparison))
    assert (review.state, review.blind) == (ReviewState.FINAL, False)


def test_blind_or_shown_can_be_drawn_for_every_comparison(owner: User, comparison: Comparison) -> None:
    evaluation = change_evaluation(comparison.evaluation, {"reveal": Reveal.RANDOMISED}, user=owner)
    reviews = [first(owner, judged(make_comparison(evaluation))) for _ in range(24)]
    assert {(review.blind, review.state) for review in reviews} == {
        (True, ReviewState.FIRST),
        (False, ReviewState.FINAL),
    }


def test_a_review_by_someone_who_saw_others_choices_is_not_blind(owner: User, comparison: Comparison) -> None:
    assert not first(owner, comparison, seen_verdicts=True).blind


def test_a_second_review_by_the_next_rubric_is_not_blind(owner: User, comparison: Comparison) -> None:
    evaluation = comparison.evaluation
    assert first(owner, comparison).blind
    rubric = evaluation.review_rubric
    assert rubric is not None
    changed = RubricSpec(**{**vars(SIX_ASPECT), "instructions": "Choose."})
    change_evaluation(
        evaluation, {"review_rubric": create_next_version(rubric.rubric, changed, user=owner)}, user=owner
    )
    assert not first(owner, comparison).blind


def test_every_aspect_needs_a_choice(owner: User, comparison: Comparison) -> None:
    with pytest.raises(InputRefused, match=r"Depth, Safety"):
        first(owner, comparison, {key: Choice.A for key in SIX_ASPECT_KEYS if key not in ("depth", "safety")})
    assert not Review.objects.exists()


def test_only_what_the_rubric_offers_is_taken(owner: User, comparison: Comparison) -> None:
    with pytest.raises(InputRefused, match="does not offer “both_bad”"):
        first(owner, comparison, {**ALL_A, "depth": Choice.BOTH_BAD})
    with pytest.raises(InputRefused, match="does not ask about “charm”"):
        first(owner, comparison, {**ALL_A, "charm": Choice.A})
    assert not Verdict.objects.exists()


def test_the_rubric_is_frozen_by_its_first_use(owner: User, comparison: Comparison) -> None:
    first(owner, comparison)
    rubric = comparison.evaluation.review_rubric
    assert rubric is not None
    rubric.refresh_from_db()
    assert rubric.frozen_at is not None


def test_a_save_changes_the_raters_state_and_writes_one_event(owner: User, comparison: Comparison) -> None:
    review = first(owner, shown_to(owner, comparison, ShownOrder.SWAPPED))
    state = read_rater_states(Rater.objects.all())[review.rater_id]
    assert state.changed_at is not None
    assert (state.changes, state.is_counted) == (1, False)
    event = Event.objects.get(verb="saved first choices")
    assert (event.user, event.object_id) == (owner, review.pk)
    assert event.after == {"state": "final", "shown": "swapped", "choices": ALL_B, "blind": True}


@pytest.mark.parametrize(("sent", "kept"), [(1500, 1500), (-5, 0), (10**12, MAX_STEP_MS)])
def test_active_time_is_bounded(owner: User, comparison: Comparison, sent: int, kept: int) -> None:
    assert first(owner, comparison, active_ms=sent).active_ms == kept


def test_active_time_of_both_steps_adds_up(owner: User, comparison: Comparison) -> None:
    review = first(owner, judged(comparison), active_ms=2000)
    assert final(owner, review, active_ms=700).active_ms == 2700


# ---- double clicks and second tabs


def test_a_double_click_makes_one_review(owner: User, comparison: Comparison) -> None:
    once, twice = first(owner, judged(comparison)), first(owner, comparison)
    assert once == twice
    assert Verdict.objects.filter(stage=Stage.FIRST, review=once).count() == len(SIX_ASPECT_KEYS)
    assert Event.objects.filter(verb="saved first choices").count() == 1


def test_a_second_tab_cannot_overwrite_what_the_first_saved(owner: User, comparison: Comparison) -> None:
    review = first(owner, comparison)
    with pytest.raises(ReviewChangedElsewhere, match="the new ones were not saved"):
        first(owner, comparison, ALL_B)
    assert len(set(stored(review, Stage.FIRST).values())) == 1
    assert Review.objects.count() == 1


def test_a_step_from_an_older_page_changes_nothing(owner: User, comparison: Comparison) -> None:
    skip_comparison(owner, comparison, reason="", version=0)
    with pytest.raises(ReviewChangedElsewhere):
        first(owner, comparison, version=0)
    assert Review.objects.get().state == ReviewState.SKIPPED


def test_skipping_twice_is_skipping_once(owner: User, comparison: Comparison) -> None:
    skip_comparison(owner, comparison, reason="too long", version=0)
    skip_comparison(owner, comparison, reason="too long", version=0)
    assert Event.objects.filter(verb="skipped").count() == 1


def test_confirming_twice_is_confirming_once(owner: User, comparison: Comparison) -> None:
    review = first(owner, judged(comparison))
    version = review.version
    final(owner, review, version=version)
    final(owner, review, version=version)
    assert Event.objects.filter(verb="saved final choices").count() == 1


def test_another_final_choice_from_a_second_tab_is_refused(owner: User, comparison: Comparison) -> None:
    review = final(owner, first(owner, judged(comparison)))
    with pytest.raises(ReviewChangedElsewhere):
        final(owner, review, ALL_TIE)
    assert set(stored(review, Stage.FINAL).values()) != {"tie"}


@pytest.mark.django_db(transaction=True)
def test_two_saves_at_the_same_moment_make_one_review() -> None:
    owner = make_user()
    comparison = make_comparison(make_evaluation(owner))

    def save(choices: Mapping[str, Choice]) -> str:
        try:
            first(owner, comparison, choices)
            return "stored"
        except ReviewChangedElsewhere:
            return "refused"
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(save, [ALL_A, ALL_B])) == ["refused", "stored"]
    review = Review.objects.get()
    assert len(set(stored(review, Stage.FIRST).values())) == 1
    assert review.version == 1


# ---- final choices


def test_an_override_is_stored_beside_the_first_choice_with_its_note(owner: User, comparison: Comparison) -> None:
    comparison = judged(shown_to(owner, comparison, ShownOrder.AS_STORED))
    review = first(owner, comparison)
    final(owner, review, {**ALL_A, "depth": Choice.B}, notes={"depth": "It lists more."}, note="Hard.")
    assert stored(review, Stage.FIRST)["depth"] == "A"
    assert stored(review, Stage.FINAL) == {**ALL_A, "depth": "B"}
    assert review.verdicts.get(stage=Stage.FINAL, aspect__key="depth").note == "It lists more."
    review.refresh_from_db()
    assert (review.state, review.note) == (ReviewState.FINAL, "Hard.")
    assert review.finished_at is not None


def test_first_choices_never_change_after_the_reveal(owner: User, comparison: Comparison) -> None:
    review = first(owner, judged(comparison))
    before = stored(review, Stage.FIRST)
    with pytest.raises(ReviewChangedElsewhere):
        first(owner, comparison, ALL_B, version=review.version)
    review = final(owner, review, ALL_B)
    undo_last_step(owner, review, version=review.version)
    with pytest.raises(ReviewChangedElsewhere):
        first(owner, comparison, ALL_B, version=review.version)
    assert stored(review, Stage.FIRST) == before


def test_final_choices_need_first_ones(owner: User, comparison: Comparison) -> None:
    with pytest.raises(ReviewChangedElsewhere):
        save_final_choices(owner, comparison, choices=ALL_A, notes={}, version=0)
    assert not Review.objects.exists()


# ---- undo and skip


def test_undo_before_any_reveal_opens_the_review_again_with_what_was_chosen(
    owner: User, comparison: Comparison
) -> None:
    review = first(owner, comparison)
    undo_last_step(owner, review, version=review.version)
    assert entered(review) == {f"choice_{key}": "A" for key in SIX_ASPECT_KEYS}
    assert review.state == ReviewState.DRAFT
    assert not review.verdicts.exists()
    again = first(owner, comparison, ALL_B, version=review.version)
    assert (again.pk, again.state) == (review.pk, ReviewState.FINAL)


def test_undo_after_the_reveal_takes_back_the_final_choices_only(owner: User, comparison: Comparison) -> None:
    review = final(owner, first(owner, judged(comparison)), ALL_TIE, notes={"depth": "Equal."})
    before = stored(review, Stage.FIRST)
    undo_last_step(owner, review, version=review.version)
    assert entered(review) == {**{f"choice_{key}": "tie" for key in SIX_ASPECT_KEYS}, "note_depth": "Equal."}
    assert review.state == ReviewState.FIRST
    assert stored(review, Stage.FIRST) == before
    assert stored(review, Stage.FINAL) == {}


def test_undo_keeps_first_choices_of_someone_who_has_seen_others_since(owner: User, comparison: Comparison) -> None:
    review = first(owner, comparison)
    undo_last_step(owner, review, version=review.version, seen_verdicts=True)
    assert review.state == ReviewState.FIRST
    assert review.verdicts.filter(stage=Stage.FIRST).count() == len(SIX_ASPECT_KEYS)


def test_first_choices_that_wait_for_final_ones_cannot_be_undone(owner: User, comparison: Comparison) -> None:
    review = first(owner, judged(comparison))
    with pytest.raises(InputRefused, match="first choices are final"):
        undo_last_step(owner, review, version=review.version)


def test_undo_writes_down_what_it_took_away(owner: User, comparison: Comparison) -> None:
    review = first(owner, shown_to(owner, comparison, ShownOrder.AS_STORED), ALL_B)
    undo_last_step(owner, review, version=review.version)
    event = Event.objects.get(verb="undid")
    assert (event.before["choices"], event.before["state"]) == (ALL_B, "final")
    assert event.after == {"state": "draft"}


def test_undo_from_an_older_page_changes_nothing(owner: User, comparison: Comparison) -> None:
    review = first(owner, comparison)
    with pytest.raises(ReviewChangedElsewhere):
        undo_last_step(owner, review, version=review.version - 1)
    assert review.verdicts.exists()


def test_a_skip_keeps_its_reason_and_can_be_undone(owner: User, comparison: Comparison) -> None:
    review = skip_comparison(owner, comparison, reason="I do not read Finnish", version=0)
    assert (review.state, review.skip_reason) == (ReviewState.SKIPPED, "I do not read Finnish")
    undo_last_step(owner, review, version=review.version)
    assert (review.state, review.skip_reason) == (ReviewState.DRAFT, "")


def test_a_skip_keeps_the_draft_and_counts_its_time_once(owner: User, comparison: Comparison) -> None:
    begun = {"choice_clarity": "B", "note": "Half done"}
    save_draft(get_or_create_review(owner, comparison), version=0, fields=begun, number=0, tab="one", active_ms=4000)
    review = skip_comparison(owner, comparison, reason="later", version=0, active_ms=5000)
    assert entered(review) == begun
    undo_last_step(owner, review, version=1)
    draft = read_draft(review)
    assert draft
    assert (draft.fields, draft.active_ms) == (begun, 0)
    assert first(owner, comparison, version=2, active_ms=1000).active_ms == 6000


def test_a_skipped_comparison_can_be_reviewed_later(owner: User, comparison: Comparison) -> None:
    review = skip_comparison(owner, comparison, reason="later", version=0)
    saved = first(owner, comparison, version=review.version)
    assert (saved.state, saved.skip_reason) == (ReviewState.FINAL, "")


def test_what_was_saved_is_not_skipped(owner: User, comparison: Comparison) -> None:
    review = first(owner, comparison)
    with pytest.raises(ReviewChangedElsewhere):
        skip_comparison(owner, comparison, reason="", version=review.version)


# ---- who and by what


def test_a_person_becomes_a_rater_on_first_need(owner: User, comparison: Comparison) -> None:
    build_sheet(
        owner, comparison, get_review_rubric(comparison.evaluation), find_rater_of_user(owner, comparison.evaluation)
    )
    assert not Rater.objects.filter(kind="human").exists()
    review = first(owner, comparison)
    assert (review.rater.user, review.rater.name) == (owner, owner.username)


def test_a_name_that_an_import_brought_is_told_apart(owner: User, comparison: Comparison) -> None:
    make_human(comparison.evaluation, owner.username)
    assert first(owner, comparison).rater.name == f"{owner.username} (account)"


def test_nothing_is_reviewed_in_an_archived_evaluation(owner: User, comparison: Comparison) -> None:
    move_to_archive(comparison.evaluation, user=owner)
    with pytest.raises(InputRefused, match="archived"):
        first(owner, comparison)


# ---- scores


def scored(owner: User, comparison: Comparison, **scale: Any) -> Comparison:
    """The comparison, or another, that this person meets swapped, under a rubric that asks for scores of clarity."""
    asked = AspectSpec("clarity", "Clarity", "", **{"scale_min": 1, "scale_max": 5, "scale_step": 1, **scale})
    spec = RubricSpec(RubricKind.POINTWISE, "Rate.", (asked,), ("clarity",))
    evaluation = comparison.evaluation
    version = add_rubric(evaluation, name="scores", spec=spec, origin=RubricOrigin.OWN, user=owner)
    change_evaluation(evaluation, {"review_rubric": version}, user=owner)
    return shown_to(owner, comparison, ShownOrder.SWAPPED)


def scores(review: Review, stage: Stage) -> dict[int, float]:
    return dict(review.scores.filter(stage=stage).values_list("response_id", "value"))


def test_scores_of_both_responses_are_stored_first_and_final_and_no_verdict(
    owner: User, comparison: Comparison
) -> None:
    comparison = scored(owner, comparison)
    review = first(owner, comparison, {"clarity": ScorePair(2, 4)})
    # Swapped: what stands on the left is B as stored.
    given = {comparison.response_b_id: 2.0, comparison.response_a_id: 4.0}
    assert (review.state, scores(review, Stage.FIRST), scores(review, Stage.FINAL)) == ("final", given, given)
    assert not review.verdicts.exists()
    assert Event.objects.get(verb="saved first choices").after["choices"] == {"clarity": [4.0, 2.0]}


def test_scores_and_a_judge_of_single_responses_are_compared_by_what_they_say_together(
    owner: User, comparison: Comparison
) -> None:
    """Margin 0.5. The judge gave A 4 and B 2, so A, on the right. 3 to 3.5 is a tie; 2 to 3 is the right one."""
    comparison = scored(owner, comparison, scale_step=0.5, tie_margin=0.5)
    scorer = make_scoring_judge(comparison.evaluation, aspect="clarity")
    change_evaluation(comparison.evaluation, {"shown_judge": scorer.judge}, user=owner)
    make_judge_score(scorer, comparison.response_a, 4, aspect="clarity")
    make_judge_score(scorer, comparison.response_b, 2, aspect="clarity")
    review = first(owner, comparison, {"clarity": ScorePair(3, 3.5)})
    rubric, rater = get_review_rubric(comparison.evaluation), find_rater_of_user(owner, comparison.evaluation)
    line = build_sheet(owner, comparison, rubric, rater).lines[0]
    assert (line.first_choice, line.differs) == (Choice.TIE, True)
    assert line.judge is not None
    assert (line.judge.choice, line.judge.scores) == (Choice.B, ScorePair(2, 4))
    final(owner, review, {"clarity": ScorePair(2, 3)}, notes={"clarity": "Right."}, reasons={"clarity": "other"})
    after = build_sheet(owner, comparison, rubric, rater).lines[0]
    assert (after.first, after.final, after.final_choice) == (ScorePair(3, 3.5), ScorePair(2, 3), Choice.B)
    assert (after.note, after.reason) == ("Right.", "other")
    # What was written about an aspect stands on one of its two scores.
    assert review.scores.filter(reason="other").count() == review.scores.filter(note="Right.").count() == 1


@pytest.mark.parametrize("value", [0, 6, 2.5, float("nan")])
def test_a_score_off_the_scale_is_refused_in_words(owner: User, comparison: Comparison, value: float) -> None:
    comparison = scored(owner, comparison)
    with pytest.raises(InputRefused, match="score for Clarity must be a number from 1 to 5 in steps of 1, not "):
        first(owner, comparison, {"clarity": ScorePair(3, value)})
    assert not Review.objects.exists()


def test_a_score_is_stored_as_the_value_of_the_scale_that_it_is(owner: User, comparison: Comparison) -> None:
    comparison = scored(owner, comparison, scale_min=0, scale_max=1, scale_step=0.1)
    review = first(owner, comparison, {"clarity": ScorePair(0.1 + 0.2, 0.7)})
    assert set(scores(review, Stage.FIRST).values()) == {0.3, 0.7}
    assert first(owner, comparison, {"clarity": ScorePair(0.3, 0.7)}) == review  # the same step again


def test_scores_are_asked_for_both_responses_and_choices_are_none(owner: User, comparison: Comparison) -> None:
    comparison = scored(owner, comparison)
    with pytest.raises(InputRefused, match="Clarity is still missing"):
        first(owner, comparison, {})
    with pytest.raises(InputRefused, match="does not offer “A” for Clarity"):
        first(owner, comparison, {"clarity": Choice.A})


def test_a_pairwise_rubric_takes_no_scores(owner: User, comparison: Comparison) -> None:
    with pytest.raises(InputRefused, match="which response is better for Depth"):
        first(owner, comparison, {**ALL_A, "depth": ScorePair(1, 2)})


def test_undo_gives_scores_back_to_their_fields(owner: User, comparison: Comparison) -> None:
    review = first(owner, scored(owner, comparison), {"clarity": ScorePair(2, 4)})
    undo_last_step(owner, review, version=review.version)
    assert entered(review) == {"left_clarity": "2", "right_clarity": "4"}
    assert not review.scores.exists()


# ---- reasons


def test_a_reason_stands_on_the_final_verdict(owner: User, comparison: Comparison) -> None:
    review = first(owner, judged(comparison))
    review = final(owner, review, reasons={"depth": DifferenceReason.MISSED_ERROR})
    given = review.verdicts.exclude(reason="").values_list("aspect__key", "stage", "reason")
    assert list(given) == [("depth", "final", "missed_error")]
    assert Event.objects.get(verb="saved final choices").after["reasons"] == {"depth": "missed_error"}
    undo_last_step(owner, review, version=review.version)
    assert entered(review)["reason_depth"] == "missed_error"


def test_what_is_written_with_choices_is_recorded_with_every_save(owner: User, comparison: Comparison) -> None:
    review = first(owner, judged(comparison), note="Hard.")
    assert Event.objects.get(verb="saved first choices").after["note"] == "Hard."
    review = final(owner, review, notes={"depth": "Shallow.", "clarity": ""}, note="Easy.")
    review = undo_last_step(owner, review, version=review.version)
    final(owner, review, notes={"depth": "Deep."})
    words = [
        (event.after.get("note"), event.after["notes"]) for event in Event.objects.filter(verb="saved final choices")
    ]
    assert words == [("Easy.", {"depth": "Shallow."}), (None, {"depth": "Deep."})]
    undone = Event.objects.get(verb="undid").before
    assert (undone["note"], undone["notes"]) == ("Easy.", {"depth": "Shallow."})


def test_a_reason_that_is_none_is_refused(owner: User, comparison: Comparison) -> None:
    review = first(owner, judged(comparison))
    with pytest.raises(InputRefused, match="“boredom” is not a reason"):
        final(owner, review, reasons={"depth": "boredom"})
    assert not review.verdicts.filter(stage=Stage.FINAL).exists()


# ---- a judge that answers later


def test_what_became_final_without_the_judge_awaits_it(owner: User, comparison: Comparison) -> None:
    assert first(owner, comparison).awaits_judge
    assert not first(owner, judged(make_comparison(comparison.evaluation))).awaits_judge


@pytest.mark.parametrize("columns", [{"reveal": Reveal.NEVER}, {"shown_judge": None}])
def test_where_no_judge_is_to_be_shown_none_is_awaited(
    owner: User, comparison: Comparison, columns: dict[str, Any]
) -> None:
    change_evaluation(comparison.evaluation, columns, user=owner)
    assert not first(owner, comparison).awaits_judge


def test_a_second_look_keeps_the_first_choices_and_takes_the_final_ones_back(
    owner: User, comparison: Comparison
) -> None:
    review = first(owner, comparison)
    before = stored(review, Stage.FIRST)
    judged(comparison)
    reopen_for_judge(owner, review, version=review.version)
    assert (review.state, review.awaits_judge, review.finished_at) == (ReviewState.FIRST, False, None)
    assert (stored(review, Stage.FIRST), stored(review, Stage.FINAL)) == (before, {})
    assert not Label.objects.exists()
    assert Event.objects.get(verb="looked again").before["choices"] == before
    assert final(owner, review, ALL_B).state == ReviewState.FINAL
    assert stored(review, Stage.FIRST) == before
    assert Label.objects.filter(comparison=comparison).count() == len(SIX_ASPECT_KEYS)


def test_there_is_no_second_look_before_the_judge_has_answered(owner: User, comparison: Comparison) -> None:
    review = first(owner, comparison)
    with pytest.raises(InputRefused, match="has not answered"):
        reopen_for_judge(owner, review, version=review.version)
    assert review.state == ReviewState.FINAL


def test_a_review_that_met_the_judge_gets_no_second_look(owner: User, comparison: Comparison) -> None:
    review = final(owner, first(owner, judged(comparison)))
    with pytest.raises(ReviewChangedElsewhere):
        reopen_for_judge(owner, review, version=review.version)
    assert stored(review, Stage.FINAL)


def test_what_is_left_as_it_is_does_not_come_back(owner: User, comparison: Comparison) -> None:
    review = first(owner, comparison)
    judged(comparison)
    keep_without_judge(owner, review, version=review.version)
    assert (review.state, review.awaits_judge) == (ReviewState.FINAL, False)
    assert stored(review, Stage.FINAL)


def test_a_judge_shown_from_the_start_that_has_not_answered_leaves_the_person_blind(
    owner: User, comparison: Comparison
) -> None:
    change_evaluation(comparison.evaluation, {"reveal": Reveal.SHOWN}, user=owner)
    review = first(owner, comparison)
    assert (review.blind, review.judge_first, review.awaits_judge) == (True, True, True)


# ---- the judge that is shown


def shown_by(owner: User, comparison: Comparison) -> str | None:
    evaluation = comparison.evaluation
    told = build_sheet(owner, comparison, get_review_rubric(evaluation), find_rater_of_user(owner, evaluation)).judge
    return told.judge.name if told else None


def another_is_shown(owner: User, comparison: Comparison, *, answers: bool = True) -> Judge:
    other = make_judge_rater(comparison.evaluation, "other").judge
    assert other is not None
    change_evaluation(comparison.evaluation, {"shown_judge": other}, user=owner)
    if answers:
        make_judge_verdicts(comparison, judge="other", as_stored=ALL_A, swapped=ALL_A)
    return other


def test_the_judge_that_was_revealed_stays_the_one_of_this_review(owner: User, comparison: Comparison) -> None:
    shown = comparison.evaluation.shown_judge
    review = first(owner, judged(comparison))
    another_is_shown(owner, comparison)
    assert (review.judge, shown_by(owner, comparison)) == (shown, "longest")
    assert final(owner, review).judge == shown
    assert shown_by(owner, comparison) == "longest"


def test_a_second_look_is_at_the_judge_that_is_shown_by_then(owner: User, comparison: Comparison) -> None:
    review = first(owner, comparison)
    assert (review.awaits_judge, review.judge) == (True, comparison.evaluation.shown_judge)
    judged(comparison)
    other = another_is_shown(owner, comparison, answers=False)
    with pytest.raises(InputRefused, match="has not answered"):
        reopen_for_judge(owner, review, version=review.version)
    make_judge_verdicts(comparison, judge="other", as_stored=ALL_A, swapped=ALL_A)
    reopen_for_judge(owner, review, version=review.version)
    assert (review.judge, shown_by(owner, comparison)) == (other, "other")


def test_where_no_judge_is_shown_the_review_has_none_and_gets_none_later(owner: User, comparison: Comparison) -> None:
    change_evaluation(comparison.evaluation, {"shown_judge": None}, user=owner)
    review = first(owner, judged(comparison))
    another_is_shown(owner, comparison)
    undo_last_step(owner, review, version=review.version, seen_verdicts=True)
    assert (review.state, review.judge, shown_by(owner, comparison)) == (ReviewState.FIRST, None, None)


def test_what_is_taken_back_whole_meets_the_judge_that_is_shown_by_then(owner: User, comparison: Comparison) -> None:
    review = first(owner, comparison)
    undo_last_step(owner, review, version=review.version)
    assert review.judge is None
    other = another_is_shown(owner, comparison)
    assert first(owner, comparison, version=review.version).judge == other


# ---- how it was met


def test_the_first_save_keeps_how_the_comparison_was_selected_and_by_which_rule_the_judge_was_shown(
    owner: User, comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        reservations, "complete_assignment", lambda review: AssignmentOrigin(SelectionMethod.STRATIFIED, None, 0.25)
    )
    review = first(owner, comparison)
    assert (review.selection_method, review.queue, review.probability) == (SelectionMethod.STRATIFIED, None, 0.25)
    assert (review.reveal, review.judge_first) == (Reveal.BLIND, False)


@pytest.mark.parametrize("reveal", [Reveal.BLIND, Reveal.SHOWN])
def test_a_calibration_review_meets_no_judge(
    owner: User, comparison: Comparison, monkeypatch: pytest.MonkeyPatch, reveal: Reveal
) -> None:
    change_evaluation(comparison.evaluation, {"reveal": reveal}, user=owner)
    monkeypatch.setattr(
        reservations, "complete_assignment", lambda review: AssignmentOrigin(SelectionMethod.CALIBRATION)
    )
    review = first(owner, judged(comparison))
    assert (review.state, review.blind, review.judge_first, review.awaits_judge) == ("final", True, False, False)
    rubric = get_review_rubric(comparison.evaluation)
    assert build_sheet(owner, comparison, rubric, find_rater_of_user(owner, comparison.evaluation)).judge is None
    assert not Label.objects.exists()


# ---- steps sent again


def test_an_undo_sent_again_by_the_same_page_is_done_once(owner: User, comparison: Comparison) -> None:
    review = first(owner, comparison)
    version = review.version
    undo_last_step(owner, review, version=version, tab="this page")
    undo_last_step(owner, review, version=version, tab="this page")
    assert Event.objects.filter(verb="undid").count() == 1
    with pytest.raises(InputRefused, match="Nothing to undo"):
        undo_last_step(owner, review, version=version, tab="another page")


def test_an_undo_can_bring_other_choices_to_the_fields(owner: User, comparison: Comparison) -> None:
    review = first(owner, comparison)
    undo_last_step(owner, review, version=review.version, instead={"choice_depth": "B"})
    assert entered(review) == {"choice_depth": "B"}


def test_a_resent_step_adds_no_time(owner: User, comparison: Comparison) -> None:
    first(owner, comparison, active_ms=900)
    assert first(owner, comparison, active_ms=900).active_ms == 900
