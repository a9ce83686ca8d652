"""The reader of backup files."""

import hashlib
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from django.core.files.base import File

from evaluations.backups.selectors import BACKUP_KIND, BACKUP_VERSION, BackupTable, get_newest_migration
from evaluations.domain.errors import InputRefused
from evaluations.models.migration_history import CARRY_OVER

MANIFEST_NAME: Final = "manifest.json"
MAX_MANIFEST_BYTES: Final = 64 * 1024 * 1024
MAX_LINE_BYTES: Final = 256 * 1024 * 1024
READ_BYTES: Final = 1024 * 1024
ARCHIVE_ERRORS: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    struct.error,
    OSError,
)


class BackupArchive:
    """A backup file that is read as a stream and checked by the checksums in its manifest."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name = name
        try:
            self._zip = zipfile.ZipFile(file)
            self._entries = {entry.filename: entry for entry in self._zip.infolist()}
            self.manifest = self._read_manifest()
        except (*ARCHIVE_ERRORS, ValueError, RecursionError):
            raise self.refusal("it is damaged or not a ZIP") from None
        if not isinstance(self.manifest, dict) or self.manifest.get("kind") != BACKUP_KIND:
            raise self.refusal("it is not a judgeweb backup: the manifest has no format name")
        if self.manifest.get("version") == 1:
            raise self.refusal(f"a version of judgeweb before release 0.1.0 made it. {CARRY_OVER.rstrip('.')}")
        if (
            self.manifest.get("version") != BACKUP_VERSION
            or str(self.manifest.get("migration", "")) > get_newest_migration()
        ):
            raise self.refusal(
                f"judgeweb {self.manifest.get('product')} made it, which is newer: upgrade this site first"
            )

    def refusal(self, why: str) -> InputRefused:
        return InputRefused(f"{self.name} cannot be restored: {why}. Nothing was stored.")

    def damaged(self, table: BackupTable) -> InputRefused:
        return self.refusal(f"its table of {table.model._meta.verbose_name_plural} is not what its manifest says")

    def _read_manifest(self) -> Any:
        entry = self._entries.get(MANIFEST_NAME)
        if entry is None or entry.file_size > MAX_MANIFEST_BYTES:
            raise self.refusal("it is not a judgeweb backup: it has no manifest")
        return json.loads(self._zip.read(entry))

    def read_lines(self, table: BackupTable) -> Iterator[list[Any]]:
        """The columns and then the rows of a table; nothing if it is empty."""
        recorded = self.manifest["tables"].get(table.name)
        if recorded is None:
            return
        digest, number = hashlib.sha256(), -1
        try:
            with self._zip.open(f"tables/{table.name}.jsonl") as file:
                while line := file.readline(MAX_LINE_BYTES):
                    digest.update(line)
                    number += 1
                    yield json.loads(line)
        except (*ARCHIVE_ERRORS, ValueError, KeyError, RecursionError):
            raise self.damaged(table) from None
        if number != recorded["rows"] or digest.hexdigest() != recorded["sha256"]:
            raise self.damaged(table)

    def check_uploads(self) -> None:
        """Read each file once, so that a damaged one is found before anything is stored."""
        for name in self.manifest["files"]:
            try:
                with self._zip.open(name) as file:
                    while file.read(READ_BYTES):
                        pass
            except (*ARCHIVE_ERRORS, ValueError, KeyError):
                raise self.refusal(f"its file {name} is missing or damaged") from None

    def open_upload(self, name: str) -> "File[bytes]":
        return File(self._zip.open(name))
