"""Folders of temporary files that the sweep recognizes as abandoned."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def open_scratch_folder(parent: str | Path | None, prefix: str) -> Iterator[Path]:
    """A folder that is removed at the end. It is locked: the kernel frees the lock of a killed process."""
    with TemporaryDirectory(prefix=prefix, dir=parent) as name:
        descriptor = os.open(name, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            yield Path(name)
        finally:
            os.close(descriptor)


def is_folder_in_use(folder: Path) -> bool:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
