"""Exported comparisons as JSON Lines."""

import json
from collections.abc import Iterator
from typing import Final

import orjson

from evaluations.formats.export_format import ExportFormat, ExportOptions, ExportRows, ExportTally, RowKind, count_rows
from evaluations.formats.exported_rows import ExportedRaters

fast_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(",", ":")).encode


def encode_line(row: object) -> bytes:
    """A line of JSON; values that orjson refuses, such as integers beyond 64 bits, use the standard library."""
    try:
        return orjson.dumps(row, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        return fast_encode(row).encode() + b"\n"


def write_jsonl(
    rows: ExportRows, raters: ExportedRaters, options: ExportOptions, tally: ExportTally
) -> Iterator[bytes]:
    """The rows as JSON Lines: the same bytes for the same rows, with every key in every line."""
    return map(encode_line, count_rows(rows, tally))


JSONL_FORMAT: Final = ExportFormat(
    name="jsonl",
    title="JSONL",
    purpose="everything, one comparison per line; can be imported again",
    ending="jsonl",
    write=write_jsonl,
    needs=RowKind.EVERYTHING,
)
