"""What an export format is: its names, its settings, its writer.

A format is one value of ExportFormat, made in a module of its own and listed in `export_formats.EXPORT_FORMATS`. The
command, the page and the API offer every format of that list.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from evaluations.domain.preferences import PreferenceRule, parse_preference_rule
from evaluations.formats.dataset_card import CardFacts
from evaluations.formats.exported_rows import ExportedRaters
from evaluations.formats.preferences import ExportCounts

# A row of `exported.ExportedRow`, or of its part `exported.LabelledRow` where a format needs no more.
ExportRow = Mapping[str, Any]


class RowKind(StrEnum):
    """The kind of rows that a format needs; labels alone are read several times as fast."""

    LABELS = "labels"
    EVERYTHING = "everything"
    VERDICTS = "verdicts"  # `verdicts_out.VerdictOut`
    SCORES = "scores"  # `verdicts_out.ScoreOut`
    TABLES = "tables"  # no rows of these kinds, but files of a ZIP: the whole evaluation, for whoever owns it


@dataclass(frozen=True)
class FormatSetting:
    """Something a format wants to know, one of a few values: shown as a field, and as ``--NAME`` of the command.

    ``of_candidates``: one of the evaluation's candidates by name, besides ``values``.
    """

    name: str
    label: str
    values: Mapping[str, str]  # value → what it means, in words
    initial: str
    of_candidates: bool = False


def empty_manifest() -> Mapping[str, Any]:
    return {}


def empty_card_facts() -> CardFacts:
    return CardFacts("")


@dataclass(frozen=True)
class ExportOptions:
    """The options of an export. ``settings`` holds a value for each setting of the format.

    ``aspect`` or ``combine``: the one aspect whose label counts, or the rule that makes one choice of several; both
    were held against the evaluation before the file was begun. ``manifest`` is asked after the last row: all that the
    file rests on and that was counted, the same for the same file (nothing of who and when). ``facts`` are for a card.
    """

    aspect: str = ""
    combine: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    manifest: Callable[[], Mapping[str, Any]] = empty_manifest
    facts: Callable[[], CardFacts] = empty_card_facts

    def deciding(self, raters: ExportedRaters) -> PreferenceRule:
        """How a comparison comes to its one choice."""
        return parse_preference_rule(aspect=self.aspect, combine=self.combine, aspects=raters.aspects)


@dataclass
class ExportTally(ExportCounts):
    """What became of the comparisons, counted while they are written.

    The engine counts ``comparisons`` as it hands them to the writer, and the ``sources`` of their labels. Writers count
    the rest: the rows of the file, and what is not in it.
    """

    comparisons: int = 0
    sources: Counter[str] = field(default_factory=Counter)


ExportRows = Iterable[ExportRow]
ExportWriter = Callable[[ExportRows, ExportedRaters, ExportOptions, ExportTally], Iterator[bytes]]


@dataclass(frozen=True)
class ExportFormat:
    """A format in which labels leave. Several files go into one ZIP.

    ``purpose`` says in a few words what one takes it for. ``reasons``: what its words of exclusion mean, for pages.
    ``wants_choice``: it holds one choice of each comparison, of an aspect or by a rule that combines several;
    ``one_aspect``: what raters said of one aspect, so that no rule can make it.
    A preview runs the same writer and throws its bytes away.
    """

    name: str
    title: str
    purpose: str
    ending: str
    content_type: str
    write: ExportWriter
    needs: RowKind = RowKind.LABELS
    wants_choice: bool = False
    one_aspect: bool = False
    settings: tuple[FormatSetting, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Everything is in it, so that nothing is asked, chosen or left out."""
        return self.needs == RowKind.TABLES


MOST_SHAPES: Final = 50_000
Made = TypeVar("Made")


class ShapeCache(Generic[Made]):
    """A cache of converted values, which the engine shares between rows."""

    def __init__(self, shape: Callable[..., Made]) -> None:
        self.shape = shape
        self.known: dict[tuple[object, ...], tuple[Any, Made]] = {}

    def of(self, told: Any, *names: str) -> Made:
        # What is known is held, so that no other object can come to stand under its number.
        held = self.known.get((id(told), *names))
        if held is not None:
            return held[1]
        made = self.shape(told, *names)
        if len(self.known) < MOST_SHAPES:
            self.known[id(told), *names] = told, made
        return made
