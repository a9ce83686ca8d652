"""The account of a run: what it has spent, and what it keeps back for requests in flight.

Both stand on the Run and change in the transaction of what they tell of. All that is spent and kept
back together is never more than the budget.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate

from django.db import connection

from evaluations.models import Call, Run


def reserve(run_id: int, amounts: Sequence[int]) -> int:
    """Keep back as many of these amounts, from the first, as the budget holds; how many those are."""
    if not any(amounts) or keep_back(run_id, sum(amounts)):
        return len(amounts)
    run = Run.objects.select_for_update().get(pk=run_id)
    room = (run.budget or 0) - run.spent - run.reserved
    fitting = sum(whole <= room for whole in accumulate(amounts))
    if fitting:
        keep_back(run_id, sum(amounts[:fitting]))
    return fitting


def keep_back(run_id: int, amount: int) -> bool:
    """The one statement that may let a request be bought: false where the budget does not hold it."""
    fits = "(budget IS NULL OR spent + reserved + %s <= budget)"
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE evaluations_run SET reserved = reserved + %s WHERE id = %s AND {fits}", [amount, run_id, amount]
        )
        return bool(cursor.rowcount)


def book(run_id: int, *, spent: int, released: int) -> None:
    if spent or released:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE evaluations_run SET spent = spent + %s, reserved = reserved - %s WHERE id = %s",
                [spent, released, run_id],
            )


def move_reserved(calls: Iterable[Call], run: Run) -> list[Call]:
    """Those of these calls in flight whose cost this run can take over, with what is kept back for them."""
    moved = [call for call in calls if call.run_id and keep_back(run.pk, call.reserved)]
    for call in moved:
        book(call.run_id or 0, spent=0, released=call.reserved)
    return moved
