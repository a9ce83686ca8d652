"""The files that imports read, from their path to their first rows."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from time import monotonic, time
from typing import BinaryIO, Final, cast

from django.conf import settings
from django.core.cache import cache
from django.core.files.uploadedfile import TemporaryUploadedFile

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import FileLimits
from evaluations.domain.scratch_folders import is_folder_in_use
from evaluations.formats.archives import pack_folder
from evaluations.formats.file_reader import FileContents, read_file_rows
from evaluations.formats.record_paths import get_value, list_paths
from evaluations.formats.record_streams import MAX_COLUMNS, Record, sample_file
from evaluations.formats.seen_index import SeenIndex
from evaluations.formats.sources import open_source
from evaluations.models.imports import Import

STALE_AFTER: Final = timedelta(hours=1)  # since the last write to a file that was being sent
SAMPLED_ROWS: Final = 200
SHOWN_ROWS: Final = 3
MAX_SCAN_SECONDS: Final = 5
MAX_DISTINCT_WORDS: Final = 12  # of a column whose words a person can be asked about
MAX_WORD_LENGTH: Final = 80


def get_file_limits() -> FileLimits:
    return FileLimits(
        settings.MAX_ROWS, settings.MAX_UNPACKED_BYTES, str(settings.SCRATCH_DIR), settings.DISK_RESERVE_BYTES
    )


@contextmanager
def open_import_path(path: str) -> Iterator[tuple[BinaryIO, str]]:
    """Open a file with its name. A folder is packed into a temporary ZIP."""
    if not Path(path).is_dir():
        with Path(path).open("rb") as file:
            yield file, path
        return
    folder = Path(path).resolve()
    name = f"{folder.name}.zip"
    with TemporaryUploadedFile(name, "application/zip", 0, None) as packed:
        pack_folder(folder, cast(BinaryIO, packed))
        packed.size = packed.tell()
        yield cast(BinaryIO, packed), name


def remove_stale_uploads() -> None:
    """Remove uploads, unpacked files and folders of unfinished exports that killed processes left."""
    for path in Path(settings.SCRATCH_DIR).iterdir():
        with suppress(OSError):
            if path.stat().st_mtime >= time() - STALE_AFTER.total_seconds():
                continue
            if path.is_file():
                path.unlink()
            elif not is_folder_in_use(path):
                shutil.rmtree(path)


def remove_orphaned_uploads() -> None:
    """Once an hour, remove files that a killed process kept before it could store their import."""
    if not cache.add("orphaned-uploads", True, STALE_AFTER.total_seconds()):
        return
    root = Path(settings.MEDIA_ROOT)
    for path in root.glob("uploads/*/*/*"):
        with suppress(OSError):
            is_old = path.stat().st_mtime < time() - STALE_AFTER.total_seconds()
            if is_old and not Import.objects.filter(file=str(path.relative_to(root))).exists():
                path.unlink()


@dataclass(frozen=True)
class Sheet:
    """The columns and first rows of a file, with the words of columns that hold few.

    ``later``: how many of the columns, the last ones, are in later rows only. ``paths``: values inside objects.
    """

    columns: tuple[str, ...]
    rows: tuple[Mapping[str, object], ...]
    words: Mapping[str, tuple[str, ...]]
    paths: tuple[str, ...] = ()
    later: int = 0

    @property
    def sampled_columns(self) -> tuple[str, ...]:
        """The columns of the first rows, by which a mapping is remembered."""
        return self.columns[: len(self.columns) - self.later]

    @property
    def sources(self) -> tuple[str, ...]:
        """All that a field can be read from."""
        return self.columns + self.paths


def read_import_rows(importing: Import, file: BinaryIO, seen: SeenIndex) -> FileContents:
    """The rows of the file of an import. ``seen``: counts samples."""
    request = importing.request
    return read_file_rows(
        file, importing.file_name, request.reading, seen, brings=request.brings, limits=get_file_limits()
    )


def read_column_names(file: BinaryIO, name: str) -> tuple[str, ...]:
    return sample_file(open_source(file, name, get_file_limits()))[0].columns


def read_sheet(file: BinaryIO, name: str, later_columns: Sequence[str] = ()) -> Sheet:
    """Read the columns and first rows. Raises InputRefused if the file cannot be read."""
    sample, records = sample_file(open_source(file, name, get_file_limits()))
    if not sample.rows:
        list(records)  # raises the reason why none can be read
    if not sample.columns:
        raise InputRefused(f"None of the first rows of {name} can be read.")
    later = tuple(column for column in later_columns if column not in sample.columns)
    columns, paths = sample.columns + later, list_paths(sample.rows)
    words = {column: list_distinct_words(sample.rows, column) for column in (*columns, *paths)}
    shown_rows = tuple(sample.rows[:SHOWN_ROWS])
    return Sheet(columns, shown_rows, {column: own for column, own in words.items() if own}, paths, len(later))


def read_later_columns(file: BinaryIO, name: str) -> tuple[str, ...]:
    """All columns of a file in which each row has its own, as far as the file can be read in a few seconds."""
    source = open_source(file, name, get_file_limits())
    columns: dict[str, None] = {}
    until = monotonic() + MAX_SCAN_SECONDS
    with suppress(InputRefused):
        for record in source.records if source.columns is None else ():
            if isinstance(record, Record):
                columns.update(dict.fromkeys(record.values))
            if len(columns) > MAX_COLUMNS or monotonic() > until:
                break
    return tuple(columns)


def list_distinct_words(rows: Sequence[Mapping[str, object]], column: str) -> tuple[str, ...]:
    """The distinct values of a column, or nothing if they are too many or too long."""
    words: dict[str, None] = {}
    for row in rows:
        value = get_value(row, column)
        if isinstance(value, (dict, list)):
            return ()
        text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
        words[text.strip()[: MAX_WORD_LENGTH + 1]] = None
        if len(words) > MAX_DISTINCT_WORDS or len(text.strip()) > MAX_WORD_LENGTH:
            return ()
    return tuple(sorted(words))
