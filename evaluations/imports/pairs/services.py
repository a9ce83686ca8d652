"""Pairs of stored responses: counted first, then created in the background."""

from dataclasses import dataclass

from django.db import transaction

from evaluations.audit.events import record_event
from evaluations.comparisons.pairing.selectors import (
    COUNTING_SECONDS,
    PairCount,
    Ranking,
    count_pairs,
    rank_by_results,
    refuse_too_many_pairs,
)
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import PAIRS_WITHOUT_FILE, ImportState
from evaluations.domain.imports import ImportOptions, ImportRequest, ImportSummary
from evaluations.domain.pairing import Pairing, PairingWay, make_pairing
from evaluations.imports.lifecycle import (
    BEGAN_STORING,
    IMPORT_JOB,
    refuse_archived_evaluation,
    refuse_concurrent_import,
)
from evaluations.jobs.queue import enqueue_job
from evaluations.models.comparisons import Query
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.users import User


@dataclass(frozen=True)
class PairingOptions:
    """The comparisons that each way would make. ``unranked``: why there are no neighbors by rating, if so."""

    counts: dict[Pairing, int]
    queries: int
    is_whole: bool
    ranking: Ranking
    unranked: str


def complete_pairing(evaluation: Evaluation, way: str, baseline: str, pairs_each: int | None) -> Pairing:
    """A way of pairing; by default with the first candidate by name as the baseline, or one pair per query."""
    if way == PairingWay.BASELINE:
        first = evaluation.candidates.order_by("name").values_list("name", flat=True).first()
        baseline = baseline or first or ""
    return make_pairing(way, baseline=baseline, pairs_each=pairs_each or 1)


def refuse_unknown_baseline(evaluation: Evaluation, baseline: str) -> None:
    if baseline and not evaluation.candidates.filter(name=baseline).exists():
        raise InputRefused(f"The baseline model “{baseline}” does not exist.", field="baseline")


def count_pairing_options(evaluation: Evaluation, baseline: str = "", pairs_each: int | None = None) -> PairingOptions:
    """Count the comparisons that each way of pairing would make, within seconds."""
    refuse_unknown_baseline(evaluation, baseline)
    ways, ranking, unranked = list(PairingWay), Ranking((), ""), ""
    try:
        ranking = rank_by_results(evaluation)
    except InputRefused as refused:
        unranked = str(refused)
        ways.remove(PairingWay.ADJACENT)
    if not evaluation.candidates.exists():
        ways.remove(PairingWay.BASELINE)
    pairings = [complete_pairing(evaluation, way, baseline, pairs_each) for way in ways]
    counted = count_pairs(evaluation, pairings, ranking.names, seconds=COUNTING_SECONDS)
    counts = {pairing: counted.numbers[str(pairing)] for pairing in pairings}
    return PairingOptions(counts, counted.queries, counted.is_whole, ranking, unranked)


def start_pairing(evaluation: Evaluation, pairing: Pairing, *, confirmed: bool, user: User | None) -> Import:
    """Create the import that makes these pairs; `continue_import` then makes them. Raises InputRefused."""
    refuse_archived_evaluation(evaluation)
    refuse_unknown_baseline(evaluation, pairing.baseline)
    ranking = rank_by_results(evaluation) if pairing.way == PairingWay.ADJACENT else None
    names = ranking.names if ranking else ()
    counted = count_pairs(evaluation, [pairing], names, seconds=COUNTING_SECONDS)
    if counted.is_whole and not counted.numbers[str(pairing)]:
        raise InputRefused("All these pairs exist already.")
    refuse_too_many_pairs(counted, pairing, confirmed=confirmed)
    refuse_concurrent_import(evaluation)
    notes = (f"Models by rating ({ranking.by}): {', '.join(names)}.",) if ranking else ()
    with transaction.atomic():
        importing = Import.objects.create(
            evaluation=evaluation,
            user=user,
            file_name=f"Generated pairs ({pairing})"[:255],
            format=PAIRS_WITHOUT_FILE,
            brings="comparisons",
            state=ImportState.STORING,
            options_json=ImportOptions(request=ImportRequest(pairing=pairing), ranking=names).to_json(),
            summary_json=ImportSummary(needs_pairing=True, notes=notes).to_json(),
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
