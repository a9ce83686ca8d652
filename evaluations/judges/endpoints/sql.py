"""SQL on the accounts of endpoints: of each grant, of the day, and the totals that survive every deletion.

Who writes several accounts in one transaction does it in this order, here and in ``judges/sql.py``: runs, grants, the
days of endpoints, totals. Rows of one kind are written in the order of their keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final, NamedTuple

from django.db import connection


class GrantKey(NamedTuple):
    """An evaluation at an endpoint."""

    endpoint_id: int
    evaluation_id: int


@dataclass
class SpendingTotals:
    """What requests took; ``max_cost``: the upper bound of those whose cost is unknown."""

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: int = 0
    max_cost: int = 0

    def add(self, tokens_in: int | None, tokens_out: int | None, cost: int | None, max_cost: int | None) -> None:
        """Add one request."""
        self.requests += 1
        self.tokens_in += tokens_in or 0
        self.tokens_out += tokens_out or 0
        self.cost += cost or 0
        self.max_cost += max_cost or 0


def utc_date(moment: datetime) -> date:
    return moment.astimezone(UTC).date()


# The account of a day that is over counts as empty; what is in flight is kept back on the new day, too.
SPENT_TODAY: Final = "CASE WHEN day >= %s THEN spent ELSE 0 END"
LATER_DAY: Final = "CASE WHEN day >= %s THEN day ELSE %s END"


def reserve_in_grant(key: GrantKey, amount: int) -> bool:
    """Reserve an amount for requests of this evaluation; False if its budget at the endpoint does not cover it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE evaluations_endpointgrant SET reserved = reserved + %s WHERE endpoint_id = %s AND "
            "evaluation_id = %s AND (budget IS NULL OR spent + reserved + %s <= budget)",
            [amount, *key, amount],
        )
        return bool(cursor.rowcount)


def reserve_on_day(endpoint_id: int, amount: int, day: date) -> bool:
    """Reserve an amount at an endpoint; False if its daily budget does not cover it."""
    today = connection.ops.adapt_datefield_value(day)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE evaluations_endpointaccount SET reserved = reserved + %s, spent = {SPENT_TODAY}, "
            f"day = {LATER_DAY} WHERE endpoint_id = %s AND {SPENT_TODAY} + reserved + %s <= "
            "(SELECT COALESCE(daily_budget, 9223372036854775807) FROM evaluations_endpoint WHERE id = %s)",
            [amount, today, today, today, endpoint_id, today, amount, endpoint_id],
        )
        return bool(cursor.rowcount)


def book_in_grant(key: GrantKey, *, spent: int, released: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE evaluations_endpointgrant SET spent = spent + %s, reserved = reserved - %s "
            "WHERE endpoint_id = %s AND evaluation_id = %s",
            [spent, released, *key],
        )


def book_on_day(endpoint_id: int, day: date, *, spent: int, released: int) -> None:
    today = connection.ops.adapt_datefield_value(day)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE evaluations_endpointaccount SET spent = {SPENT_TODAY} + %s, reserved = reserved - %s, "
            f"day = {LATER_DAY} WHERE endpoint_id = %s",
            [today, spent, released, today, today, endpoint_id],
        )


TOTAL_COLUMNS: Final = ("requests", "tokens_in", "tokens_out", "cost", "max_cost")


def add_to_totals(totals: Mapping[tuple[GrantKey, date], SpendingTotals], now: datetime) -> None:
    """Add to the totals per endpoint, evaluation and day. Last in a transaction: workers of a run share these rows."""
    added = ", ".join(f"{name} = evaluations_endpointspending.{name} + excluded.{name}" for name in TOTAL_COLUMNS)
    statement = (
        "INSERT INTO evaluations_endpointspending (created_at, endpoint_id, evaluation_id, endpoint_name, "
        f"evaluation_name, day, {', '.join(TOTAL_COLUMNS)}) SELECT %s, e.id, v.id, e.name, v.name, %s, "
        "%s, %s, %s, %s, %s FROM evaluations_endpoint e, evaluations_evaluation v WHERE e.id = %s AND v.id = %s "
        f"ON CONFLICT (endpoint_id, evaluation_id, day) DO UPDATE SET {added}"
    )
    moment = connection.ops.adapt_datetimefield_value(now)
    with connection.cursor() as cursor:
        for (key, day), total in sorted(totals.items(), key=lambda item: item[0]):
            values = [getattr(total, name) for name in TOTAL_COLUMNS]
            cursor.execute(statement, [moment, connection.ops.adapt_datefield_value(day), *values, *key])
