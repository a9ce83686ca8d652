"""The rules by which a report is computed."""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from evaluations.domain.filters import NamedFilter
from evaluations.domain.splits import SplitPart


class SplitRule(StrEnum):
    """What becomes of a majority where no single choice leads."""

    TIE = "tie"
    DROP = "drop"
    FIRST = "first"  # of the leading choices the one that was made first


class FailedRule(StrEnum):
    """What becomes of a judge's verdict that is missing because calls failed."""

    EXCLUDE = "exclude"
    TIE = "tie"


class PlotFormat(StrEnum):
    """What a plot can be taken away as: a picture, its numbers, its Vega-Lite specification."""

    SVG = "svg"
    PNG = "png"
    CSV = "csv"
    JSON = "json"


class SideCoding(StrEnum):
    """What the two sides of a table are: the candidates, or the positions in which they were shown."""

    CANDIDATE = "candidate"
    SHOWN = "shown"


class SeenRule(StrEnum):
    """Whose votes count, by what people had seen of the judge when they chose first."""

    NOTHING = "nothing"  # blind, and imported votes, of which it is not known
    BLIND = "blind"
    JUDGE = "judge"


class ReportPart(StrEnum):
    """What a report is about; each part is a page of its own, and can be had alone."""

    AGREEMENT = "agreement"
    BIAS = "bias"
    WINS = "wins"
    PEOPLE = "people"
    JUDGES = "judges"
    SCORES = "scores"


@dataclass(frozen=True)
class ReportRules:
    """How a report is to be computed. ``where`` holds key and value pairs that must all hold.

    ``judges`` and ``reviewers``: names; empty where everyone counts. ``since`` and ``until``: the first and the last
    day on which a vote of a person counts. ``sliced``: the filter that comparisons must pass besides.
    ``part``: the one part of the evaluation's own split that counts. ``all_pairs``: numbers of every two people,
    however many there are.
    """

    raters: str = "*"
    judges: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    seen: SeenRule = SeenRule.NOTHING
    since: date | None = None
    until: date | None = None
    where: tuple[tuple[str, str], ...] = ()
    sliced: NamedFilter | None = None
    part: SplitPart | None = None
    coding: SideCoding = SideCoding.CANDIDATE
    split_rule: SplitRule = SplitRule.TIE
    failed: FailedRule = FailedRule.EXCLUDE
    all_pairs: bool = False


def candidate_conditions(one: str, other: str) -> tuple[tuple[str, str], ...]:
    """Of whose comparisons a report speaks: those of the pair, those of the one that was named, or everyone's."""
    names = sorted(filter(None, (one, other)))
    return tuple(zip(("candidate_a", "candidate_b") if len(names) > 1 else ("candidate",), names, strict=False))
