"""Which choices of others a person may see, and the record of what they saw."""

from collections.abc import Collection, Iterable, Sequence

from django.db import transaction
from django.db.models import Exists, F, Manager, OuterRef, Q, QuerySet

from evaluations.access import ALLOWED_ROLES, Action, is_allowed
from evaluations.audit.events import record_event
from evaluations.domain.events import DOWNLOADED, SAW_VERDICTS
from evaluations.domain.judges import CallState
from evaluations.domain.reviews import SAVED_REVIEW_STATES, AssignmentState, NameReveal, QueueKind, Reveal, ReviewState
from evaluations.domain.roles import RaterKind
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from evaluations.models.queues import END_OF_QUEUE, Assignment, QueueProgress, QueueSlot
from evaluations.models.runs import Call
from evaluations.models.selection import SMALL_REPORT_COMPARISONS
from evaluations.models.users import Membership, User
from evaluations.models.verdicts import Adjudication, Comment, Disclosure, Review, Score, Verdict
from evaluations.verdicts.score_choices import load_imported_preferences
from evaluations.verdicts.vote_counts import find_judges_that_scored
from evaluations.verdicts.vote_table import VoteTable, build_vote_table


def was_revealed(review: Review) -> bool:
    """Whether the reviewer saw others' choices at or after the first save.

    A review that became final in the moment of its first save, and was blind, revealed nothing.
    """
    return not review.blind or review.finished_at != review.first_saved_at


def visible_comparisons(
    user: User, evaluation: Evaluation, among: "Manager[Comparison]" = Comparison.objects
) -> "QuerySet[Comparison]":
    """The comparisons on which this person may see what others chose; by default without single ones.

    A reviewer sees no choices of others on a comparison before the first save.
    """
    comparisons: QuerySet[Comparison] = among.filter(evaluation=evaluation)
    if is_allowed(user, Action.SEE_ALL, evaluation):
        return comparisons
    saved = Review.objects.filter(rater__user=user, state__in=SAVED_REVIEW_STATES)
    return comparisons.filter(pk__in=saved.values("comparison")).exclude(
        pk__in=hidden_calibration_comparisons(user, evaluation)
    )


def hidden_calibration_comparisons(user: User, evaluation: Evaluation) -> "QuerySet[QueueSlot, int]":
    """Comparisons of calibration queues that this person has not finished."""
    mine = Review.objects.filter(
        rater__user=user,
        rubric_version=OuterRef("item__rubric_version"),
        comparison=OuterRef("item__comparison"),
        state__in=(*SAVED_REVIEW_STATES, ReviewState.SKIPPED),
    )
    slots = open_calibration_slots().filter(queue__evaluation=evaluation)
    to_do = slots.exclude(Exists(mine))
    return slots.filter(queue__in=to_do.values("queue")).values_list("item__comparison", flat=True)


def can_see_verdicts(user: User, comparison: Comparison) -> bool:
    return visible_comparisons(user, comparison.evaluation).filter(pk=comparison.pk).exists()


def visible_comparisons_everywhere(user: User) -> "QuerySet[Comparison]":
    """The comparisons of all evaluations on which this person may see what others chose."""
    here = Membership.objects.filter(user=user, evaluation=OuterRef("evaluation"))
    saved = Review.objects.filter(rater__user=user, comparison=OuterRef("pk"), state__in=SAVED_REVIEW_STATES)
    sees_all = here.filter(role__in=ALLOWED_ROLES[Action.SEE_ALL])
    in_queue = open_calibration_slots().filter(item__comparison=OuterRef("pk"))
    return Comparison.objects.filter(Q(Exists(sees_all)) | Q(Exists(here), Exists(saved), ~Exists(in_queue)))


def open_calibration_slots() -> "QuerySet[QueueSlot]":
    """Slots of open calibration queues of the current rubric versions."""
    current = QueueSlot.objects.filter(queue__rubric_version=F("queue__evaluation__review_rubric"))
    return current.filter(queue__kind=QueueKind.CALIBRATION, queue__closed_at__isnull=True)


def list_people_who_can_see(comparison: Comparison) -> "list[User]":
    """The members who may see what others chose on this comparison, by username."""
    here = Membership.objects.filter(user=OuterRef("pk"), evaluation=comparison.evaluation_id)
    saved = Review.objects.filter(rater__user=OuterRef("pk"), comparison=comparison, state__in=SAVED_REVIEW_STATES)
    sees_all = here.filter(role__in=ALLOWED_ROLES[Action.SEE_ALL])
    users = User.objects.filter(Q(Exists(sees_all)) | Q(Exists(here), Exists(saved)), is_active=True)
    readers = list(users.order_by("username"))
    if open_calibration_slots().filter(item__comparison=comparison).exists():
        return [reader for reader in readers if can_see_verdicts(reader, comparison)]
    return readers


def can_see_judges(user: User, evaluation: Evaluation) -> bool:
    """Whether the user may see choices of judges, which an evaluation can hide from reviewers."""
    return evaluation.reveal != Reveal.NEVER or is_allowed(user, Action.SEE_ALL, evaluation)


def reveal_judge_results(user: User, evaluation: Evaluation) -> bool:
    """Whether this person may see what judges chose over all comparisons of the evaluation together.

    Reviewers may once they have saved a review of each. Of few comparisons they now count as having seen the choices.
    """
    if not can_see_judges(user, evaluation):
        return False
    reviewable = Comparison.reviewable.filter(evaluation=evaluation)
    visible = visible_comparisons(user, evaluation, Comparison.reviewable)
    if not is_allowed(user, Action.SEE_ALL, evaluation) and reviewable.exclude(pk__in=visible.values("pk")).exists():
        return False
    if is_allowed(user, Action.REVIEW, evaluation):  # no query for those who are never on record
        rows = visible.only("evaluation", "response_a", "response_b").order_by()
        first = list(rows[: SMALL_REPORT_COMPARISONS + 1])
        reveal_comparisons(user, evaluation, first if len(first) <= SMALL_REPORT_COMPARISONS else [])
    return True


def can_see_names(user: User, evaluation: Evaluation) -> bool:
    """Whether the user may see which candidate wrote a response, on comparisons whose choices they may see."""
    return is_allowed(user, Action.SEE_ALL, evaluation) or are_names_revealed(user, evaluation)


def are_names_revealed(user: User, evaluation: Evaluation) -> bool:
    """Whether the evaluation reveals the candidates' names to this reviewer now."""
    if evaluation.name_reveal == NameReveal.AFTER_LAST:
        return has_finished_reviewing(user, evaluation)
    return evaluation.name_reveal == NameReveal.AFTER_SAVE


def has_finished_reviewing(user: User, evaluation: Evaluation) -> bool:
    """Whether no comparison is left for this reviewer: each is done or skipped, or the others have enough reviews."""
    passed = Review.objects.filter(
        rater__user=user,
        rubric_version=evaluation.review_rubric_id,
        comparison=OuterRef("pk"),
        state__in=(*SAVED_REVIEW_STATES, ReviewState.SKIPPED),
    )
    if not Comparison.reviewable.filter(~Exists(passed), evaluation=evaluation).exists():
        return True
    here = {"rater__user": user, "rater__evaluation": evaluation}
    reached = QueueProgress.objects.filter(**here, rubric_version=evaluation.review_rubric_id, queue__isnull=True)
    open_assignments = Assignment.objects.filter(
        **here,
        item__rubric_version=evaluation.review_rubric_id,
        state__in=(AssignmentState.RESERVED, AssignmentState.ASSIGNED),
    )
    return reached.filter(reached=END_OF_QUEUE).exists() and not open_assignments.exists()


def has_seen_verdicts(user: User, comparison: Comparison) -> bool:
    """Whether this person saw others' choices on the comparison, so that a new review is not blind."""
    seen = Disclosure.objects.filter(user=user, evaluation=comparison.evaluation_id)
    return seen.filter(Q(comparison=comparison) | Q(comparison__isnull=True)).exists()


@transaction.atomic
def record_download(user: User, export: Export) -> None:
    """Record that this person took an export: from then on they count as having seen all of its evaluation."""
    Disclosure.objects.get_or_create(user=user, evaluation=export.evaluation, comparison=None)
    record_event(DOWNLOADED, export, user=user, evaluation=export.evaluation)


def reveal_vote_table(user: User, comparison: Comparison) -> VoteTable | None:
    """The vote table of a comparison; records that the user saw it. None before they may see it."""
    return reveal_visible_vote_table(user, comparison) if can_see_verdicts(user, comparison) else None


def reveal_visible_vote_table(user: User, comparison: Comparison) -> VoteTable:
    """The vote table of a comparison from `visible_comparisons`; records that the user saw it."""
    reveal_comparisons(user, comparison.evaluation, [comparison])
    return build_vote_table(comparison, with_judges=can_see_judges(user, comparison.evaluation))


def reveal_comparisons(user: User, evaluation: Evaluation, comparisons: Sequence[Comparison]) -> Sequence[Comparison]:
    """These comparisons, on each of which this person now counts as having seen what others chose."""
    record_disclosure(user, evaluation, comparisons, judges=can_see_judges(user, evaluation))
    return comparisons


def reveal_call(user: User, call: Call) -> list[Comparison]:
    """The comparisons of two responses that a call's answer says something about: one, or all those of the response.

    Opening a call, even a test call, counts as having seen the judge's choices on them.
    """
    about = (
        Q(pk=call.comparison_id)
        if call.comparison_id is not None
        else Q(response_a=call.response_id) | Q(response_b=call.response_id)
    )
    comparisons = list(Comparison.with_singles.filter(about))
    record_disclosure(user, call.judge.evaluation, comparisons, tests=True)
    return [comparison for comparison in comparisons if not comparison.is_single]


def record_disclosure(
    user: User,
    evaluation: Evaluation,
    comparisons: Iterable[Comparison],
    *,
    judges: bool = True,
    tests: bool = False,
) -> None:
    """Record that this person saw what others chose on these comparisons, and what judges chose if ``judges``.

    ``tests``: include answers of test calls, which the page of a call shows. Only reviewers need a record: a review
    that they save later is not blind, and one that they undo keeps its first choices.
    """
    if not is_allowed(user, Action.REVIEW, evaluation):
        return
    shown = {comparison.pk: comparison for comparison in comparisons}
    new = find_judged_by_others(user, shown.values(), judges=judges) | (
        find_with_test_calls(shown.values()) if tests else set()
    )
    if new:
        new -= find_fixed_or_recorded(user, new)
    if not new:
        return  # without a transaction: on SQLite even one that only reads keeps all writers waiting
    with transaction.atomic():
        Disclosure.objects.bulk_create(
            [Disclosure(user=user, evaluation=evaluation, comparison_id=pk) for pk in sorted(new)],
            ignore_conflicts=True,
        )
        for pk in sorted(new):
            record_event(SAW_VERDICTS, shown[pk], user=user, evaluation=evaluation)


def find_judged_by_others(user: User, comparisons: Collection[Comparison], *, judges: bool) -> set[int]:
    """The comparisons on which others chose or wrote something, or that were resolved."""
    ids = {comparison.pk for comparison in comparisons}
    verdicts = Verdict.objects.filter(comparison__in=ids).exclude(rater__user=user)
    if not judges:
        verdicts = verdicts.exclude(rater__kind=RaterKind.JUDGE)
    ids_judged = set(verdicts.values_list("comparison_id", flat=True))
    scored = Score.objects.filter(review__comparison__in=ids).exclude(rater__user=user)
    ids_judged.update(pk for pk in scored.values_list("review__comparison_id", flat=True) if pk)
    preferences = load_imported_preferences(ids, (RaterKind.HUMAN, RaterKind.GOLD))
    ids_judged.update(preference.comparison for preference in preferences)
    for rows in (Adjudication.objects.all(), Comment.objects.exclude(user=user)):
        ids_judged.update(rows.filter(comparison__in=ids).values_list("comparison_id", flat=True))
    return ids_judged | find_scored_by_judges(comparisons) if judges else ids_judged


def find_scored_by_judges(comparisons: Iterable[Comparison]) -> set[int]:
    """The comparisons with a response scored by a judge, since scores may reveal a choice."""
    sides = {comparison.pk: {comparison.response_a_id, comparison.response_b_id} for comparison in comparisons}
    scored = set(find_judges_that_scored({response for pair in sides.values() for response in pair}))
    return {pk for pk, pair in sides.items() if pair & scored}


def find_with_test_calls(comparisons: Iterable[Comparison]) -> set[int]:
    """The comparisons with an answered test call on them or on one of their responses."""
    sides = {comparison.pk: {comparison.response_a_id, comparison.response_b_id} for comparison in comparisons}
    answered = Call.all_rows.filter(is_test=True, state=CallState.ANSWERED)
    called = set(answered.filter(comparison__in=sides).values_list("comparison_id", flat=True))
    responses = {response for pair in sides.values() for response in pair}
    scored = set(answered.filter(response__in=responses).values_list("response_id", flat=True))
    return {pk for pk, pair in sides.items() if pk in called or pair & scored}


def find_fixed_or_recorded(user: User, ids: Collection[int]) -> set[int]:
    """The comparisons with a record of disclosure, or on which this person's first choices are fixed."""
    on_record = Disclosure.objects.filter(user=user, comparison__in=ids).values_list("comparison_id", flat=True)
    mine = list(Review.objects.filter(rater__user=user, comparison__in=ids, state__in=SAVED_REVIEW_STATES))
    changeable = {
        review.comparison_id for review in mine if review.state != ReviewState.FIRST and not was_revealed(review)
    }
    return {pk for pk in on_record if pk} | {review.comparison_id for review in mine} - changeable
