"""The parts of a step on a review: the lock it is taken by, what it opens again, and its record."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from django.db.models import F
from django.utils import timezone

from evaluations.domain import SAVED_REVIEW_STATES, InputRefused, Reveal, ReviewState, RubricSpec, Shown, Stage
from evaluations.models import Rater, Review, User
from evaluations.services.recording import record
from evaluations.services.reviewing import holding
from evaluations.services.reviewing.drawing import judge_stands_from_the_start
from evaluations.services.reviewing.keeping import draft_with
from evaluations.services.reviewing.presenting import awaits_judge
from evaluations.services.reviewing.revealing import judge_answer, judge_shown_to
from evaluations.services.reviewing.saying import Choices, Said, Words, fields_of, filled, forget, turned_given
from evaluations.services.reviewing.tallying import tally

# One step takes at most this long: a page left open overnight is not a night of work.
LONGEST_STEP_MS: Final = 30 * 60 * 1000


class Entered(NamedTuple):
    """Everything that one step says of a comparison."""

    choices: Choices
    note: str
    notes: Words = MappingProxyType({})
    reasons: Words = MappingProxyType({})


class ChangedElsewhere(InputRefused):
    """The review was changed since the page was made; nothing of this step was stored."""


def take(review: Review, version: int, *, active_ms: int = 0, **columns: Any) -> None:
    """Move the review on, if it still is what the person saw: the conditional update is the lock."""
    spent = F("active_ms") + min(max(active_ms, 0), LONGEST_STEP_MS)
    columns = {"draft": {}, "draft_tab": "", **columns}
    moved = Review.objects.filter(pk=review.pk, version=version).update(version=version + 1, active_ms=spent, **columns)
    if not moved:
        raise ChangedElsewhere("This review was changed elsewhere, in another tab perhaps. Yours was not stored.")
    review.refresh_from_db(fields=["version", "active_ms", *columns])
    Rater.objects.filter(pk=review.rater_id).update(verdicts_changed_at=timezone.now())


def reopen(
    review: Review,
    version: int,
    said: Said,
    tab: str,
    *,
    keeps_first: bool,
    active_ms: int = 0,
    instead: Mapping[str, str] | None = None,
    **columns: Any,
) -> None:
    """Back before the final choices, or before the first ones too; what was said or drafted fills the fields."""
    fields = instead or fields_of(said.final, said.notes, said.reasons)
    columns["draft"] = draft_with(fields) if fields else review.draft
    columns |= {"draft_tab": tab, "draft_number": F("draft_number") + 1, "finished_at": None}
    if keeps_first:
        take(review, version, state=ReviewState.FIRST, active_ms=active_ms, **columns)
        forget(review, Stage.FINAL)
    else:
        columns |= {"first_saved_at": None, "skip_reason": "", "awaits_judge": False, "judge": None}
        holding.come_back(review)
        take(review, version, state=ReviewState.DRAFT, active_ms=active_ms, **columns)
        forget(review)
    if said.final:
        tally([review.comparison_id])


def is_resent(review: Review, version: int, tab: str) -> bool:
    """Whether this very page took the step already, and its answer was lost."""
    reopened = review.state in (ReviewState.DRAFT, ReviewState.FIRST)
    return bool(tab) and reopened and review.draft_tab == tab and review.version == version + 1


def same_or_refused(review: Review, stored: Entered, sent: Entered) -> Review:
    """The second half of a double click is the first again; anything else must not overwrite."""
    if stored == sent:
        return review
    raise ChangedElsewhere(
        "You saved this comparison before, with other choices or words. Those are shown; yours now were not stored."
    )


def refuse_unless_awaiting(review: Review) -> None:
    if not awaits_judge(review):
        raise ChangedElsewhere("This review does not wait for the judge any more. Nothing was changed.")


def judge_met(user: User, review: Review, spec: RubricSpec, *, calibrates: bool) -> dict[str, bool]:
    """What there is between this review and the judge at its first save.

    ``first``: it was decided that the judge stands there from the start; ``seen``: and it did, for it
    had answered. ``waits``: its choices are revealed now. ``awaited``: they will be, once it has answered.
    """
    evaluation = review.comparison.evaluation
    if calibrates or evaluation.shown_judge_id is None or evaluation.reveal == Reveal.NEVER:
        return dict.fromkeys(("first", "seen", "waits", "awaited"), False)
    first = judge_stands_from_the_start(evaluation, user, review.comparison)
    answered = answer_of(review, spec) is not None
    return {"first": first, "seen": first and answered, "waits": not first and answered, "awaited": not answered}


def answer_of(review: Review, spec: RubricSpec) -> object:
    aspects = {aspect.key for aspect in spec.aspects}
    judge = judge_shown_to(review, review.comparison.evaluation)
    return judge_answer(judge, review.comparison, aspects, Shown(review.shown))


def reviewed_before(review: Review) -> bool:
    """By an earlier rubric: the person knows the comparison, and perhaps what others chose."""
    earlier = Review.objects.filter(
        rater=review.rater_id, comparison=review.comparison_id, state__in=SAVED_REVIEW_STATES
    )
    return earlier.exclude(pk=review.pk).exists()


# ---- the record


def stored(
    review: Review, choices: Choices, note: str = "", notes: Words | None = None, reasons: Words | None = None
) -> dict[str, Any]:
    """Choices as the record keeps them, in terms of A and B as stored, and what was written with them."""
    shown = Shown(review.shown)
    words = {"note": note, "notes": filled(notes or {}), "reasons": filled(reasons or {})}
    return {
        "state": review.state,
        "shown": shown,
        "choices": {key: turned_given(given, shown) for key, given in choices.items()},
        **{name: said for name, said in words.items() if said},
    }


def record_step(verb: str, review: Review, user: User, **states: Any) -> None:
    record(verb, review, user=user, evaluation=review.comparison.evaluation, **states)
