"""The steps of a review: save, confirm, skip, undo, reopen."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from django.db import IntegrityError
from django.db.models import F
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.choices import ShownOrder, Stage
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import SAVED_REVIEW_STATES, Reveal, ReviewState, SelectionMethod
from evaluations.domain.rubrics import RubricSpec
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater, get_or_create_rater
from evaluations.models.rubrics import RubricVersion
from evaluations.models.transactions import transaction_in_turn
from evaluations.models.users import User
from evaluations.models.verdicts import Review
from evaluations.reviews.answers import (
    NO_TEXTS,
    Answers,
    ReviewAnswers,
    TextByAspect,
    build_field_values,
    delete_answers,
    drop_empty_texts,
    read_answers,
    refuse_unknown_reasons,
    store_answers,
    swap_answer,
    validate_answers,
)
from evaluations.reviews.drafts import build_draft, reset_draft_time, save_draft
from evaluations.reviews.queues import reservations
from evaluations.reviews.queues.reservations import restore_reservation, skip_assignment
from evaluations.reviews.queues.selectors import has_seen_known_label
from evaluations.reviews.selectors import get_order_shown, is_judge_shown_first
from evaluations.reviews.sheet import get_judge_shown_to, has_judge_answered, is_awaiting_judge
from evaluations.rubrics.services import freeze_version
from evaluations.verdicts.changes import ChangedRow, record_changes
from evaluations.verdicts.votes import update_labels
from evaluations.visibility import was_revealed

# One step takes at most this long: a page left open overnight is not a night of work.
MAX_STEP_MS: Final = 30 * 60 * 1000


class EnteredStep(NamedTuple):
    """The input of one step."""

    choices: Answers
    note: str
    notes: TextByAspect = NO_TEXTS
    reasons: TextByAspect = NO_TEXTS


class ReviewChangedElsewhere(InputRefused):
    """The review changed since the page was loaded; the step was not stored."""


def advance_review(review: Review, version: int, *, active_ms: int = 0, **columns: object) -> None:
    """Update the review if its version is still what the user saw: the conditional update is the lock."""
    values = {"version": version + 1, "draft": {}, "draft_tab": "", **columns}
    values["active_ms"] = review.active_ms + min(max(active_ms, 0), MAX_STEP_MS)
    # Without the join of `objects`, whose subquery would not be read again once another step has let go of the row.
    unchanged = Review.all_rows.filter(pk=review.pk, version=version)
    if review.version != version or not unchanged.update(**values):
        raise ReviewChangedElsewhere(
            "This review was changed elsewhere, perhaps in another tab. Your changes were not saved."
        )
    for name, value in values.items():
        setattr(review, name, value)
    record_changes(review.comparison.evaluation_id, [ChangedRow(review.rater_id, review.comparison_id)])


def reopen_review(
    review: Review,
    version: int,
    answers: ReviewAnswers,
    tab: str,
    *,
    keeps_first: bool,
    active_ms: int = 0,
    instead: Mapping[str, str] | None = None,
    **columns: object,
) -> None:
    """Reopen the review before its final or first choices; the answers become the draft."""
    fields = instead or build_field_values(answers.final, answers.notes, answers.reasons)
    columns["draft"] = build_draft(fields) if fields else review.draft
    columns |= {"draft_tab": tab, "draft_number": F("draft_number") + 1, "finished_at": None}
    if keeps_first:
        advance_review(review, version, state=ReviewState.FIRST, active_ms=active_ms, **columns)
        delete_answers(review, Stage.FINAL)
    else:
        columns |= {"first_saved_at": None, "skip_reason": "", "awaits_judge": False, "judge_id": None}
        restore_reservation(review)
        advance_review(review, version, state=ReviewState.DRAFT, active_ms=active_ms, **columns)
        delete_answers(review)
    review.refresh_from_db(fields=["draft_number"])  # drafts count it on without a new version
    if answers.final:
        update_labels([review.comparison_id])


def is_repeated_step(review: Review, version: int, tab: str) -> bool:
    """Whether this page took the step already, and the response was lost."""
    reopened = review.state in (ReviewState.DRAFT, ReviewState.FIRST)
    return bool(tab) and reopened and review.draft_tab == tab and review.version == version + 1


def accept_repeat_or_refuse(review: Review, stored: EnteredStep, sent: EnteredStep) -> Review:
    """The review, if the step repeats what is stored; anything else is refused."""
    if stored == sent:
        return review
    raise ReviewChangedElsewhere(
        "You already saved this comparison with other answers. Those are shown; the new ones were not saved."
    )


def refuse_unless_awaiting_judge(review: Review) -> None:
    if not is_awaiting_judge(review):
        raise ReviewChangedElsewhere("This review is no longer waiting for the judge. Nothing was changed.")


def get_judge_exposure(user: User, review: Review, spec: RubricSpec, *, calibrates: bool) -> dict[str, bool]:
    """How the judge relates to this review at its first save.

    ``first``: the judge is shown before the reviewer chooses; ``seen``: it was, because it had answered.
    ``waits``: its choices are revealed now; ``awaited``: they are revealed once it has answered.
    """
    evaluation = review.comparison.evaluation
    if calibrates or evaluation.shown_judge_id is None or evaluation.reveal == Reveal.NEVER:
        return dict.fromkeys(("first", "seen", "waits", "awaited"), False)
    first = is_judge_shown_first(evaluation, user, review.comparison)
    answered = has_judge_answered_review(review, spec)
    return {"first": first, "seen": first and answered, "waits": not first and answered, "awaited": not answered}


def has_judge_answered_review(review: Review, spec: RubricSpec) -> bool:
    judge = get_judge_shown_to(review, review.comparison.evaluation)
    return has_judge_answered(judge, review.comparison, {aspect.key for aspect in spec.aspects})


# ---- the record


def describe_review(
    review: Review,
    choices: Answers,
    note: str = "",
    notes: TextByAspect = NO_TEXTS,
    reasons: TextByAspect = NO_TEXTS,
) -> dict[str, object]:
    """The answers as the event stores them, in terms of A and B as stored."""
    shown = ShownOrder(review.shown)
    texts = {"note": note, "notes": drop_empty_texts(notes), "reasons": drop_empty_texts(reasons)}
    return {
        "state": review.state,
        "shown": shown,
        "choices": {key: swap_answer(answer, shown) for key, answer in choices.items()},
        **{name: text for name, text in texts.items() if text},
    }


def record_review_step(verb: str, review: Review, user: User, **states: Any) -> None:
    record_event(verb, review, user=user, evaluation=review.comparison.evaluation, **states)


def get_review_rubric(evaluation: Evaluation) -> RubricVersion:
    """The rubric version used for reviews; refused if there is none or the evaluation is archived."""
    if evaluation.archived_at is not None:
        raise InputRefused("This evaluation is archived. Restore it to review comparisons.")
    if evaluation.review_rubric is None:
        raise InputRefused("This evaluation has no rubric for reviews yet. Choose one in its settings.")
    return evaluation.review_rubric


@transaction_in_turn()
def save_first_choices(
    user: User,
    comparison: Comparison,
    *,
    choices: Answers,
    version: int,
    rater: Rater | None = None,
    seen_verdicts: bool = False,
    note: str = "",
    active_ms: int = 0,
) -> Review:
    """Store the first choices. They are final at once unless a judge is to be revealed.

    ``rater``: the user's, if already read; so in the steps below.
    """
    review = get_or_create_review(user, comparison, rater)
    spec = review.rubric_version.spec()
    choices = validate_answers(spec, choices, is_single=comparison.is_single)
    if review.state in SAVED_REVIEW_STATES:
        stored_first = EnteredStep(read_answers(review, spec.kind).first, review.note)
        return accept_repeat_or_refuse(review, stored_first, EnteredStep(choices, note))
    origin = reservations.complete_assignment(review)
    judge = get_judge_exposure(user, review, spec, calibrates=origin.selection_method == SelectionMethod.CALIBRATION)
    saved = Review.objects.filter(rater=review.rater_id, comparison=comparison, state__in=SAVED_REVIEW_STATES)
    by_other_version = saved.exclude(pk=review.pk)
    now = timezone.now()
    advance_review(
        review,
        version,
        state=ReviewState.FIRST if judge["waits"] else ReviewState.FINAL,
        blind=not (seen_verdicts or judge["seen"] or by_other_version.exists()),
        judge_first=judge["first"],
        reveal=comparison.evaluation.reveal,
        judge_id=comparison.evaluation.shown_judge_id if any(judge.values()) else None,
        awaits_judge=judge["awaited"],
        selection_method=origin.selection_method,
        queue=origin.queue,
        probability=origin.probability,
        first_saved_at=now,
        finished_at=None if judge["waits"] else now,
        note=note,
        skip_reason="",
        active_ms=active_ms,
    )
    is_final = review.state == ReviewState.FINAL
    store_answers(review, choices, *((Stage.FIRST, Stage.FINAL) if is_final else (Stage.FIRST,)))
    if is_final:
        update_labels([comparison.pk])
    record_review_step(
        "saved first choices", review, user, after={**describe_review(review, choices, note), "blind": review.blind}
    )
    return review


@transaction_in_turn()
def save_final_choices(
    user: User,
    comparison: Comparison,
    *,
    choices: Answers,
    notes: TextByAspect,
    version: int,
    rater: Rater | None = None,
    reasons: TextByAspect = NO_TEXTS,
    note: str = "",
    active_ms: int = 0,
) -> Review:
    """Store the final choices, made in sight of the judge's. The first ones stay as they are."""
    review = get_or_create_review(user, comparison, rater)
    spec = review.rubric_version.spec()
    choices = validate_answers(spec, choices, is_single=comparison.is_single)
    refuse_unknown_reasons(reasons)
    if review.state == ReviewState.FINAL:
        answers = read_answers(review, spec.kind)
        stored_final = EnteredStep(answers.final, review.note, answers.notes, answers.reasons)
        sent = EnteredStep(choices, note, drop_empty_texts(notes), drop_empty_texts(reasons))
        return accept_repeat_or_refuse(review, stored_final, sent)
    if review.state != ReviewState.FIRST:
        raise ReviewChangedElsewhere("This review was undone elsewhere. Nothing was saved. Choose again.")
    awaits = review.awaits_judge and not has_judge_answered_review(review, spec)
    advance_review(
        review,
        version,
        state=ReviewState.FINAL,
        finished_at=timezone.now(),
        awaits_judge=awaits,
        judge_id=review.judge_id if awaits else get_judge_shown_to(review, comparison.evaluation),
        note=note,
        active_ms=active_ms,
    )
    store_answers(review, choices, Stage.FINAL, notes=notes, reasons=reasons)
    update_labels([comparison.pk])
    record_review_step(
        "saved final choices", review, user, after=describe_review(review, choices, note, notes, reasons)
    )
    return review


@transaction_in_turn()
def skip_comparison(
    user: User, comparison: Comparison, *, reason: str, version: int, rater: Rater | None = None, active_ms: int = 0
) -> Review:
    """Skip the comparison: it comes back, with its draft, when nothing else is left."""
    review = get_or_create_review(user, comparison, rater)
    if review.state == ReviewState.SKIPPED and version < review.version:
        return review
    if review.state in SAVED_REVIEW_STATES:
        raise ReviewChangedElsewhere("You already saved choices here, so it was not skipped. Undo them first.")
    skip_assignment(review)
    advance_review(
        review,
        version,
        state=ReviewState.SKIPPED,
        finished_at=timezone.now(),
        skip_reason=reason,
        active_ms=active_ms,
        draft=reset_draft_time(review.draft),
    )
    record_review_step("skipped", review, user, after={"reason": reason})
    return review


@transaction_in_turn()
def undo_last_step(
    user: User,
    review: Review,
    *,
    version: int,
    seen_verdicts: bool = False,
    tab: str = "",
    active_ms: int = 0,
    instead: Mapping[str, str] | None = None,
) -> Review:
    """Undo the last step; its answers, or the fields ``instead``, become the draft.

    Once others' choices were seen, that can only be the final ones.
    """
    if is_repeated_step(review, version, tab):
        return review
    if review.state not in (ReviewState.FINAL, ReviewState.SKIPPED):
        raise InputRefused("Nothing to undo: first choices are final once the judge is revealed.")
    has_seen_label = review.state == ReviewState.FINAL and has_seen_known_label(review)
    if has_seen_label and review.selection_method == SelectionMethod.CALIBRATION:
        raise InputRefused("You have seen the result of this calibration, so your choices are final.")
    keeps_first = review.state == ReviewState.FINAL and (was_revealed(review) or seen_verdicts or has_seen_label)
    answers = read_answers(review, review.rubric_version.spec().kind)
    before = {
        **describe_review(review, answers.final, review.note, answers.notes, answers.reasons),
        "reason": review.skip_reason,
    }
    reopen_review(review, version, answers, tab, keeps_first=keeps_first, active_ms=active_ms, instead=instead)
    record_review_step("undid", review, user, before=before, after={"state": review.state})
    return review


@transaction_in_turn()
def reopen_for_judge(user: User, review: Review, *, version: int, tab: str = "") -> Review:
    """Reopen a review whose judge has answered since, to confirm the choices."""
    if is_repeated_step(review, version, tab):
        return review
    refuse_unless_awaiting_judge(review)
    spec = review.rubric_version.spec()
    if not has_judge_answered_review(review, spec):
        raise InputRefused("The judge has not answered this comparison yet. Your choices are kept.")
    answers = read_answers(review, spec.kind)
    judge = get_judge_shown_to(review, review.comparison.evaluation)
    reopen_review(review, version, answers, tab, keeps_first=True, awaits_judge=False, judge_id=judge)
    before = describe_review(review, answers.final, review.note, answers.notes, answers.reasons)
    record_review_step("looked again", review, user, before=before, after={"state": review.state})
    return review


@transaction_in_turn()
def keep_without_judge(user: User, review: Review, *, version: int) -> Review:
    """Keep choices that became final without the judge."""
    if review.state == ReviewState.FINAL and not review.awaits_judge and version < review.version:
        return review
    refuse_unless_awaiting_judge(review)
    advance_review(review, version, awaits_judge=False)
    record_review_step("left as it is", review, user)
    return review


def get_or_create_review(user: User, comparison: Comparison, rater: Rater | None = None) -> Review:
    """The user's review of the comparison; a new one stores the order that they were shown.

    ``rater``: the user's, if already read.
    """
    new = build_review(user, comparison, rater)
    key = {"rater": new.rater, "comparison": comparison, "rubric_version": new.rubric_version}
    review, _ = Review.objects.get_or_create(**key, defaults={"shown": new.shown, "state": new.state})
    review.rater, review.comparison, review.rubric_version = new.rater, comparison, new.rubric_version
    return review


def build_review(user: User, comparison: Comparison, rater: Rater | None) -> Review:
    """A new review, not stored. From now on its rubric version cannot change."""
    rubric = get_review_rubric(comparison.evaluation)
    freeze_version(rubric)
    return Review(
        rater=rater or get_or_create_rater(user, comparison.evaluation),
        comparison=comparison,
        rubric_version=rubric,
        shown=get_order_shown(user, comparison),
        state=ReviewState.DRAFT,
    )


def create_or_save_draft(
    user: User,
    comparison: Comparison,
    *,
    rater: Rater | None = None,
    version: int,
    fields: Mapping[str, str],
    number: int,
    tab: str,
    active_ms: int = 0,
) -> Review:
    """Store the draft in the user's review. The first one is stored with the review, in one statement."""
    if version == number == 0:
        new = build_review(user, comparison, rater)
        new.draft, new.draft_number, new.draft_tab = build_draft(fields, active_ms), 1, tab
        own = Review.all_rows.filter(rater=new.rater, comparison=comparison, rubric_version=new.rubric_version)
        with suppress(IntegrityError):  # another tab may just have created it
            if not own.exists():
                new.save(force_insert=True)
                return new
    review = get_or_create_review(user, comparison, rater)
    return save_draft(review, version=version, fields=fields, number=number, tab=tab, active_ms=active_ms)
