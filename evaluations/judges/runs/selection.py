"""The comparisons or responses that a run asks about, in which orders, how often."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict, Unpack

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

# Calls that were answered, but not usably: paid for, and asked again only if that is wanted.
ANSWERED_FAILURE_STATES: Final = tuple(state for state in FAILURE_STATES if state != CallState.FAILED)
# What a retry may be sent after: every state in which a call has ended without a verdict.
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
    sliced: NamedFilter | None


class RunOptions(SelectionOptions, total=False):
    """The options of a run: its selection, its budget in nano-USD and the channel of its requests."""

    budget: int | None
    channel: str


@dataclass(frozen=True)
class Selection:
    """What a judge is to be asked.

    ``limit`` takes the comparisons that people meet first, or the first responses. ``only_states``
    makes it a retry: only calls in these states, in the order and for the sample in which they
    were asked. ``comparison`` or ``response`` narrows it to one; ``sliced`` to what a slice means
    while the run is planned.
    """

    judge: Judge
    orders: str = RunOrders.BOTH
    samples: int = 1
    limit: int | None = None
    ask_failures_again: bool = False
    only_states: tuple[str, ...] = ()
    comparison: int | None = None
    response: int | None = None
    sliced: NamedFilter | None = None

    @property
    def column(self) -> str:
        """The column of a Call that holds its subject."""
        return "response" if self.judge.is_pointwise else "comparison"

    @property
    def is_one(self) -> bool:
        """Whether one comparison or response alone is asked about, as a trial is."""
        return bool(self.comparison or self.response)

    def filters(self) -> JsonDict:
        """What a Run keeps of it beside its own columns."""
        chosen = {"only_states": list(self.only_states), "comparison": self.comparison, "response": self.response}
        said: JsonDict = {key: value for key, value in chosen.items() if value}
        if self.sliced:
            said["slice"] = {"name": self.sliced.name, "filter": self.sliced.wanted.as_json()}
        return {"limit": self.limit, "ask_failures_again": self.ask_failures_again, **said}


def make_selection(judge: Judge, **options: Unpack[SelectionOptions]) -> Selection:
    """The selection that these options make, asked for or not: start_run refuses what cannot be."""
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
        sliced=options.get("sliced"),
    )


def run_selection(run: Run) -> Selection:
    said = run.filters
    return Selection(
        run.judge,
        orders=run.orders,
        samples=run.samples,
        limit=said.get("limit"),
        ask_failures_again=said.get("ask_failures_again", False),
        only_states=tuple(said.get("only_states", ())),
        comparison=said.get("comparison"),
        response=said.get("response"),
        sliced=NamedFilter(said["slice"]["name"], parse_filter(said["slice"]["filter"])) if "slice" in said else None,
    )


# ---- refusing ------------------------------------------------------------------------------


def refuse_impossible_selection(wanted: Selection) -> None:
    judge = wanted.judge
    refuse_archived_judge(judge)
    if judge.kind == JudgeKind.IMPORTED:
        raise InputRefused(f"“{judge.name}” came with an import: there is no one to ask.")
    if wanted.orders not in set(RunOrders):
        raise InputRefused(f"Orders are one of {', '.join(RunOrders)}.")
    refuse_invalid_samples(judge, wanted.samples)
    if wanted.limit is not None and wanted.limit < 1:
        raise InputRefused(f"The limit must be at least 1 {wanted.column}.")
    refuse_invalid_states(judge, wanted.only_states)
    refuse_invalid_subject(wanted)


def refuse_archived_judge(judge: Judge) -> None:
    if judge.archived_at:
        raise InputRefused(f"“{judge.name}” is archived: restore it on its page, then run it.")


def refuse_invalid_samples(judge: Judge, samples: int) -> None:
    if not 1 <= samples <= MAX_SAMPLES:
        raise InputRefused(f"Samples: a whole number from 1 to {MAX_SAMPLES}.")
    if samples == 1:
        return
    if judge.kind == JudgeKind.RULE:
        raise InputRefused(f"“{judge.name}” would give the same answer {samples} times: ask it for one sample.")
    if judge.temperature == 0 and judge.seed is None:
        raise InputRefused(
            f"“{judge.name}” would give the same answer {samples} times: ask it for one sample, "
            "or make a judge with a seed or a temperature above 0."
        )


def refuse_invalid_states(judge: Judge, states: Sequence[str]) -> None:
    unknown = [state for state in states if state not in RETRYABLE_STATES]
    if unknown:
        raise InputRefused(
            f"Calls can be asked again that are {join_with_or(RETRYABLE_STATES)}: “{unknown[0]}” is none of these."
        )
    if states and not Call.objects.filter(judge=judge, state__in=states).exists():
        raise InputRefused(f"No call of “{judge.name}” is {join_with_or(states)}: there is nothing to ask again.")


def join_with_or(words: Sequence[str]) -> str:
    """“one, two or three”, for sentences."""
    shown = [word.replace("_", " ") for word in words]
    return " or ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def refuse_invalid_subject(wanted: Selection) -> None:
    if wanted.sliced and wanted.judge.is_pointwise:
        raise InputRefused(f"“{wanted.judge.name}” scores single responses: a slice is of comparisons.")
    if wanted.sliced and not selected_subject_ids(wanted).exists():
        raise InputRefused(f"The slice {wanted.sliced.in_words()}, has no comparison.")
    judge, other = wanted.judge, wanted.response if wanted.column == "comparison" else wanted.comparison
    if other or (wanted.is_one and not selected_subject_ids(wanted).exists()):
        raise InputRefused(f"“{judge.name}” cannot be asked about this: choose a {wanted.column} of its evaluation.")
    if not selected_subject_ids(wanted).exists():
        what = "comparisons" if wanted.column == "comparison" else "responses or comparisons"
        raise InputRefused(f"There is nothing to judge yet: import {what} first.")


# ---- subjects ------------------------------------------------------------------------------


def comparisons_to_judge(judge: Judge) -> "QuerySet[Comparison]":
    """The comparisons in review order."""
    return Comparison.objects.filter(evaluation=judge.evaluation_id).order_by("shuffle", "pk")


def selected_comparisons(wanted: Selection) -> "QuerySet[Comparison]":
    """The comparisons to judge, in review order; those of the saved filter alone where one is named."""
    comparisons = comparisons_to_judge(wanted.judge)
    return (
        apply_comparison_filter(comparisons, wanted.judge.evaluation, wanted.sliced.wanted)
        if wanted.sliced
        else comparisons
    )


def responses_to_judge(judge: Judge) -> "QuerySet[Response]":
    return Response.objects.filter(query__evaluation=judge.evaluation_id).order_by("query", "pk")


def selected_subject_ids(wanted: Selection) -> "QuerySet[Any, int]":
    """The comparisons or responses of a selection, in the order in which they are planned."""
    one = wanted.response if wanted.judge.is_pointwise else wanted.comparison
    rows: QuerySet[Any] = (
        responses_to_judge(wanted.judge) if wanted.judge.is_pointwise else selected_comparisons(wanted)
    )
    if one is not None:
        rows = rows.filter(pk=one)
    ids = rows.values_list("pk", flat=True)
    return ids[: wanted.limit] if wanted.limit else ids


SelectionRow = tuple[int, ...]  # its place in the order of planning, the primary key last


def selection_rows_after(wanted: Selection, after: Sequence[int] | None, most: int) -> list[SelectionRow]:
    """The next rows of a selection, ``most`` or fewer, after the position of the last one."""
    if most <= 0:
        return []
    if wanted.is_one:
        return [] if after else [(pk,) for pk in selected_subject_ids(wanted)]
    if wanted.column == "response":
        return response_rows_after(wanted.judge, after or (0, 0), most)
    comparisons = selected_comparisons(wanted)
    if after:
        # The first condition alone lets an index find the place.
        comparisons = comparisons.filter(Q(shuffle__gt=after[0]) | Q(pk__gt=after[1]), shuffle__gte=after[0])
    return list(comparisons.values_list("shuffle", "pk")[:most])


def response_rows_after(judge: Judge, after: Sequence[int], most: int) -> list[SelectionRow]:
    """By way of some queries at a time: all responses of a study at once would be sorted for every few."""
    query, response = after
    while True:
        some = list(queries_in_order(judge, query)[: most + 1])  # the first of them may have been passed already
        rest = Response.objects.filter(query__in=some).exclude(query=query, pk__lte=response)
        rows: list[SelectionRow] = list(rest.order_by("query", "pk").values_list("query", "pk")[:most])
        if rows:
            return rows
        if len(some) < 2:
            return []
        query, response = some[-1], 0


def queries_in_order(judge: Judge, query: int) -> "QuerySet[Query, int]":
    return (
        Query.objects.filter(evaluation=judge.evaluation_id, pk__gte=query).order_by("pk").values_list("pk", flat=True)
    )


def is_partial_selection(wanted: Selection) -> bool:
    """Whether the selection leaves out comparisons or responses."""
    return bool(wanted.limit or wanted.is_one or wanted.sliced)


def draw_orders(subject_id: int, orders: str, seed: int) -> tuple[ShownOrder, ...]:
    """The orders in which this comparison is asked; a random one is the same for the same seed."""
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
    """What this judge's random orders are drawn with: its first run drew it, and the others keep it.

    Another seed would ask half of the comparisons again, in the other order.
    """
    return Run.objects.filter(judge=judge).order_by("pk").values_list("seed", flat=True).first()


# ---- what is known already -------------------------------------------------------------------


def existing_calls(wanted: Selection) -> "QuerySet[Call]":
    """The calls of this judge on what is selected. Its calls came with no import, so none is hidden."""
    calls = Call.all_rows.filter(judge=wanted.judge)
    if is_partial_selection(wanted):
        calls = calls.filter(**{f"{wanted.column}__in": selected_subject_ids(wanted)})
    return calls


def calls_to_retry(wanted: Selection) -> "QuerySet[Call]":
    """The calls in the chosen states that no active run has."""
    failed = existing_calls(wanted).filter(state__in=wanted.only_states, is_test=False)
    return failed.exclude(run__state__in=ACTIVE_RUN_STATES)


def count_retryable_calls(judge: Judge) -> dict[str, int]:
    """State → calls of this judge that could be asked again now, in no active run; none for a state without any."""
    calls = calls_to_retry(make_selection(judge, only_states=RETRYABLE_STATES)).order_by()
    found = dict(calls.values_list("state").annotate(Count("pk")))
    return {state.value: found[state] for state in RETRYABLE_STATES if state in found}


@dataclass(frozen=True)
class ExpectedCalls:
    """What a run would do, of all that are selected: ask ``to_ask`` calls, find ``reused`` answered.

    ``left`` failures stay as they are, ``held`` calls are another active run's. ``comparisons`` counts
    the subjects: responses, for a pointwise judge.
    """

    comparisons: int
    to_ask: int
    reused: int
    left: int
    held: int = 0


def expect_calls(judge: Judge, **options: Unpack[SelectionOptions]) -> ExpectedCalls:
    """What a run with these options would do now."""
    return count_expected_calls(make_selection(judge, **options))


def count_expected_calls(wanted: Selection) -> ExpectedCalls:
    if wanted.only_states:
        chosen = calls_to_retry(wanted)
        return ExpectedCalls(chosen.values(wanted.column).distinct().count(), chosen.count(), 0, 0)
    subjects_wanted = selected_subject_ids(wanted).count()
    calls = subjects_wanted * len(draw_orders(0, wanted.orders, 0)) * wanted.samples
    counts = count_existing_calls(wanted)
    kept = sum(counts[state, False] + counts[state, True] for state in ANSWERED_FAILURE_STATES)
    again = sum(counts[state, False] for state in ANSWERED_FAILURE_STATES) if wanted.ask_failures_again else 0
    reused = counts[CallState.ANSWERED, False] + counts[CallState.ANSWERED, True]
    held = sum(counts[state, True] for state in OPEN_CALL_STATES)
    left = kept - again
    return ExpectedCalls(subjects_wanted, calls - reused - left - held, reused, left, held)


def count_existing_calls(wanted: Selection) -> Counter[tuple[str, bool]]:
    """(state, whether an active run has it) → calls, in the orders and samples that would be asked."""
    calls = existing_calls(wanted).filter(sample__lt=wanted.samples).order_by()
    counts: Counter[tuple[str, bool]] = Counter()
    if wanted.orders == RunOrders.RANDOM:
        seed = judge_seed(wanted.judge) or 0
        for pk, shown, state, run_state in calls.values_list(f"{wanted.column}_id", "shown", "state", "run__state"):
            counts[state, run_state in ACTIVE_RUN_STATES] += shown in draw_orders(pk, wanted.orders, seed)
        return counts
    asked = calls.filter(shown__in=draw_orders(0, wanted.orders, 0))
    for state, run_state, count in asked.values_list("state", "run__state").annotate(Count("pk")):
        counts[state, run_state in ACTIVE_RUN_STATES] += count
    return counts
