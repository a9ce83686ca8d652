"""Overview results that are stored, and computed again in the background when the evaluation changed."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from evaluations.domain.jobs import UNFINISHED_JOB_STATES
from evaluations.jobs.kinds import JobClaim, JobKind, register_job_kind
from evaluations.jobs.queue import enqueue_job, find_job
from evaluations.models.clock import read_clock
from evaluations.models.evaluations import Evaluation
from evaluations.models.results import OverviewResults
from evaluations.models.users import User
from evaluations.overview.results import Results, compute_results, load_results, write_results
from evaluations.reports.served_reports import (
    MIN_SERVED_COMPARISONS,
    REFRESH_PAUSE,
    get_refresh_pause_end,
    read_report_state,
)

COMPUTE_RESULTS: Final = "compute_overview_results"


@dataclass(frozen=True)
class StoredResults:
    """``results``: None if there are none to compute. ``is_current``: whether nothing has changed since."""

    results: Results | None
    computed_at: datetime
    is_current: bool = False


def find_results_on_everything(evaluations: Collection[int]) -> dict[int, StoredResults]:
    """By evaluation id the last results of those who see everything."""
    rows = OverviewResults.objects.filter(evaluation__in=evaluations, user__isnull=True, computed_at__isnull=False)
    return {row.evaluation_id: open_results(row) for row in rows}


def open_results(row: OverviewResults, *, is_current: bool = False) -> StoredResults:
    assert row.computed_at is not None
    return StoredResults(load_results(row.results), row.computed_at, is_current)


def read_or_compute_results(evaluation: Evaluation, reviewer: User | None, comparisons: int) -> StoredResults | None:
    """The present results if they are stored or quickly computed; else the last ones, while a worker computes.

    None: there are none yet.
    """
    state, now = read_report_state(evaluation), read_clock()
    row = OverviewResults.objects.filter(evaluation=evaluation, user=reviewer).first()
    if row and row.computed_at and state and row.state == state:
        return open_results(row, is_current=True)
    # Of what a reviewer could see, something may be hidden by now: their last results are not shown.
    shown = row if row and row.computed_at and reviewer is None else None
    if shown and shown.computed_at and now - shown.computed_at < REFRESH_PAUSE:
        return open_results(shown)
    if comparisons < MIN_SERVED_COMPARISONS:
        return open_results(store_results(evaluation, reviewer), is_current=True)
    compute_later(row or OverviewResults.objects.get_or_create(evaluation=evaluation, user=reviewer)[0], now)
    return open_results(shown) if shown else None


def store_results(evaluation: Evaluation, reviewer: User | None) -> OverviewResults:
    """Compute and store the results. If something changed meanwhile, they are of no state."""
    state = read_report_state(evaluation)
    results = write_results(compute_results(evaluation, reviewer))
    is_stable = read_report_state(evaluation) == state
    columns = {"state": state if is_stable else "", "results": results, "computed_at": read_clock()}
    return OverviewResults.objects.update_or_create(evaluation=evaluation, user=reviewer, defaults=columns)[0]


def compute_later(row: OverviewResults, now: datetime) -> None:
    """Have a worker compute the results, unless one is at it or has just been."""
    last = find_job(COMPUTE_RESULTS, row.pk)
    if last is None or (last.state not in UNFINISHED_JOB_STATES and now >= get_refresh_pause_end(last)):
        enqueue_job(COMPUTE_RESULTS, row.pk, evaluation=row.evaluation)


def compute_stored_results(claim: JobClaim) -> bool:
    row = OverviewResults.objects.filter(pk=claim.job.subject).select_related("evaluation", "user").first()
    if row is not None:
        store_results(row.evaluation, row.user)
    return True


register_job_kind(JobKind(COMPUTE_RESULTS, compute_stored_results, counts_faults=True, per_worker=1))
