"""A judge sent through comparisons: how a run starts, is planned, and ends."""

import random
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now

from evaluations.domain import (
    ACTIVE_RUN_STATES,
    FAILURE_STATES,
    OPEN_CALL_STATES,
    CallState,
    InputRefused,
    JudgeKind,
    Orders,
    RunState,
    Shown,
)
from evaluations.models import Call, Comparison, Judge, Run, User
from evaluations.services.pacing import ROWS_AT_ONCE, paced, time_is_up
from evaluations.services.preparing.preparing import change_evaluation
from evaluations.services.recording import record

# Calls that a new run takes over: nothing usable came back, and nobody decided to leave it so.
TAKEN_OVER: Final = (*OPEN_CALL_STATES, CallState.CANCELLED, CallState.FAILED)
# Calls that were answered, but not usably: paid for, and asked again only if that is wanted.
KEPT_FAILURES: Final = tuple(state for state in FAILURE_STATES if state != CallState.FAILED)

Subject = tuple[int, Shown, int]  # comparison, order shown, sample


# ---- starting ------------------------------------------------------------------------------


def start_run(
    judge: Judge,
    *,
    user: User | None,
    orders: str = Orders.BOTH,
    samples: int = 1,
    limit: int | None = None,
    ask_failures_again: bool = False,
    budget: int | None = None,
) -> Run:
    """A run that a worker will plan and work. The first judge that is run is shown to reviewers."""
    refuse_impossible(judge, orders, samples, limit, budget)
    evaluation = judge.evaluation
    with transaction.atomic():
        run = Run.objects.create(
            evaluation=evaluation,
            judge=judge,
            user=user,
            batch=uuid.uuid4(),
            orders=orders,
            samples=samples,
            budget=budget,
            filters={"limit": limit, "ask_failures_again": ask_failures_again},
        )
        after = {"judge": judge.name, "orders": str(orders), "samples": samples, **run.filters}
        record("started", run, user=user, evaluation=evaluation, after=after)
        if evaluation.shown_judge_id is None:
            change_evaluation(evaluation, {"shown_judge": judge}, user=user)
    return run


def refuse_impossible(judge: Judge, orders: str, samples: int, limit: int | None, budget: int | None) -> None:
    if judge.kind == JudgeKind.IMPORTED:
        raise InputRefused(f"“{judge.name}” came with an import: there is no one to ask.")
    if orders not in set(Orders):
        raise InputRefused(f"Orders are one of {', '.join(Orders)}.")
    if not 1 <= samples <= 100:
        raise InputRefused("Samples: a whole number from 1 to 100.")
    if samples > 1 and (judge.kind == JudgeKind.RULE or judge.temperature == 0):
        raise InputRefused(f"“{judge.name}” would give the same answer {samples} times: ask it for one sample.")
    if limit is not None and limit < 1:
        raise InputRefused("The limit must be at least 1 comparison.")
    if budget is not None and judge.kind == JudgeKind.LLM:
        raise InputRefused(f"No price is known for “{judge.model}”, so no budget can be kept: leave it out.")
    if not Comparison.objects.filter(evaluation=judge.evaluation).exists():
        raise InputRefused("There is nothing to judge yet: import comparisons first.")


def selection(judge: Judge, limit: int | None) -> "QuerySet[Comparison]":
    """The comparisons of a run. A limit takes those that people meet first, drawn at random once."""
    comparisons = Comparison.objects.filter(evaluation=judge.evaluation).order_by("shuffle", "pk")
    return comparisons[:limit] if limit else comparisons


def orders_for(comparison_id: int, orders: str, seed: int) -> tuple[Shown, ...]:
    """The orders in which this comparison is asked; a random one is the same for the same seed."""
    both = (Shown.AS_STORED, Shown.SWAPPED)
    if orders == Orders.BOTH:
        return both
    if orders == Orders.RANDOM:
        return (random.Random(f"{seed}:{comparison_id}").choice(both),)
    return (Shown.AS_STORED if orders == Orders.AS_STORED else Shown.SWAPPED,)


def subjects(comparison_ids: Sequence[int], orders: str, samples: int, seed: int) -> Iterator[Subject]:
    for comparison_id in comparison_ids:
        for shown in orders_for(comparison_id, orders, seed):
            for sample in range(samples):
                yield comparison_id, shown, sample


@dataclass(frozen=True)
class Expected:
    """What a run would do: ask ``to_ask`` calls, find ``reused`` answered, leave ``left`` failures."""

    comparisons: int
    to_ask: int
    reused: int
    left: int


def expected(
    judge: Judge, *, orders: str, samples: int = 1, limit: int | None = None, ask_failures_again: bool = False
) -> Expected:
    chosen = selection(judge, limit)
    comparisons = chosen.count()
    calls = comparisons * len(orders_for(0, orders, 0)) * samples
    settled = Call.objects.filter(judge=judge, comparison__in=chosen.values("pk"), sample__lt=samples)
    counts = counts_in_orders(settled.filter(state__in=(CallState.ANSWERED, *KEPT_FAILURES)), orders)
    reused = counts.pop(CallState.ANSWERED, 0)
    left = 0 if ask_failures_again else sum(counts.values())
    return Expected(comparisons, calls - reused - left, reused, left)


def counts_in_orders(calls: "QuerySet[Call]", orders: str) -> dict[str, int]:
    """State → calls in the orders that a run would ask; a random order is drawn row by row."""
    if orders == Orders.RANDOM:
        rows = calls.values_list("comparison_id", "shown", "state")
        return Counter(state for pk, shown, state in rows if shown in orders_for(pk or 0, orders, 0))
    asked = calls.filter(shown__in=orders_for(0, orders, 0)).order_by()
    return dict(asked.values_list("state").annotate(Count("pk")))


# ---- planning ------------------------------------------------------------------------------


def plan(run_id: int, *, until: float) -> None:
    """Make or take over the run's calls, in short transactions, from where it stood when a worker died."""
    while not time_is_up(until):
        with paced():
            if not plan_some(run_id):
                return


@transaction.atomic
def plan_some(run_id: int) -> bool:
    """The calls of the next comparisons; False once there are none left and the run is at work."""
    run = Run.objects.select_for_update(of=("self",)).select_related("judge").get(pk=run_id)
    if run.state != RunState.PLANNING:
        return False
    # Two runs of one judge plan one after the other: a call belongs to one of them.
    Judge.objects.select_for_update().get(pk=run.judge_id)
    comparison_ids = next_to_plan(run)
    if not comparison_ids:
        Run.objects.filter(pk=run_id).update(state=RunState.RUNNING, started_at=Now())
        return False
    plan_calls(run, comparison_ids)
    run.save(update_fields=["planned", "reused", "filters"])
    return True


def next_to_plan(run: Run) -> list[int]:
    """The next comparisons in the order in which people meet them; the place is kept on the run."""
    done = run.filters.get("done", 0)
    most = max(1, ROWS_AT_ONCE // (2 * run.samples))
    limit = run.filters.get("limit")
    if limit is not None:
        most = min(most, limit - done)
    comparisons = selection(run.judge, None)
    if after := run.filters.get("after"):
        comparisons = comparisons.filter(Q(shuffle__gt=after[0]) | Q(shuffle=after[0], pk__gt=after[1]))
    rows = list(comparisons.values_list("shuffle", "pk")[:most]) if most > 0 else []
    if rows:
        run.filters |= {"after": list(rows[-1]), "done": done + len(rows)}
    return [pk for _, pk in rows]


def plan_calls(run: Run, comparison_ids: Sequence[int]) -> None:
    """New calls for what was never asked; what waits or failed elsewhere becomes this run's."""
    wanted = list(subjects(comparison_ids, run.orders, run.samples, run.seed))
    known = {
        (call.comparison_id, call.shown, call.sample): call
        for call in Call.objects.filter(judge=run.judge, comparison__in=comparison_ids).select_related("run")
    }
    new = [subject for subject in wanted if subject not in known]
    Call.objects.bulk_create(
        Call(judge=run.judge, run=run, comparison_id=pk, shown=shown, sample=sample) for pk, shown, sample in new
    )
    held = [known[subject] for subject in wanted if subject in known]
    taken = [call for call in held if may_take_over(run, call)]
    take_over(run, taken)
    run.planned += len(new) + len(taken)
    run.reused += sum(call.state == CallState.ANSWERED for call in held)


def may_take_over(run: Run, call: Call) -> bool:
    states = TAKEN_OVER + (KEPT_FAILURES if run.filters.get("ask_failures_again") else ())
    return call.state in states and (call.run is None or call.run.state not in ACTIVE_RUN_STATES)


def take_over(run: Run, calls: Sequence[Call]) -> None:
    """A call that another run still has in flight keeps its lease: its answer is on the way."""
    flying = [call.pk for call in calls if call.state == CallState.RUNNING]
    waiting = [call.pk for call in calls if call.state != CallState.RUNNING]
    Call.objects.filter(pk__in=flying).update(run=run)
    Call.objects.filter(pk__in=waiting).update(
        run=run, state=CallState.PENDING, lease=None, lease_until=None, not_before=None, error=""
    )


# ---- ending --------------------------------------------------------------------------------


@transaction.atomic
def cancel(run: Run, *, user: User | None) -> bool:
    """Nothing more is asked from now on; what is in flight is still stored. False if it had ended."""
    changed = Run.objects.filter(pk=run.pk, state__in=ACTIVE_RUN_STATES).update(
        state=RunState.CANCELLED, finished_at=Now()
    )
    if changed:
        record("cancelled", run, user=user, evaluation=run.evaluation)
    return bool(changed)


@transaction.atomic
def stop(run: Run, reason: str) -> None:
    """End a run that cannot go on before a person mends something; the first reason stays."""
    changed = Run.objects.filter(pk=run.pk, state__in=ACTIVE_RUN_STATES).update(
        state=RunState.STOPPED, stop_reason=reason, finished_at=Now()
    )
    if changed:
        record("stopped", run, user=None, evaluation=run.evaluation, after={"reason": reason})


@transaction.atomic
def finish(run: Run) -> bool:
    """End the run if every call of it has its outcome."""
    still_open = Call.objects.filter(run=run, state__in=OPEN_CALL_STATES)
    if still_open.exists():
        return False
    changed = Run.objects.filter(pk=run.pk, state=RunState.RUNNING).update(state=RunState.DONE, finished_at=Now())
    if changed:
        record("finished", run, user=None, evaluation=run.evaluation, after=counts_by_state(run))
    return bool(changed)


def cancel_waiting_calls() -> None:
    """What waited in a cancelled run says so, in short transactions."""
    waiting = Call.objects.filter(run__state=RunState.CANCELLED, state=CallState.PENDING)
    while ids := list(waiting.values_list("pk", flat=True)[:ROWS_AT_ONCE]):
        with paced():
            # Asked again inside: a new run may have taken the call over meanwhile.
            waiting.filter(pk__in=ids).update(state=CallState.CANCELLED)


def counts_by_state(run: Run) -> dict[str, int]:
    """State → calls of this run, in the order in which a call passes through them; none left out for being 0."""
    found = dict(Call.objects.filter(run=run).order_by().values_list("state").annotate(Count("pk")))
    return {state.value: found.get(state.value, 0) for state in CallState}
