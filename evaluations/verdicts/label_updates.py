"""The labels that imported votes make, counted once everything is stored, a little at a time."""

from collections.abc import Collection

from django.db import transaction
from django.db.models import QuerySet

from evaluations.domain.files import ImportState
from evaluations.domain.groups import split_into_slices
from evaluations.domain.jobs import COUNT_LABELS
from evaluations.domain.roles import RaterKind
from evaluations.jobs.kinds import JobClaim, JobKind, register_job_kind
from evaluations.jobs.queue import enqueue_jobs
from evaluations.jobs.runner import finish_job
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import, finished_imports
from evaluations.models.jobs import Job
from evaluations.models.rubrics import Aspect
from evaluations.models.transactions import is_time_up, pause_after_transaction, rows_per_transaction
from evaluations.models.verdicts import Score, Verdict
from evaluations.verdicts.votes import update_labels


def find_score_imports(scores: QuerySet[Score]) -> set[int]:
    """Imports that brought people's scores among these: what makes their scores votes has changed."""
    brought = scores.filter(source_import__isnull=False, rater__kind=RaterKind.HUMAN).order_by()
    return {pk for pk in brought.values_list("source_import", flat=True).distinct() if pk}


def recount_labels_later(imports: Collection[int]) -> None:
    """Count the votes of people in these as if they had just come in."""
    if not imports:
        return
    done = Import.objects.filter(pk__in=imports, state=ImportState.DONE).values_list("pk", "evaluation")
    enqueue_jobs([Job(kind=COUNT_LABELS, subject=pk, evaluation_id=evaluation) for pk, evaluation in done])


def are_votes_left(evaluation: Evaluation) -> bool:
    """Whether the labels of an evaluation may not know all votes that imports brought."""
    return Job.objects.unfinished().filter(kind=COUNT_LABELS, evaluation=evaluation).exists()


def count_votes_left(evaluation: Evaluation) -> None:
    """Count them in this process, and wait for those that a worker counts."""
    left = Job.objects.open().filter(kind=COUNT_LABELS, evaluation=evaluation)
    for pk in left.order_by("pk").values_list("subject", flat=True):
        finish_job(COUNT_LABELS, pk)


def count_labels(claim: JobClaim) -> bool:
    """Count the votes that came with an import; the job's position is the last comparison whose labels know them."""
    importing = Import.objects.get(pk=claim.job.subject)
    ids = find_uncounted_comparisons(importing, claim.job.position)
    for some in split_into_slices(ids, get_comparisons_per_batch(importing)):
        with pause_after_transaction(), transaction.atomic():
            if not Import.objects.filter(pk=importing.pk, state=ImportState.DONE).exists():  # it is being undone
                return True
            claim.heartbeat(some[-1])
            update_labels(some)
        if some[-1] != ids[-1] and is_time_up(claim.until):
            return False
    return True


def find_uncounted_comparisons(importing: Import, after: int) -> list[int]:
    """The comparisons that its people voted on, by choices or by scores, and whose labels do not know it yet."""
    brought = {"source_import": importing, "rater__kind": RaterKind.HUMAN}
    ids = set(Verdict.objects.filter(**brought).order_by().values_list("comparison_id", flat=True).distinct())
    for comparison in ("response__comparisons_as_a", "response__comparisons_as_b"):
        scored = Score.objects.filter(finished_imports(f"{comparison}__"), **brought).order_by()
        ids.update(scored.filter(**{f"{comparison}__isnull": False}).values_list(comparison, flat=True).distinct())
    return sorted(pk for pk in ids if pk > after)


def get_comparisons_per_batch(importing: Import) -> int:
    """The number of comparisons whose labels fill one transaction."""
    aspects = Aspect.objects.filter(evaluation=importing.evaluation_id).count()
    return max(1, rows_per_transaction() // max(1, aspects))


register_job_kind(JobKind(COUNT_LABELS, count_labels))
