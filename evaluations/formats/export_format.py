"""What an export format is: its names, its settings, its writer.

A format is one value of ExportFormat, made in a separate module and listed in `export_formats.EXPORT_FORMATS`. The
command, the page and the API offer every format of that list.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from evaluations.domain.preferences import PreferenceRule, parse_preference_rule
from evaluations.formats.dataset_card import CardFacts
from evaluations.formats.exported_rows import ExportedRaters
from evaluations.formats.preferences import ExportCounts

# A row of `exported_rows.ExportedRow`, or of its part `exported_rows.LabelledRow` where a format needs no more.
ExportRow = Mapping[str, Any]


class RowKind(StrEnum):
    """The kind of rows that a format is written from; labels alone are read several times as fast."""

    LABELS = "labels"
    EVERYTHING = "everything"
    VERDICTS = "verdicts"  # `verdicts_export.ExportedVerdict`
    SCORES = "scores"  # `verdicts_export.ExportedScore`
    TABLES = "tables"  # no rows, but the files of a ZIP: the whole evaluation


@dataclass(frozen=True)
class FormatSetting:
    """A setting of a format with a few values: a field of the page, and ``--NAME`` of the command.

    ``of_candidates``: whether the evaluation's candidates are values too, by name.
    """

    name: str
    label: str
    values: Mapping[str, str]  # description of each value
    initial: str
    of_candidates: bool = False


@dataclass(frozen=True)
class ExportOptions:
    """The options of an export. ``settings`` holds a value for each setting of the format.

    ``aspect`` or ``combine``: the one aspect whose label counts, or the rule that makes one choice of several; both are
    validated before the export starts. ``manifest``: called after the last row; the export's sources and counts, the
    same for the same file, so without the user and the time. ``facts``: called after the last row, for a dataset card.
    ``scratch``: the folder for files that are needed until then; ``require_room`` raises DiskFull where so many bytes
    do not fit there.
    """

    aspect: str = ""
    combine: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    manifest: Callable[[], Mapping[str, Any]] = dict
    facts: Callable[[], CardFacts] = CardFacts
    scratch: str | None = None
    require_room: Callable[[int], None] = lambda needed_bytes: None

    def preference_rule(self, raters: ExportedRaters) -> PreferenceRule:
        """The rule by which a comparison has one choice."""
        return parse_preference_rule(aspect=self.aspect, combine=self.combine, aspects=raters.aspects)


@dataclass
class ExportTally(ExportCounts):
    """Counts of an export, kept while it is written.

    ``comparisons`` and the ``sources`` of their labels are counted as comparisons are passed to the writer of a format.
    Writers count the rest: the rows of the file, and what is excluded.
    """

    comparisons: int = 0
    sources: Counter[str] = field(default_factory=Counter)


ExportRows = Iterable[Any]
ExportWriter = Callable[[ExportRows, ExportedRaters, ExportOptions, ExportTally], Iterator[bytes]]


CONTENT_TYPES: Final[Mapping[str, str]] = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
    "zip": "application/zip",
}


@dataclass(frozen=True)
class ExportFormat:
    """An export format. A preview runs the same ``write`` and discards its bytes; several files go into one ZIP.

    ``purpose``: what the format is used for, in a few words. ``reasons``: a phrase for each key of exclusion.
    ``wants_choice``: whether a row has one choice of a comparison, on an aspect or by a rule that combines several;
    ``one_aspect``: whether it has the verdicts of raters on one aspect, which no rule can combine.
    """

    name: str
    title: str
    purpose: str
    ending: str
    write: ExportWriter
    needs: RowKind = RowKind.LABELS
    wants_choice: bool = False
    one_aspect: bool = False
    settings: tuple[FormatSetting, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def content_type(self) -> str:
        return CONTENT_TYPES[self.ending]

    @property
    def is_backup(self) -> bool:
        """Whether the format holds the whole evaluation, so that it has no options."""
        return self.needs == RowKind.TABLES


def count_rows(rows: ExportRows, tally: ExportTally) -> Iterator[Any]:
    """The rows, each counted in the tally when it is written."""
    for row in rows:
        tally.rows += 1
        yield row


MAX_SHAPES: Final = 50_000
Converted = TypeVar("Converted")


class ShapeCache(Generic[Converted]):
    """A cache of converted values, by the identity of the original values, which rows share."""

    def __init__(self, convert: Callable[..., Converted]) -> None:
        self.convert = convert
        self.cached: dict[tuple[object, ...], tuple[Any, Converted]] = {}

    def get(self, value: Any, *names: str) -> Converted:
        # The original is kept in the cache, so that no other object can get its id.
        if (cached := self.cached.get((id(value), *names))) is not None:
            return cached[1]
        converted = self.convert(value, *names)
        if len(self.cached) < MAX_SHAPES:
            self.cached[id(value), *names] = value, converted
        return converted


def encode_manifest(manifest: Mapping[str, Any]) -> bytes:
    """As JSON with sorted keys, one a line: equal manifests give equal bytes."""
    return (json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()
