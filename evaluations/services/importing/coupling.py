"""Pairs of responses that are here already, made in the background like a file: all of them at once, or none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from evaluations.domain import PAIRS, ImportState, InputRefused
from evaluations.models import Evaluation, Import, Query, User
from evaluations.services.importing.counting import WAITED, Counted, count_pairs, refuse_too_many
from evaluations.services.importing.importing import BEGAN_STORING, refuse_beside_another
from evaluations.services.importing.pairing import ADJACENT, BASELINE, Pairing, read_pairing
from evaluations.services.importing.previewing import refuse_archived
from evaluations.services.importing.rating import Ranking, ranking_of
from evaluations.services.recording import record


@dataclass(frozen=True)
class Ways:
    """What each way of pairing would make of so many queries, which are all of them where it ``is_whole``.

    ``unranked``: why neighbours by rating cannot be told, if so.
    """

    told: dict[str, str]
    counted: dict[str, int]
    queries: int
    is_whole: bool
    ranking: Ranking
    unranked: str


def count_ways(evaluation: Evaluation, ways: Mapping[str, str]) -> Ways:
    """How many comparisons each way would make, given as it would be asked for; none is made. Takes seconds at most."""
    told, ranking, unranked = dict(ways), Ranking((), ""), ""
    try:
        ranking = ranking_of(evaluation)
    except InputRefused as refused:
        unranked = str(refused)
        told.pop(ADJACENT, None)
    counted = count_pairs(evaluation, [read_pairing(way) for way in told.values()], ranking.names, seconds=WAITED)
    numbers = {way: counted.numbers[as_told] for way, as_told in told.items()}
    return Ways(told, numbers, counted.queries, counted.is_whole, ranking, unranked)


def couple(evaluation: Evaluation, way: str, *, confirmed: bool, user: User | None) -> Import:
    """Decide that these pairs are made; `store` then does it. Raises InputRefused."""
    refuse_archived(evaluation)
    pairing = read_pairing(way)
    if pairing.way == BASELINE and not evaluation.candidates.filter(name=pairing.baseline).exists():
        raise InputRefused(f"There is no candidate “{pairing.baseline}” here to pair the others with.")
    ranking = ranking_of(evaluation) if pairing.way == ADJACENT else None
    names = ranking.names if ranking else ()
    counted = count_pairs(evaluation, [pairing], names, seconds=WAITED)
    if counted.is_whole and not counted.numbers[str(pairing)]:
        raise InputRefused("Every pair of this kind is here already.")
    refuse_too_many(counted, pairing, confirmed=confirmed)
    refuse_beside_another(evaluation)
    notes = [f"Neighbours by {ranking.by}: {', '.join(names)}."] if ranking else []
    with transaction.atomic():
        importing = Import.objects.create(
            evaluation=evaluation,
            user=user,
            file_name=f"pairs of responses ({way})"[:255],
            format=PAIRS,
            state=ImportState.STORING,
            options={"pair": way, "ranking": list(names), "skip_bad": False, "rater_kind": None, "derive_pairs": None},
            summary={
                "brings": "comparisons",
                "new": {},
                "made": {},
                "paired": 0,
                "samples": [],
                "aspects": [],
                "scales": {},
                "warnings": [],
                "notes": notes,
                "pairs": True,
            },
            rows_read=Query.objects.filter(evaluation=evaluation).count(),
        )
        record(BEGAN_STORING, importing, user=user, evaluation=evaluation, after=told_before(counted, pairing))
    return importing


def told_before(counted: Counted, way: Pairing) -> dict[str, Any]:
    name = "comparisons" if counted.is_whole else "comparisons_at_least"
    return {"pair": str(way), name: counted.numbers[str(way)]}
