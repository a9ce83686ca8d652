"""How far an import is."""

from evaluations.domain.files import ImportState
from evaluations.imports.lifecycle import IMPORT_JOB
from evaluations.jobs.queue import JobProgress, job_of, progress_at
from evaluations.models.imports import Import


def get_import_progress(importing: Import) -> JobProgress:
    """How far an import is, in rows. While the file is checked nobody knows how many it holds."""
    job = job_of(IMPORT_JOB, importing.pk)
    if job is None or importing.state == ImportState.CHECKING:
        return JobProgress(importing.rows_read, None, None, None)
    return progress_at(job, importing.rows_done, importing.rows_read)
