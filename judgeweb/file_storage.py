"""Where uploaded and exported files are kept."""

import os
import tempfile
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.files import File
from django.core.files.storage import FileSystemStorage

from evaluations.models.free_space import require_room


class WholeFiles(FileSystemStorage):
    """Files appear in whole under their name. What could not be written leaves nothing; the disk keeps its reserve."""

    def _save(self, name: str, content: "File[bytes]") -> str:
        if hasattr(content, "temporary_file_path"):
            return self._move(name, content)
        require_room(content.size or 0)
        draft = tempfile.NamedTemporaryFile(prefix="kept-", dir=settings.SCRATCH_DIR, delete=False)  # noqa: SIM115 - below
        try:
            with draft:
                for chunk in content.chunks():
                    draft.write(chunk)
            return self._move(name, DraftFile(draft))
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft.name)

    def _move(self, name: str, content: "File[bytes]") -> str:
        return str(super()._save(name, content))  # type: ignore[misc]  # Django's stubs leave it out


class DraftFile(File):  # type: ignore[type-arg]
    """A file that storage renames instead of copying it."""

    def temporary_file_path(self) -> str:
        return str(self.name)

    def chunks(self, chunk_size: int | None = None) -> Any:
        raise NotImplementedError("it is renamed")
