"""A hash of the program that makes cached results."""

import hashlib
from pathlib import Path
from typing import Final

import numpy as np

import evaluations


def hash_program(folder: Path) -> str:
    """Hash the source code under a folder together with the version of numpy."""
    said = hashlib.sha256(np.__version__.encode())
    for file in sorted(folder.rglob("*.py")):
        said.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return said.hexdigest()


# Read while the program starts, in a few hundredths of a second: what lies there later may be the next version.
VERSION: Final = hash_program(Path(evaluations.__file__).parent)
