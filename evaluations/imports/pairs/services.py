"""Pairs of stored responses are counted, then made in the background."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction

from evaluations.audit.events import record_event
from evaluations.comparisons.pairing.selectors import (
    COUNTING_SECONDS,
    PAIR_ADJACENT,
    PAIR_BASELINE,
    PairCount,
    Pairing,
    Ranking,
    count_pairs,
    parse_pairing,
    rank_by_results,
    refuse_too_many_pairs,
)
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import PAIRS_WITHOUT_FILE, ImportState
from evaluations.imports.lifecycle import BEGAN_STORING, IMPORT_JOB, refuse_concurrent_import
from evaluations.imports.options import refuse_archived_evaluation
from evaluations.jobs.queue import enqueue_job
from evaluations.models.comparisons import Query
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.users import User


@dataclass(frozen=True)
class PairingOptions:
    """How many comparisons each way of pairing would make of so many queries.

    ``unranked``: why neighbours by rating cannot be told, if so.
    """

    told: dict[str, str]
    counted: dict[str, int]
    queries: int
    is_whole: bool
    ranking: Ranking
    unranked: str


def count_pairing_options(evaluation: Evaluation, ways: Mapping[str, str]) -> PairingOptions:
    """Count the comparisons that each way of pairing would make, within seconds."""
    told, ranking, unranked = dict(ways), Ranking((), ""), ""
    try:
        ranking = rank_by_results(evaluation)
    except InputRefused as refused:
        unranked = str(refused)
        told.pop(PAIR_ADJACENT, None)
    counted = count_pairs(
        evaluation, [parse_pairing(way) for way in told.values()], ranking.names, seconds=COUNTING_SECONDS
    )
    numbers = {way: counted.numbers[as_told] for way, as_told in told.items()}
    return PairingOptions(told, numbers, counted.queries, counted.is_whole, ranking, unranked)


def start_pairing(evaluation: Evaluation, way: str, *, confirmed: bool, user: User | None) -> Import:
    """Create the import that makes these pairs; `continue_storing` then makes them. Raises InputRefused."""
    refuse_archived_evaluation(evaluation)
    pairing = parse_pairing(way)
    if pairing.way == PAIR_BASELINE and not evaluation.candidates.filter(name=pairing.baseline).exists():
        raise InputRefused(f"There is no candidate “{pairing.baseline}” here to pair the others with.")
    ranking = rank_by_results(evaluation) if pairing.way == PAIR_ADJACENT else None
    names = ranking.names if ranking else ()
    counted = count_pairs(evaluation, [pairing], names, seconds=COUNTING_SECONDS)
    if counted.is_whole and not counted.numbers[str(pairing)]:
        raise InputRefused("Every pair of this kind is here already.")
    refuse_too_many_pairs(counted, pairing, confirmed=confirmed)
    refuse_concurrent_import(evaluation)
    notes = [f"Neighbours by {ranking.by}: {', '.join(names)}."] if ranking else []
    with transaction.atomic():
        importing = Import.objects.create(
            evaluation=evaluation,
            user=user,
            file_name=f"pairs of responses ({way})"[:255],
            format=PAIRS_WITHOUT_FILE,
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
        enqueue_job(IMPORT_JOB, importing.pk, evaluation=evaluation)
        record_event(
            BEGAN_STORING, importing, user=user, evaluation=evaluation, after=summarize_pair_count(counted, pairing)
        )
    return importing


def summarize_pair_count(counted: PairCount, way: Pairing) -> dict[str, object]:
    name = "comparisons" if counted.is_whole else "comparisons_at_least"
    return {"pair": str(way), name: counted.numbers[str(way)]}
