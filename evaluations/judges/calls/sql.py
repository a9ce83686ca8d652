"""The SQL that finds calls which may be sent now.

It is raw because composing these statements took longer than running them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from django.db import connection
from django.utils import timezone

from evaluations.domain.rubrics import RubricKind
from evaluations.judges.calls.work_session import WorkSession
from evaluations.models.runs import Run


class RunAtWork(NamedTuple):
    """The database's time while a run is at work, and the seconds for which its endpoint is left alone."""

    now: datetime
    pause: float


def find_run_at_work(run: Run) -> RunAtWork | None:
    """None where the run is not at work."""
    clock = "STATEMENT_TIMESTAMP()" if connection.vendor == "postgresql" else "NULL"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {clock}, e.paused_until FROM evaluations_run r JOIN evaluations_judge j ON j.id = r.judge_id "
            "LEFT JOIN evaluations_endpoint e ON e.id = j.endpoint_id WHERE r.id = %s AND r.state = 'running'",
            [run.pk],
        )
        found = cursor.fetchone()
    if found is None:
        return None
    now, paused_until = found[0] or timezone.now(), aware_time(found[1])
    return RunAtWork(now, (paused_until - now).total_seconds() if paused_until else 0.0)


def aware_time(stored: datetime | None) -> datetime | None:
    """A time as raw SQL gives it: what SQLite keeps is in UTC and does not say so."""
    return stored.replace(tzinfo=UTC) if stored and stored.tzinfo is None else stored


# ---- finding -------------------------------------------------------------------------------


class DueCall(NamedTuple):
    """A call that may be asked now, with the texts that its judge is to read, JSON as it is stored."""

    call_id: int
    comparison_id: int | None
    response_id: int | None
    shown: str
    sample: int
    step: str
    reuse_key: str
    tried: int
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
WAITING_CALLS: Final = (
    "c.run_id = %s AND c.state = 'pending' AND (c.not_before IS NULL OR c.not_before <= %s) ORDER BY c.id LIMIT %s"
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


def find_due_calls(bout: WorkSession, room: int, now: datetime) -> list[DueCall]:
    """Calls that wait and may be asked now, the oldest first, locked until the transaction ends.

    What another worker is claiming at this moment is passed over, not waited for; on SQLite the
    transaction itself keeps others out.
    """
    where = WAITING_CALLS
    if connection.features.has_select_for_update_skip_locked:
        where += " FOR UPDATE OF c SKIP LOCKED"
    return fetch_due_calls(bout, where, [bout.run.pk, connection.ops.adapt_datetimefield_value(now), room])


def fetch_due_calls(bout: WorkSession, where: str, values: Sequence[str | int | None]) -> list[DueCall]:
    with connection.cursor() as cursor:
        cursor.execute(DUE_CALLS_BY_KIND[bout.spec.kind].format(where=where), values)
        return [DueCall(*row) for row in cursor.fetchall()]
