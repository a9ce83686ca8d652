"""Records written to a file and read back as rows, for tests of import formats."""

import io
import json
from collections.abc import Sequence
from typing import Any, TypeVar

from evaluations.domain.files import BadRow, FileEntry, FileRow, ReadOptions
from evaluations.formats.file_reader import FileContents, read_file_rows
from evaluations.formats.seen_index import SeenIndex

OneRow = TypeVar("OneRow")


def read_contents(
    records: Sequence[dict[str, Any]], brings: str = "", name: str = "rows.jsonl", **reading: Any
) -> FileContents:
    lines = "".join(f"{json.dumps(record)}\n" for record in records).encode()
    return read_file_rows(io.BytesIO(lines), name, ReadOptions(**reading), SeenIndex(), brings=brings)


def import_rows(*records: dict[str, Any], **reading: Any) -> list[FileRow]:
    """What these records bring; none of them is bad."""
    entries = list(read_contents(records, **reading).entries)
    assert not [entry for entry in entries if isinstance(entry, BadRow)], entries
    return [row for entry in entries if isinstance(entry, FileEntry) for row in entry.rows]


def rows_of_kind(kind: type[OneRow], found: Sequence[FileRow]) -> list[OneRow]:
    return [row for row in found if isinstance(row, kind)]


def refusal_reason(record: dict[str, Any], **reading: Any) -> str:
    """Why this record is bad."""
    (bad,) = read_contents([record], **reading).entries
    assert isinstance(bad, BadRow), bad
    return bad.reason
