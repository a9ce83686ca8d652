"""A table of a report as CSV: words that a spreadsheet would execute made harmless, numbers as they are."""

import csv
import io
from collections.abc import Iterable, Sequence

from evaluations.formats.exported import EXECUTED

Cell = str | int | float | None


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> bytes:
    """RFC 4180, UTF-8. What is missing is an empty cell; a number has every figure that tells it from its neighbour."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(map(harmless, columns))
    writer.writerows(map(harmless, row) for row in rows)
    return file.getvalue().encode()


def harmless(cell: Cell) -> Cell:
    """An apostrophe before words that begin like a formula. A negative number is none."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(EXECUTED) else cell
