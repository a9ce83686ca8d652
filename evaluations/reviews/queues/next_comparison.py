"""The choice of a reviewer's next comparison."""

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Final

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from evaluations.domain.reviews import AssignmentState, QueueKind, Reveal, ReviewState, SelectionMethod
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.queues import Assignment, Queue
from evaluations.models.rubrics import RubricAspect
from evaluations.models.transactions import has_single_writer, transaction_in_turn
from evaluations.models.verdicts import Review
from evaluations.reviews.queues.items import ensure_queue_is_filled
from evaluations.reviews.queues.reservations import (
    ITEM_VERSION,
    get_or_create_progress,
    get_or_create_queue_progress,
    get_reservation_end,
    release_expired_reservations,
    reserve_again,
)
from evaluations.reviews.queues.sql import (
    INSERT_RESERVATION,
    SELECT_ASSIGNED,
    SELECT_BEGUN_REVIEWS,
    SELECT_CALIBRATION_OFFERS,
    SELECT_DEFAULT_QUEUE_OFFERS,
    SELECT_OPEN_QUEUES,
    SELECT_QUEUE_OFFERS,
    ItemOffer,
    NextRequest,
    advance_progress,
    lock_progress,
    mark_items_reached,
    select_offers,
    take_offered_item,
)
from evaluations.verdicts.judge_choices import load_judge_choices

# Where a queue or the default queue has nothing more for somebody, until a place opens and calls them back.
END_OF_QUEUE: Final = 2**62


def reserve_from_default_queue(request: NextRequest) -> int | None:
    """Reserve the next comparison in random order; None if nothing is open to the rater."""
    progress = get_or_create_progress(request.rater.pk, request.version_id)
    if progress.reached == END_OF_QUEUE:
        return None
    with transaction_in_turn():
        reached = lock_progress(progress)
        taken, came_to = take_first_offer(request, SELECT_DEFAULT_QUEUE_OFFERS, request.version_id, reached)
        has_drawn = False
        if taken is not None:
            insert_reservation(request, taken, SelectionMethod.RANDOM, 1.0)
            has_drawn = mark_items_reached(request, taken)
        advance_progress(progress, reached, END_OF_QUEUE if came_to is None else came_to, has_drawn=has_drawn)
    return taken.comparison_id if taken else None


def reserve_from_queue(request: NextRequest, within: Queue) -> int | None:
    """Reserve the queue's next comparison; None if nothing in it is open to the rater."""
    progress = get_or_create_queue_progress(request.rater.pk, within)
    if progress.reached == END_OF_QUEUE:
        return None
    calibrates = within.kind == QueueKind.CALIBRATION
    statement = SELECT_CALIBRATION_OFFERS if calibrates else SELECT_QUEUE_OFFERS
    with transaction_in_turn():
        reached = lock_progress(progress)
        taken, came_to = take_first_offer(request, statement, within.pk, reached, takes_place=not calibrates)
        if taken is not None:
            insert_reservation(request, taken, taken.selection_method, taken.probability)
        advance_progress(progress, reached, END_OF_QUEUE if came_to is None else came_to)
    return taken.comparison_id if taken else None


def take_first_offer(
    request: NextRequest, statement: str, among: int, reached: int, *, takes_place: bool = True
) -> tuple[ItemOffer | None, int | None]:
    """The first offer whose slot could be taken, and the position of the first open one. Needs the progress lock.

    Before there is nothing, those are waited for that others had a hand on: they may leave a place.
    """
    came_to: int | None = None
    for may_wait in (True,) if has_single_writer() else (False, True):
        start = reached
        while found := select_offers(request, statement, among, start):
            came_to = found[0].position if came_to is None else came_to
            for offer in found:
                if offer.comparison_id in request.besides:
                    continue
                if not takes_place or take_offered_item(offer, may_wait):
                    return offer, came_to
            start = found[-1].position + 1
    return None, came_to


def insert_reservation(
    request: NextRequest, offer: ItemOffer, selection_method: str, probability: float | None
) -> None:
    now, until = (
        connection.ops.adapt_datetimefield_value(at) for at in (timezone.now(), get_reservation_end(request.evaluation))
    )
    how = [offer.item_id, request.rater.pk, offer.slot_id, selection_method, probability]
    with connection.cursor() as cursor:
        cursor.execute(INSERT_RESERVATION, [now, *how, until])


UNFINISHED_STATES: Final = (AssignmentState.RESERVED, AssignmentState.ASSIGNED, AssignmentState.EXPIRED)

# Of what awaits the judge so many are looked at together.
AWAITING_AT_ONCE: Final = 100

EXPIRED_AT_ONCE: Final = 100

# ---- what comes next -----------------------------------------------------------------------


def reserve_next_comparison(
    evaluation: Evaluation, rater: Rater | None, *, besides: Collection[int] = ()
) -> int | None:
    """The comparison that this rater should review now, reserved for them; None if none is left.

    What they hold or began, and is not among ``besides``, comes again. Somebody who is no rater yet
    learns only whether there is anything.
    """
    if evaluation.review_rubric_id is None:
        return None
    if rater is None:
        everything = Comparison.objects.filter(evaluation=evaluation).order_by("random_order", "pk")
        return everything.values_list("pk", flat=True).first()
    ensure_queue_is_filled(evaluation)
    request = NextRequest(evaluation, rater, evaluation.review_rubric_id, frozenset(besides))
    return next((pk for pk in try_sources_in_turn(request) if pk is not None), None)


def try_sources_in_turn(request: NextRequest) -> Iterator[int | None]:
    """One comparison or None from each source, in order of priority."""
    yield resume_begun(request)
    queues = get_open_queues(request)
    for calibration in (one for one in queues if one.kind == QueueKind.CALIBRATION):
        yield resume_calibration(request, calibration)
        yield reserve_from_queue(request, calibration)
    yield take_assigned(request)
    for review_queue in (one for one in queues if one.kind == QueueKind.REVIEW):
        yield reserve_from_queue(request, review_queue)
    yield reserve_from_default_queue(request)
    if release_expired_reservations(EXPIRED_AT_ONCE, request.version_id):
        yield reserve_from_default_queue(request)
    yield reserve_expired(request)
    yield find_answered_since(request)
    yield reserve_skipped(request)


def resume_begun(request: NextRequest) -> int | None:
    """A review that the rater began or must confirm, even if its slot was taken meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute(SELECT_BEGUN_REVIEWS, [request.rater.pk, request.version_id])
        found = [row for row in cursor.fetchall() if row[0] not in request.besides]
    if not found:
        return None
    comparison_id, assignment_id = found[0]
    assignment = Assignment.objects.select_related("item").filter(pk=assignment_id).first() if assignment_id else None
    return renew_reservation(request, assignment) if assignment is not None else int(comparison_id)


def resume_calibration(request: NextRequest, calibration: Queue) -> int | None:
    """An unfinished comparison of the calibration, even if its reservation expired."""
    mine = Assignment.objects.filter(rater=request.rater, item__slots__queue=calibration, state__in=UNFINISHED_STATES)
    first = mine.exclude(item__comparison__in=request.besides).select_related("item").order_by("pk").first()
    return renew_reservation(request, first) if first else None


def take_assigned(request: NextRequest) -> int | None:
    """A comparison reserved for the rater, else the first one assigned to them."""
    with connection.cursor() as cursor:
        cursor.execute(SELECT_ASSIGNED, [request.rater.pk, request.version_id, len(request.besides) + 1])
        found = [pk for pk, comparison in cursor.fetchall() if comparison not in request.besides]
    return renew_reservation(request, Assignment.objects.select_related("item").get(pk=found[0])) if found else None


def renew_reservation(request: NextRequest, assignment: Assignment) -> int:
    """The assignment's comparison with a renewed reservation, even if no slot is left."""
    if assignment.state == AssignmentState.RESERVED:
        extend_reservation(request, assignment)
    elif assignment.state == AssignmentState.EXPIRED:
        reserve_again(assignment, request.evaluation)
    return assignment.item.comparison_id


def extend_reservation(request: NextRequest, assignment: Assignment) -> None:
    """Extend the reservation once half of it is over, so that two looks do not write twice."""
    until = get_reservation_end(request.evaluation)
    if is_half_over(assignment.reserved_until, until, timedelta(minutes=request.evaluation.reservation_minutes)):
        Assignment.objects.filter(pk=assignment.pk, state=AssignmentState.RESERVED).update(reserved_until=until)


def is_half_over(reserved_until: datetime | None, until: datetime, while_held: timedelta) -> bool:
    return reserved_until is not None and until - reserved_until > while_held / 2


def get_open_queues(request: NextRequest) -> list[Queue]:
    """Open queues, oldest first, without those that are assigned to reviewers."""
    return list(Queue.objects.raw(SELECT_OPEN_QUEUES, [request.version_id]))


def reserve_expired(request: NextRequest) -> int | None:
    """A comparison whose reservation expired and whose slot is still open."""
    return reserve_first_open(request, find_left_assignments(request, AssignmentState.EXPIRED).order_by("pk"))


def reserve_skipped(request: NextRequest) -> int | None:
    """The comparison that the rater skipped longest ago."""
    reviews = Review.objects.filter(rater=request.rater, rubric_version=request.version_id, state=ReviewState.SKIPPED)
    when = dict(reviews.values_list("comparison_id", "finished_at"))
    found = list(find_left_assignments(request, AssignmentState.SKIPPED))
    found.sort(key=lambda one: (when.get(one.item.comparison_id) or timezone.now(), one.pk))
    return reserve_first_open(request, found)


def find_left_assignments(request: NextRequest, state: AssignmentState) -> QuerySet[Assignment]:
    """This rater's assignments in that state."""
    mine = Assignment.objects.alias(version=ITEM_VERSION).filter(
        rater=request.rater, state=state, version=request.version_id
    )
    return mine.exclude(item__comparison__in=request.besides).select_related("item")


def reserve_first_open(request: NextRequest, found: "Collection[Assignment] | QuerySet[Assignment]") -> int | None:
    is_open = (one for one in found if one.item.taken < one.item.wanted or one.selection_method == "calibration")
    return next((one.item.comparison_id for one in is_open if reserve_again(one, request.evaluation)), None)


def find_answered_since(request: NextRequest) -> int | None:
    """The first that was saved while the shown judge had not answered, and has its answer by now.

    An answer to what the rubric does not ask, or one that is not to be shown, is none: its page would lead nowhere.
    """
    if request.evaluation.shown_judge_id is None or request.evaluation.reveal == Reveal.NEVER:
        return None
    judge = Rater.objects.filter(judge=request.evaluation.shown_judge_id).first()
    waiting = Review.objects.filter(
        rater=request.rater, rubric_version=request.version_id, awaits_judge=True, state=ReviewState.FINAL
    )
    ids = list(
        waiting.exclude(comparison__in=request.besides).order_by("finished_at").values_list("comparison", flat=True)
    )
    if judge is None or not ids:
        return None
    asked = set(RubricAspect.objects.filter(version=request.version_id).values_list("aspect__key", flat=True))
    for start in range(0, len(ids), AWAITING_AT_ONCE):
        some = ids[start : start + AWAITING_AT_ONCE]
        told = load_judge_choices(judge, some)
        answered = next((pk for pk in some if asked.intersection(told.get(pk, ()))), None)
        if answered is not None:
            return answered
    return None
