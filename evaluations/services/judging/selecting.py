"""What a run is to ask about: which comparisons or responses, in which orders, how often."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict, Unpack

from django.db.models import Count, Q, QuerySet

from evaluations.domain import (
    ACTIVE_RUN_STATES,
    FAILURE_STATES,
    OPEN_CALL_STATES,
    CallState,
    InputRefused,
    JudgeKind,
    NamedFilter,
    Orders,
    Shown,
    filter_from,
)
from evaluations.models import Call, Comparison, Judge, Query, Response, Run
from evaluations.models.filtering import narrowed_to

# Calls that were answered, but not usably: paid for, and asked again only if that is wanted.
KEPT_FAILURES: Final = tuple(state for state in FAILURE_STATES if state != CallState.FAILED)
# What a retry may be sent after: every state in which a call has ended without a verdict.
RETRYABLE: Final = (*FAILURE_STATES, CallState.CANCELLED)
MOST_SAMPLES: Final = 100

Subject = tuple[int, Shown, int]  # comparison or response, order shown, sample


class SelectionOptions(TypedDict, total=False):
    """What may be said of a run's selection; see Selection."""

    orders: str
    samples: int
    limit: int | None
    ask_failures_again: bool
    only_states: Sequence[str] | None
    comparison: Comparison | None
    response: Response | None
    sliced: NamedFilter | None


@dataclass(frozen=True)
class Selection:
    """What a judge is to be asked.

    ``limit`` takes the comparisons that people meet first, or the first responses. ``only_states``
    makes it a retry: only calls in these states, in the order and for the sample in which they
    were asked. ``comparison`` or ``response`` narrows it to one; ``sliced`` to what a slice means
    while the run is planned.
    """

    judge: Judge
    orders: str = Orders.BOTH
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

    def filters(self) -> dict[str, Any]:
        """What a Run keeps of it beside its own columns."""
        chosen = {"only_states": list(self.only_states), "comparison": self.comparison, "response": self.response}
        said: dict[str, Any] = {key: value for key, value in chosen.items() if value}
        if self.sliced:
            said["slice"] = {"name": self.sliced.name, "filter": self.sliced.wanted.as_json()}
        return {"limit": self.limit, "ask_failures_again": self.ask_failures_again, **said}


def selection(judge: Judge, **options: Unpack[SelectionOptions]) -> Selection:
    """The selection that these options make, asked for or not: start_run refuses what cannot be."""
    comparison, response = options.get("comparison"), options.get("response")
    orders = options.get("orders", Orders.BOTH)
    return Selection(
        judge,
        orders=Orders.AS_STORED if judge.is_pointwise else orders,
        samples=options.get("samples", 1),
        limit=options.get("limit"),
        ask_failures_again=options.get("ask_failures_again", False),
        only_states=tuple(dict.fromkeys(options.get("only_states") or ())),
        comparison=comparison.pk if comparison else None,
        response=response.pk if response else None,
        sliced=options.get("sliced"),
    )


def selection_of(run: Run) -> Selection:
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
        sliced=NamedFilter(said["slice"]["name"], filter_from(said["slice"]["filter"])) if "slice" in said else None,
    )


# ---- refusing ------------------------------------------------------------------------------


def refuse_impossible(wanted: Selection) -> None:
    judge = wanted.judge
    refuse_archived(judge)
    if judge.kind == JudgeKind.IMPORTED:
        raise InputRefused(f"“{judge.name}” came with an import: there is no one to ask.")
    if wanted.orders not in set(Orders):
        raise InputRefused(f"Orders are one of {', '.join(Orders)}.")
    refuse_samples(judge, wanted.samples)
    if wanted.limit is not None and wanted.limit < 1:
        raise InputRefused(f"The limit must be at least 1 {wanted.column}.")
    refuse_states(judge, wanted.only_states)
    refuse_subject(wanted)


def refuse_archived(judge: Judge) -> None:
    if judge.archived_at:
        raise InputRefused(f"“{judge.name}” is archived: restore it on its page, then run it.")


def refuse_samples(judge: Judge, samples: int) -> None:
    if not 1 <= samples <= MOST_SAMPLES:
        raise InputRefused(f"Samples: a whole number from 1 to {MOST_SAMPLES}.")
    if samples == 1:
        return
    if judge.kind == JudgeKind.RULE:
        raise InputRefused(f"“{judge.name}” would give the same answer {samples} times: ask it for one sample.")
    if judge.temperature == 0 and judge.seed is None:
        raise InputRefused(
            f"“{judge.name}” would give the same answer {samples} times: ask it for one sample, "
            "or make a judge with a seed or a temperature above 0."
        )


def refuse_states(judge: Judge, states: Sequence[str]) -> None:
    unknown = [state for state in states if state not in RETRYABLE]
    if unknown:
        raise InputRefused(f"Calls can be asked again that are {either(RETRYABLE)}: “{unknown[0]}” is none of these.")
    if states and not Call.objects.filter(judge=judge, state__in=states).exists():
        raise InputRefused(f"No call of “{judge.name}” is {either(states)}: there is nothing to ask again.")


def either(words: Sequence[str]) -> str:
    """“one, two or three”, for sentences."""
    shown = [word.replace("_", " ") for word in words]
    return " or ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def refuse_subject(wanted: Selection) -> None:
    if wanted.sliced and wanted.judge.is_pointwise:
        raise InputRefused(f"“{wanted.judge.name}” scores single responses: a slice is of comparisons.")
    if wanted.sliced and not subject_ids(wanted).exists():
        raise InputRefused(f"The slice {wanted.sliced.in_words()}, has no comparison.")
    judge, other = wanted.judge, wanted.response if wanted.column == "comparison" else wanted.comparison
    if other or (wanted.is_one and not subject_ids(wanted).exists()):
        raise InputRefused(f"“{judge.name}” cannot be asked about this: choose a {wanted.column} of its evaluation.")
    if not subject_ids(wanted).exists():
        what = "comparisons" if wanted.column == "comparison" else "responses or comparisons"
        raise InputRefused(f"There is nothing to judge yet: import {what} first.")


# ---- subjects ------------------------------------------------------------------------------


def comparisons_of(judge: Judge) -> "QuerySet[Comparison]":
    """In the order in which people meet them, drawn at random once."""
    return Comparison.objects.filter(evaluation=judge.evaluation_id).order_by("shuffle", "pk")


def comparisons_wanted(wanted: Selection) -> "QuerySet[Comparison]":
    """The same, those of the slice alone where one was named."""
    comparisons = comparisons_of(wanted.judge)
    return narrowed_to(comparisons, wanted.judge.evaluation, wanted.sliced.wanted) if wanted.sliced else comparisons


def responses_of(judge: Judge) -> "QuerySet[Response]":
    return Response.objects.filter(query__evaluation=judge.evaluation_id).order_by("query", "pk")


def subject_ids(wanted: Selection) -> "QuerySet[Any, int]":
    """The comparisons or responses of a selection, in the order in which they are planned."""
    one = wanted.response if wanted.judge.is_pointwise else wanted.comparison
    rows: QuerySet[Any] = responses_of(wanted.judge) if wanted.judge.is_pointwise else comparisons_wanted(wanted)
    if one is not None:
        rows = rows.filter(pk=one)
    ids = rows.values_list("pk", flat=True)
    return ids[: wanted.limit] if wanted.limit else ids


Row = tuple[int, ...]  # its place in the order of planning, the primary key last


def rows_after(wanted: Selection, after: Sequence[int] | None, most: int) -> list[Row]:
    """The next rows of a selection, at most so many, after the place of the last one."""
    if most <= 0:
        return []
    if wanted.is_one:
        return [] if after else [(pk,) for pk in subject_ids(wanted)]
    if wanted.column == "response":
        return responses_after(wanted.judge, after or (0, 0), most)
    comparisons = comparisons_wanted(wanted)
    if after:
        # The first condition alone lets an index find the place.
        comparisons = comparisons.filter(Q(shuffle__gt=after[0]) | Q(pk__gt=after[1]), shuffle__gte=after[0])
    return list(comparisons.values_list("shuffle", "pk")[:most])


def responses_after(judge: Judge, after: Sequence[int], most: int) -> list[Row]:
    """By way of some queries at a time: all responses of a study at once would be sorted for every few."""
    query, response = after
    while True:
        some = list(queries_from(judge, query)[: most + 1])  # the first of them may have been passed already
        rest = Response.objects.filter(query__in=some).exclude(query=query, pk__lte=response)
        rows: list[Row] = list(rest.order_by("query", "pk").values_list("query", "pk")[:most])
        if rows:
            return rows
        if len(some) < 2:
            return []
        query, response = some[-1], 0


def queries_from(judge: Judge, query: int) -> "QuerySet[Query, int]":
    return (
        Query.objects.filter(evaluation=judge.evaluation_id, pk__gte=query).order_by("pk").values_list("pk", flat=True)
    )


def is_narrowed(wanted: Selection) -> bool:
    """Whether the selection leaves out comparisons or responses."""
    return bool(wanted.limit or wanted.is_one or wanted.sliced)


def orders_for(subject_id: int, orders: str, seed: int) -> tuple[Shown, ...]:
    """The orders in which this comparison is asked; a random one is the same for the same seed."""
    both = (Shown.AS_STORED, Shown.SWAPPED)
    if orders == Orders.BOTH:
        return both
    if orders == Orders.RANDOM:
        return (random.Random(f"{seed}:{subject_id}").choice(both),)
    return (Shown.AS_STORED if orders == Orders.AS_STORED else Shown.SWAPPED,)


def subjects(ids: Sequence[int], orders: str, samples: int, seed: int) -> Iterator[Subject]:
    for subject_id in ids:
        for shown in orders_for(subject_id, orders, seed):
            for sample in range(samples):
                yield subject_id, shown, sample


def seed_of(judge: Judge) -> int | None:
    """What this judge's random orders are drawn with: its first run drew it, and the others keep it.

    Another seed would ask half of the comparisons again, in the other order.
    """
    return Run.objects.filter(judge=judge).order_by("pk").values_list("seed", flat=True).first()


# ---- what is known already -------------------------------------------------------------------


def calls_known(wanted: Selection) -> "QuerySet[Call]":
    """The calls of this judge on what is selected. Its calls came with no import, so none is hidden."""
    calls = Call.all_rows.filter(judge=wanted.judge)
    if is_narrowed(wanted):
        calls = calls.filter(**{f"{wanted.column}__in": subject_ids(wanted)})
    return calls


def calls_to_retry(wanted: Selection) -> "QuerySet[Call]":
    """The calls in the chosen states that no active run has."""
    failed = calls_known(wanted).filter(state__in=wanted.only_states, is_test=False)
    return failed.exclude(run__state__in=ACTIVE_RUN_STATES)


def retryable(judge: Judge) -> dict[str, int]:
    """State → calls of this judge that could be asked again now, in no active run; none for a state without any."""
    calls = calls_to_retry(selection(judge, only_states=RETRYABLE)).order_by()
    found = dict(calls.values_list("state").annotate(Count("pk")))
    return {state.value: found[state] for state in RETRYABLE if state in found}


@dataclass(frozen=True)
class Expected:
    """What a run would do, of all that are selected: ask ``to_ask`` calls, find ``reused`` answered.

    ``left`` failures stay as they are, ``held`` calls are another active run's. ``comparisons`` counts
    the subjects: responses, for a pointwise judge.
    """

    comparisons: int
    to_ask: int
    reused: int
    left: int
    held: int = 0


def expected(judge: Judge, **options: Unpack[SelectionOptions]) -> Expected:
    """What a run with these options would do now."""
    return expected_of(selection(judge, **options))


def expected_of(wanted: Selection) -> Expected:
    if wanted.only_states:
        chosen = calls_to_retry(wanted)
        return Expected(chosen.values(wanted.column).distinct().count(), chosen.count(), 0, 0)
    subjects_wanted = subject_ids(wanted).count()
    calls = subjects_wanted * len(orders_for(0, wanted.orders, 0)) * wanted.samples
    counts = counts_known(wanted)
    kept = sum(counts[state, False] + counts[state, True] for state in KEPT_FAILURES)
    again = sum(counts[state, False] for state in KEPT_FAILURES) if wanted.ask_failures_again else 0
    reused = counts[CallState.ANSWERED, False] + counts[CallState.ANSWERED, True]
    held = sum(counts[state, True] for state in OPEN_CALL_STATES)
    left = kept - again
    return Expected(subjects_wanted, calls - reused - left - held, reused, left, held)


def counts_known(wanted: Selection) -> Counter[tuple[str, bool]]:
    """(state, whether an active run has it) → calls, in the orders and samples that would be asked."""
    calls = calls_known(wanted).filter(sample__lt=wanted.samples).order_by()
    counts: Counter[tuple[str, bool]] = Counter()
    if wanted.orders == Orders.RANDOM:
        seed = seed_of(wanted.judge) or 0
        for pk, shown, state, run_state in calls.values_list(f"{wanted.column}_id", "shown", "state", "run__state"):
            counts[state, run_state in ACTIVE_RUN_STATES] += shown in orders_for(pk, wanted.orders, seed)
        return counts
    asked = calls.filter(shown__in=orders_for(0, wanted.orders, 0))
    for state, run_state, count in asked.values_list("state", "run__state").annotate(Count("pk")):
        counts[state, run_state in ACTIVE_RUN_STATES] += count
    return counts
