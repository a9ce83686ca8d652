"""SQL of the queue: its statements with the functions that run them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from django.db import connection
from django.utils import timezone

from evaluations.domain.reviews import QueueKind, StratifyBy
from evaluations.models.evaluations import Evaluation
from evaluations.models.joined_rows import JoinedRow
from evaluations.models.judges import Rater
from evaluations.models.queues import Queue, QueueItem, QueueProgress, QueueSlot


@dataclass(frozen=True)
class QueueStock:
    """The queue's number of items, the reviews wanted of each, and whether every comparison has one."""

    items: int
    wanted: int
    is_full: bool


class OwnCounts(NamedTuple):
    """The comparisons that a rater has done, None if that is not counted yet, and those skipped."""

    done: int | None
    skipped: int


COUNT_DONE: Final = (
    "(SELECT done FROM evaluations_queueprogress WHERE rater_id = %s AND rubric_version_id = %s AND queue_id IS NULL)"
)
COUNT_SKIPPED: Final = (
    "(SELECT COUNT(*) FROM evaluations_review WHERE rater_id = %s AND rubric_version_id = %s AND state = 'skipped')"
)

# Comparisons of an import are visible once it is done: while one is being stored, the newest comparison
# does not tell whether the queue is full.
SELECT_STOCK: Final = """
SELECT {others}q.items, q.wanted, q.imports, q.last_comparison, e.reviews_wanted,
  (SELECT COUNT(*) FROM evaluations_import i WHERE i.evaluation_id = e.id AND i.state = 'done'),
  CASE WHEN EXISTS (SELECT 1 FROM evaluations_import i WHERE i.evaluation_id = e.id AND i.state = 'storing')
    THEN q.last_comparison
    ELSE (SELECT MAX(c.id) FROM evaluations_comparison c WHERE c.evaluation_id = e.id) END
FROM evaluations_evaluation e JOIN evaluations_defaultqueue q ON q.rubric_version_id = %s
WHERE e.id = %s
"""

INSERT_MISSING_ITEMS: Final = """
INSERT INTO evaluations_queueitem (created_at, rubric_version_id, comparison_id, position, wanted, taken, drawn)
SELECT %s, %s, c.id, c.random_order, %s, 0, FALSE
FROM evaluations_comparison c LEFT JOIN evaluations_import i ON i.id = c.source_import_id
WHERE c.evaluation_id = %s AND c.id > %s AND c.id <= %s AND (c.source_import_id IS NULL OR i.state = 'done')
  AND (c.origin <> 'single' OR EXISTS (
    SELECT 1 FROM evaluations_rubricversion v JOIN evaluations_rubric r ON r.id = v.rubric_id
    WHERE v.id = %s AND r.kind = 'pointwise'))
  AND NOT EXISTS (SELECT 1 FROM evaluations_queueitem q WHERE q.rubric_version_id = %s AND q.comparison_id = c.id)
"""

UPDATE_REVIEWS_WANTED: Final = """
UPDATE evaluations_queueitem SET wanted = COALESCE((
  SELECT MAX(q.reviews_wanted) FROM evaluations_queueslot s JOIN evaluations_queue q ON q.id = s.queue_id
  WHERE s.item_id = evaluations_queueitem.id AND q.kind = 'review' AND q.closed_at IS NULL), %s)
WHERE """

# Saved or skipped reviews outside the queue: from before it existed, or of an example.
SELECT_UNASSIGNED_REVIEWS: Final = """
SELECT r.id FROM evaluations_review r
JOIN evaluations_queueitem i ON i.rubric_version_id = r.rubric_version_id AND i.comparison_id = r.comparison_id
WHERE r.rubric_version_id = %s AND r.source_import_id IS NULL AND r.state IN ('first', 'final', 'skipped')
  AND NOT EXISTS (SELECT 1 FROM evaluations_assignment a WHERE a.item_id = i.id AND a.rater_id = r.rater_id)
"""

INSERT_ASSIGNMENTS_OF_REVIEWS: Final = """
INSERT INTO evaluations_assignment (created_at, item_id, rater_id, selection_method, probability, state)
SELECT %s, i.id, r.rater_id, r.selection_method, r.probability,
  CASE r.state WHEN 'skipped' THEN 'skipped' ELSE 'done' END
FROM evaluations_review r
JOIN evaluations_queueitem i ON i.rubric_version_id = r.rubric_version_id AND i.comparison_id = r.comparison_id
WHERE r.id IN ({marks})
  AND NOT EXISTS (SELECT 1 FROM evaluations_assignment a WHERE a.item_id = i.id AND a.rater_id = r.rater_id)
"""

# Calibration takes no slot: every reviewer does it.
UPDATE_TAKEN: Final = """
UPDATE evaluations_queueitem SET taken = (
  SELECT COUNT(*) FROM evaluations_assignment a WHERE a.item_id = evaluations_queueitem.id
    AND a.state IN ('reserved', 'assigned', 'done') AND a.selection_method <> 'calibration')
WHERE """

UPDATE_ITEMS_DRAWN_BY_REVIEWS: Final = """
UPDATE evaluations_queueitem SET drawn = TRUE WHERE rubric_version_id = %s AND comparison_id IN (
  SELECT comparison_id FROM evaluations_review WHERE selection_method = 'random' AND id IN ({marks}))
"""

UPDATE_PROGRESS_DONE: Final = """
UPDATE evaluations_queueprogress AS p SET done = (SELECT COUNT(*) FROM evaluations_review r
  WHERE r.rater_id = p.rater_id AND r.rubric_version_id = p.rubric_version_id AND r.state IN ('first', 'final'))
WHERE rubric_version_id = %s AND queue_id IS NULL
  AND rater_id IN (SELECT rater_id FROM evaluations_review WHERE id IN ({marks}))
"""


def read_queue_stock(evaluation: Evaluation) -> QueueStock | None:
    """The stock; None without a queue. Refreshes the evaluation's number of reviews."""
    with connection.cursor() as cursor:
        cursor.execute(SELECT_STOCK.format(others=""), [evaluation.review_rubric_id, evaluation.pk])
        row = cursor.fetchone()
    return build_queue_stock(evaluation, row) if row else None


def read_stock_and_own_counts(evaluation: Evaluation, rater: Rater) -> tuple[QueueStock | None, OwnCounts]:
    """The stock with the rater's own counts; nearly always one statement."""
    own = [rater.pk, evaluation.review_rubric_id] * 2
    with connection.cursor() as cursor:
        others = f"{COUNT_DONE}, {COUNT_SKIPPED}, "
        cursor.execute(SELECT_STOCK.format(others=others), [*own, evaluation.review_rubric_id, evaluation.pk])
        if row := cursor.fetchone():
            return build_queue_stock(evaluation, row[2:]), OwnCounts(*row[:2])
        cursor.execute(f"SELECT {COUNT_DONE}, {COUNT_SKIPPED}", own)
        return None, OwnCounts(*cursor.fetchone())


def build_queue_stock(evaluation: Evaluation, row: Sequence[int]) -> QueueStock:
    items, wanted, imports, last, evaluation.reviews_wanted, imports_now, last_now = row
    return QueueStock(items, wanted, (imports, last) == (imports_now, last_now or 0))


def assign_reviews(version_id: int, reviews: Sequence[int]) -> None:
    placeholders = ", ".join(["%s"] * len(reviews))
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    with connection.cursor() as cursor:
        cursor.execute(UPDATE_PROGRESS_DONE.format(marks=placeholders), [version_id, *reviews])
        cursor.execute(INSERT_ASSIGNMENTS_OF_REVIEWS.format(marks=placeholders), [now, *reviews])
        cursor.execute(UPDATE_ITEMS_DRAWN_BY_REVIEWS.format(marks=placeholders), [version_id, *reviews])
    with_reviews = f"comparison_id IN (SELECT comparison_id FROM evaluations_review WHERE id IN ({placeholders}))"
    recount_taken(f"rubric_version_id = %s AND {with_reviews}", version_id, *reviews)


def recount_taken(where: str, *values: Any) -> None:
    """Recount the slots taken of these items. Needs the queue lock.

    It first waits for slots that are being taken now: the count would not see them.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"SELECT id FROM evaluations_queueitem WHERE {where} ORDER BY id FOR UPDATE", values)
        cursor.execute(UPDATE_TAKEN + where, values)


def set_reviews_wanted(wanted: int, where: str, *values: Any) -> None:
    """Set the reviews wanted of these items: what open queues want, else ``wanted``. Needs the queue lock."""
    with connection.cursor() as cursor:
        cursor.execute(UPDATE_REVIEWS_WANTED + where, [wanted, *values])


# Raters past that position who never had the item: it is open to them again.
UPDATE_PROGRESS_PASSED: Final = """
UPDATE evaluations_queueprogress SET reached = %s
WHERE {where} AND reached > %s AND NOT EXISTS (
  SELECT 1 FROM evaluations_assignment a WHERE a.item_id = %s AND a.rater_id = evaluations_queueprogress.rater_id)
"""

# With the item's slot in an open calibration: nearly always none.
SELECT_ITEM: Final = """
SELECT i.*, (
  SELECT MIN(s.id) FROM evaluations_queueslot s JOIN evaluations_queue q ON q.id = s.queue_id
  WHERE s.item_id = i.id AND q.kind = 'calibration' AND q.closed_at IS NULL) AS calibration_slot_id
FROM evaluations_queueitem i WHERE i.rubric_version_id = %s AND i.comparison_id = %s
"""


def find_item(version_id: int, comparison_id: int) -> tuple[QueueItem | None, QueueSlot | None]:
    """The comparison's item, and its slot in an open calibration; None where there is none."""
    item = next(iter(QueueItem.objects.raw(SELECT_ITEM, [version_id, comparison_id])), None)
    slot_id: int | None = getattr(item, "calibration_slot_id", None)
    return item, QueueSlot.objects.get(pk=slot_id) if slot_id else None


def move_passed_progress_back(item: QueueItem) -> None:
    """Move progress beyond an item back before its slot opens. Needs the queue lock."""
    slots = QueueSlot.objects.filter(item=item, queue__closed_at__isnull=True, queue__kind=QueueKind.REVIEW)
    with connection.cursor() as cursor:
        values = [item.position, item.rubric_version_id, item.position, item.pk]
        cursor.execute(UPDATE_PROGRESS_PASSED.format(where="rubric_version_id = %s AND queue_id IS NULL"), values)
        for queue_id, position in slots.values_list("queue_id", "position"):
            cursor.execute(
                UPDATE_PROGRESS_PASSED.format(where="queue_id = %s"), [position, queue_id, position, item.pk]
            )


# ---- progress -----------------------------------------------------------------------------

SELECT_PROGRESS: Final = (
    "SELECT * FROM evaluations_queueprogress WHERE rater_id = %s AND rubric_version_id = %s AND queue_id IS NULL"
)

SELECT_REACHED: Final = "SELECT reached FROM evaluations_queueprogress WHERE id = %s"


def for_update() -> str:
    """What locks the rows of a SELECT. SQLite has locked everything once a transaction writes."""
    return " FOR UPDATE" if connection.vendor == "postgresql" else ""


def lock_progress(progress: QueueProgress) -> int:
    """The position that the rater reached, locked until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(SELECT_REACHED + for_update(), [progress.pk])
        return int(cursor.fetchone()[0])


OFFERS_AT_ONCE: Final = 8

OPEN_TO_RATER: Final = """
i.taken < i.wanted
AND NOT EXISTS (SELECT 1 FROM evaluations_assignment a WHERE a.item_id = i.id AND a.rater_id = %s)
"""

SELECT_DEFAULT_QUEUE_OFFERS: Final = f"""
SELECT i.id, i.comparison_id, i.position, NULL, 'random', NULL FROM evaluations_queueitem i
WHERE i.rubric_version_id = %s AND i.position >= %s AND {OPEN_TO_RATER}
ORDER BY i.position LIMIT %s
"""

SELECT_QUEUE_OFFERS: Final = f"""
SELECT i.id, i.comparison_id, s.position, s.id, s.selection_method, s.probability FROM evaluations_queueslot s
JOIN evaluations_queueitem i ON i.id = s.item_id
WHERE s.queue_id = %s AND s.position >= %s AND {OPEN_TO_RATER}
ORDER BY s.position LIMIT %s
"""

# Calibration takes no place: full or not, everybody meets it.
SELECT_CALIBRATION_OFFERS: Final = SELECT_QUEUE_OFFERS.replace("i.taken < i.wanted", "0 = 0")

TAKE_ITEM: Final = "UPDATE evaluations_queueitem SET taken = taken + 1 WHERE id = %s AND taken < wanted"

TAKE_UNLOCKED_ITEM: Final = TAKE_ITEM.replace(
    "%s", "(SELECT id FROM evaluations_queueitem WHERE id = %s AND taken < wanted FOR UPDATE SKIP LOCKED)"
)

# Its last value: for how many minutes.
INSERT_RESERVATION: Final = {
    vendor: f"""
INSERT INTO evaluations_assignment
  (created_at, item_id, rater_id, slot_id, selection_method, probability, state, reserved_until)
VALUES (%s, %s, %s, %s, %s, %s, 'reserved', {until})
"""
    for vendor, until in (
        ("sqlite", "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW', '+' || %s || ' minutes')"),
        ("postgresql", "STATEMENT_TIMESTAMP() + %s * INTERVAL '1 minute'"),
    )
}


def insert_reservation_sql() -> str:
    return INSERT_RESERVATION[connection.vendor]


UPDATE_PROGRESS: Final = "UPDATE evaluations_queueprogress SET reached = %s WHERE id = %s"

UPDATE_PROGRESS_DRAWN: Final = "UPDATE evaluations_queueprogress SET reached = %s, drawn_at = %s WHERE id = %s"

# Its turn in the random order has come. What lies before it and is full, or was met by this person
# another way, is passed over: its turn has come too.
SELECT_PASSED_ITEMS: Final = """
SELECT i.id FROM evaluations_queueitem i
WHERE i.rubric_version_id = %s AND NOT i.drawn AND i.position < %s AND (i.taken >= i.wanted
  OR EXISTS (SELECT 1 FROM evaluations_assignment a WHERE a.item_id = i.id AND a.rater_id = %s))
"""

UPDATE_ITEMS_REACHED: Final = (
    f"UPDATE evaluations_queueitem SET drawn = TRUE WHERE (id IN ({SELECT_PASSED_ITEMS}) OR id = %s) AND NOT drawn"
)

# PostgreSQL reads the whole table for an OR, and for how many it expects; of an array it looks each up.
UPDATE_UNLOCKED_ITEMS_REACHED: Final = f"""
UPDATE evaluations_queueitem SET drawn = TRUE
WHERE id = ANY(ARRAY({SELECT_PASSED_ITEMS} FOR UPDATE OF i SKIP LOCKED) || %s::bigint) AND NOT drawn
"""


@dataclass(frozen=True)
class NextRequest:
    """A rater's request for the next comparison. ``exclude``: comparisons that the page has already."""

    evaluation: Evaluation
    rater: Rater
    version_id: int
    exclude: frozenset[int] = frozenset()


@dataclass(frozen=True)
class ItemOffer:
    """An item that is open to a rater, and how it was selected. ``position`` orders the offers."""

    item_id: int
    comparison_id: int
    position: int
    slot_id: int | None
    selection_method: str
    probability: float | None


def select_offers(request: NextRequest, statement: str, source: int, start: int) -> list[ItemOffer]:
    """The next few items that are open to this rater, in order."""
    with connection.cursor() as cursor:
        cursor.execute(statement, [source, start, request.rater.pk, OFFERS_AT_ONCE])
        return [ItemOffer(*row) for row in cursor.fetchall()]


def take_offered_item(offer: ItemOffer, may_wait: bool) -> bool:
    """Take the slot if one is open: the conditional update is the lock."""
    with connection.cursor() as cursor:
        cursor.execute(TAKE_ITEM if may_wait else TAKE_UNLOCKED_ITEM, [offer.item_id])
        return bool(cursor.rowcount)


def mark_items_reached(request: NextRequest, offer: ItemOffer) -> bool:
    """Mark the items that the random order has reached. True if any was new."""
    statement = UPDATE_UNLOCKED_ITEMS_REACHED if connection.vendor == "postgresql" else UPDATE_ITEMS_REACHED
    with connection.cursor() as cursor:
        cursor.execute(statement, [request.version_id, offer.position, request.rater.pk, offer.item_id])
        return bool(cursor.rowcount)


def advance_progress(progress: QueueProgress, reached: int, first_open: int, *, has_drawn: bool = False) -> None:
    """Move the progress to the first open item, or to the end."""
    with connection.cursor() as cursor:
        if has_drawn:
            now = connection.ops.adapt_datetimefield_value(timezone.now())
            cursor.execute(UPDATE_PROGRESS_DRAWN, [first_open, now, progress.pk])
        elif first_open != reached:
            cursor.execute(UPDATE_PROGRESS, [first_open, progress.pk])


# Reviews that were started, and the first assignments: reserved before assigned, as the words sort backward, and the
# oldest first. An index has them in this order.
SELECT_OWN_WORK: Final = """
SELECT r.comparison_id, a.id, NULL, r.created_at FROM evaluations_review r
LEFT JOIN evaluations_queueitem i ON i.rubric_version_id = r.rubric_version_id AND i.comparison_id = r.comparison_id
LEFT JOIN evaluations_assignment a ON a.item_id = i.id AND a.rater_id = r.rater_id
WHERE r.rater_id = %s AND r.rubric_version_id = %s AND r.state IN ('draft', 'first')
UNION ALL
SELECT * FROM (
  SELECT i.comparison_id, a.id, a.state, a.created_at
  FROM evaluations_assignment a JOIN evaluations_queueitem i ON i.id = a.item_id
  WHERE a.rater_id = %s AND a.state IN ('reserved', 'assigned') AND i.rubric_version_id = %s
  ORDER BY a.state DESC, a.id LIMIT %s) AS held
"""


class OwnWork(NamedTuple):
    """A comparison that a rater has started to review (``state`` is None) or that is reserved or assigned to them."""

    comparison_id: int
    assignment_id: int | None
    state: str | None
    created_at: object  # as the database writes it: only to be sorted by


def select_own_work(request: NextRequest) -> tuple[list[OwnWork], list[OwnWork]]:
    """The rater's started reviews, oldest first, and their reserved, then assigned comparisons."""
    key = [request.rater.pk, request.version_id]
    with connection.cursor() as cursor:
        cursor.execute(SELECT_OWN_WORK, [*key, *key, len(request.exclude) + 1])
        rows = [row for row in map(OwnWork._make, cursor.fetchall()) if row.comparison_id not in request.exclude]
    started = sorted((row for row in rows if row.state is None), key=lambda row: row.created_at)  # type: ignore[arg-type,return-value]
    held = sorted((row for row in rows if row.state), key=lambda row: (row.state != "reserved", row.assignment_id))
    return started, held


OPEN_QUEUE: Final = JoinedRow(Queue, "q")

SELECT_OPEN_QUEUES: Final = f"""
SELECT {OPEN_QUEUE.columns} FROM evaluations_queue q
WHERE q.rubric_version_id = %s AND q.closed_at IS NULL ORDER BY q.id
"""


def list_open_queues(version_id: int | None) -> list[Queue]:
    """The open queues of a rubric version, oldest first: nearly always none."""
    with connection.cursor() as cursor:
        cursor.execute(SELECT_OPEN_QUEUES, [version_id])
        return [OPEN_QUEUE.build(iter(row)) for row in cursor.fetchall()]


def select_calibrations(queues: Iterable[Queue]) -> list[Queue]:
    return [queue for queue in queues if queue.kind == QueueKind.CALIBRATION]


# Items that can join a queue: they want more reviews than are taken, and no open queue has them.
SELECT_FREE_ITEMS: Final = """
SELECT i.comparison_id, i.id FROM evaluations_queueitem i
WHERE i.rubric_version_id = %s AND i.taken < %s AND NOT EXISTS (
  SELECT 1 FROM evaluations_queueslot s JOIN evaluations_queue q ON q.id = s.queue_id
  WHERE s.item_id = i.id AND q.kind = 'review' AND q.closed_at IS NULL)
ORDER BY i.position
"""

# ---- deterministic strategies

NO_TEST_CALL: Final = "(call_id IS NULL OR call_id NOT IN (SELECT id FROM evaluations_call WHERE is_test))"

# One judge's choice on one aspect: its orders if they agree, otherwise a tie. “Both bad” counts as a tie.
SELECT_CONSOLIDATED: Final = (
    """
SELECT comparison_id, aspect_id, rater_id,
  CASE WHEN MIN(choice) = MAX(choice) THEN MIN(choice) ELSE 'tie' END AS choice,
  MIN(CASE choice WHEN 'both_bad' THEN 'tie' ELSE choice END) AS least,
  MAX(CASE choice WHEN 'both_bad' THEN 'tie' ELSE choice END) AS most
FROM evaluations_verdict WHERE rater_id IN ({raters}) AND aspect_id IN ({aspects}) AND """
    + NO_TEST_CALL
    + """
GROUP BY comparison_id, aspect_id, rater_id
"""
)

SELECT_FLIPPED: Final = (
    "SELECT comparison_id, COUNT(*) FROM (" + SELECT_CONSOLIDATED + ") AS consolidated WHERE least <> most GROUP BY 1"
)

SELECT_DIFFERING: Final = (
    "SELECT DISTINCT comparison_id FROM ("
    "SELECT comparison_id, aspect_id FROM (" + SELECT_CONSOLIDATED + ") AS consolidated "
    "GROUP BY comparison_id, aspect_id HAVING MIN(choice) <> MAX(choice)) AS differing"
)

# A is 1, a tie a half, B is 0: a mean near a half over both orders means that the judge is unsure.
SELECT_UNSURE: Final = (
    """
SELECT comparison_id, AVG(distance) FROM (
  SELECT comparison_id, ABS(AVG(weighted) - 0.5) AS distance FROM evaluations_verdict
  WHERE rater_id IN ({raters}) AND aspect_id IN ({aspects}) AND weighted IS NOT NULL AND """
    + NO_TEST_CALL
    + """
  GROUP BY comparison_id, aspect_id, rater_id) AS consolidated
GROUP BY comparison_id
"""
)

# ---- strata

SELECT_STRATA: Final = """
SELECT i.id, {stratum}, i.drawn OR EXISTS (
    SELECT 1 FROM evaluations_queueslot s WHERE s.item_id = i.id AND s.selection_method = 'stratified')
FROM evaluations_queueitem i JOIN evaluations_comparison c ON c.id = i.comparison_id {joins}
WHERE i.rubric_version_id = %s ORDER BY i.position
"""

STRATUM_COLUMNS: Final = {
    StratifyBy.CATEGORY: {"stratum": "q.category", "joins": "JOIN evaluations_query q ON q.id = c.query_id"},
    StratifyBy.CANDIDATE_PAIR: {
        "stratum": "CAST(a.candidate_id AS VARCHAR(20)) || ':' || CAST(b.candidate_id AS VARCHAR(20))",
        "joins": "JOIN evaluations_response a ON a.id = c.response_a_id "
        "JOIN evaluations_response b ON b.id = c.response_b_id",
    },
}
