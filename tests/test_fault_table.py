"""The faults of `make test-faults` are not tried here; this keeps them importable, and the table of figures true."""

import importlib
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.any_database

DOCUMENT = Path(__file__).parents[1] / "docs" / "faults.md"


def test_every_row_of_the_table_is_a_fault_that_is_tried() -> None:
    cases = [name for name in vars(importlib.import_module("tests.faults.test_faults")) if name.startswith("test_")]
    faults = {name.removeprefix("test_").replace("_", " ") for name in cases}
    rows = set(re.findall(r"^\| ([\w ]+) \| (?:SQLite|PostgreSQL)", DOCUMENT.read_text(), re.MULTILINE))
    assert rows
    assert rows <= faults
