"""The choice of a reviewer's next comparison."""

from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from typing import Final

from django.db import connection
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.domain.groups import split_into_slices
from evaluations.domain.reviews import AssignmentState, QueueKind, Reveal, ReviewState, SelectionMethod
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.queues import END_OF_QUEUE, Assignment, Queue
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
    SELECT_CALIBRATION_OFFERS,
    SELECT_DEFAULT_QUEUE_OFFERS,
    SELECT_QUEUE_OFFERS,
    ItemOffer,
    NextRequest,
    OwnWork,
    QueueStock,
    advance_progress,
    insert_reservation_sql,
    list_open_queues,
    lock_progress,
    mark_items_reached,
    select_calibrations,
    select_offers,
    select_own_work,
    take_offered_item,
)
from evaluations.verdicts.judge_choices import load_judge_choices


def reserve_from_default_queue(request: NextRequest) -> int | None:
    """Reserve the next comparison in random order; None if nothing is open to the rater."""
    progress = get_or_create_progress(request.rater.pk, request.version_id)
    if progress.reached == END_OF_QUEUE:
        return None
    with transaction_in_turn(waits_for_disk=False):
        reached = lock_progress(progress)
        offer, first_open = take_first_offer(request, SELECT_DEFAULT_QUEUE_OFFERS, request.version_id, reached)
        has_drawn = False
        if offer is not None:
            insert_reservation(request, offer, SelectionMethod.RANDOM, 1.0)
            has_drawn = mark_items_reached(request, offer)
        advance_progress(progress, reached, END_OF_QUEUE if first_open is None else first_open, has_drawn=has_drawn)
    return offer.comparison_id if offer else None


def reserve_from_queue(request: NextRequest, queue: Queue) -> int | None:
    """Reserve the queue's next comparison; None if nothing in it is open to the rater."""
    progress = get_or_create_queue_progress(request.rater.pk, queue)
    if progress.reached == END_OF_QUEUE:
        return None
    calibrates = queue.kind == QueueKind.CALIBRATION
    statement = SELECT_CALIBRATION_OFFERS if calibrates else SELECT_QUEUE_OFFERS
    with transaction_in_turn(waits_for_disk=False):
        reached = lock_progress(progress)
        offer, first_open = take_first_offer(request, statement, queue.pk, reached, takes_slot=not calibrates)
        if offer is not None:
            insert_reservation(request, offer, offer.selection_method, offer.probability)
        advance_progress(progress, reached, END_OF_QUEUE if first_open is None else first_open)
    return offer.comparison_id if offer else None


def take_first_offer(
    request: NextRequest, statement: str, source: int, reached: int, *, takes_slot: bool = True
) -> tuple[ItemOffer | None, int | None]:
    """The first offer whose slot could be taken, and the position of the first open one. Needs the progress lock.

    Before it gives up, it waits for items that others have locked: they may leave a slot.
    """
    first_open: int | None = None
    for may_wait in (True,) if has_single_writer() else (False, True):
        start = reached
        while offers := select_offers(request, statement, source, start):
            first_open = offers[0].position if first_open is None else first_open
            for offer in offers:
                if offer.comparison_id in request.exclude:
                    continue
                if not takes_slot or take_offered_item(offer, may_wait):
                    return offer, first_open
            start = offers[-1].position + 1
    return None, first_open


def insert_reservation(
    request: NextRequest, offer: ItemOffer, selection_method: str, probability: float | None
) -> None:
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    columns = [offer.item_id, request.rater.pk, offer.slot_id, selection_method, probability]
    with connection.cursor() as cursor:
        cursor.execute(insert_reservation_sql(), [now, *columns, request.evaluation.reservation_minutes])


UNFINISHED_STATES: Final = (AssignmentState.RESERVED, AssignmentState.ASSIGNED, AssignmentState.EXPIRED)

# Reviews that await the judge, read at once.
AWAITING_PER_QUERY: Final = 100

EXPIRED_PER_SWEEP: Final = 100

# ---- sources of the next comparison


def reserve_next_comparison(
    evaluation: Evaluation,
    rater: Rater | None,
    *,
    exclude: Collection[int] = (),
    queues: Sequence[Queue] | None = None,
    stock: QueueStock | None = None,
) -> int | None:
    """The comparison that this rater should review now, reserved for them; None if none is left.

    Comparisons that they have reserved or started come again, except those in ``exclude``. Without a rater
    nothing is reserved. ``queues``, ``stock``: the open queues of the rubric version and the stock of its default
    queue, if already read.
    """
    if evaluation.review_rubric_id is None:
        return None
    if rater is None:
        comparisons = Comparison.reviewable.filter(evaluation=evaluation).order_by("random_order", "pk")
        return comparisons.values_list("pk", flat=True).first()
    ensure_queue_is_filled(evaluation, stock=stock)
    request = NextRequest(evaluation, rater, evaluation.review_rubric_id, frozenset(exclude))
    open_queues = list_open_queues(request.version_id) if queues is None else queues
    return next((pk for pk in try_sources_in_turn(request, open_queues) if pk is not None), None)


def try_sources_in_turn(request: NextRequest, open_queues: Sequence[Queue]) -> Iterator[int | None]:
    """One comparison or None from each source, in order of priority."""
    started, assigned = select_own_work(request)
    yield resume_started(request, started)
    queues = [queue for queue in open_queues if not queue.assigned_only]
    for calibration in select_calibrations(queues):
        yield resume_calibration(request, calibration)
        yield reserve_from_queue(request, calibration)
    yield renew_own(request, assigned[0]) if assigned else None
    for review_queue in (queue for queue in queues if queue.kind == QueueKind.REVIEW):
        yield reserve_from_queue(request, review_queue)
    yield reserve_from_default_queue(request)
    if release_expired_reservations(EXPIRED_PER_SWEEP, request.version_id):
        yield reserve_from_default_queue(request)
    yield reserve_first_open(request, find_assignments_in_state(request, AssignmentState.EXPIRED).order_by("pk"))
    yield find_answered_since(request)
    yield reserve_skipped(request)


def resume_started(request: NextRequest, started: Sequence[OwnWork]) -> int | None:
    """A review that the rater started or must confirm, even if its slot was taken in the meantime."""
    if not started:
        return None
    return renew_own(request, started[0]) or started[0].comparison_id


def renew_own(request: NextRequest, work: OwnWork) -> int | None:
    if work.assignment_id is None:
        return None
    return renew_first(request, Assignment.objects.filter(pk=work.assignment_id))


def resume_calibration(request: NextRequest, calibration: Queue) -> int | None:
    """An unfinished comparison of the calibration, even if its reservation expired."""
    assignments = Assignment.objects.filter(
        rater=request.rater, item__slots__queue=calibration, state__in=UNFINISHED_STATES
    )
    return renew_first(request, assignments.exclude(item__comparison__in=request.exclude).order_by("pk"))


def renew_first(request: NextRequest, assignments: "QuerySet[Assignment]") -> int | None:
    """The comparison of the first of these assignments with a renewed reservation, even if no slot is left."""
    half = timedelta(minutes=request.evaluation.reservation_minutes) / 2
    is_half_over = ExpressionWrapper(Q(reserved_until__lt=Now() + half), BooleanField())
    assignment = assignments.select_related("item").annotate(is_half_over=is_half_over).first()
    if assignment is None:
        return None
    if assignment.state == AssignmentState.RESERVED:
        if assignment.is_half_over:  # not before, so that page loads rarely write
            until = get_reservation_end(request.evaluation)
            Assignment.objects.filter(pk=assignment.pk, state=AssignmentState.RESERVED).update(reserved_until=until)
    elif assignment.state == AssignmentState.EXPIRED:
        reserve_again(assignment, request.evaluation)
    return assignment.item.comparison_id


def reserve_skipped(request: NextRequest) -> int | None:
    """The comparison that the rater skipped longest ago."""
    reviews = Review.objects.filter(rater=request.rater, rubric_version=request.version_id, state=ReviewState.SKIPPED)
    skipped_at = dict(reviews.values_list("comparison_id", "finished_at"))
    assignments = list(find_assignments_in_state(request, AssignmentState.SKIPPED))
    assignments.sort(
        key=lambda assignment: (skipped_at.get(assignment.item.comparison_id) or timezone.now(), assignment.pk)
    )
    return reserve_first_open(request, assignments)


def find_assignments_in_state(request: NextRequest, state: AssignmentState) -> QuerySet[Assignment]:
    """This rater's assignments in that state."""
    assignments = Assignment.objects.alias(version=ITEM_VERSION).filter(
        rater=request.rater, state=state, version=request.version_id
    )
    return assignments.exclude(item__comparison__in=request.exclude).select_related("item")


def reserve_first_open(
    request: NextRequest, assignments: "Collection[Assignment] | QuerySet[Assignment]"
) -> int | None:
    is_open = (
        assignment
        for assignment in assignments
        if assignment.item.taken < assignment.item.wanted or assignment.selection_method == "calibration"
    )
    return next(
        (assignment.item.comparison_id for assignment in is_open if reserve_again(assignment, request.evaluation)), None
    )


def find_answered_since(request: NextRequest) -> int | None:
    """The first review saved before the shown judge answered that has its answer by now.

    An answer on aspects outside the rubric, or one that is not to be shown, does not count.
    """
    if request.evaluation.shown_judge_id is None or request.evaluation.reveal == Reveal.NEVER:
        return None
    judge = Rater.objects.filter(judge=request.evaluation.shown_judge_id).first()
    reviews = Review.objects.filter(
        rater=request.rater, rubric_version=request.version_id, awaits_judge=True, state=ReviewState.FINAL
    )
    ids = list(
        reviews.exclude(comparison__in=request.exclude).order_by("finished_at").values_list("comparison", flat=True)
    )
    if judge is None or not ids:
        return None
    aspects = set(RubricAspect.objects.filter(version=request.version_id).values_list("aspect__key", flat=True))
    for batch in split_into_slices(ids, AWAITING_PER_QUERY):
        choices = load_judge_choices(judge, batch)
        answered = next((pk for pk in batch if aspects.intersection(choices.get(pk, ()))), None)
        if answered is not None:
            return answered
    return None
