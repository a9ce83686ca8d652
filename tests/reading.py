"""Records in, rows out, for the tests of formats."""

import io
import json
from collections.abc import Sequence
from typing import Any, TypeVar

from evaluations.domain import BadRow, Reading, Row
from evaluations.formats.reading import Contents, Entry, read_rows
from evaluations.formats.seen import Seen

OneRow = TypeVar("OneRow")


def contents(records: Sequence[dict[str, Any]], brings: str = "", name: str = "rows.jsonl", **reading: Any) -> Contents:
    lines = "".join(f"{json.dumps(record)}\n" for record in records).encode()
    return read_rows(io.BytesIO(lines), name, Reading(**reading), Seen(), brings)


def rows(*records: dict[str, Any], **reading: Any) -> list[Row]:
    """What these records bring; none of them is bad."""
    entries = list(contents(records, **reading).entries)
    assert not [entry for entry in entries if isinstance(entry, BadRow)], entries
    return [row for entry in entries if isinstance(entry, Entry) for row in entry.rows]


def only(kind: type[OneRow], found: Sequence[Row]) -> list[OneRow]:
    return [row for row in found if isinstance(row, kind)]


def reason(record: dict[str, Any], **reading: Any) -> str:
    """Why this record is bad."""
    (bad,) = contents([record], **reading).entries
    assert isinstance(bad, BadRow), bad
    return bad.reason
