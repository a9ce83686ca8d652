"""The selection of a run: which comparisons or responses, in which orders, how often."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypedDict, Unpack

from django.db.models import Count, Q, QuerySet

from evaluations.domain.choices import ShownOrder
from evaluations.domain.errors import InputRefused
from evaluations.domain.filters import NamedFilter, parse_filter
from evaluations.domain.json_values import JsonDict
from evaluations.domain.judges import (
    ACTIVE_RUN_STATES,
    FAILURE_STATES,
    OPEN_CALL_STATES,
    CallState,
    JudgeKind,
    RunOrders,
)
from evaluations.models.comparison_filter import apply_comparison_filter
from evaluations.models.comparisons import Comparison, Query, Response
from evaluations.models.judges import Judge
from evaluations.models.runs import Call, Run

# Calls with an unusable answer: paid for, and repeated only on request.
ANSWERED_FAILURE_STATES: Final = tuple(state for state in FAILURE_STATES if state != CallState.FAILED)
# The states in which a call has ended without a verdict.
RETRYABLE_STATES: Final = (*FAILURE_STATES, CallState.CANCELLED)
MAX_SAMPLES: Final = 100

CallSubject = tuple[int, ShownOrder, int]  # comparison or response, order shown, sample


class SelectionOptions(TypedDict, total=False):
    """The options of a run's selection; see Selection."""

    orders: str
    samples: int
    limit: int | None
    ask_failures_again: bool
    only_states: Sequence[str] | None
    comparison: Comparison | None
    response: Response | None
    saved_filter: NamedFilter | None


class RunOptions(SelectionOptions, total=False):
    """The options of a run: its selection, its budget in nano-USD and the channel of its requests."""

    budget: int | None
    channel: str


@dataclass(frozen=True)
class Selection:
    """The comparisons or responses that a judge is asked about, in which orders and how often.

    ``limit``: the first comparisons in review order, or the first responses. ``only_states``: a retry of calls in
    these states only, in their orders and samples. ``comparison`` or ``response``: this one only. ``saved_filter``:
    only what it matches while the run is planned.
    """

    judge: Judge
    orders: str = RunOrders.BOTH
    samples: int = 1
    limit: int | None = None
    ask_failures_again: bool = False
    only_states: tuple[str, ...] = ()
    comparison: int | None = None
    response: int | None = None
    saved_filter: NamedFilter | None = None

    @property
    def column(self) -> str:
        """The column of a Call that holds its subject."""
        return "response" if self.judge.is_pointwise else "comparison"

    @property
    def subject(self) -> int | None:
        """The one comparison or response, as the judge takes them."""
        return self.response if self.judge.is_pointwise else self.comparison

    @property
    def is_one(self) -> bool:
        """Whether it is a test call on one comparison or response."""
        return bool(self.comparison or self.response)

    def filters(self) -> JsonDict:
        """The part of the selection that a Run stores as JSON."""
        chosen = {"only_states": list(self.only_states), "comparison": self.comparison, "response": self.response}
        kept: JsonDict = {key: value for key, value in chosen.items() if value}
        if self.saved_filter:
            conditions = self.saved_filter.comparison_filter.as_json()
            kept["saved_filter"] = {"name": self.saved_filter.name, "filter": conditions}
        return {"limit": self.limit, "ask_failures_again": self.ask_failures_again, **kept}


def make_selection(judge: Judge, **options: Unpack[SelectionOptions]) -> Selection:
    """The selection with these options, valid or not: ``start_run`` refuses invalid ones."""
    comparison, response = options.get("comparison"), options.get("response")
    orders = options.get("orders", RunOrders.BOTH)
    return Selection(
        judge,
        orders=RunOrders.AS_STORED if judge.is_pointwise else orders,
        samples=options.get("samples", 1),
        limit=options.get("limit"),
        ask_failures_again=options.get("ask_failures_again", False),
        only_states=tuple(dict.fromkeys(options.get("only_states") or ())),
        comparison=comparison.pk if comparison else None,
        response=response.pk if response else None,
        saved_filter=options.get("saved_filter"),
    )


def run_selection(run: Run) -> Selection:
    filters = run.filters
    saved = filters.get("saved_filter") or filters.get("slice")  # its key in runs of 0.1
    return Selection(
        run.judge,
        orders=run.orders,
        samples=run.samples,
        limit=filters.get("limit"),
        ask_failures_again=filters.get("ask_failures_again", False),
        only_states=tuple(filters.get("only_states", ())),
        comparison=filters.get("comparison"),
        response=filters.get("response"),
        saved_filter=NamedFilter(saved["name"], parse_filter(saved["filter"])) if saved else None,
    )


def refuse_impossible_selection(selection: Selection) -> None:
    judge = selection.judge
    refuse_archived_judge(judge)
    if judge.kind == JudgeKind.IMPORTED:
        raise InputRefused(f"“{judge.name}” was imported and cannot be run.")
    if selection.orders not in set(RunOrders):
        raise InputRefused(f"Orders must be one of {', '.join(RunOrders)}.")
    refuse_invalid_samples(judge, selection.samples)
    if selection.limit is not None and selection.limit < 1:
        raise InputRefused(f"The limit must be at least 1 {selection.column}.")
    refuse_invalid_states(judge, selection.only_states)
    refuse_invalid_subject(selection)


def refuse_archived_judge(judge: Judge) -> None:
    if judge.archived_at:
        raise InputRefused(f"“{judge.name}” is archived. Restore it first.")


def refuse_invalid_samples(judge: Judge, samples: int) -> None:
    if not 1 <= samples <= MAX_SAMPLES:
        raise InputRefused(f"Samples must be a whole number from 1 to {MAX_SAMPLES}.")
    if samples == 1:
        return
    if judge.kind == JudgeKind.RULE:
        raise InputRefused(f"“{judge.name}” would give the same answer {samples} times. Use one sample.")
    if judge.temperature == 0 and judge.seed is None:
        raise InputRefused(
            f"“{judge.name}” would give the same answer {samples} times. Use one sample, or create a "
            "judge with a seed or a temperature above 0."
        )


def refuse_invalid_states(judge: Judge, states: Sequence[str]) -> None:
    if unknown := [state for state in states if state not in RETRYABLE_STATES]:
        raise InputRefused(f"“{unknown[0]}” calls cannot be retried. Choose {join_with_or(RETRYABLE_STATES)}.")
    if states and not Call.objects.filter(judge=judge, state__in=states).exists():
        raise InputRefused(f"“{judge.name}” has no {join_with_or(states)} calls to retry.")


def join_with_or(words: Sequence[str]) -> str:
    """“one, two or three”, for sentences."""
    shown = [word.replace("_", " ") for word in words]
    return " or ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def refuse_invalid_subject(selection: Selection) -> None:
    if selection.saved_filter and selection.judge.is_pointwise:
        raise InputRefused(
            f"“{selection.judge.name}” scores single responses, so a saved filter of comparisons does not apply."
        )
    if selection.saved_filter and not select_subject_ids(selection).exists():
        raise InputRefused(f"The saved filter {selection.saved_filter.in_words()}, matches no comparisons.")
    judge, is_empty = selection.judge, not select_subject_ids(selection).exists()
    of_other_kind = selection.comparison if judge.is_pointwise else selection.response
    if of_other_kind or (selection.is_one and is_empty):
        raise InputRefused(f"“{judge.name}” cannot judge this. Choose a {selection.column} of its evaluation.")
    if is_empty:
        what = "comparisons" if selection.column == "comparison" else "responses or comparisons"
        raise InputRefused(f"Nothing to judge yet. Import {what} first.")


def select_comparisons(selection: Selection) -> "QuerySet[Comparison]":
    """The comparisons to judge in review order, restricted by the saved filter if there is one."""
    comparisons = Comparison.objects.filter(evaluation=selection.judge.evaluation_id).order_by("random_order", "pk")
    if selection.saved_filter is None:
        return comparisons
    return apply_comparison_filter(comparisons, selection.judge.evaluation, selection.saved_filter.comparison_filter)


def select_subject_ids(selection: Selection) -> "QuerySet[Comparison, int] | QuerySet[Response, int]":
    """The selected comparisons or responses in planning order."""
    subject, judge = selection.subject, selection.judge
    rows: QuerySet[Comparison] | QuerySet[Response] = (
        Response.objects.filter(query__evaluation=judge.evaluation_id).order_by("query", "pk")
        if judge.is_pointwise
        else select_comparisons(selection)
    )
    if subject is not None:
        rows = rows.filter(pk=subject)
    ids = rows.values_list("pk", flat=True)
    return ids[: selection.limit] if selection.limit else ids


SelectionRow = tuple[int, ...]  # the position in planning order, the primary key last


def find_next_rows(selection: Selection, after: Sequence[int] | None, limit: int) -> list[SelectionRow]:
    """The next ``limit`` rows of a selection, after the position of the last one."""
    if limit <= 0:
        return []
    if selection.is_one:
        return [] if after else [(pk,) for pk in select_subject_ids(selection)]
    if selection.column == "response":
        return find_next_response_rows(selection.judge, after or (0, 0), limit)
    comparisons = select_comparisons(selection)
    if after:
        # Only the first condition can use an index.
        comparisons = comparisons.filter(Q(random_order__gt=after[0]) | Q(pk__gt=after[1]), random_order__gte=after[0])
    return list(comparisons.values_list("random_order", "pk")[:limit])


def find_next_response_rows(judge: Judge, after: Sequence[int], limit: int) -> list[SelectionRow]:
    """The next responses, found by a few queries at a time: sorting all responses for every few would be slow."""
    query, response = after
    queries = Query.objects.filter(evaluation=judge.evaluation_id).order_by("pk").values_list("pk", flat=True)
    while True:
        query_ids = list(queries.filter(pk__gte=query)[: limit + 1])  # the first of them may be done already
        later = Response.objects.filter(query__in=query_ids).exclude(query=query, pk__lte=response)
        rows: list[SelectionRow] = list(later.order_by("query", "pk").values_list("query", "pk")[:limit])
        if rows:
            return rows
        if len(query_ids) < 2:
            return []
        query, response = query_ids[-1], 0


def draw_orders(subject_id: int, orders: str, seed: int) -> tuple[ShownOrder, ...]:
    """The orders for this comparison; a random one depends on the seed only."""
    both = (ShownOrder.AS_STORED, ShownOrder.SWAPPED)
    if orders == RunOrders.BOTH:
        return both
    if orders == RunOrders.RANDOM:
        return (random.Random(f"{seed}:{subject_id}").choice(both),)
    return (ShownOrder.AS_STORED if orders == RunOrders.AS_STORED else ShownOrder.SWAPPED,)


def call_subjects(ids: Sequence[int], orders: str, samples: int, seed: int) -> Iterator[CallSubject]:
    for subject_id in ids:
        for shown in draw_orders(subject_id, orders, seed):
            for sample in range(samples):
                yield subject_id, shown, sample


def judge_seed(judge: Judge) -> int | None:
    """The seed of this judge's random orders, drawn by its first run.

    Another seed would ask half of the comparisons again in the other order.
    """
    return Run.objects.filter(judge=judge.pk).order_by("pk").values_list("seed", flat=True).first()


def find_existing_calls(selection: Selection) -> "QuerySet[Call]":
    """This judge's calls on the selection."""
    calls = Call.all_rows.filter(judge=selection.judge.pk)  # no call of a judge that is not stored
    if selection.limit or selection.is_one or selection.saved_filter:
        calls = calls.filter(**{f"{selection.column}__in": select_subject_ids(selection)})
    return calls


def find_calls_to_retry(selection: Selection) -> "QuerySet[Call]":
    """The calls in the chosen states that belong to no active run."""
    failed = find_existing_calls(selection).filter(state__in=selection.only_states, is_test=False)
    return failed.exclude(run__state__in=ACTIVE_RUN_STATES)


def count_retryable_calls(judge: Judge) -> dict[str, int]:
    """State → calls of this judge that can be retried now; states without any are left out."""
    calls = find_calls_to_retry(make_selection(judge, only_states=RETRYABLE_STATES)).order_by()
    counts = dict(calls.values_list("state").annotate(Count("pk")))
    return {state.value: counts[state] for state in RETRYABLE_STATES if state in counts}


@dataclass(frozen=True)
class ExpectedCalls:
    """The calls that a run would send (``to_ask``) and those that are answered already (``reused``).

    ``left`` failures stay as they are; ``in_other_runs`` calls belong to other active runs. ``comparisons`` counts the
    subjects: responses, for a pointwise judge.
    """

    comparisons: int
    to_ask: int
    reused: int
    left: int
    in_other_runs: int = 0


def count_expected_calls(selection: Selection) -> ExpectedCalls:
    """Count the calls that a run with this selection would send or reuse now."""
    if selection.only_states:
        chosen = find_calls_to_retry(selection)
        return ExpectedCalls(chosen.values(selection.column).distinct().count(), chosen.count(), 0, 0)
    subjects = select_subject_ids(selection).count()
    calls = subjects * len(draw_orders(0, selection.orders, 0)) * selection.samples
    counts = count_existing_calls(selection)
    kept = sum(counts[state, False] + counts[state, True] for state in ANSWERED_FAILURE_STATES)
    again = sum(counts[state, False] for state in ANSWERED_FAILURE_STATES) if selection.ask_failures_again else 0
    reused = counts[CallState.ANSWERED, False] + counts[CallState.ANSWERED, True]
    in_other_runs = sum(counts[state, True] for state in OPEN_CALL_STATES)
    left = kept - again
    return ExpectedCalls(subjects, calls - reused - left - in_other_runs, reused, left, in_other_runs)


def count_existing_calls(selection: Selection) -> Counter[tuple[str, bool]]:
    """(state, whether an active run has it) → calls, in the orders and samples of the selection."""
    calls = find_existing_calls(selection).filter(sample__lt=selection.samples).order_by()
    counts: Counter[tuple[str, bool]] = Counter()
    if selection.orders == RunOrders.RANDOM:
        seed = judge_seed(selection.judge) or 0
        for pk, shown, state, run_state in calls.values_list(f"{selection.column}_id", "shown", "state", "run__state"):
            counts[state, run_state in ACTIVE_RUN_STATES] += shown in draw_orders(pk, selection.orders, seed)
        return counts
    existing = calls.filter(shown__in=draw_orders(0, selection.orders, 0))
    for state, run_state, count in existing.values_list("state", "run__state").annotate(Count("pk")):
        counts[state, run_state in ACTIVE_RUN_STATES] += count
    return counts
