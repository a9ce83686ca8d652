"""Exported comparisons as JSON Lines: one object a line, keys sorted, UTF-8."""

import json
from collections.abc import Iterable, Iterator
from typing import Final, cast

import orjson

from evaluations.formats.exported import ExportedRow, Raters
from evaluations.formats.leaving import Leaving, Needs, Options, Rows, Tally

encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(",", ":")).encode


def encoded(row: object) -> bytes:
    """A line. What orjson does not take, numbers beyond 64 bits say, the standard library writes."""
    try:
        return orjson.dumps(row, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        return encode(row).encode() + b"\n"


def lines(rows: Iterable[ExportedRow], raters: Raters) -> Iterator[bytes]:
    """The same rows give the same bytes. Every key stands in every line; nothing given is null."""
    for row in rows:
        yield encoded(row)


def written(rows: Rows, raters: Raters, options: Options, tally: Tally) -> Iterator[bytes]:
    for line in lines(cast("Iterable[ExportedRow]", rows), raters):
        tally.rows += 1
        yield line


FORMAT: Final = Leaving(
    name="jsonl",
    title="JSONL",
    purpose="one object a line, everything in it, for scripts and for importing again",
    ending="jsonl",
    content_type="application/x-ndjson",
    write=written,
    needs=Needs.EVERYTHING,
)
