"""One person's pass over one comparison: first choices, the reveal, final choices, skip and undo.

Choices come in and go out as the person sees them, A on the left; they are stored in terms of A
and B as stored. Every step names the version of the review that it was made from: a step from an
older one, in a second tab say, changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from evaluations.domain import Choice, InputRefused, RaterKind, Reveal, ReviewState, RubricKind, Shown, Stage
from evaluations.models import Aspect, Comparison, Evaluation, Rater, Review, RubricVersion, User, Verdict
from evaluations.services.preparing.preparing import freeze
from evaluations.services.recording import record
from evaluations.services.reviewing.drawing import judge_stands_from_the_start, order_shown
from evaluations.services.reviewing.presenting import choices_of, notes_of, was_revealed
from evaluations.services.reviewing.queueing import SAVED
from evaluations.services.reviewing.revealing import judge_answer, turned

Choices = Mapping[str, Choice]

# One step takes at most this long: a page left open overnight is not a night of work.
LONGEST_STEP_MS: Final = 30 * 60 * 1000


class ChangedElsewhere(InputRefused):
    """The review was changed since the page was made; nothing of this step was stored."""


@dataclass(frozen=True)
class TakenBack:
    """What “undo” took away, so that the person need not choose it again."""

    review: Review
    choices: Choices
    notes: Mapping[str, str]


def rater_of(user: User, evaluation: Evaluation) -> Rater | None:
    return Rater.objects.filter(evaluation=evaluation, user=user).first()


def rater_for(user: User, evaluation: Evaluation) -> Rater:
    """This person as a rater here, made on first need. An imported person may have the name already."""
    taken = Rater.objects.filter(evaluation=evaluation, kind=RaterKind.HUMAN, name=user.username, user__isnull=True)
    name = f"{user.username} (account)" if taken.exists() else user.username
    rater, _ = Rater.objects.get_or_create(
        evaluation=evaluation, user=user, defaults={"kind": RaterKind.HUMAN, "name": name}
    )
    return rater


def rubric_in_force(evaluation: Evaluation) -> RubricVersion:
    """What people are asked here; refused where there is nothing that can be asked in pairs."""
    if evaluation.archived_at is not None:
        raise InputRefused("This evaluation is archived: nothing can be reviewed in it until it is brought back.")
    version = evaluation.review_rubric
    if version is None:
        raise InputRefused("This evaluation has no rubric for reviews yet: choose one in its settings.")
    if version.rubric.kind != RubricKind.PAIRWISE:
        raise InputRefused(f"“{version.rubric.name}” scores one response at a time: reviews need a pairwise rubric.")
    return version


@transaction.atomic
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
    """Store the first choices. They are final at once where there is no judge to be revealed."""
    evaluation = comparison.evaluation
    review = review_for(user, comparison)
    refuse_unless_complete(review.rubric_version, choices)
    if review.state in SAVED:
        return same_or_refused(review, choices, Stage.FIRST)
    final = not has_reveal(evaluation, user, review)
    now = timezone.now()
    take(
        review,
        version,
        state=ReviewState.FINAL if final else ReviewState.FIRST,
        blind=is_blind(evaluation, user, review, seen_verdicts),
        first_saved_at=now,
        finished_at=now if final else None,
        note=note,
        skip_reason="",
        active_ms=active_ms,
    )
    write(review, choices, Stage.FIRST)
    if final:
        write(review, choices, Stage.FINAL)
    record_step("saved first choices", review, user, after={**stored(review, choices), "blind": review.blind})
    return review


@transaction.atomic
def save_final(
    user: User,
    comparison: Comparison,
    *,
    choices: Choices,
    notes: Mapping[str, str],
    version: int,
    note: str = "",
    active_ms: int = 0,
) -> Review:
    """Store the final choices, made in sight of the judge's. The first ones stay as they are."""
    review = review_for(user, comparison)
    refuse_unless_complete(review.rubric_version, choices)
    if review.state == ReviewState.FINAL:
        return same_or_refused(review, choices, Stage.FINAL)
    if review.state != ReviewState.FIRST:
        raise ChangedElsewhere("This review was taken back elsewhere. Nothing was stored: choose again here.")
    now = timezone.now()
    take(review, version, state=ReviewState.FINAL, finished_at=now, note=note, active_ms=active_ms)
    write(review, choices, Stage.FINAL, notes)
    record_step("saved final choices", review, user, after=stored(review, choices))
    return review


@transaction.atomic
def skip(user: User, comparison: Comparison, *, reason: str, version: int, active_ms: int = 0) -> Review:
    """Leave this one for later, or for ever: it comes back when nothing else is left."""
    review = review_for(user, comparison)
    if review.state == ReviewState.SKIPPED and version < review.version:
        return review
    if review.state in SAVED:
        raise ChangedElsewhere("You have saved choices here already, so it was not skipped. Undo them first.")
    now = timezone.now()
    take(review, version, state=ReviewState.SKIPPED, finished_at=now, skip_reason=reason, active_ms=active_ms)
    record_step("skipped", review, user, after={"reason": reason})
    return review


@transaction.atomic
def undo(user: User, review: Review, *, version: int, seen_verdicts: bool = False) -> TakenBack:
    """Take back the last step. Once others' choices were seen, that can only be the final ones."""
    if review.state not in (ReviewState.FINAL, ReviewState.SKIPPED):
        raise InputRefused("There is nothing to undo here: first choices stay as they are once the judge's are shown.")
    keeps_first = review.state == ReviewState.FINAL and (was_revealed(review) or seen_verdicts)
    choices, notes = choices_of(review, Stage.FINAL), notes_of(review)
    before = {**stored(review, choices), "reason": review.skip_reason}
    if keeps_first:
        take(review, version, state=ReviewState.FIRST, finished_at=None)
        review.verdicts.filter(stage=Stage.FINAL).delete()
    else:
        take(review, version, state=ReviewState.DRAFT, finished_at=None, first_saved_at=None, skip_reason="")
        review.verdicts.all().delete()
    record_step("undid", review, user, before=before, after={"state": review.state})
    return TakenBack(review, choices, notes)


def review_for(user: User, comparison: Comparison) -> Review:
    """This person's review of it; a new one takes the order that they were shown."""
    rubric = rubric_in_force(comparison.evaluation)
    freeze(rubric)
    review, _ = Review.objects.select_related("rubric_version", "comparison", "rater").get_or_create(
        rater=rater_for(user, comparison.evaluation),
        comparison=comparison,
        rubric_version=rubric,
        defaults={"shown": order_shown(user, comparison), "state": ReviewState.DRAFT},
    )
    review.comparison = comparison
    return review


def take(review: Review, version: int, *, active_ms: int = 0, **columns: Any) -> None:
    """Move the review on, if it still is what the person saw: the conditional update is the lock."""
    spent = F("active_ms") + min(max(active_ms, 0), LONGEST_STEP_MS)
    moved = Review.objects.filter(pk=review.pk, version=version).update(version=version + 1, active_ms=spent, **columns)
    if not moved:
        raise ChangedElsewhere("This review was changed elsewhere, in another tab perhaps. Yours was not stored.")
    review.refresh_from_db(fields=["version", "active_ms", *columns])
    Rater.objects.filter(pk=review.rater_id).update(verdicts_changed_at=timezone.now())


def write(review: Review, choices: Choices, stage: Stage, notes: Mapping[str, str] | None = None) -> None:
    aspects = {aspect.key: aspect for aspect in Aspect.objects.filter(evaluation=review.comparison.evaluation_id)}
    shown = Shown(review.shown)
    Verdict.objects.bulk_create(
        Verdict(
            rater_id=review.rater_id,
            comparison_id=review.comparison_id,
            aspect=aspects[key],
            stage=stage,
            shown=shown,
            choice=turned(choice, shown),
            review=review,
            note=(notes or {}).get(key, ""),
        )
        for key, choice in choices.items()
    )


def refuse_unless_complete(rubric: RubricVersion, choices: Choices) -> None:
    """Every aspect of the rubric, nothing else, and only what it offers."""
    asked = {aspect.key: aspect for aspect in rubric.spec().aspects}
    missing = [aspect.name for key, aspect in asked.items() if key not in choices]
    if missing:
        raise InputRefused(f"Choose for {', '.join(missing)} too: nothing was stored yet.")
    for key, choice in choices.items():
        if key not in asked:
            raise InputRefused(f"The rubric does not ask about “{key}”.")
        if choice not in asked[key].choices:
            raise InputRefused(f"The rubric does not offer “{choice}” for {asked[key].name}.")


def same_or_refused(review: Review, choices: Choices, stage: Stage) -> Review:
    """The second half of a double click is the first again; anything else must not overwrite."""
    if choices_of(review, stage) == dict(choices):
        return review
    raise ChangedElsewhere(
        "You saved this comparison before, with other choices. Those are shown; yours now were not stored."
    )


def has_reveal(evaluation: Evaluation, user: User, review: Review) -> bool:
    """Whether the judge's choices are to appear after the first save: they exist and were hidden."""
    if evaluation.reveal == Reveal.NEVER or judge_stands_from_the_start(evaluation, user, review.comparison):
        return False
    aspects = {aspect.key for aspect in review.rubric_version.spec().aspects}
    return judge_answer(evaluation, review.comparison, aspects, Shown(review.shown)) is not None


def is_blind(evaluation: Evaluation, user: User, review: Review, seen_verdicts: bool) -> bool:
    """Whether the person chose without knowing what others did, an earlier rubric's review included."""
    earlier = Review.objects.filter(rater=review.rater_id, comparison=review.comparison_id, state__in=SAVED)
    return not (
        seen_verdicts
        or judge_stands_from_the_start(evaluation, user, review.comparison)
        or earlier.exclude(pk=review.pk).exists()
    )


def stored(review: Review, choices: Choices) -> dict[str, Any]:
    """Choices as the record keeps them: in terms of A and B as stored."""
    shown = Shown(review.shown)
    return {
        "state": review.state,
        "shown": shown,
        "choices": {key: turned(choice, shown) for key, choice in choices.items()},
    }


def record_step(verb: str, review: Review, user: User, **states: Any) -> None:
    record(verb, review, user=user, evaluation=review.comparison.evaluation, **states)
