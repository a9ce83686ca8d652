"""What is to be done in the background once an import is stored: votes counted, texts indexed and rendered."""

from evaluations.domain.jobs import COUNT_LABELS, FILL_QUEUE, INDEX_IMPORT, RENDER_AHEAD
from evaluations.jobs.queue import enqueue_jobs
from evaluations.models.imports import Import
from evaluations.models.jobs import Job


def enqueue_follow_ups(importing: Import) -> None:
    """Called inside the transaction that shows what was imported."""
    subjects = dict.fromkeys((COUNT_LABELS, INDEX_IMPORT), importing.pk)
    subjects |= dict.fromkeys((FILL_QUEUE, RENDER_AHEAD), importing.evaluation_id)
    jobs = [Job(kind=kind, subject=pk, evaluation_id=importing.evaluation_id) for kind, pk in subjects.items()]
    enqueue_jobs(jobs, retry=False)
