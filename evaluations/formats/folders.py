"""A folder of files – a saved data set, say – as one ZIP: the same folder gives the same bytes."""

import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from evaluations.domain import InputRefused
from evaluations.formats.archives import ABOUT_DATASETS, MAX_ENTRIES, data_files, is_passed_over, too_many
from evaluations.formats.streams import BLOCK_BYTES

# The first moment that a ZIP can name.
LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)


def pack(folder: Path, into: BinaryIO) -> None:
    """Write the files that hold rows, and what stands beside them about the data set. Nothing is compressed."""
    entries = sorted(entries_of(folder))
    rows = data_files(entries, folder.name)
    about = [entry for entry in entries if entry.rpartition("/")[2] in ABOUT_DATASETS]
    with zipfile.ZipFile(into, "w", zipfile.ZIP_STORED) as archive:
        for entry in (*about, *rows):
            told = zipfile.ZipInfo(entry, LONG_AGO)
            told.file_size = (folder / entry).stat().st_size
            with (folder / entry).open("rb") as file, archive.open(told, "w") as out:
                shutil.copyfileobj(file, out, BLOCK_BYTES)


def entries_of(folder: Path) -> Iterator[str]:
    number = 0
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in (*folders, *files):
            path = Path(parent, name)
            entry = path.relative_to(folder).as_posix()
            if path.is_symlink() and not is_passed_over(entry):
                raise InputRefused(
                    f"{folder.name} holds a link (“{entry[:80]}”): copy it with the files themselves (cp -rL)."
                )
        for name in files:
            number += 1
            if number > MAX_ENTRIES:
                raise too_many(folder.name)
            yield Path(parent, name).relative_to(folder).as_posix()
