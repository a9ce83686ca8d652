"""Exported comparisons as JSON Lines: one object a line, keys sorted, UTF-8."""

import json
from collections.abc import Iterable, Iterator

from evaluations.formats.exported import ExportedRow, Raters

encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(",", ":")).encode


def lines(rows: Iterable[ExportedRow], raters: Raters) -> Iterator[bytes]:
    """The same rows give the same bytes. Every key stands in every line; nothing given is null."""
    for row in rows:
        yield encode(row).encode() + b"\n"
