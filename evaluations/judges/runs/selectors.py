"""Calls of runs by state, and the progress of a run: rate, time left, cost."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.core.cache import cache
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from evaluations.domain.json_values import JsonDict, JsonMapping
from evaluations.domain.judges import (
    ACTIVE_RUN_STATES,
    FAILURE_STATES,
    OPEN_CALL_STATES,
    AttemptOutcome,
    CallState,
    JudgeKind,
    RunState,
)
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge
from evaluations.models.runs import Attempt, Call, Run

OPEN_RUN_STATES: Final = (*ACTIVE_RUN_STATES, RunState.STOPPED)


def list_open_runs_of_site() -> QuerySet[Run]:
    """Runs of all evaluations that are not over, for site administrators."""
    return Run.objects.filter(state__in=OPEN_RUN_STATES).select_related("evaluation", "judge__endpoint", "user")


def count_calls_by_state(owner: Run | Judge) -> dict[str, int]:
    """State → calls of this run, or of all runs of this judge, in the order of states; zeros included."""
    calls = Call.all_rows.filter(run=owner) if isinstance(owner, Run) else Call.all_rows.filter(judge=owner)
    counts = dict(calls.order_by().values_list("state").annotate(Count("pk")))
    return {state.value: counts.get(state.value, 0) for state in CallState}


CALL_FILTERS: Final[Mapping[str, Q]] = {
    **{state.value: Q(state=state) for state in CallState},
    "unusable": Q(state__in=FAILURE_STATES),
    "repaired": Q(repaired=True),
    "copied": Q(copied_from__isnull=False),
}
RATE_WINDOW: Final = timedelta(seconds=60)
MAX_RECENT_ATTEMPTS: Final = 20_000  # requests: more than one minute's
LARGE_RUN_CALLS: Final = 5_000  # calls
RECOUNT_AFTER_FACTOR: Final = 10  # times as long as counting takes
# Outcomes that leave their call pending.
UNSETTLED_OUTCOMES: Final = (AttemptOutcome.RETRY, AttemptOutcome.LOST, AttemptOutcome.STOPPED)


@dataclass(frozen=True)
class RunProgress:
    """The progress of a run.

    ``repeated``: requests lost with a killed worker. ``cost``: nano-USD of the ``priced`` requests, None if there are
    none; the cost of ``unpriced`` ones is unknown. ``copied``: answered by an equal call.
    """

    counts: dict[str, int]
    total: int
    settled: int
    failures: dict[str, int]
    taken_over: int
    per_minute: float | None
    seconds_left: float | None
    repeated: int
    retried: int
    tokens_in: int | None
    tokens_out: int | None
    cost: int | None
    priced: int
    unpriced: int
    repaired: int
    copied: int


def measure_run_progress(run: Run) -> RunProgress:
    counts = count_calls_by_state(run)
    total = sum(counts.values())
    waiting = sum(counts[state] for state in OPEN_CALL_STATES)
    settled = total - waiting - counts[CallState.CANCELLED]
    requests = summarise_requests_cached(run)
    per_minute = calls_per_minute(run, settled, requests) if run.state == RunState.RUNNING else None
    return RunProgress(
        counts=counts,
        total=total,
        settled=settled,
        failures={state.value: counts[state] for state in FAILURE_STATES if counts[state]},
        taken_over=max(run.planned - total, 0) if run.state != RunState.PLANNING else 0,
        per_minute=per_minute,
        seconds_left=waiting * 60 / per_minute if per_minute else None,
        **{key: value for key, value in requests.items() if key not in ("ended", "recent")},
    )


def summarise_requests_cached(run: Run) -> JsonDict:
    """The summary of the run's requests, cached for a large active run for ten times as long as it took.

    The pages of everyone who watches the run ask for it every few seconds.
    """
    if run.planned < LARGE_RUN_CALLS or run.state not in ACTIVE_RUN_STATES:
        return summarise_requests(run)
    key = f"summarise_requests-{run.pk}"
    summary: JsonDict | None = cache.get(key)
    if summary is None:
        began = time.monotonic()
        summary = summarise_requests(run)
        cache.set(key, summary, timeout=RECOUNT_AFTER_FACTOR * (time.monotonic() - began))
    return summary


# A request that was answered with an error cost nothing.
POSSIBLY_BILLED: Final = Q(http_status__isnull=True) | Q(http_status__lt=400)


def summarise_requests(run: Run) -> JsonDict:
    """Tokens and cost from the run's attempts, the only source of money, and how many answers were unusual."""
    sums = Attempt.objects.filter(run=run).aggregate(
        repeated=Count("pk", filter=Q(outcome=AttemptOutcome.LOST)),
        retried=Count("pk", filter=Q(outcome=AttemptOutcome.RETRY)),
        ended=Count("pk", filter=~Q(outcome__in=UNSETTLED_OUTCOMES)),
        tokens_in=Sum("tokens_in"),
        tokens_out=Sum("tokens_out"),
        priced=Count("cost"),
        unpriced=Count("pk", filter=POSSIBLY_BILLED & Q(cost__isnull=True)),
        cost=Sum("cost"),  # last, since from here on the name means the sum
    )
    if not sums["priced"] and not sums["unpriced"]:
        sums["cost"] = 0
    unusual = Call.all_rows.filter(run=run).aggregate(
        repaired=Count("pk", filter=Q(repaired=True)), copied=Count("pk", filter=Q(copied_from__isnull=False))
    )
    return {**sums, **unusual, "recent": count_recent_attempts(run)}


def calls_per_minute(run: Run, settled: int, requests: JsonMapping) -> float | None:
    """Calls settled in the last minute; of a rule, which makes no attempts, since it started.

    A call may take several requests: the last minute's requests settle as many calls as all requests did on average.
    """
    if run.started_at is None:
        return None
    elapsed = timezone.now() - run.started_at
    window = min(elapsed, RATE_WINDOW)
    if run.judge.kind == JudgeKind.RULE:
        ended, window = float(settled), elapsed
    else:
        bought = min((settled - requests["copied"]) / requests["ended"], 1.0) if requests["ended"] else 0.0
        ended = requests["recent"] * bought
    seconds = window.total_seconds()
    return ended * 60 / seconds if ended > 0 and seconds > 0 else None


def count_recent_attempts(run: Run) -> int:
    """Requests that ended in the last minute, among the newest ones."""
    newest = Attempt.objects.filter(run=run).order_by("-pk").values_list("outcome", "created_at")[:MAX_RECENT_ATTEMPTS]
    since = timezone.now() - RATE_WINDOW
    return sum(at > since and outcome not in UNSETTLED_OUTCOMES for outcome, at in newest.iterator())


def count_calls_of_runs(run_ids: Iterable[int]) -> dict[int, dict[str, int]]:
    """Run → state → calls, for many runs by one query."""
    counts: dict[int, dict[str, int]] = {run_id: {} for run_id in run_ids}
    rows = Call.all_rows.filter(run__in=list(counts)).order_by().values_list("run_id", "state").annotate(Count("pk"))
    for run_id, state, count in rows:
        counts[run_id or 0][state] = count
    return counts


@dataclass(frozen=True)
class CallBill:
    """The cost of one call's requests: ``cost`` is None if none is known; ``unknown`` may have cost something."""

    requests: int
    cost: int | None
    unknown: int


def call_bills(run: Run, calls: Iterable[Call]) -> dict[int, CallBill]:
    """Call id → what this run paid for it, for many calls by one query."""
    paid = Attempt.objects.filter(run=run, call__in=[call.pk for call in calls]).order_by()
    unknown = Count("pk", filter=POSSIBLY_BILLED & Q(cost__isnull=True))
    rows = paid.values_list("call_id").annotate(Count("pk"), Sum("cost"), unknown=unknown)
    return {call_id: CallBill(*numbers) for call_id, *numbers in rows}


def find_runs_of_unknown_cost(runs: Iterable[Run]) -> set[int]:
    """The runs with answers of unknown cost and nothing spent, by one query."""
    free = [run.pk for run in runs if not run.spent]
    answers = Attempt.objects.filter(run=OuterRef("pk"), cost__isnull=True, outcome=AttemptOutcome.ANSWERED)
    return set(Run.objects.filter(Exists(answers), pk__in=free).values_list("pk", flat=True))


def list_runnable_judges(evaluation: Evaluation) -> "QuerySet[Judge]":
    """Judges that can run, newest first; imported ones cannot."""
    judges = Judge.objects.current().filter(evaluation=evaluation).exclude(kind=JudgeKind.IMPORTED)
    return judges.select_related("rubric_version__rubric", "endpoint").order_by("-pk")
