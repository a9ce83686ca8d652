"""A disk that fills up: one sentence, nothing half-stored, and no file left."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client

from evaluations.domain import disk_space
from evaluations.domain.disk_space import DiskFull
from evaluations.domain.files import ExportState, FileLimits
from evaluations.exports import writer
from evaluations.exports.options import DEFAULT_REQUEST
from evaluations.exports.services import request_export
from evaluations.formats.sources import open_source
from evaluations.imports.source_files import remove_orphaned_uploads
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from evaluations.models.imports import Import
from evaluations.models.users import User
from judgeweb.file_storage import WholeFiles
from tests.factories.evaluations import make_comparison
from tests.helpers.api_client import ApiClient

Kept = Callable[[], list[str]]


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
def test_an_export_on_a_full_disk_is_507_on_its_page_and_in_the_api(
    owner_signed_in: Client, asking: ApiClient, evaluation: Evaluation, full: None
) -> None:
    page = owner_signed_in.post("/e/study/exports/new", {"written_as": "jsonl"})
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
