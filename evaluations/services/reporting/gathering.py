"""Verdicts from the database into arrays: a handful of queries, however many verdicts there are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from django.db.models import Case, F, IntegerField, Q, QuerySet, Value, When
from django.db.models.expressions import Combinable

from evaluations.domain import CallState, RaterKind
from evaluations.models import Call, Comparison, Rater, Verdict
from evaluations.services.reporting.deriving import FromScores, read_scored
from evaluations.services.reporting.packing import (
    CHOICE_WIDTH,
    MARK_WIDTH,
    ORDER_WIDTH,
    STATE_WIDTH,
    Rows,
    code,
    groups,
    read,
    split_states,
)
from evaluations.services.reporting.voting import (
    PeopleRows,
    ShownJudges,
    read_confirmed,
    read_scored_votes,
    read_shown_judges,
    read_votes,
    together,
)
from evaluations.stats.anchoring import Confirmed
from evaluations.stats.coding import CHOICES, ORDERS, IntArray
from evaluations.stats.consolidation import STATES, Unanswered, Verdicts


@dataclass(frozen=True)
class Gathered:
    """``comparisons``: their ids in order; a comparison's place in it is its item number everywhere else.

    The rest by aspect id, or by rater id and aspect id; a call belongs to every aspect of its rater. What was
    ``confirmed`` is by the id of the judge that was ``shown`` and aspect id.
    Choices that judges of single responses did not give themselves are among the verdicts; ``scored``
    tells where they come from. ``repaired`` counts calls that were answered when asked a second time.
    """

    comparisons: IntArray
    people: Mapping[int, PeopleRows]
    shown: ShownJudges
    confirmed: Mapping[tuple[int, int], Confirmed]
    gold: Mapping[int, PeopleRows]
    verdicts: Mapping[tuple[int, int], Verdicts]
    unanswered: Mapping[int, Unanswered]
    repaired: Mapping[int, int]
    scored: FromScores

    def aspects(self) -> set[int]:
        return {*self.people, *self.gold, *(aspect for _, aspect in self.verdicts)}


def gather(comparisons: QuerySet[Comparison], raters: Iterable[Rater], aspect: int | None = None) -> Gathered:
    """Everything that these raters said on these comparisons, or on one aspect of them."""
    ids = np.fromiter(comparisons.order_by("pk").values_list("pk", flat=True).iterator(), dtype=np.int64)
    by_kind = {kind: [rater for rater in raters if rater.kind == kind] for kind in RaterKind}
    verdicts = Verdict.objects.filter(comparison__in=comparisons.order_by().values("pk"))
    if aspect is not None:
        verdicts = verdicts.filter(aspect=aspect)
    place = {rater.pk: place for place, rater in enumerate(by_kind[RaterKind.HUMAN])}
    pointwise = [rater for rater in by_kind[RaterKind.JUDGE] if rater.judge and rater.judge.is_pointwise]
    pairwise = [rater for rater in by_kind[RaterKind.JUDGE] if rater not in pointwise]
    scored = read_scored(comparisons, ids, pointwise, aspect)
    unanswered, repaired = read_unanswered(comparisons, pairwise, ids)
    shown = read_shown_judges(comparisons, place)
    return Gathered(
        comparisons=ids,
        people=together(read_votes(verdicts, place, ids), read_scored_votes(comparisons, place, ids, aspect)),
        shown=shown,
        confirmed=read_confirmed(verdicts, place, ids, shown),
        gold=read_votes(verdicts, {rater.pk: place for place, rater in enumerate(by_kind[RaterKind.GOLD])}, ids),
        verdicts={**read_verdicts(verdicts, pairwise, ids), **scored.verdicts},
        unanswered={**unanswered, **scored.unanswered},
        repaired={**repaired, **scored.repaired},
        scored=scored,
    )


def packed_verdict() -> Combinable:
    marked = Case(When(inconsistent=True, then=Value(1)), default=Value(0), output_field=IntegerField())
    order_and_choice = code("shown", ORDERS) * CHOICE_WIDTH + code("choice", CHOICES)
    return F("sample") * (ORDER_WIDTH * CHOICE_WIDTH * MARK_WIDTH) + order_and_choice * MARK_WIDTH + marked


def read_verdicts(
    verdicts: QuerySet[Verdict], judges: Iterable[Rater], ids: IntArray
) -> dict[tuple[int, int], Verdicts]:
    raters = [rater.pk for rater in judges]
    if not raters:
        return {}
    chosen = verdicts.filter(rater__in=raters)
    rows = read(chosen.values_list("rater_id", "comparison_id", "aspect_id", packed_verdict()), ids)
    return {(key[0], key[1]): unpacked_verdicts(part) for key, part in groups(rows, "rater", "aspect")}


def unpacked_verdicts(rows: Rows) -> Verdicts:
    rest, marked = np.divmod(rows["packed"], MARK_WIDTH)
    rest, choice = np.divmod(rest, CHOICE_WIDTH)
    sample, shown = np.divmod(rest, ORDER_WIDTH)
    return Verdicts(rows["comparison"], shown, sample, choice, marked.astype(bool))


def read_unanswered(
    comparisons: QuerySet[Comparison], judges: Iterable[Rater], ids: IntArray
) -> tuple[dict[int, Unanswered], dict[int, int]]:
    """By rater id the calls without an answer, and how many others were repaired.

    Calls that were answered at once are left unread: their verdicts tell of them.
    """
    rater_of = {rater.judge_id: rater.pk for rater in judges}
    if not rater_of:
        return {}, {}
    calls = Call.objects.filter(comparison__in=comparisons.order_by().values("pk"), judge__in=list(rater_of))
    packed = (F("sample") * ORDER_WIDTH + code("shown", ORDERS)) * STATE_WIDTH + code("state", STATES, len(STATES))
    wanted = calls.filter(Q(repaired=True) | ~Q(state=CallState.ANSWERED.value))
    rows = read(wanted.values_list("judge_id", "comparison_id", Value(0), packed), ids)
    parts = {rater_of[judge]: split_states(part) for (judge,), part in groups(rows, "rater")}
    unanswered = {rater: unpacked_calls(without) for rater, (without, _) in parts.items()}
    return unanswered, {rater: repaired for rater, (_, repaired) in parts.items()}


def unpacked_calls(rows: Rows) -> Unanswered:
    rest, state = np.divmod(rows["packed"], STATE_WIDTH)
    sample, shown = np.divmod(rest, ORDER_WIDTH)
    return Unanswered(rows["comparison"], shown, sample, state)
