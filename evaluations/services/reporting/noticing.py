"""Who has seen what others chose: on record, so that it shows in the reviews that they save or take back later."""

from collections.abc import Collection, Iterable

from django.db import transaction

from evaluations.domain import SAVED_REVIEW_STATES, SAW_VERDICTS, CallState, RaterKind, ReviewState
from evaluations.models import (
    Adjudication,
    Call,
    Comment,
    Comparison,
    Evaluation,
    Event,
    Review,
    Score,
    User,
    Verdict,
)
from evaluations.services.importing.preferring import preferences
from evaluations.services.recording import record
from evaluations.services.reporting.browsing import scored_by
from evaluations.services.reviewing.presenting import was_revealed


def note_seen(
    user: User,
    evaluation: Evaluation,
    comparisons: Iterable[Comparison],
    *,
    judges: bool = True,
    tests: bool = False,
) -> None:
    """Put on record that this person has seen what others chose on these; ``judges``: what judges chose, too.

    ``tests``: what a judge answered in a test, which a call's own page shows. Once is enough: a review that they save
    later is not blind, and one that they undo keeps its first choices.
    """
    shown = {comparison.pk: comparison for comparison in comparisons}
    new = spoken_of(user, shown.values(), judges=judges) | (tested_among(shown.values()) if tests else set())
    if new:
        new -= fixed_or_noted(user, evaluation, new)
    if not new:
        return  # without a transaction: on SQLite even one that only reads keeps all writers waiting
    with transaction.atomic():
        for pk in sorted(new):
            record(SAW_VERDICTS, shown[pk], user=user, evaluation=evaluation)


def spoken_of(user: User, comparisons: Collection[Comparison], *, judges: bool) -> set[int]:
    """Those on which somebody else chose or said something, and what was settled by whomever."""
    ids = {comparison.pk for comparison in comparisons}
    said = Verdict.objects.filter(comparison__in=ids).exclude(rater__user=user)
    if not judges:
        said = said.exclude(rater__kind=RaterKind.JUDGE)
    found = set(said.values_list("comparison_id", flat=True))
    scored = Score.objects.filter(review__comparison__in=ids).exclude(rater__user=user)
    found.update(pk for pk in scored.values_list("review__comparison_id", flat=True) if pk)
    found.update(one.comparison for one in preferences(ids, (RaterKind.HUMAN, RaterKind.GOLD)))
    for told in (Adjudication.objects.all(), Comment.objects.exclude(user=user)):
        found.update(told.filter(comparison__in=ids).values_list("comparison_id", flat=True))
    return found | scored_among(comparisons) if judges else found


def scored_among(comparisons: Iterable[Comparison]) -> set[int]:
    """Those of which a response was scored by a judge: a choice may be read off its scores."""
    sides = {comparison.pk: {comparison.response_a_id, comparison.response_b_id} for comparison in comparisons}
    scored = set(scored_by({response for pair in sides.values() for response in pair}))
    return {pk for pk, pair in sides.items() if pair & scored}


def tested_among(comparisons: Iterable[Comparison]) -> set[int]:
    """Those on which, or on a response of which, a test call was answered."""
    sides = {comparison.pk: {comparison.response_a_id, comparison.response_b_id} for comparison in comparisons}
    answered = Call.all_rows.filter(is_test=True, state=CallState.ANSWERED)
    found = set(answered.filter(comparison__in=sides).values_list("comparison_id", flat=True))
    responses = {response for pair in sides.values() for response in pair}
    scored = set(answered.filter(response__in=responses).values_list("response_id", flat=True))
    return {pk for pk, pair in sides.items() if pk in found or pair & scored}


def fixed_or_noted(user: User, evaluation: Evaluation, ids: Collection[int]) -> set[int]:
    """Those that it is on record for, and those where no first choice of this person can change any more."""
    noted = Event.objects.filter(
        evaluation=evaluation, user=user, verb=SAW_VERDICTS, object_type="comparison", object_id__in=ids
    )
    mine = list(Review.objects.filter(rater__user=user, comparison__in=ids, state__in=SAVED_REVIEW_STATES))
    open_still = {review.comparison_id for review in mine if not keeps_its_first(review)}
    on_record = {pk for pk in noted.values_list("object_id", flat=True) if pk}
    return on_record | {review.comparison_id for review in mine} - open_still


def keeps_its_first(review: Review) -> bool:
    return review.state == ReviewState.FIRST or was_revealed(review)
