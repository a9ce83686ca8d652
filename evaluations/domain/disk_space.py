"""Free space on the disk of a folder."""

import errno
import os
from pathlib import Path
from typing import Final

from evaluations.domain.errors import InputRefused

DISK_FULL_SENTENCE: Final = (
    "The server’s disk is almost full. Nothing was saved. Ask the server’s administrator to free space."
)


class DiskFull(InputRefused):
    """What was asked for does not fit on the server's disk."""

    def __init__(self) -> None:
        super().__init__(DISK_FULL_SENTENCE)


def is_no_space_left(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def count_free_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def has_room(folder: Path, needed_bytes: int, reserve_bytes: int) -> bool:
    """Whether these bytes fit into the folder's disk so that the reserve stays free."""
    return count_free_bytes(folder) >= needed_bytes + reserve_bytes
