"""A path on this machine as a file to import; and what remains of files that never became one."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from time import time
from typing import BinaryIO, Final, cast

from django.conf import settings
from django.core.files.uploadedfile import TemporaryUploadedFile

from evaluations.domain import Limits
from evaluations.formats.folders import pack

# Nobody is still sending a file that was last written to so long ago.
LEFT_BEHIND: Final = timedelta(days=1)


def limits() -> Limits:
    return Limits(settings.MAX_ROWS, settings.MAX_UNPACKED_BYTES, str(settings.SCRATCH_DIR))


@contextmanager
def opened(path: str) -> Iterator[tuple[BinaryIO, str]]:
    """A file with its name. A folder is packed into a ZIP, which is gone afterwards unless it was kept."""
    if not Path(path).is_dir():
        with Path(path).open("rb") as file:
            yield file, path
        return
    folder = Path(path).resolve()
    name = f"{folder.name}.zip"
    with TemporaryUploadedFile(name, "application/zip", 0, None) as packed:
        pack(folder, cast(BinaryIO, packed))
        packed.size = packed.tell()
        yield cast(BinaryIO, packed), name


def remove_what_was_left_behind() -> None:
    """Uploads and unpacked files of processes that were killed while they had them."""
    for path in Path(settings.SCRATCH_DIR).iterdir():
        with suppress(OSError):
            if path.is_file() and path.stat().st_mtime < time() - LEFT_BEHIND.total_seconds():
                path.unlink()
