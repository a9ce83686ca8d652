"""Arrays cached in files that are named by the state of their source."""

import logging
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import numpy as np
import numpy.typing as npt
from django.conf import settings

from evaluations.verdicts.program_version import VERSION

logger = logging.getLogger(__name__)

HALF_WRITTEN_SECONDS: Final = 60 * 60  # older partial files are abandoned


def get_array_file(name: str, changed: datetime, more: str = "") -> Path:
    """Named by when what it holds last changed and by the version of the program. ``more``: what else it depends on."""
    return Path(settings.CACHE_DIR) / f"{name}-{changed:%Y%m%d%H%M%S%f}-{VERSION[:12]}{more}.npy"


def load_arrays(kept: Path, count: int) -> list[npt.NDArray[Any]]:
    """So many arrays, the first as it lies on disk.

    OSError, ValueError or EOFError where there are no such.
    """
    first = np.load(kept, mmap_mode="r", allow_pickle=False)
    with kept.open("rb") as file:
        file.seek(first.offset + first.nbytes)
        return [np.asarray(first), *(np.load(file, allow_pickle=False) for _ in range(count - 1))]


def save_arrays(kept: Path, *arrays: npt.NDArray[Any]) -> None:
    """Write the file elsewhere and move it into place, so that it is never partial; skip it if the disk is full."""
    beside = kept.with_name(f"{uuid4()}.part")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as file:
            for array in arrays:
                np.save(file, array)
        beside.replace(kept)
        delete_stale_array_files(kept)
    except OSError:
        logger.warning("%s could not be kept, and is read again each time", kept.name, exc_info=True)
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def delete_stale_array_files(kept: Path) -> None:
    """Takes away files of earlier states, and what killed processes left half written."""
    *name, changed = kept.name.split("-")[:3]
    for one in kept.parent.glob(f"{'-'.join(name)}-*.npy"):
        if one != kept and one.name.split("-")[2] <= changed:
            one.unlink(missing_ok=True)
    for part in kept.parent.glob("*.part"):
        with suppress(FileNotFoundError):
            if time.time() - part.stat().st_mtime > HALF_WRITTEN_SECONDS:
                part.unlink()
