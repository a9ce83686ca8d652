"""What earlier calls of a model took: the grounds on which a run is estimated."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Final

from django.db.models import Count, QuerySet, Sum

from evaluations.domain import CallState, RubricSpec
from evaluations.models import Attempt, Call, Comparison, Judge, Response
from evaluations.services.judging.judging import is_two_step

# Fewer than this say nothing, and more than this nothing new.
CALLS_AT_LEAST: Final = 20
CALLS_AT_MOST: Final = 64
JUDGES_AT_MOST: Final = 8

Subject = Comparison | Response
SUBJECTS: Final = ("comparison__query", "comparison__response_a", "comparison__response_b", "response__query")


@dataclass(frozen=True)
class Span:
    """From ``low`` to ``high``, both included."""

    low: float
    high: float

    def times(self, factor: float) -> "Span":
        return Span(self.low * factor, self.high * factor)

    def plus(self, other: "Span") -> "Span":
        return Span(self.low + other.low, self.high + other.high)


@dataclass(frozen=True)
class Taken:
    """What one answered call took, all its requests together.

    ``by_rule``: its first prompt in tokens by our rule, or those of its aspects together where each has its own.
    """

    by_rule: float
    tokens_in: int
    tokens_out: int
    requests: int
    seconds: float


@dataclass(frozen=True)
class Observed:
    """Means of ``calls`` earlier calls: spans are two standard errors to each side.

    ``ratio``: tokens that the server counted in for each token by our rule.
    """

    calls: int
    ratio: Span
    tokens_out: Span
    requests: float
    seconds_a_request: float


def observed(
    judge: Judge, spec: RubricSpec, tokens_by_rule: Callable[[Judge, RubricSpec, Subject], float]
) -> Observed | None:
    """What calls of this judge's model took, its own before those of others; None where there are too few."""
    taken: list[Taken] = []
    for other, other_spec in alike(judge, spec):
        if len(taken) < CALLS_AT_MOST:
            taken += taken_by(other, other_spec, CALLS_AT_MOST - len(taken), tokens_by_rule)
    return means_of(taken) if len(taken) >= CALLS_AT_LEAST else None


def alike(judge: Judge, spec: RubricSpec) -> Iterable[tuple[Judge, RubricSpec]]:
    """This judge, then others of its model at its endpoint that ask in as many requests."""
    yield judge, spec
    others = Judge.objects.filter(endpoint=judge.endpoint_id, model=judge.model).exclude(pk=judge.pk).order_by("-pk")
    for other in others.select_related("rubric_version__rubric")[:JUDGES_AT_MOST]:
        if other.rubric_version is not None:
            other_spec = other.rubric_version.spec()
            if way_of_asking(other, other_spec) == way_of_asking(judge, spec):
                yield other, other_spec


def way_of_asking(judge: Judge, spec: RubricSpec) -> tuple[bool, int]:
    """Whether it asks in two steps, and how many aspects have a request of their own."""
    return is_two_step(judge, spec), len(spec.aspects) if judge.one_aspect_per_call else 0


def taken_by(
    judge: Judge, spec: RubricSpec, most: int, tokens_by_rule: Callable[[Judge, RubricSpec, Subject], float]
) -> list[Taken]:
    """The latest calls of this judge whose tokens are known; what travelled in a file says nothing of time."""
    calls = {call.pk: call for call in latest_answered(judge, most)}
    rows = Attempt.objects.filter(call__in=calls, batch__isnull=True).order_by().values_list("call_id")
    sums = rows.annotate(Sum("tokens_in"), Sum("tokens_out"), Count("pk"), Sum("latency_ms"))
    return [
        Taken(tokens_by_rule(judge, spec, subject), tokens_in, tokens_out, requests, milliseconds / 1000)
        for call_id, tokens_in, tokens_out, requests, milliseconds in sums
        if tokens_in and tokens_out is not None and (subject := subject_of(calls[call_id]))
    ]


def latest_answered(judge: Judge, most: int) -> "QuerySet[Call]":
    bought = Call.all_rows.filter(judge=judge, state=CallState.ANSWERED, copied_from__isnull=True)
    return bought.select_related(*SUBJECTS).order_by("-pk")[:most]


def subject_of(call: Call) -> Subject | None:
    return call.comparison or call.response


def means_of(taken: Sequence[Taken]) -> Observed:
    by_rule = fmean(one.by_rule for one in taken)
    ratio = fmean(one.tokens_in for one in taken) / by_rule
    off = [(one.tokens_in - ratio * one.by_rule) / by_rule for one in taken]
    requests = fmean(one.requests for one in taken)
    return Observed(
        calls=len(taken),
        ratio=around(ratio, off),
        tokens_out=around(fmean(one.tokens_out for one in taken), [one.tokens_out for one in taken]),
        requests=requests,
        seconds_a_request=fmean(one.seconds for one in taken) / requests,
    )


def around(mean: float, values: Sequence[float]) -> Span:
    """Two standard errors of these values' mean to each side, and never below zero."""
    error = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return Span(max(mean - 2 * error, 0.0), mean + 2 * error)
