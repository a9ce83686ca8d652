"""A backup as an export: recorded like the others, and the same whatever was backed up before."""

import hashlib
import io
import json
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from evaluations.audit.events import record_event
from evaluations.backups import selectors as backups_selectors
from evaluations.backups.selectors import BACKUP_VERSION, build_backup
from evaluations.backups.services import restore_backup
from evaluations.domain.choices import LabelPolicy
from evaluations.domain.errors import InputRefused
from evaluations.domain.events import DOWNLOADED
from evaluations.domain.files import ExportState
from evaluations.domain.judges import RunState
from evaluations.domain.reports import ReportRules
from evaluations.domain.roles import RaterKind
from evaluations.domain.splits import SplitPart
from evaluations.exports.options import DEFAULT_REQUEST, ExportRequest
from evaluations.exports.requests import open_export_file
from evaluations.exports.selectors import build_manifest
from evaluations.exports.services import needs_background, start_export
from evaluations.exports.writer import SeparateHeartbeat, open_separate_cursor, stream_export
from evaluations.jobs import kinds
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.exports import Export
from evaluations.models.jobs import Job
from evaluations.models.judges import Rater
from evaluations.models.runs import Run
from evaluations.models.transactions import PROCESS_STOPPING
from evaluations.reports.selectors import get_full_report
from tests.factories.evaluations import make_comparison
from tests.factories.verdicts import ALL_A, ALL_B, make_judge_rater, make_review
from tests.helpers.job_work import job_about, kill_worker_at, work_once

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def votes_of_two_reviewers(evaluation: Evaluation, settings: LazySettings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = str(tmp_path / "media")
    ann, bob = (Rater.objects.create(evaluation=evaluation, kind=RaterKind.HUMAN, name=name) for name in ("ann", "bob"))
    for number in range(3):
        comparison = make_comparison(evaluation, key=f"q{number}")
        make_review(ann, comparison, ALL_A)
        make_review(bob, comparison, ALL_B if number else ALL_A)


def backup(evaluation: Evaluation) -> Export:
    export = start_export(evaluation, written_as="backup", user=None, in_background=True)
    assert not work_once("export", export.pk)
    export.refresh_from_db()
    return export


def bytes_of(export: Export) -> bytes:
    with open_export_file(export) as file:
        content: bytes = file.read()
    return content


def test_what_it_holds_is_restored_elsewhere_with_the_same_report(evaluation: Evaluation) -> None:
    export = backup(evaluation)
    content = bytes_of(export)
    assert (export.state, export.sha256, export.size_bytes) == (
        ExportState.DONE,
        hashlib.sha256(content).hexdigest(),
        len(content),
    )
    restored = restore_backup(io.BytesIO(content), name="study.zip", slug="elsewhere")
    assert restored.rows == export.rows != 0
    job = job_about("export", export.pk)
    assert (job.total, job.position) == (export.rows, export.rows)
    one, other = (get_full_report(which, ReportRules()).as_json() for which in (evaluation, restored.evaluation))
    assert one["aspects"] == other["aspects"]


def test_the_next_one_has_the_same_bytes_although_the_first_was_recorded(evaluation: Evaluation) -> None:
    first = backup(evaluation)
    assert Event.objects.filter(object_type="export", object_id=first.pk).exists()
    second = backup(evaluation)
    assert second.sha256 == first.sha256
    assert hashlib.sha256(b"".join(build_backup(evaluation))).hexdigest() == first.sha256


def test_that_somebody_took_one_is_in_the_next(evaluation: Evaluation) -> None:
    """Whoever has it has seen everything: what they review later is not blind, on whichever site."""
    first = backup(evaluation)
    record_event(DOWNLOADED, first, user=None, evaluation=evaluation)
    second = backup(evaluation)
    assert second.sha256 != first.sha256
    restored = restore_backup(io.BytesIO(bytes_of(second)), name="study.zip", slug="elsewhere").evaluation
    assert [one.verb for one in Event.objects.filter(evaluation=restored, object_type="export")] == [DOWNLOADED]
    assert not restored.exports.exists()


def test_what_is_not_in_it_gets_no_number_that_a_later_row_could_have(evaluation: Evaluation) -> None:
    """A download of a backup is told of, its record is not: the next export there is not what was downloaded."""
    plain = start_export(evaluation, written_as="jsonl", user=None)
    for _ in stream_export(plain, evaluation.comparisons.all()):
        pass
    record_event(DOWNLOADED, plain, user=None, evaluation=evaluation)
    record_event(DOWNLOADED, backup(evaluation), user=None, evaluation=evaluation)
    restored = restore_backup(
        io.BytesIO(b"".join(build_backup(evaluation))), name="study.zip", slug="elsewhere"
    ).evaluation
    taken = Event.objects.filter(evaluation=restored, object_type="export", verb=DOWNLOADED).order_by("pk")
    assert list(taken.values_list("object_id", flat=True)) == [restored.exports.get().pk, None]


def test_its_manifest_tells_the_version_and_the_rows_of_each_table(evaluation: Evaluation) -> None:
    export = backup(evaluation)
    told = build_manifest(export)
    assert (told["format"], told["backup"]["version"]) == ("backup", BACKUP_VERSION)
    with zipfile.ZipFile(io.BytesIO(bytes_of(export))) as whole:
        inside = json.loads(whole.read("manifest.json"))["tables"]
    assert told["backup"]["tables"] == {name: one["rows"] for name, one in inside.items()}
    assert told["backup"]["tables"]["comparison"] == 3
    assert sum(told["backup"]["tables"].values()) == told["file"]["rows"] == export.rows


def test_an_export_that_still_waits_is_not_taken_along(evaluation: Evaluation) -> None:
    """A worker of the other site would write it."""
    start_export(evaluation, written_as="jsonl", user=None, in_background=True)
    restored = restore_backup(
        io.BytesIO(b"".join(build_backup(evaluation))), name="study.zip", slug="elsewhere"
    ).evaluation
    assert not restored.exports.exists()


@pytest.mark.parametrize(
    "wanted",
    [
        ExportRequest(anonymised=True),
        ExportRequest(aspect="clarity"),
        ExportRequest(where=(("category", "math"),)),
        ExportRequest(part=SplitPart.TRAIN),
        ExportRequest(policy=LabelPolicy.PEOPLE),
        ExportRequest(settings={"layout": "chat"}),
    ],
)
def test_nothing_can_be_left_out_of_it(evaluation: Evaluation, wanted: ExportRequest) -> None:
    with pytest.raises(InputRefused, match="A backup contains everything"):
        start_export(evaluation, written_as="backup", user=None, request=wanted)
    assert not Export.objects.exists()


def test_it_is_refused_while_a_run_is_under_way(evaluation: Evaluation) -> None:
    waiting = start_export(evaluation, written_as="backup", user=None, in_background=True)
    judge = make_judge_rater(evaluation, "judge").judge
    assert judge is not None
    Run.objects.create(evaluation=evaluation, judge=judge, batch=uuid.uuid4(), state=RunState.RUNNING)
    with pytest.raises(InputRefused, match="Pause or cancel it, then back up"):
        start_export(evaluation, written_as="backup", user=None)
    assert not work_once("export", waiting.pk)
    waiting.refresh_from_db()
    assert (waiting.state, "is in progress" in waiting.reason, bool(waiting.file)) == (ExportState.FAILED, True, False)


def test_it_is_refused_by_what_is_under_way_when_its_moment_begins(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is started just before the tables are read is in them as one that is under way."""
    judge = make_judge_rater(evaluation, "judge").judge
    assert judge is not None

    @contextmanager
    def begun_just_now() -> Iterator[None]:
        Run.objects.create(evaluation=evaluation, judge=judge, batch=uuid.uuid4(), state=RunState.RUNNING)
        yield

    monkeypatch.setattr(backups_selectors, "open_snapshot", begun_just_now)
    with pytest.raises(InputRefused, match="is in progress"):
        b"".join(build_backup(evaluation))


def test_what_a_killed_worker_was_at_is_begun_again(evaluation: Evaluation) -> None:
    export = start_export(evaluation, written_as="backup", user=None, in_background=True)
    Export.objects.filter(pk=export.pk).update(state=ExportState.UNFINISHED)
    Job.objects.filter(subject=export.pk).update(position=7)
    kill_worker_at("export", export.pk)
    assert not work_once("export", export.pk)
    export.refresh_from_db()
    assert (export.state, job_about("export", export.pk).attempts) == (ExportState.DONE, 2)
    assert export.sha256 == hashlib.sha256(b"".join(build_backup(evaluation))).hexdigest()


def test_it_is_always_written_by_a_worker(evaluation: Evaluation) -> None:
    comparisons = Comparison.objects.filter(evaluation=evaluation)
    assert needs_background(evaluation, "backup", comparisons, DEFAULT_REQUEST)
    assert not needs_background(evaluation, "jsonl", comparisons, DEFAULT_REQUEST)


def test_the_command_writes_it_with_a_manifest_beside(evaluation: Evaluation, tmp_path: Path) -> None:
    out = tmp_path / "study.zip"
    call_command("export", "study", "--format", "backup", "--out", str(out))
    assert hashlib.sha256(out.read_bytes()).hexdigest() == Export.objects.get().sha256
    with pytest.raises(CommandError, match="contains everything"):
        call_command("export", "study", "--format", "backup", "--out", str(out), "--anonymise")


# ---- while it is written: the heartbeat stands beside the transaction that reads ------------------


@pytest.mark.django_db(transaction=True)
def test_one_that_is_cancelled_while_tables_are_read_leaves_no_file(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = start_export(evaluation, written_as="backup", user=None, in_background=True)
    monkeypatch.setattr(kinds, "HEARTBEAT_SECONDS", -1.0)
    reached: list[int] = []
    note_progress = SeparateHeartbeat.note_progress

    def cancelled_at_the_third(beat: SeparateHeartbeat) -> None:
        reached.append(beat.tally.rows)
        note_progress(beat)
        if len(reached) == 3:
            with open_separate_cursor() as cursor:
                cursor.execute("UPDATE evaluations_export SET state = 'cancelled' WHERE id = %s", [export.pk])
                cursor.execute("UPDATE evaluations_job SET state = 'cancelled' WHERE subject = %s", [export.pk])

    monkeypatch.setattr(SeparateHeartbeat, "note_progress", cancelled_at_the_third)
    assert not work_once("export", export.pk)
    export.refresh_from_db()
    assert (export.state, bool(export.file), len(reached)) == (ExportState.CANCELLED, False, 4)
    assert 0 < job_about("export", export.pk).position <= reached[-1]


@pytest.mark.django_db(transaction=True)
def test_it_says_that_it_goes_on_while_the_zip_is_made_of_what_was_read(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = start_export(evaluation, written_as="backup", user=None, in_background=True)
    monkeypatch.setattr(kinds, "HEARTBEAT_SECONDS", -1.0)
    reached: list[int] = []

    def noted(beat: SeparateHeartbeat) -> None:
        reached.append(beat.tally.rows)

    monkeypatch.setattr(SeparateHeartbeat, "note_progress", noted)
    work_once("export", export.pk)
    export.refresh_from_db()
    assert reached.count(export.rows or 0) > len(zipfile.ZipFile(io.BytesIO(bytes_of(export))).namelist())


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_is_told_to_leave_hands_it_on(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    export = start_export(evaluation, written_as="backup", user=None, in_background=True)
    PROCESS_STOPPING.set()
    try:
        assert work_once("export", export.pk)
    finally:
        PROCESS_STOPPING.clear()
    export.refresh_from_db()
    assert (export.state, bool(export.file)) == (ExportState.WAITING, False)
    assert not work_once("export", export.pk)
    export.refresh_from_db()
    assert export.state == ExportState.DONE
