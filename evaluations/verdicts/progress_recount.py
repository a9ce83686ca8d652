"""The counting of progress in the background: the changes of the last seconds, and recounts where the basis changed."""

from collections.abc import Iterator, Sequence
from time import monotonic

from django.db import transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from evaluations.domain.jobs import COUNT_PROGRESS
from evaluations.jobs.kinds import JobClaim, JobKind, register_job_kind
from evaluations.jobs.queue import enqueue_job
from evaluations.jobs.runner import finish_job
from evaluations.models.comparisons import Comparison, Query
from evaluations.models.evaluations import Evaluation
from evaluations.models.jobs import Job
from evaluations.models.progress import ComparisonProgress, ProgressCounters, VerdictChange
from evaluations.models.transactions import is_time_up, pause_after_transaction, rows_per_transaction
from evaluations.verdicts.progress_counters import (
    ProgressCounts,
    count_changes,
    count_comparisons,
    count_directly,
    lock_counters,
    read_bases,
    to_counts,
)


def count_all_changes(*, seconds: float | None = None) -> None:
    """Count the changes of all evaluations in short transactions, and have recounted what needs it."""
    until = None if seconds is None else monotonic() + seconds
    for evaluation in VerdictChange.objects.order_by().values_list("evaluation", flat=True).distinct():
        while not is_time_up(until):
            with pause_after_transaction():
                counted = count_changes(evaluation, rows_per_transaction())
            if counted < rows_per_transaction():
                break
    enqueue_recounts()


def enqueue_recounts() -> None:
    """Enqueue a recount of each evaluation whose counters were made on another basis than the present one."""
    bases = dict(ProgressCounters.objects.values_list("pk", "basis"))
    counted = Evaluation.objects.filter(Q(comparisons_changed_at__isnull=False) | Q(pk__in=bases))
    outdated = [pk for pk, basis in read_bases(counted).items() if bases.get(pk) != basis]
    jobs = Job.objects.unfinished().filter(kind=COUNT_PROGRESS, subject__in=outdated)
    for evaluation in Evaluation.objects.filter(pk__in=outdated).exclude(pk__in=jobs.values("subject")):
        enqueue_job(COUNT_PROGRESS, evaluation.pk, evaluation=evaluation)


def recount(claim: JobClaim) -> bool:
    """Recount an evaluation; the job's position is the last comparison that was looked at."""
    evaluation = claim.job.subject
    if not claim.job.position:
        begin_recount(evaluation)
    for comparisons in iterate_comparisons(evaluation, claim.job.position):
        with pause_after_transaction(), transaction.atomic():
            claim.heartbeat(comparisons[-1])
            lock_counters(evaluation)
            count_comparisons(evaluation, comparisons)
        if is_time_up(claim.until):
            return False
    if end_recount(evaluation):
        return True
    claim.heartbeat(0)  # the basis changed meanwhile
    return False


def begin_recount(evaluation: int) -> None:
    with transaction.atomic():
        lock_counters(evaluation)
        basis = read_bases(Evaluation.objects.filter(pk=evaluation))[evaluation]
        ProgressCounters.objects.filter(pk=evaluation).update(next_basis=basis)


def end_recount(evaluation: int) -> bool:
    """Let the counters hold, with the numbers of queries and comparisons; False if the basis changed meanwhile."""
    with transaction.atomic():
        counters = lock_counters(evaluation)
        queries = Query.objects.filter(evaluation=evaluation).count()
        comparisons = Comparison.reviewable.filter(evaluation=evaluation).count()
        if read_bases(Evaluation.objects.filter(pk=evaluation))[evaluation] != counters.next_basis:
            return False
        ProgressCounters.objects.filter(pk=evaluation).update(
            basis=counters.next_basis,
            queries=queries,
            comparisons=comparisons,
            version=counters.version + 1,
            **sum_counted_rows(evaluation),
        )
    return True


def sum_counted_rows(evaluation: int) -> dict[str, int]:
    rows = ComparisonProgress.objects.filter(evaluation=evaluation)
    judged, reviewed = (Count("pk", filter=Q(**{column: True})) for column in ("is_judged", "is_reviewed"))
    return rows.aggregate(judged=judged, reviewed=reviewed, reviews=Coalesce(Sum("reviews"), 0))


def iterate_comparisons(evaluation: int, after: int) -> Iterator[Sequence[int]]:
    """The comparisons after this one, a few at a time, and those that are counted but were deleted."""
    limit = rows_per_transaction()
    while True:
        present = Comparison.reviewable.filter(evaluation=evaluation, pk__gt=after).order_by("pk")
        counted = ComparisonProgress.objects.filter(evaluation=evaluation, pk__gt=after).order_by("pk")
        ids = {pk for rows in (present, counted) for pk in rows.values_list("pk", flat=True)[:limit]}
        if not ids:
            return
        some = sorted(ids)[:limit]
        yield some
        after = some[-1]


register_job_kind(JobKind(COUNT_PROGRESS, recount))


def find_wrong_counters(
    evaluations: "QuerySet[Evaluation]",
) -> dict[Evaluation, tuple[ProgressCounts, ProgressCounts]]:
    """Evaluations whose counters differ from a recount: the counters with the changes not counted yet, the recount."""
    wrong = {}
    for evaluation in evaluations.order_by("pk"):
        bases = read_bases(Evaluation.objects.filter(pk=evaluation.pk))
        if not ProgressCounters.objects.filter(pk=evaluation.pk, basis=bases[evaluation.pk]).exists():
            continue  # it is recounted with the next sweep
        while count_changes(evaluation.pk, rows_per_transaction()):
            pass
        counted = to_counts(ProgressCounters.objects.get(pk=evaluation.pk))
        recounted = count_directly([evaluation.pk])[evaluation.pk]
        if counted != recounted:
            wrong[evaluation] = (counted, recounted)
    return wrong


def recount_now(evaluation: Evaluation) -> None:
    """Recount an evaluation in this process."""
    enqueue_job(COUNT_PROGRESS, evaluation.pk, evaluation=evaluation)
    finish_job(COUNT_PROGRESS, evaluation.pk)
