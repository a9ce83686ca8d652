"""SQL statements on the accounts of runs, on answers in store, on raters."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import connection


def reserve_amount(run_id: int, amount: int) -> bool:
    """The one statement that may let a request be bought: false where the budget does not hold it."""
    fits = "(budget IS NULL OR spent + reserved + %s <= budget)"
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE evaluations_run SET reserved = reserved + %s WHERE id = %s AND {fits}", [amount, run_id, amount]
        )
        return bool(cursor.rowcount)


def book_spending(run_id: int, *, spent: int, released: int) -> None:
    if spent or released:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE evaluations_run SET spent = spent + %s, reserved = reserved - %s WHERE id = %s",
                [spent, released, run_id],
            )


def touch_rater(rater_id: int, now: datetime) -> None:
    moment = connection.ops.adapt_datetimefield_value(now)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE evaluations_rater SET verdicts_changed_at = %s WHERE id = %s", [moment, rater_id])


class KnownCall(NamedTuple):
    """A call with a key that is asked for."""

    call_id: int
    copied_from_id: int | None
    reuse_key: str
    state: str
    shown: str
    repaired: bool
    rationale: str
    prompt_sha256: str


def find_known_calls(keys: Sequence[str], now: datetime) -> list[KnownCall]:
    """The calls with these keys that are answered, or being asked. The condition on '' names the index."""
    if not keys:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, copied_from_id, reuse_key, state, shown, repaired, rationale, prompt_sha256 "
            f"FROM evaluations_call WHERE reuse_key IN ({', '.join(['%s'] * len(keys))}) AND NOT (reuse_key = '') "
            "AND (state = 'answered' OR (state = 'running' AND lease_until > %s)) ORDER BY id DESC",
            [*keys, connection.ops.adapt_datetimefield_value(now)],
        )
        return [KnownCall(*row) for row in cursor.fetchall()]
