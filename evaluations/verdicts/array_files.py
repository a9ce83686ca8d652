"""Arrays cached in files that are named by the state of their source and the version of the program."""

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


def hash_program(folder: Path, files: str = "*.py") -> str:
    """Hash the sources of this kind under a folder together with the version of numpy."""
    digest = hashlib.sha256(np.__version__.encode())
    for file in sorted(folder.rglob(files)):
        digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


# Read while the program starts, in a few hundredths of a second: what lies there later may be the next version.
VERSION: Final = hash_program(Path(evaluations.__file__).parent)


logger = logging.getLogger(__name__)

HALF_WRITTEN_SECONDS: Final = 60 * 60  # older partial files are abandoned


def get_array_file(name: str, changed: datetime, suffix: str = "") -> Path:
    """The file is named by the last change of its source and the program's version. ``suffix``: other sources."""
    return Path(settings.CACHE_DIR) / f"{name}-{changed:%Y%m%d%H%M%S%f}-{VERSION[:12]}{suffix}.npy"


def load_arrays(path: Path, count: int) -> list[npt.NDArray[Any]]:
    """So many arrays, the first as it lies on disk. OSError, ValueError or EOFError where there are none."""
    first = np.load(path, mmap_mode="r", allow_pickle=False)
    with path.open("rb") as file:
        file.seek(first.offset + first.nbytes)
        return [np.asarray(first), *(np.load(file, allow_pickle=False) for _ in range(count - 1))]


def save_arrays(path: Path, *arrays: npt.NDArray[Any]) -> None:
    """Write the file elsewhere and move it into place, so that it is never partial; skip it if the disk is full."""
    partial = path.with_name(f"{uuid4()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            for array in arrays:
                np.save(file, array)
        partial.replace(path)
        delete_stale_array_files(path)
    except OSError:
        logger.warning("%s could not be kept, and is read again each time", path.name, exc_info=True)
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def delete_stale_array_files(path: Path) -> None:
    """Takes away files of earlier states, and what killed processes left half written."""
    *name, changed = path.name.split("-")[:3]
    for file in path.parent.glob(f"{'-'.join(name)}-*.npy"):
        if file != path and file.name.split("-")[2] <= changed:
            file.unlink(missing_ok=True)
    for part in path.parent.glob("*.part"):
        with suppress(FileNotFoundError):
            if time.time() - part.stat().st_mtime > HALF_WRITTEN_SECONDS:
                part.unlink()
