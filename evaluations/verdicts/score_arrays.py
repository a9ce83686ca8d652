"""Votes and verdicts derived from scores of single responses, as arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from django.db.models import Q, QuerySet

from evaluations.domain.judges import CallState
from evaluations.models.comparisons import Comparison
from evaluations.models.judges import Rater
from evaluations.models.runs import Call
from evaluations.models.verdicts import Score
from evaluations.stats.coding import FOLDED, FloatArray, IntArray
from evaluations.stats.judge_verdicts import (
    STATES,
    JudgeVerdicts,
    UnansweredCalls,
    mean_by_unit,
    verdicts_from_scores,
)
from evaluations.verdicts.array_rows import StructuredRows, encode_word, group_rows
from evaluations.verdicts.score_choices import tie_margins_by_rater

SIDE_ROW: Final = np.dtype([("comparison", np.int64), ("a", np.int64), ("b", np.int64)])
SCORE_ROW: Final = np.dtype([("rater", np.int64), ("response", np.int64), ("aspect", np.int64), ("value", np.float64)])
CALL_ROW: Final = np.dtype([("judge", np.int64), ("response", np.int64), ("packed", np.int64)])


@dataclass(frozen=True)
class ScoreArrays:
    """By rater id and aspect id, or by rater id.

    ``states``: of each call without a score once, however many comparisons its response is in; in
    ``unanswered`` it stands with each of them.
    """

    verdicts: Mapping[tuple[int, int], JudgeVerdicts] = field(default_factory=dict)
    margins: Mapping[tuple[int, int], float] = field(default_factory=dict)
    unanswered: Mapping[int, UnansweredCalls] = field(default_factory=dict)
    states: Mapping[int, IntArray] = field(default_factory=dict)
    repaired: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ResponseSides:
    """The responses that occur, by id in order, and per comparison the places of its two among them."""

    responses: IntArray
    a: IntArray
    b: IntArray

    def known(self, ids: IntArray) -> tuple[IntArray, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
        """The place of each id among the responses, and whether it is one of them."""
        place = np.minimum(np.searchsorted(self.responses, ids), max(len(self.responses) - 1, 0))
        return place, self.responses[place] == ids if len(self.responses) else np.zeros(len(ids), dtype=bool)

    def comparisons_with(self, places: IntArray) -> tuple[IntArray, IntArray]:
        """Every comparison in which one of these responses stands, and the number of the response in ``places``."""
        (item_a, number_a), (item_b, number_b) = (find_on_side(side, places) for side in (self.a, self.b))
        return np.concatenate([item_a, item_b]), np.concatenate([number_a, number_b])


def add_responses(sides: ResponseSides, responses: IntArray) -> ResponseSides:
    """These responses as well, which no comparison has to hold."""
    every = np.union1d(sides.responses, responses)
    places = np.searchsorted(every, sides.responses)
    return ResponseSides(every, places[sides.a], places[sides.b])


def find_on_side(side: IntArray, places: IntArray) -> tuple[IntArray, IntArray]:
    """Every comparison that has one of these responses on this side, and the number of the response in ``places``."""
    order = np.argsort(side, kind="stable")
    first, last = (np.searchsorted(side[order], places, edge) for edge in ("left", "right"))
    count = last - first
    start = np.repeat(first - np.concatenate([[0], np.cumsum(count)[:-1]]), count)
    return order[start + np.arange(count.sum())], np.repeat(np.arange(len(places)), count)


def read_score_arrays(comparisons: QuerySet[Comparison], ids: IntArray, judges: Sequence[Rater]) -> ScoreArrays:
    """Choices from these judges' scores; comparison ids are sorted. Empty without scores."""
    if not judges or not len(ids):
        return ScoreArrays()
    sides = read_response_sides(comparisons, ids)
    margins = tie_margins_by_rater(judges)
    verdicts = read_derived_verdicts(sides, [rater.pk for rater in judges], margins)
    unanswered, states, repaired = read_calls_without_score(sides, judges)
    return ScoreArrays(verdicts, margins, unanswered, states, repaired)


def read_response_sides(comparisons: QuerySet[Comparison], ids: IntArray) -> ResponseSides:
    rows = np.fromiter(
        comparisons.order_by("pk").values_list("pk", "response_a_id", "response_b_id").iterator(chunk_size=10_000),
        dtype=SIDE_ROW,
    )
    rows = rows[np.isin(rows["comparison"], ids)]  # one that came meanwhile has no place
    responses, places = np.unique(np.concatenate([rows["a"], rows["b"]]), return_inverse=True)
    return ResponseSides(responses, *np.split(places, 2))


def read_derived_verdicts(
    sides: ResponseSides, raters: Sequence[int], margins: Mapping[tuple[int, int], float]
) -> dict[tuple[int, int], JudgeVerdicts]:
    return {
        about: verdicts_from_scores(mean[sides.a], mean[sides.b], margins.get(about, 0.0))
        for about, mean in read_mean_scores(sides, raters).items()
    }


def read_mean_scores(sides: ResponseSides, raters: Sequence[int]) -> dict[tuple[int, int], FloatArray]:
    """By rater id and aspect id, the mean of what a judge gave each of the responses; NaN where it gave nothing."""
    columns = (
        Score.objects.filter(rater__in=raters).order_by().values_list("rater_id", "response_id", "aspect_id", "value")
    )
    rows = np.fromiter(columns.iterator(chunk_size=10_000), dtype=SCORE_ROW)
    place, known = sides.known(rows["response"])
    rows["response"] = place
    return {
        (rater, about): mean_by_unit(part["response"], part["value"], len(sides.responses))
        for (rater, about), part in group_rows(rows[known], "rater", "aspect")
    }


def read_calls_without_score(
    sides: ResponseSides, judges: Sequence[Rater]
) -> tuple[dict[int, UnansweredCalls], dict[int, IntArray], dict[int, int]]:
    """Calls without a score, their states, and how many verdicts were repaired, each by rater id."""
    rater_of = {rater.judge_id: rater.pk for rater in judges}
    wanted = Call.objects.filter(Q(repaired=True) | ~Q(state=CallState.ANSWERED.value), response__isnull=False)
    packed = encode_word("state", STATES, len(STATES))
    calls = wanted.filter(judge__in=list(rater_of)).order_by().values_list("judge_id", "response_id", packed)
    rows = np.fromiter(calls.iterator(chunk_size=10_000), dtype=CALL_ROW)
    place, known = sides.known(rows["response"])
    rows["response"] = place
    unanswered, states, repaired = {}, {}, {}
    for (judge,), part in group_rows(rows[known], "judge"):
        rater = rater_of[judge]
        part, repaired[rater] = split_call_states(part)
        states[rater] = part["packed"]
        item, number = sides.comparisons_with(part["response"])
        unanswered[rater] = UnansweredCalls(item, np.full(len(item), FOLDED), states[rater][number])
    return unanswered, states, repaired


def split_call_states(rows: StructuredRows) -> tuple[StructuredRows, int]:
    """The calls without an answer, and how many others there are: those that were answered after a repair."""
    answered = rows["packed"] == len(STATES)
    return rows[~answered], int(answered.sum())
