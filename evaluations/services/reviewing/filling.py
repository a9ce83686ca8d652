"""The items of the queue: one for each comparison and rubric version, made in bulk of what is missing.

Whoever makes places or gives them back locks the queue first, then moves the bookmarks that lie
behind them, and only then touches assignments and items. Whoever takes a place locks their own
bookmark first. So no two wait for each other, and nobody passes a place unseen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Least
from django.utils import timezone

from evaluations.domain import ImportState
from evaluations.models import Assignment, Bookmark, Comparison, Evaluation, Queue, QueueItem
from evaluations.models.many import refresh_statistics
from evaluations.services.pacing import paced
from evaluations.services.recording import record

# Rows of one statement and one transaction: a few hundredths of a second on SQLite.
ROWS_AT_ONCE: Final = 1_000


@dataclass(frozen=True)
class Stock:
    """What one short look says of a queue: how many items it has, for how many reviews each, and whether all are in."""

    items: int
    wanted: int
    is_full: bool


# Comparisons of an import show when it is done, and not before: while one is being stored the newest
# comparison is no sign of anything.
LOOK: Final = """
SELECT q.items, q.wanted, q.imports, q.last_comparison, e.reviews_wanted,
  (SELECT COUNT(*) FROM evaluations_import i WHERE i.evaluation_id = e.id AND i.state = 'done'),
  CASE WHEN EXISTS (SELECT 1 FROM evaluations_import i WHERE i.evaluation_id = e.id AND i.state = 'storing')
    THEN q.last_comparison
    ELSE (SELECT MAX(c.id) FROM evaluations_comparison c WHERE c.evaluation_id = e.id) END
FROM evaluations_evaluation e JOIN evaluations_queue q ON q.rubric_version_id = %s
WHERE e.id = %s
"""
INSERT: Final = """
INSERT INTO evaluations_queueitem (created_at, rubric_version_id, comparison_id, position, wanted, taken, drawn)
SELECT %s, %s, c.id, c.shuffle, %s, 0, FALSE
FROM evaluations_comparison c LEFT JOIN evaluations_import i ON i.id = c.source_import_id
WHERE c.evaluation_id = %s AND c.id > %s AND c.id <= %s AND (c.source_import_id IS NULL OR i.state = 'done')
  AND NOT EXISTS (SELECT 1 FROM evaluations_queueitem q WHERE q.rubric_version_id = %s AND q.comparison_id = c.id)
"""
WANT: Final = """
UPDATE evaluations_queueitem SET wanted = COALESCE((
  SELECT MAX(r.reviews_wanted) FROM evaluations_pick p JOIN evaluations_round r ON r.id = p.round_id
  WHERE p.item_id = evaluations_queueitem.id AND r.kind = 'review' AND r.closed_at IS NULL), %s)
WHERE """
# Saved or skipped reviews that came past the queue: from before it was there, or from an example.
UNPLACED: Final = """
SELECT r.id FROM evaluations_review r
JOIN evaluations_queueitem i ON i.rubric_version_id = r.rubric_version_id AND i.comparison_id = r.comparison_id
WHERE r.rubric_version_id = %s AND r.source_import_id IS NULL AND r.state IN ('first', 'final', 'skipped')
  AND NOT EXISTS (SELECT 1 FROM evaluations_assignment a WHERE a.item_id = i.id AND a.rater_id = r.rater_id)
"""
PLACE: Final = """
INSERT INTO evaluations_assignment (created_at, item_id, rater_id, picked_by, probability, state)
SELECT %s, i.id, r.rater_id, r.picked_by, r.probability, CASE r.state WHEN 'skipped' THEN 'skipped' ELSE 'done' END
FROM evaluations_review r
JOIN evaluations_queueitem i ON i.rubric_version_id = r.rubric_version_id AND i.comparison_id = r.comparison_id
WHERE r.id IN ({marks})
  AND NOT EXISTS (SELECT 1 FROM evaluations_assignment a WHERE a.item_id = i.id AND a.rater_id = r.rater_id)
"""
# Calibration takes no place: everybody is to be able to do it.
COUNT_ANEW: Final = """
UPDATE evaluations_queueitem SET taken = (
  SELECT COUNT(*) FROM evaluations_assignment a WHERE a.item_id = evaluations_queueitem.id
    AND a.state IN ('held', 'named', 'done') AND a.picked_by <> 'calibration')
WHERE """
DRAWN_BY_THEM: Final = """
UPDATE evaluations_queueitem SET drawn = TRUE WHERE rubric_version_id = %s AND comparison_id IN (
  SELECT comparison_id FROM evaluations_review WHERE picked_by = 'random' AND id IN ({marks}))
"""
COUNT_DONE: Final = """
UPDATE evaluations_bookmark SET done = (SELECT COUNT(*) FROM evaluations_review r
  WHERE r.rater_id = evaluations_bookmark.rater_id AND r.rubric_version_id = evaluations_bookmark.rubric_version_id
    AND r.state IN ('first', 'final'))
WHERE rubric_version_id = %s AND round_id IS NULL
  AND rater_id IN (SELECT rater_id FROM evaluations_review WHERE id IN ({marks}))
"""


def ready(evaluation: Evaluation) -> None:
    """See that the queue holds every comparison and wants what the evaluation wants: nearly always one short look."""
    stock = look(evaluation)
    if stock is None or not stock.is_full:
        fill(evaluation)
        stock = look(evaluation)
    if stock is not None and stock.wanted != evaluation.reviews_wanted:
        change_wanted(evaluation)


def look(evaluation: Evaluation) -> Stock | None:
    """None where there is no queue yet. What the evaluation wants by now is read along."""
    with connection.cursor() as cursor:
        cursor.execute(LOOK, [evaluation.review_rubric_id, evaluation.pk])
        found = cursor.fetchone()
    if found is None:
        return None
    items, wanted, imports, last, evaluation.reviews_wanted, imports_now, last_now = found
    return Stock(items, wanted, (imports, last) == (imports_now, last_now or 0))


def fill(evaluation: Evaluation) -> int:
    """Make the items that are missing, and give the reviews that came past the queue their places. How many are new."""
    queue = queue_of(evaluation)
    if queue is None:
        return 0
    comparisons = Comparison.all_rows.filter(evaluation=evaluation).order_by("pk").values_list("pk", flat=True)
    seen = {
        "imports": evaluation.imports.filter(state=ImportState.DONE).count(),
        "last_comparison": comparisons.last() or 0,
    }
    made = after = 0
    while stretch := list(comparisons.filter(pk__gt=after)[:ROWS_AT_ONCE]):
        made += insert(queue, evaluation, after, stretch[-1])
        after = stretch[-1]
    placed = place_reviews(queue, evaluation)
    if made + placed >= ROWS_AT_ONCE:
        refresh_statistics(QueueItem, Assignment)
    items = QueueItem.objects.filter(rubric_version=queue.rubric_version_id).count()
    Queue.objects.filter(pk=queue.pk).update(items=items, **seen)
    return made


def queue_of(evaluation: Evaluation) -> Queue | None:
    """The queue of the rubric in force; None where there is no rubric."""
    version = evaluation.review_rubric_id
    return known_queue(version, evaluation.reviews_wanted) if version else None


def known_queue(version_id: int, wanted: int) -> Queue:
    return Queue.objects.get_or_create(rubric_version_id=version_id, defaults={"wanted": wanted})[0]


def lock(queue: Queue) -> Queue:
    return Queue.objects.select_for_update().get(pk=queue.pk)


def lock_out(queue: Queue) -> Queue:
    """The queue, locked; nobody takes a place of it, in whatever round, until the transaction ends."""
    locked = lock(queue)
    Bookmark.objects.filter(rubric_version=queue.rubric_version_id).update(reached=F("reached"))
    return locked


def insert(queue: Queue, evaluation: Evaluation, after: int, upto: int) -> int:
    """The missing items of a stretch of comparisons. Everybody's bookmark goes back to the first that is not drawn."""
    version, between = queue.rubric_version_id, (evaluation.pk, after, upto)
    known = QueueItem.objects.filter(
        rubric_version=version, comparison__gt=after, comparison__lte=upto, comparison__evaluation=evaluation
    )
    comparisons = Comparison.objects.filter(evaluation=evaluation, pk__gt=after, pk__lte=upto)
    if known.count() >= comparisons.count():
        return 0
    with paced(), transaction.atomic():
        wanted = lock(queue).wanted
        moment = connection.ops.adapt_datetimefield_value(timezone.now())
        with connection.cursor() as cursor:
            cursor.execute(INSERT, [moment, version, wanted, *between, version])
            made = int(cursor.rowcount)
        undrawn = QueueItem.objects.filter(rubric_version=version, drawn=False).order_by("position")
        first = undrawn.values_list("position", flat=True).first()
        move_back(version, first if first is not None else 0)
    return made


def move_back(version_id: int, position: int) -> None:
    """Nobody has come further in the random order than this. Touches every bookmark, so that none moves meanwhile."""
    everybody = Bookmark.objects.filter(rubric_version=version_id, round__isnull=True)
    everybody.update(reached=Least(F("reached"), position))


def place_reviews(queue: Queue, evaluation: Evaluation) -> int:
    """How many had no place."""
    with connection.cursor() as cursor:
        cursor.execute(UNPLACED, [queue.rubric_version_id])
        unplaced = [pk for (pk,) in cursor.fetchall()]
    for start in range(0, len(unplaced), ROWS_AT_ONCE // 4):
        with paced(), transaction.atomic():
            lock(queue)
            some = unplaced[start : start + ROWS_AT_ONCE // 4]
            place(queue.rubric_version_id, some)
            # What they drew at random counts for estimates from now on, other people's reviews of it too.
            record("placed reviews", queue, user=None, evaluation=evaluation, after={"reviews": len(some)})
    return len(unplaced)


def place(version_id: int, reviews: Sequence[int]) -> None:
    marks = ", ".join(["%s"] * len(reviews))
    moment = connection.ops.adapt_datetimefield_value(timezone.now())
    with connection.cursor() as cursor:
        cursor.execute(COUNT_DONE.format(marks=marks), [version_id, *reviews])
        cursor.execute(PLACE.format(marks=marks), [moment, *reviews])
        cursor.execute(DRAWN_BY_THEM.format(marks=marks), [version_id, *reviews])
    placed = f"comparison_id IN (SELECT comparison_id FROM evaluations_review WHERE id IN ({marks}))"
    count_anew(f"rubric_version_id = %s AND {placed}", version_id, *reviews)


def count_anew(where: str, *values: Any) -> None:
    """The places taken of the items there. Called with the queue locked.

    A place that is being taken at this moment is waited for first: the count would not see it.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"SELECT id FROM evaluations_queueitem WHERE {where} ORDER BY id FOR UPDATE", values)
        cursor.execute(COUNT_ANEW + where, values)


def item_for(version_id: int, comparison: Comparison) -> QueueItem:
    """The item of a comparison that a person came to by hand, made where the queue is not filled yet."""
    items = QueueItem.objects.filter(rubric_version=version_id, comparison=comparison)
    known = items.first()
    if known is not None:
        return known
    queue = known_queue(version_id, comparison.evaluation.reviews_wanted)
    position = Comparison.objects.values_list("shuffle", flat=True).get(pk=comparison.pk)
    with transaction.atomic():
        queue = lock(queue)
        move_back(version_id, position)
        return QueueItem.objects.get_or_create(
            rubric_version_id=version_id,
            comparison=comparison,
            defaults={"position": position, "wanted": queue.wanted},
        )[0]


def change_wanted(evaluation: Evaluation) -> None:
    """Every item wants as many reviews as the evaluation does by now, but for those of an open round."""
    queue = queue_of(evaluation)
    if queue is None:
        return
    wanted, version = evaluation.reviews_wanted, queue.rubric_version_id
    positions: QuerySet[QueueItem, int] = QueueItem.objects.filter(rubric_version=version).order_by("position")  # type: ignore[assignment]
    after = -1
    while stretch := list(positions.filter(position__gt=after).values_list("position", flat=True)[:ROWS_AT_ONCE]):
        with paced(), transaction.atomic():
            lock(queue)
            move_back(version, stretch[0])
            want(wanted, "rubric_version_id = %s AND position > %s AND position <= %s", version, after, stretch[-1])
        after = stretch[-1]
    Queue.objects.filter(pk=queue.pk).update(wanted=wanted)


def want(wanted: int, where: str, *values: Any) -> None:
    """The items there want what their open rounds want, or else so much. Called with the queue locked."""
    with connection.cursor() as cursor:
        cursor.execute(WANT + where, [wanted, *values])
