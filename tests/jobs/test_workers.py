"""Jobs in the hands of a real worker: no message is sent, so each is found by the sweep that it runs by itself."""

import io
from pathlib import Path

import pytest
from django.conf import LazySettings

from evaluations.comparisons.services import start_tag_job
from evaluations.domain.files import ImportState
from evaluations.domain.imports import ImportRequest
from evaluations.domain.jobs import JobState
from evaluations.exports.services import start_export
from evaluations.imports.services import keep_file, start_storing
from evaluations.models.comparisons import Comparison, Tagging
from evaluations.models.imports import Import
from evaluations.models.jobs import Job
from tests.factories.evaluations import make_evaluation
from tests.factories.imports import comparison_row, encode_jsonl
from tests.helpers.job_work import hold_by_dead_worker, job_about
from tests.helpers.worker_processes import WORKER, environment_on_test_database, run_celery, until

pytestmark = [pytest.mark.worker, pytest.mark.django_db(transaction=True)]


def state_of(importing: Import) -> str:
    return Import.objects.values_list("state", flat=True).get(pk=importing.pk)


def all_over() -> bool:
    return not Job.objects.open().exists()


def test_a_worker_finds_every_kind_of_job_and_what_a_dead_one_held(tmp_path: Path, settings: LazySettings) -> None:
    settings.MEDIA_ROOT = tmp_path / "files"  # where the worker looks
    evaluation = make_evaluation()
    environment = environment_on_test_database(tmp_path)
    rows = [comparison_row(f"q{number}") for number in range(30)]
    with run_celery(environment, *WORKER):
        importing = keep_file(
            evaluation, io.BytesIO(encode_jsonl(rows)), "r.jsonl", ImportRequest(), ImportState.CHECKING, user=None
        )
        until(lambda: state_of(importing) != ImportState.CHECKING)
        importing.refresh_from_db()
        start_storing(importing, skip_bad=False, user=None)
        until(lambda: state_of(importing) == ImportState.DONE and all_over())
        work = start_tag_job(evaluation, [], "hard", removes=False, user=None)
        hold_by_dead_worker("tag", work.pk)
        export = start_export(evaluation, written_as="backup", user=None, in_background=True)
        until(all_over)
    assert Comparison.objects.count() == Tagging.objects.count() == 30
    assert job_about("tag", work.pk).attempts == 1  # the dead worker counts no more: the next one progressed
    export.refresh_from_db()
    assert (export.state, job_about("export", export.pk).state) == ("done", JobState.DONE)
    kinds = {"import", "count_labels", "count_progress", "index_import", "fill_queue", "render_ahead", "tag", "export"}
    assert set(Job.objects.filter(state=JobState.DONE).values_list("kind", flat=True)) == kinds
