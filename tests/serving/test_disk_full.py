"""A disk that fills up: one sentence, nothing half-stored, and no file left."""

import asyncio
import io
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, connection
from django.test import Client

from evaluations.backups.selectors import iterate_backup_files
from evaluations.domain import disk_space
from evaluations.domain.disk_space import DISK_FULL_SENTENCE, DiskFull
from evaluations.domain.files import ExportState, FileLimits, ImportState
from evaluations.exports import writer
from evaluations.exports.options import DEFAULT_REQUEST, ExportRequest
from evaluations.exports.services import request_export
from evaluations.formats.sources import open_source
from evaluations.imports import storage
from evaluations.imports.lifecycle import continue_import
from evaluations.imports.services import start_storing
from evaluations.imports.source_files import remove_orphaned_uploads, remove_stale_uploads
from evaluations.models.comparisons import Comparison, Query, Rendering
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from evaluations.models.free_space import has_room_for_rows
from evaluations.models.imports import Import
from evaluations.models.transactions import MIN_BULK_ROWS
from evaluations.models.users import User
from evaluations.rendered_texts import MIN_STORED_CHARACTERS, render_next_comparisons
from evaluations.web.request_bodies import BodyRefusal
from judgeweb.body_receiver import BodyReceiver
from judgeweb.file_storage import WholeFiles
from tests.factories.evaluations import make_comparison
from tests.factories.imports import comparison_row, encode_jsonl, import_rows, preview_rows
from tests.helpers.api_client import ApiClient
from tests.helpers.job_work import job_about, work_all, work_once

Kept = Callable[[], list[str]]
on_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="a PostgreSQL server looks after its own disk")


class FullFile(io.BytesIO):
    """A file in whose middle the disk is full."""

    def write(self, data: Any) -> int:
        raise OSError(28, os.strerror(28))


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_space, "count_free_bytes", lambda folder: 0)


def test_a_file_that_does_not_fit_is_refused_before_a_byte_is_written(kept: Kept, full: None) -> None:
    with pytest.raises(DiskFull):
        default_storage.save("uploads/2026/01/file", ContentFile(b"content"))
    assert kept() == []


def test_a_file_that_could_not_be_written_leaves_nothing(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(ContentFile):  # type: ignore[type-arg]
        def chunks(self, chunk_size: int | None = None) -> Any:
            yield b"the first part"
            raise OSError(28, os.strerror(28))

    with pytest.raises(OSError, match="No space left"):
        default_storage.save("uploads/2026/01/file", Broken(b"content"))
    assert kept() == []


def test_a_body_for_which_no_file_can_be_made_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **options: object) -> None:
        raise OSError(28, os.strerror(28))

    async def receive_event() -> Any:
        return {"type": "http.request", "body": b"x" * 70_000, "more_body": True}

    async def admit(size: int | None) -> None:
        return None

    monkeypatch.setattr("tempfile.NamedTemporaryFile", fail)
    with ThreadPoolExecutor(1) as disk:
        receiver = BodyReceiver(receive_event, tmp_path, disk, admit)
        body = asyncio.run(receiver.receive(140_000, is_chunked=False))
    assert body.refusal == BodyRefusal.NO_ROOM


def test_a_file_that_was_kept_is_readable_by_its_owner_alone(kept: Kept) -> None:
    path = Path(default_storage.path(default_storage.save("uploads/2026/01/file", ContentFile(b"content"))))
    assert path.read_bytes() == b"content"
    assert path.stat().st_mode & 0o077 == 0
    assert kept() == ["file"]


def test_unpacking_stops_at_the_reserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").table({"query": ["q"] * 10})
    plain = io.BytesIO()
    parquet.write_table(table, plain)
    gzip = pytest.importorskip("gzip").compress(plain.getvalue())
    monkeypatch.setattr(disk_space, "count_free_bytes", lambda folder: 1000)
    with pytest.raises(DiskFull):
        open_source(io.BytesIO(gzip), "rows.parquet.gz", FileLimits(scratch=str(tmp_path), reserve_bytes=1000))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.django_db
def test_an_import_on_a_full_disk_is_507_on_its_page(
    manager_signed_in: Client, evaluation: Evaluation, kept: Kept, full: None
) -> None:
    sent = {"file": SimpleUploadedFile("rows.jsonl", encode_jsonl([comparison_row()]))}
    page = manager_signed_in.post("/e/study/data", sent)
    assert page.status_code == 507
    assert "almost full" in page.content.decode()
    assert not Import.objects.exists()
    assert kept() == []


@pytest.mark.django_db
def test_an_export_on_a_full_disk_is_507_on_its_page_and_in_the_api(
    owner_signed_in: Client, asking: ApiClient, evaluation: Evaluation, full: None
) -> None:
    page = owner_signed_in.post("/e/study/export/new", {"written_as": "jsonl"})
    assert page.status_code == 507
    assert "almost full" in page.content.decode()
    answer = asking.post("/evaluations/study/exports", {"format": "jsonl"})
    assert (answer.status_code, answer.json()["code"]) == (507, "disk_full")
    assert not Export.objects.exists()


@pytest.mark.django_db
def test_an_export_that_fills_the_disk_is_failed_and_leaves_no_file(
    kept: Kept, evaluation: Evaluation, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_comparison(evaluation)
    requested = request_export(evaluation, written_as="jsonl", user=owner, request=DEFAULT_REQUEST)
    monkeypatch.setattr(WholeFiles, "open", lambda *args: FullFile())
    assert requested.blocks is not None
    with pytest.raises(DiskFull):
        list(requested.blocks)
    assert Export.objects.get().state == ExportState.FAILED
    assert kept() == []


@pytest.mark.django_db
def test_an_export_looks_at_the_disk_on_its_way(
    kept: Kept, evaluation: Evaluation, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        make_comparison(evaluation)
    requested = request_export(evaluation, written_as="jsonl", user=owner, request=DEFAULT_REQUEST)
    monkeypatch.setattr(writer, "BYTES_BETWEEN_LOOKS", 0)
    monkeypatch.setattr(writer, "FLUSH_SECONDS", 0.0)
    monkeypatch.setattr(disk_space, "count_free_bytes", lambda folder: 0)
    assert requested.blocks is not None
    with pytest.raises(DiskFull):
        list(requested.blocks)
    assert kept() == []


@pytest.mark.django_db
def test_files_that_no_import_has_are_removed_after_an_hour(
    kept: Kept, evaluation: Evaluation, settings: LazySettings
) -> None:
    names = ["used", "orphaned", "just-written"]
    saved = [default_storage.save(f"uploads/2026/01/{name}", ContentFile(b"x")) for name in names]
    Import.objects.create(evaluation=evaluation, file=saved[0], file_name="used")
    for name in saved[:2]:
        os.utime(default_storage.path(name), (0, 0))
    remove_orphaned_uploads()
    assert sorted(kept()) == ["just-written", "used"]


@pytest.fixture
def full_on_the_way(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    """Let the disk be full as soon as a temporary file is written."""
    monkeypatch.setattr(
        disk_space, "count_free_bytes", lambda folder: 0 if any(settings.SCRATCH_DIR.iterdir()) else 1_000_000_000_000
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("written_as", "asked"),
    [("backup", DEFAULT_REQUEST), ("hugging-face", replace(DEFAULT_REQUEST, combine="majority_of_aspects"))],
)
def test_an_export_in_files_that_come_first_looks_at_the_disk_and_leaves_none(
    kept: Kept, evaluation: Evaluation, owner: User, full_on_the_way: None, written_as: str, asked: ExportRequest
) -> None:
    make_comparison(evaluation)
    requested = request_export(evaluation, written_as=written_as, user=owner, request=asked)
    if requested.blocks is not None:
        with pytest.raises(DiskFull):
            list(requested.blocks)
    else:
        work_all("export")
    export = Export.objects.get()
    assert export.state == ExportState.FAILED
    assert kept() == []


@pytest.mark.django_db(transaction=True)
def test_an_abandoned_folder_is_removed_after_an_hour_and_one_that_is_read_is_not(
    kept: Kept, evaluation: Evaluation, settings: LazySettings
) -> None:
    abandoned, young = (Path(settings.SCRATCH_DIR, name) for name in ("backup-abandoned", "backup-young"))
    for folder in (abandoned, young):
        folder.mkdir()
        (folder / "query.jsonl").write_bytes(b"x")
    files = iterate_backup_files(evaluation)
    next(files)
    (read,) = set(Path(settings.SCRATCH_DIR).iterdir()) - {abandoned, young}
    for folder in (abandoned, read):
        os.utime(folder, (0, 0))
    remove_stale_uploads()
    assert set(Path(settings.SCRATCH_DIR).iterdir()) == {young, read}
    files.close()  # type: ignore[attr-defined]
    assert set(Path(settings.SCRATCH_DIR).iterdir()) == {young}


# ---- rows in an SQLite file


@pytest.fixture
def full_once_stored(monkeypatch: pytest.MonkeyPatch) -> Callable[[type[Query] | type[Comparison]], None]:
    """Let the disk be full as soon as there are rows of a table."""
    monkeypatch.setitem(MIN_BULK_ROWS, "sqlite", 64)

    def fill(model: type[Query] | type[Comparison]) -> None:
        monkeypatch.setattr(
            disk_space, "count_free_bytes", lambda folder: 0 if model.all_rows.exists() else 1_000_000_000_000
        )

    return fill


@on_sqlite
@pytest.mark.django_db
def test_an_import_that_comes_to_the_reserve_fails_and_leaves_none_of_its_rows(
    evaluation: Evaluation, full_once_stored: Callable[[type[Query]], None]
) -> None:
    rows = [comparison_row(f"q{number}") for number in range(70)]
    full_once_stored(Query)
    importing = import_rows(evaluation, *rows)
    assert (importing.state, importing.reason) == (ImportState.FAILED, DISK_FULL_SENTENCE)
    assert importing.finished_at is not None
    assert not Query.all_rows.exists()
    assert not evaluation.candidates.exists()


@on_sqlite
@pytest.mark.django_db
def test_an_import_whose_pairs_come_to_the_reserve_fails_and_leaves_none_of_its_rows(
    evaluation: Evaluation, full_once_stored: Callable[[type[Comparison]], None]
) -> None:
    rows = [
        {"query_id": f"q{number}", "query": "Why?", "candidate": name, "response": f"As {name} says."}
        for number in range(70)
        for name in ("a", "b")
    ]
    full_once_stored(Comparison)
    importing = import_rows(evaluation, *rows)
    assert (importing.state, importing.reason) == (ImportState.FAILED, DISK_FULL_SENTENCE)
    assert not Query.all_rows.exists()


@pytest.mark.django_db
def test_an_import_on_a_disk_that_others_filled_says_that_it_is_full(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise OperationalError("database or disk is full")

    importing = preview_rows(evaluation, encode_jsonl([comparison_row()]))
    start_storing(importing, skip_bad=False, user=None)
    monkeypatch.setattr(storage, "write_portion", fail)
    with pytest.raises(OperationalError):
        continue_import(importing)
    assert (importing.state, importing.reason) == (ImportState.FAILED, DISK_FULL_SENTENCE)


@on_sqlite
def test_rows_leave_room_for_what_sqlite_writes_twice(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A reserve of 100, a log of 30 and texts of 5: 100 + 30 + 2 * 5 = 140."""
    settings.DISK_RESERVE_BYTES = 100
    monkeypatch.setitem(connection.settings_dict, "NAME", str(tmp_path / "rows.sqlite3"))
    (tmp_path / "rows.sqlite3-wal").write_bytes(b"x" * 30)
    for free, fits in ((139, False), (140, True)):
        monkeypatch.setattr(disk_space, "count_free_bytes", lambda folder, free=free: free)
        assert has_room_for_rows(5) is fits


@on_sqlite
@pytest.mark.django_db
def test_the_search_index_waits_for_room_and_no_text_is_rendered_ahead(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        importing = import_rows(evaluation, comparison_row(response_a="word " * MIN_STORED_CHARACTERS))
        patch.setattr(disk_space, "count_free_bytes", lambda folder: 0)
        assert not work_once("index_import", importing.pk)
        job = job_about("index_import", importing.pk)
        assert (job.state, job.position) == ("waiting", 0)
        assert job.not_before is not None
        assert render_next_comparisons(evaluation)
        assert not Rendering.objects.exists()
    job.not_before = None
    job.save()
    work_all("index_import")
    assert job_about("index_import", importing.pk).state == "done"
