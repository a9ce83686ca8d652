"""A sample of the rows of a file, from which its format is recognised."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import BadRow
from evaluations.formats.record_streams import MB, Record, RecordSource
from evaluations.formats.values import approximate_size

FIRST_RECORDS: Final = 1_000
FIRST_CHARACTERS: Final = 4 * MB
MOSTLY: Final = 0.9


@dataclass(frozen=True)
class FileSample:
    """``rows``: values of the first records, and of some from later parts of the file where they can be found."""

    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]

    def values(self, column: str) -> list[Any]:
        """The cells of a column that are not empty."""
        return [row[column] for row in self.rows if row.get(column) not in (None, "")]


def fits_mostly(fits: Iterable[bool]) -> bool:
    """Whether enough values fit for the rest to be faults of their rows; true without values."""
    found = list(fits)
    return sum(found) >= MOSTLY * len(found)


def sample_file(source: RecordSource) -> tuple[FileSample, Iterator[Record | BadRow]]:
    """A sample of a file, and all its records. Raises InputRefused where nothing says which columns it has."""
    first: list[Record | BadRow] = []
    rows: list[Mapping[str, Any]] = []
    failure: InputRefused | None = None
    characters = 0
    try:
        for record in source.records:
            first.append(record)
            if isinstance(record, Record):
                rows.append(record.values)
                characters += approximate_size(list(record.values.values()))
            if len(first) == FIRST_RECORDS or characters > FIRST_CHARACTERS:
                rows += source.later_rows()
                break
    except InputRefused as refused:
        if not rows and not source.columns:
            raise
        failure = refused
    columns = source.columns or tuple(dict.fromkeys(chain.from_iterable(rows)))
    return FileSample(columns, rows), chain(first, remaining_records(source.records, failure))


def remaining_records(records: Iterator[Record | BadRow], failure: InputRefused | None) -> Iterator[Record | BadRow]:
    """The records after the first; where the file broke off among those, it breaks off again."""
    if failure:
        raise failure
    yield from records
