"""The budgets of runs, grants and days: what is spent and reserved together never exceeds any of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from itertools import accumulate

from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import JudgeKind
from evaluations.judges.endpoints.grants import find_grant, open_accounts
from evaluations.judges.endpoints.prices import find_judge_price, max_reply_tokens
from evaluations.judges.endpoints.sql import GrantKey, book_in_grant, book_on_day, reserve_in_grant, reserve_on_day
from evaluations.judges.sql import book_in_run, reserve_in_run
from evaluations.models.endpoint_grants import EndpointAccount, EndpointGrant
from evaluations.models.judges import Judge
from evaluations.models.runs import Call, Run


class Budget(StrEnum):
    RUN = "run"
    GRANT = "grant"
    DAY = "day"


@dataclass(frozen=True)
class Reservation:
    """How many of the amounts are reserved, and which budget did not cover the next one."""

    count: int
    exhausted: Budget | None = None


def reserve_budget(run: Run, amounts: Sequence[int], day: date) -> Reservation:
    """Reserve these amounts in order, as many as all three budgets cover: the only way to buy a request."""
    key = grant_key(run)
    if not any(amounts) or key is None:
        return Reservation(len(amounts))
    if reserve_everywhere(run.pk, key, sum(amounts), day):
        return Reservation(len(amounts))
    open_accounts(*key)
    rooms = lock_rooms(run.pk, key, day)
    tightest = min(rooms, key=lambda budget: rooms[budget])
    fitting = sum(whole <= rooms[tightest] for whole in accumulate(amounts))
    if fitting:
        reserve_everywhere(run.pk, key, sum(amounts[:fitting]), day)
    return Reservation(fitting, tightest if fitting < len(amounts) else None)


def grant_key(run: Run) -> GrantKey | None:
    """The evaluation and the endpoint of the run; None for a rule, which spends nothing."""
    endpoint_id = run.judge.endpoint_id
    return None if endpoint_id is None else GrantKey(endpoint_id, run.evaluation_id)


def reserve_everywhere(run_id: int, key: GrantKey, amount: int, day: date) -> bool:
    """Reserve the amount in all three accounts, or in none."""
    steps: tuple[tuple[Callable[[], bool], Callable[[], None]], ...] = (
        (lambda: reserve_in_run(run_id, amount), lambda: book_in_run(run_id, spent=0, released=amount)),
        (lambda: reserve_in_grant(key, amount), lambda: book_in_grant(key, spent=0, released=amount)),
        (lambda: reserve_on_day(key.endpoint_id, amount, day), lambda: None),
    )
    for position, (reserve, _) in enumerate(steps):
        if not reserve():
            for _, undo in steps[:position]:
                undo()
            return False
    return True


def lock_rooms(run_id: int, key: GrantKey, day: date) -> Mapping[Budget, float]:
    """What each budget still covers, with its account locked; infinite without a budget."""
    run = Run.objects.select_for_update().get(pk=run_id)
    grants = EndpointGrant.objects.select_for_update(of=("self",)).select_related("endpoint")
    grant = grants.get(endpoint=key.endpoint_id, evaluation=key.evaluation_id)
    account = EndpointAccount.objects.select_for_update().get(endpoint=key.endpoint_id)
    spent_today = account.spent if account.day >= day else 0
    return {
        Budget.RUN: budget_room(run.budget, run.spent + run.reserved),
        Budget.GRANT: budget_room(grant.budget, grant.spent + grant.reserved),
        Budget.DAY: budget_room(grant.endpoint.daily_budget, spent_today + account.reserved),
    }


def budget_room(budget: int | None, used: int) -> float:
    return float("inf") if budget is None else budget - used


@dataclass(frozen=True)
class Bookings:
    """What one transaction changes in the accounts of several runs. ``spent`` and ``released``: run id → nano-USD.

    ``spent_before``: of ``spent`` by run, what an earlier day has been charged already.
    """

    spent: Mapping[int, int]
    released: Mapping[int, int]
    spent_before: Mapping[int, int]

    def book(self, day: date) -> None:
        run_ids = sorted({*self.spent, *self.released})
        for run_id in run_ids:
            book_in_run(run_id, spent=self.spent.get(run_id, 0), released=self.released.get(run_id, 0))
        runs = Run.objects.filter(pk__in=run_ids, judge__endpoint__isnull=False).order_by()
        spent, released, today = Counter[GrantKey](), Counter[GrantKey](), Counter[int]()
        freed = Counter[int]()
        for run_id, endpoint_id, evaluation_id in runs.values_list("pk", "judge__endpoint", "evaluation"):
            key = GrantKey(endpoint_id, evaluation_id)
            spent[key] += self.spent.get(run_id, 0)
            released[key] += self.released.get(run_id, 0)
            today[endpoint_id] += self.spent.get(run_id, 0) - self.spent_before.get(run_id, 0)
            freed[endpoint_id] += self.released.get(run_id, 0)
        for key in sorted(key for key in spent if spent[key] or released[key]):
            book_in_grant(key, spent=spent[key], released=released[key])
        for endpoint_id in sorted(endpoint_id for endpoint_id in today if today[endpoint_id] or freed[endpoint_id]):
            book_on_day(endpoint_id, day, spent=today[endpoint_id], released=freed[endpoint_id])


def book_spending(spent: Mapping[int, int], released: Mapping[int, int], day: date) -> None:
    """Charge runs, grants and days for requests, and give back what was reserved for them."""
    if any(spent.values()) or any(released.values()):
        Bookings(spent, released, {}).book(day)


def release_budget(calls: Iterable[Call], day: date) -> None:
    """Give back what was reserved for these calls."""
    released = Counter[int]()
    for call in calls:
        released[call.run_id or 0] += call.reserved
    book_spending({}, released, day)


def transfer_reservations(calls: Iterable[Call], run: Run) -> list[Call]:
    """The calls in flight whose cost this run can take over, with their reservations. Grant and day stay charged."""
    moved = [call for call in calls if call.run_id and reserve_in_run(run.pk, call.reserved)]
    for call in moved:
        book_in_run(call.run_id or 0, spent=0, released=call.reserved)
    return moved


def refuse_invalid_budget(judge: Judge, budget: int | None) -> None:
    """Refuse a budget that cannot be guaranteed: it needs a price, and a bound on the cost of a reply."""
    if budget is not None and budget <= 0:
        raise InputRefused("The budget must be more than USD 0.")
    if judge.kind != JudgeKind.LLM or judge.endpoint is None:
        return
    grant = find_grant(judge.endpoint, judge.evaluation)
    has_other_budget = judge.endpoint.daily_budget is not None or (grant is not None and grant.budget is not None)
    if budget is None and not has_other_budget:
        return
    remedy = "Ask a site administrator to set it." if has_other_budget else "Set its price, or remove the budget."
    price = find_judge_price(judge)
    if price is None:
        raise InputRefused(
            f"No price is set for “{judge.model}” at “{judge.endpoint}”, so a budget cannot be guaranteed. {remedy}"
        )
    if max_reply_tokens(judge, price) is None:
        remedy = f"set the longest reply of “{judge.model}” with its price"
        remedy = f"or {remedy}" if has_other_budget else f"{remedy}, or remove the budget"
        raise InputRefused(
            f"“{judge.name}” has no max tokens, so a budget cannot be guaranteed. Create a judge with "
            f"max tokens, {remedy}."
        )
