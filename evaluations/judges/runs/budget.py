"""The budget of a run: what is spent and reserved together never exceeds it."""

from collections.abc import Iterable, Sequence
from itertools import accumulate

from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import JudgeKind
from evaluations.judges.endpoints.prices import find_judge_price, max_reply_tokens
from evaluations.judges.sql import book_spending, reserve_amount
from evaluations.models.judges import Judge
from evaluations.models.runs import Call, Run


def reserve_budget(run_id: int, amounts: Sequence[int]) -> int:
    """Reserve these amounts in order, as many as the budget covers; returns how many."""
    if not any(amounts) or reserve_amount(run_id, sum(amounts)):
        return len(amounts)
    run = Run.objects.select_for_update().get(pk=run_id)
    room = (run.budget or 0) - run.spent - run.reserved
    fitting = sum(whole <= room for whole in accumulate(amounts))
    if fitting:
        reserve_amount(run_id, sum(amounts[:fitting]))
    return fitting


def transfer_reservations(calls: Iterable[Call], run: Run) -> list[Call]:
    """The calls in flight whose cost this run can take over, with their reservations."""
    moved = [call for call in calls if call.run_id and reserve_amount(run.pk, call.reserved)]
    for call in moved:
        book_spending(call.run_id or 0, spent=0, released=call.reserved)
    return moved


def refuse_invalid_budget(judge: Judge, budget: int | None) -> None:
    """Refuse a budget that cannot be guaranteed: it needs a price, and a bound on the cost of a reply."""
    if budget is None:
        return
    if budget <= 0:
        raise InputRefused("A budget is more than 0 USD.")
    if judge.kind != JudgeKind.LLM:
        return
    price = find_judge_price(judge)
    if price is None:
        raise InputRefused(
            f"No price is known for “{judge.model}” at “{judge.endpoint}”, so no budget can be guaranteed: set its "
            "price, or leave the budget out."
        )
    if max_reply_tokens(judge, price) is None:
        raise InputRefused(
            f"“{judge.name}” may reply at any length, so no budget can be guaranteed: create a judge with a limit of "
            f"tokens, enter the longest reply of “{judge.model}” with its price, or leave the budget out."
        )
