"""What a format of exported files is: its names, what it needs to be told, and how it is written.

A format is one value of Leaving, made in a module of its own and listed in `writing.LEAVING`. The command, the page
and the API offer whatever stands there.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from evaluations.domain import Deciding, deciding
from evaluations.formats.card import Facts
from evaluations.formats.exported import Raters
from evaluations.formats.preferred import Account

# A row of `exported.ExportedRow`, or of its part `exported.LabelledRow` where a format needs no more.
Row = Mapping[str, Any]


class Needs(StrEnum):
    """What the rows are: comparisons, of which labels alone are read several times as fast; or what raters said."""

    LABELS = "labels"
    EVERYTHING = "everything"
    VERDICTS = "verdicts"  # `verdicts_out.VerdictOut`
    SCORES = "scores"  # `verdicts_out.ScoreOut`
    TABLES = "tables"  # no rows of these kinds, but files of a ZIP: the whole evaluation, for whoever owns it


@dataclass(frozen=True)
class Setting:
    """Something a format wants to know, one of a few values: shown as a field, and as ``--NAME`` of the command.

    ``of_candidates``: one of the evaluation's candidates by name, besides ``values``.
    """

    name: str
    label: str
    values: Mapping[str, str]  # value → what it means, in words
    initial: str
    of_candidates: bool = False


def nothing_told() -> Mapping[str, Any]:
    return {}


def nothing_known() -> Facts:
    return Facts("")


@dataclass(frozen=True)
class Options:
    """What the person asked for. ``settings`` holds a value for each Setting of the format.

    ``aspect`` or ``combine``: the one aspect whose label counts, or the rule that makes one choice of several; both
    were held against the evaluation before the file was begun. ``manifest`` is asked after the last row: all that the
    file rests on and that was counted, the same for the same file (nothing of who and when). ``facts`` are for a card.
    """

    aspect: str = ""
    combine: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    manifest: Callable[[], Mapping[str, Any]] = nothing_told
    facts: Callable[[], Facts] = nothing_known

    def deciding(self, raters: Raters) -> Deciding:
        """How a comparison comes to its one choice."""
        return deciding(aspect=self.aspect, combine=self.combine, aspects=raters.aspects)


@dataclass
class Tally(Account):
    """What became of the comparisons, counted while they are written.

    The engine counts ``comparisons`` as it hands them to the writer, and the ``sources`` of their labels. Writers count
    the rest: the rows of the file, and what is not in it.
    """

    comparisons: int = 0
    sources: Counter[str] = field(default_factory=Counter)


Rows = Iterable[Row]
Write = Callable[[Rows, Raters, Options, Tally], Iterator[bytes]]


@dataclass(frozen=True)
class Leaving:
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
    write: Write
    needs: Needs = Needs.LABELS
    wants_choice: bool = False
    one_aspect: bool = False
    settings: tuple[Setting, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Everything is in it, so that nothing is asked, chosen or left out."""
        return self.needs == Needs.TABLES
