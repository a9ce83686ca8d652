"""One person's pass over one comparison: first choices, the reveal, final choices, skip and undo.

Choices come in and go out as the person sees them, A on the left; they are stored in terms of A
and B as stored. Every step names the version of the review that it was made from: a step from an
older one, in a second tab say, changes nothing, unless it is the same step sent again.
"""

from collections.abc import Mapping

from django.utils import timezone

from evaluations.domain import SAVED_REVIEW_STATES, InputRefused, PickedBy, ReviewState, Stage
from evaluations.models import Comparison, Evaluation, Review, RubricVersion, User
from evaluations.services.pacing import in_turn
from evaluations.services.preparing.preparing import freeze
from evaluations.services.reviewing import holding
from evaluations.services.reviewing.calibrating import saw_known_label
from evaluations.services.reviewing.drawing import order_shown
from evaluations.services.reviewing.keeping import counted
from evaluations.services.reviewing.presenting import was_revealed
from evaluations.services.reviewing.revealing import judge_shown_to
from evaluations.services.reviewing.saying import (
    Choices,
    Words,
    checked,
    filled,
    refuse_unknown_reasons,
    said_in,
    write,
)
from evaluations.services.reviewing.seating import rater_for as rater_for
from evaluations.services.reviewing.seating import rater_of as rater_of
from evaluations.services.reviewing.stepping import LONGEST_STEP_MS as LONGEST_STEP_MS
from evaluations.services.reviewing.stepping import ChangedElsewhere as ChangedElsewhere
from evaluations.services.reviewing.stepping import (
    Entered,
    answer_of,
    is_resent,
    judge_met,
    record_step,
    refuse_unless_awaiting,
    reopen,
    reviewed_before,
    same_or_refused,
    stored,
    take,
)
from evaluations.services.reviewing.tallying import tally


def rubric_in_force(evaluation: Evaluation) -> RubricVersion:
    """What people are asked here; refused where there is nothing to be asked."""
    if evaluation.archived_at is not None:
        raise InputRefused("This evaluation is archived: nothing can be reviewed in it until it is brought back.")
    if evaluation.review_rubric is None:
        raise InputRefused("This evaluation has no rubric for reviews yet: choose one in its settings.")
    return evaluation.review_rubric


@in_turn()
def save_first(
    user: User,
    comparison: Comparison,
    *,
    choices: Choices,
    version: int,
    seen_verdicts: bool = False,
    note: str = "",
    active_ms: int = 0,
) -> Review:
    """Store the first choices. They are final at once where there is no judge to be revealed, or none yet."""
    review = review_for(user, comparison)
    spec = review.rubric_version.spec()
    choices = checked(spec, choices)
    if review.state in SAVED_REVIEW_STATES:
        stored_first = Entered(said_in(review, spec.kind).first, review.note)
        return same_or_refused(review, stored_first, Entered(choices, note))
    picked = holding.settle(review)
    judge = judge_met(user, review, spec, calibrates=picked.picked_by == PickedBy.CALIBRATION)
    now = timezone.now()
    take(
        review,
        version,
        state=ReviewState.FIRST if judge["waits"] else ReviewState.FINAL,
        blind=not (seen_verdicts or judge["seen"] or reviewed_before(review)),
        judge_first=judge["first"],
        reveal=comparison.evaluation.reveal,
        judge=comparison.evaluation.shown_judge_id if any(judge.values()) else None,
        awaits_judge=judge["awaited"],
        picked_by=picked.picked_by,
        round=picked.round,
        probability=picked.probability,
        first_saved_at=now,
        finished_at=None if judge["waits"] else now,
        note=note,
        skip_reason="",
        active_ms=active_ms,
    )
    is_final = review.state == ReviewState.FINAL
    write(review, choices, *((Stage.FIRST, Stage.FINAL) if is_final else (Stage.FIRST,)))
    if is_final:
        tally([comparison.pk])
    record_step("saved first choices", review, user, after={**stored(review, choices, note), "blind": review.blind})
    return review


@in_turn()
def save_final(
    user: User,
    comparison: Comparison,
    *,
    choices: Choices,
    notes: Words,
    version: int,
    reasons: Words | None = None,
    note: str = "",
    active_ms: int = 0,
) -> Review:
    """Store the final choices, made in sight of the judge's. The first ones stay as they are."""
    review = review_for(user, comparison)
    spec = review.rubric_version.spec()
    choices = checked(spec, choices)
    refuse_unknown_reasons(reasons or {})
    if review.state == ReviewState.FINAL:
        said = said_in(review, spec.kind)
        stored_final = Entered(said.final, review.note, said.notes, said.reasons)
        return same_or_refused(review, stored_final, Entered(choices, note, filled(notes), filled(reasons or {})))
    if review.state != ReviewState.FIRST:
        raise ChangedElsewhere("This review was taken back elsewhere. Nothing was stored: choose again here.")
    awaits = review.awaits_judge and answer_of(review, spec) is None
    take(
        review,
        version,
        state=ReviewState.FINAL,
        finished_at=timezone.now(),
        awaits_judge=awaits,
        judge=review.judge_id if awaits else judge_shown_to(review, comparison.evaluation),
        note=note,
        active_ms=active_ms,
    )
    write(review, choices, Stage.FINAL, notes=notes, reasons=reasons)
    tally([comparison.pk])
    record_step("saved final choices", review, user, after=stored(review, choices, note, notes, reasons))
    return review


@in_turn()
def skip(user: User, comparison: Comparison, *, reason: str, version: int, active_ms: int = 0) -> Review:
    """Leave this one for later, or for ever: it comes back, with its draft, when nothing else is left."""
    review = review_for(user, comparison)
    if review.state == ReviewState.SKIPPED and version < review.version:
        return review
    if review.state in SAVED_REVIEW_STATES:
        raise ChangedElsewhere("You have saved choices here already, so it was not skipped. Undo them first.")
    now = timezone.now()
    holding.leave(review)
    take(
        review,
        version,
        state=ReviewState.SKIPPED,
        finished_at=now,
        skip_reason=reason,
        active_ms=active_ms,
        draft=counted(review.draft),
    )
    record_step("skipped", review, user, after={"reason": reason})
    return review


@in_turn()
def undo(
    user: User,
    review: Review,
    *,
    version: int,
    seen_verdicts: bool = False,
    tab: str = "",
    active_ms: int = 0,
    instead: Mapping[str, str] | None = None,
) -> Review:
    """Take back the last step; what it held, or the fields given ``instead``, is the draft of the next.

    Once others' choices were seen, that can only be the final ones.
    """
    if is_resent(review, version, tab):
        return review
    if review.state not in (ReviewState.FINAL, ReviewState.SKIPPED):
        raise InputRefused("There is nothing to undo here: first choices stay as they are once the judge's are shown.")
    known = review.state == ReviewState.FINAL and saw_known_label(user, review)
    if known and review.picked_by == PickedBy.CALIBRATION:
        raise InputRefused("You have seen the result of this calibration: what you chose there stays.")
    keeps_first = review.state == ReviewState.FINAL and (was_revealed(review) or seen_verdicts or known)
    said = said_in(review, review.rubric_version.spec().kind)
    before = {**stored(review, said.final, review.note, said.notes, said.reasons), "reason": review.skip_reason}
    reopen(review, version, said, tab, keeps_first=keeps_first, active_ms=active_ms, instead=instead)
    record_step("undid", review, user, before=before, after={"state": review.state})
    return review


@in_turn()
def look_again(user: User, review: Review, *, version: int, tab: str = "") -> Review:
    """The judge has answered since the first choices became final: they are to be confirmed in sight of it."""
    if is_resent(review, version, tab):
        return review
    refuse_unless_awaiting(review)
    spec = review.rubric_version.spec()
    if answer_of(review, spec) is None:
        raise InputRefused("The judge has not answered this comparison yet: your choices stay as they are.")
    said = said_in(review, spec.kind)
    judge = judge_shown_to(review, review.comparison.evaluation)
    reopen(review, version, said, tab, keeps_first=True, awaits_judge=False, judge=judge)
    before = stored(review, said.final, review.note, said.notes, said.reasons)
    record_step("looked again", review, user, before=before, after={"state": review.state})
    return review


@in_turn()
def leave_as_is(user: User, review: Review, *, version: int) -> Review:
    """What became final without the judge stays so, and does not come back."""
    if review.state == ReviewState.FINAL and not review.awaits_judge and version < review.version:
        return review
    refuse_unless_awaiting(review)
    take(review, version, awaits_judge=False)
    record_step("left as it is", review, user)
    return review


def review_for(user: User, comparison: Comparison) -> Review:
    """This person's review of it; a new one takes the order that they were shown."""
    rubric = rubric_in_force(comparison.evaluation)
    freeze(rubric)
    review, _ = Review.objects.select_related("rater").get_or_create(
        rater=rater_for(user, comparison.evaluation),
        comparison=comparison,
        rubric_version=rubric,
        defaults={"shown": order_shown(user, comparison), "state": ReviewState.DRAFT},
    )
    review.comparison, review.rubric_version = comparison, rubric
    return review
