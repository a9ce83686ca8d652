"""SQL on due calls, on the accounts of runs, on stored answers.

It is raw because composing these statements took longer than running them.
"""

import uuid
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from django.db import connection
from django.db.models import QuerySet

from evaluations.domain.rubrics import RubricKind
from evaluations.models.clock import clock_sql, parse_clock
from evaluations.models.judges import Rater
from evaluations.models.runs import Call, Run
from evaluations.verdicts.changes import ChangedRow, record_changes


class RunAtWork(NamedTuple):
    """The database's time, and the seconds for which the run's endpoint is paused.

    ``is_down``: whether the endpoint is set aside because it does not answer. ``is_granted``: whether the run's
    evaluation may use the endpoint. ``has_budget``: whether a budget of the run, the grant or the endpoint bounds what
    it spends.
    """

    now: datetime
    pause: float
    is_down: bool
    is_granted: bool
    has_budget: bool


def find_run_at_work(run: Run) -> RunAtWork | None:
    """The run's present state; None unless it is running."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {clock_sql()}, e.paused_until, e.down_since IS NOT NULL, "
            "e.id IS NULL OR e.is_offered OR COALESCE(g.is_active, FALSE), "
            "r.budget IS NOT NULL OR g.budget IS NOT NULL OR e.daily_budget IS NOT NULL "
            "FROM evaluations_run r JOIN evaluations_judge j ON j.id = r.judge_id "
            "LEFT JOIN evaluations_endpoint e ON e.id = j.endpoint_id LEFT JOIN evaluations_endpointgrant g "
            "ON g.endpoint_id = e.id AND g.evaluation_id = r.evaluation_id WHERE r.id = %s AND r.state = 'running'",
            [run.pk],
        )
        row = cursor.fetchone()
    if row is None:
        return None
    now, paused_until = parse_clock(row[0]), row[1]
    if paused_until and paused_until.tzinfo is None:  # raw SQL on SQLite returns UTC without a time zone
        paused_until = paused_until.replace(tzinfo=UTC)
    pause = (paused_until - now).total_seconds() if paused_until else 0.0
    return RunAtWork(now, pause, *map(bool, row[2:]))


class LockedCallRow(NamedTuple):
    """The columns of a locked call that decide about its outcome, and the number of its last attempt."""

    call_id: int
    state: str
    lease: uuid.UUID | str | None
    run_id: int
    reserved: int
    last_number: int | None


def lock_call_rows(call_ids: Sequence[int]) -> tuple[list[LockedCallRow], datetime]:
    """Lock these calls in the order of their ids; returns their rows and the database's time."""
    marks = ", ".join(["%s"] * len(call_ids))
    lock = " FOR UPDATE" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, state, lease, run_id, reserved, "
            "(SELECT MAX(number) FROM evaluations_attempt a WHERE a.call_id = evaluations_call.id), "
            f"{clock_sql()} FROM evaluations_call WHERE id IN ({marks}) ORDER BY id{lock}",
            call_ids,
        )
        rows = cursor.fetchall()
    return [LockedCallRow(*row[:-1]) for row in rows], parse_clock(rows[0][-1])


class DueCall(NamedTuple):
    """A call that may be sent now, with the texts to judge as stored JSON."""

    call_id: int
    comparison_id: int | None
    response_id: int | None
    shown: str
    sample: int
    step: str
    reuse_key: str
    failed_requests: int
    messages: str
    context: str | None
    reference: str | None
    first: str
    second: str


DUE_CALLS: Final = """
SELECT c.id, c.comparison_id, c.response_id, c.shown, c.sample, c.step, c.reuse_key,
  (SELECT COUNT(*) FROM evaluations_attempt a
   WHERE a.call_id = c.id AND +a.run_id = c.run_id AND a.outcome IN ('retry', 'lost')),
  q.messages, q.context, q.reference, {texts}
FROM evaluations_call c {joins} JOIN evaluations_query q ON q.id = {of}.query_id
WHERE {{where}}
"""
# An array is no constant, so that only the index call_of_run has this order. By the primary key PostgreSQL would read
# all calls that are over: just after planning, when statistics are gathered, all wait.
OF_RUN: Final = {"postgresql": "c.run_id = ANY(ARRAY[%s])", "sqlite": "c.run_id = %s"}
WAITING_CALLS: Final = (
    "{of_run} AND c.state = 'pending' AND (c.not_before IS NULL OR c.not_before <= %s) ORDER BY c.run_id, c.id LIMIT %s"
)
CALLS_IN_BATCH: Final = "c.batch_id = %s AND c.state = 'running' AND c.id IN ({marks}) ORDER BY c.id"
DUE_CALLS_BY_KIND: Final = {
    RubricKind.PAIRWISE: DUE_CALLS.format(
        texts="one.messages, two.messages",
        of="pair",
        joins="JOIN evaluations_comparison pair ON pair.id = c.comparison_id "
        "JOIN evaluations_response one ON one.id = pair.response_a_id "
        "JOIN evaluations_response two ON two.id = pair.response_b_id",
    ),
    RubricKind.POINTWISE: DUE_CALLS.format(
        texts="one.messages, ''", of="one", joins="JOIN evaluations_response one ON one.id = c.response_id"
    ),
}


def find_due_calls(run: Run, kind: RubricKind, room: int, now: datetime) -> list[DueCall]:
    """Pending calls that may be sent now, oldest first, locked until the transaction ends.

    Calls that another worker is claiming are skipped; on SQLite the transaction itself keeps others out.
    """
    where = WAITING_CALLS.format(of_run=OF_RUN[connection.vendor])
    if connection.features.has_select_for_update_skip_locked:
        where += " FOR UPDATE OF c SKIP LOCKED"
    return fetch_due_calls(kind, where, [run.pk, connection.ops.adapt_datetimefield_value(now), room])


def find_batch_calls(batch_id: int, kind: RubricKind, call_ids: Sequence[int]) -> list[DueCall]:
    """Those of these calls that are still in the batch."""
    marks = ", ".join(["%s"] * len(call_ids))
    return fetch_due_calls(kind, CALLS_IN_BATCH.format(marks=marks), [batch_id, *call_ids]) if call_ids else []


def fetch_due_calls(kind: RubricKind, where: str, values: Sequence[str | int | None]) -> list[DueCall]:
    with connection.cursor() as cursor:
        cursor.execute(DUE_CALLS_BY_KIND[kind].format(where=where), values)
        return [DueCall(*row) for row in cursor.fetchall()]


def reserve_in_run(run_id: int, amount: int) -> bool:
    """Reserve an amount; False if the run's budget does not cover it."""
    fits = "(budget IS NULL OR spent + reserved + %s <= budget)"
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE evaluations_run SET reserved = reserved + %s WHERE id = %s AND {fits}", [amount, run_id, amount]
        )
        return bool(cursor.rowcount)


def book_in_run(run_id: int, *, spent: int, released: int) -> None:
    if spent or released:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE evaluations_run SET spent = spent + %s, reserved = reserved - %s WHERE id = %s",
                [spent, released, run_id],
            )


def touch_raters(calls: "QuerySet[Call]") -> None:
    """Mark what these calls' judges said about their subjects as changed."""
    judges = calls.order_by().values("judge")
    raters = {rater.judge_id: rater for rater in Rater.objects.filter(judge__in=judges)}
    changes: dict[int, list[ChangedRow]] = defaultdict(list)
    for judge, *subject in calls.order_by("pk").values_list("judge_id", "comparison_id", "response_id"):
        if rater := raters.get(judge):
            changes[rater.evaluation_id].append(ChangedRow(rater.pk, *subject))
    for evaluation, rows in changes.items():
        record_changes(evaluation, rows)


class EqualCall(NamedTuple):
    """A call that has the reuse key of another."""

    call_id: int
    copied_from_id: int | None
    reuse_key: str
    state: str
    shown: str
    repaired: bool
    rationale: str
    prompt_sha256: str


def find_equal_calls(keys: Sequence[str], now: datetime) -> list[EqualCall]:
    """The calls with these keys that are answered or in flight. The condition on '' selects the index."""
    if not keys:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, copied_from_id, reuse_key, state, shown, repaired, rationale, prompt_sha256 "
            f"FROM evaluations_call WHERE reuse_key IN ({', '.join(['%s'] * len(keys))}) AND NOT (reuse_key = '') "
            "AND (state = 'answered' OR (state = 'running' AND lease_until > %s)) ORDER BY id DESC",
            [*keys, connection.ops.adapt_datetimefield_value(now)],
        )
        return [EqualCall(*row) for row in cursor.fetchall()]
