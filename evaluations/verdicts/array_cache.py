"""Arrays kept in files, each named by the state of what it was read from."""

import hashlib
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

import evaluations


def hash_program(folder: Path) -> str:
    """A hash of all source files under this folder, with the numpy version."""
    said = hashlib.sha256(np.__version__.encode())
    for file in sorted(folder.rglob("*.py")):
        said.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return said.hexdigest()


# Read while the program starts, in a few hundredths of a second: what lies there later may be the next version.
PROGRAM_VERSION: Final = hash_program(Path(evaluations.__file__).parent)

logger = logging.getLogger(__name__)

STALE_PART_SECONDS: Final = 60 * 60  # after which nobody is at a file any more


def get_array_path(name: str, changed: datetime, more: str = "") -> Path:
    """The path for arrays that last changed at this time. ``more``: whatever else they depend on."""
    return Path(settings.CACHE_DIR) / f"{name}-{changed:%Y%m%d%H%M%S%f}-{PROGRAM_VERSION[:12]}{more}.npy"


def load_arrays(kept: Path, count: int) -> list[npt.NDArray[Any]]:
    """So many arrays, the first as it lies on disk.

    OSError, ValueError or EOFError where there are no such.
    """
    first = np.load(kept, mmap_mode="r", allow_pickle=False)
    with kept.open("rb") as file:
        file.seek(first.offset + first.nbytes)
        return [np.asarray(first), *(np.load(file, allow_pickle=False) for _ in range(count - 1))]


def save_arrays(kept: Path, *arrays: npt.NDArray[Any]) -> None:
    """Written beside and moved into place, so that it is found whole or not at all; without room it is not kept."""
    beside = kept.with_name(f"{uuid4()}.part")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as file:
            for array in arrays:
                np.save(file, array)
        beside.replace(kept)
        remove_outdated_arrays(kept)
    except OSError:
        logger.warning("%s could not be kept, and is read again each time", kept.name, exc_info=True)
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def remove_outdated_arrays(kept: Path) -> None:
    """Takes away files of earlier states, and what killed processes left half written."""
    *name, changed = kept.name.split("-")[:3]
    for one in kept.parent.glob(f"{'-'.join(name)}-*.npy"):
        if one != kept and one.name.split("-")[2] <= changed:
            one.unlink(missing_ok=True)
    for part in kept.parent.glob("*.part"):
        with suppress(FileNotFoundError):
            if time.time() - part.stat().st_mtime > STALE_PART_SECONDS:
                part.unlink()
