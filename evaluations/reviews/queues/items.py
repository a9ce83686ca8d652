"""The items of the default queue: one for each comparison and rubric version that it can be reviewed by."""

from typing import Final

from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Least
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.files import ImportState
from evaluations.domain.groups import split_into_slices
from evaluations.domain.jobs import FILL_QUEUE
from evaluations.jobs.kinds import JobClaim, JobKind, register_job_kind
from evaluations.models.bulk import refresh_statistics
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.queues import Assignment, DefaultQueue, QueueItem, QueueProgress
from evaluations.models.transactions import pause_after_transaction
from evaluations.reviews.queues.single_comparisons import update_single_comparisons
from evaluations.reviews.queues.sql import (
    INSERT_MISSING_ITEMS,
    SELECT_UNASSIGNED_REVIEWS,
    QueueStock,
    assign_reviews,
    read_queue_stock,
    set_reviews_wanted,
)

# Rows of one statement and one transaction: a few hundredths of a second on SQLite.
ITEMS_PER_TRANSACTION: Final = 1_000


def fill_queue(claim: JobClaim) -> bool:
    """Create queue items for new comparisons, before a reviewer has to wait for them."""
    evaluation = claim.job.evaluation
    assert evaluation is not None
    ensure_queue_is_filled(evaluation, claim)
    return True


register_job_kind(JobKind(FILL_QUEUE, fill_queue))


def ensure_queue_is_filled(
    evaluation: Evaluation, claim: JobClaim | None = None, *, stock: QueueStock | None = None
) -> None:
    """Fill the default queue and apply the number of reviews; nearly always one short query.

    ``stock``: that of the queue, if already read.
    """
    stock = stock or read_queue_stock(evaluation)
    if stock is None or not stock.is_full:
        fill_default_queue(evaluation, claim)
        stock = read_queue_stock(evaluation)
    if stock is not None and stock.wanted != evaluation.reviews_wanted:
        apply_reviews_wanted(evaluation)


def fill_default_queue(evaluation: Evaluation, claim: JobClaim | None = None) -> int:
    """Create the missing items, and assignments for reviews made outside the queue."""
    default_queue = get_evaluation_default_queue(evaluation)
    if default_queue is None:
        return 0
    update_single_comparisons(evaluation, claim)
    comparisons = Comparison.all_rows.filter(evaluation=evaluation).order_by("pk").values_list("pk", flat=True)
    counts = {
        "imports": evaluation.imports.filter(state=ImportState.DONE).count(),
        "last_comparison": comparisons.last() or 0,
    }
    number_created = after = 0
    while batch := list(comparisons.filter(pk__gt=after)[:ITEMS_PER_TRANSACTION]):
        if claim:
            claim.heartbeat_if_due(after)
        number_created += insert_missing_items(default_queue, evaluation, after, batch[-1])
        after = batch[-1]
    number_assigned = assign_past_reviews(default_queue, evaluation)
    if number_created + number_assigned >= ITEMS_PER_TRANSACTION:
        refresh_statistics(QueueItem, Assignment)
    items = QueueItem.objects.filter(rubric_version=default_queue.rubric_version_id).count()
    DefaultQueue.objects.filter(pk=default_queue.pk).update(items=items, **counts)
    return number_created


def get_evaluation_default_queue(evaluation: Evaluation) -> DefaultQueue | None:
    """The default queue of the current rubric version; None without a rubric."""
    version = evaluation.review_rubric_id
    return get_or_create_default_queue(version, evaluation.reviews_wanted) if version else None


def get_or_create_default_queue(version_id: int, wanted: int) -> DefaultQueue:
    return DefaultQueue.objects.get_or_create(rubric_version_id=version_id, defaults={"wanted": wanted})[0]


def lock_default_queue(default_queue: DefaultQueue) -> DefaultQueue:
    return DefaultQueue.objects.select_for_update().get(pk=default_queue.pk)


def lock_queue_of_version(version_id: int, wanted: int = 1) -> DefaultQueue:
    """The default queue of a rubric version, created if it is missing, and locked."""
    return lock_default_queue(get_or_create_default_queue(version_id, wanted))


def lock_queue_and_progress(version_id: int, wanted: int) -> DefaultQueue:
    """The queue, locked: nobody can take a slot of it, in any queue, until the transaction ends."""
    locked = lock_queue_of_version(version_id, wanted)
    QueueProgress.objects.filter(rubric_version=version_id).update(reached=F("reached"))
    return locked


def insert_missing_items(default_queue: DefaultQueue, evaluation: Evaluation, after: int, upto: int) -> int:
    """Insert the missing items of a range of comparisons, then move everyone's progress back to the first new one."""
    version, range_of_ids = default_queue.rubric_version_id, (evaluation.pk, after, upto)
    existing = QueueItem.objects.filter(
        rubric_version=version, comparison__gt=after, comparison__lte=upto, comparison__evaluation=evaluation
    )
    comparisons = Comparison.reviewable.filter(evaluation=evaluation, pk__gt=after, pk__lte=upto)
    if existing.count() >= comparisons.count():
        return 0
    with pause_after_transaction(), transaction.atomic():
        wanted = lock_default_queue(default_queue).wanted
        now = connection.ops.adapt_datetimefield_value(timezone.now())
        with connection.cursor() as cursor:
            cursor.execute(INSERT_MISSING_ITEMS, [now, version, wanted, *range_of_ids, version, version])
            number_created = int(cursor.rowcount)
        undrawn = QueueItem.objects.filter(rubric_version=version, drawn=False).order_by("position")
        first = undrawn.values_list("position", flat=True).first()
        move_progress_back(version, first if first is not None else 0)
    return number_created


def move_progress_back(version_id: int, position: int) -> None:
    """Move everyone's progress back to this position. All are updated, so that none moves meanwhile."""
    progress_rows = QueueProgress.objects.filter(rubric_version=version_id, queue__isnull=True)
    progress_rows.update(reached=Least(F("reached"), position))


def assign_past_reviews(default_queue: DefaultQueue, evaluation: Evaluation) -> int:
    """Create assignments for reviews that have none. Returns their number."""
    with connection.cursor() as cursor:
        cursor.execute(SELECT_UNASSIGNED_REVIEWS, [default_queue.rubric_version_id])
        unassigned = [pk for (pk,) in cursor.fetchall()]
    for batch in split_into_slices(unassigned, ITEMS_PER_TRANSACTION // 4):
        with pause_after_transaction(), transaction.atomic():
            lock_default_queue(default_queue)
            assign_reviews(default_queue.rubric_version_id, batch)
            # Items drawn at random by these reviews count for estimates from now on, including other reviews of them.
            record_event(
                "placed reviews", default_queue, user=None, evaluation=evaluation, after={"reviews": len(batch)}
            )
    return len(unassigned)


def get_or_create_item(version_id: int, comparison: Comparison) -> QueueItem:
    """The item of a comparison that a reviewer opened by hand, created if the queue is not filled yet."""
    items = QueueItem.objects.filter(rubric_version=version_id, comparison=comparison)
    existing = items.first()
    if existing is not None:
        return existing
    default_queue = get_or_create_default_queue(version_id, comparison.evaluation.reviews_wanted)
    position = Comparison.reviewable.values_list("random_order", flat=True).get(pk=comparison.pk)
    with transaction.atomic():
        default_queue = lock_default_queue(default_queue)
        move_progress_back(version_id, position)
        return QueueItem.objects.get_or_create(
            rubric_version_id=version_id,
            comparison=comparison,
            defaults={"position": position, "wanted": default_queue.wanted},
        )[0]


def apply_reviews_wanted(evaluation: Evaluation) -> None:
    """Apply the evaluation's number of reviews to every item outside open queues."""
    default_queue = get_evaluation_default_queue(evaluation)
    if default_queue is None:
        return
    wanted, version = evaluation.reviews_wanted, default_queue.rubric_version_id
    positions: QuerySet[QueueItem, int] = QueueItem.objects.filter(rubric_version=version).order_by("position")  # type: ignore[assignment]
    after = -1
    while batch := list(
        positions.filter(position__gt=after).values_list("position", flat=True)[:ITEMS_PER_TRANSACTION]
    ):
        with pause_after_transaction(), transaction.atomic():
            lock_default_queue(default_queue)
            move_progress_back(version, batch[0])
            set_reviews_wanted(
                wanted, "rubric_version_id = %s AND position > %s AND position <= %s", version, after, batch[-1]
            )
        after = batch[-1]
    DefaultQueue.objects.filter(pk=default_queue.pk).update(wanted=wanted)
