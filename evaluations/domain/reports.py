"""The rules by which a report is computed."""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from evaluations.domain.filters import NamedFilter
from evaluations.domain.splits import SplitPart


class SplitRule(StrEnum):
    """How a majority counts if no single choice leads."""

    TIE = "tie"
    DROP = "drop"
    FIRST = "first"  # of the leading choices the one that was made first


class FailedRule(StrEnum):
    """How a verdict counts that is missing because calls failed."""

    EXCLUDE = "exclude"
    TIE = "tie"


class PlotFormat(StrEnum):
    """The formats of a downloaded chart: images, its numbers, its Vega-Lite specification."""

    SVG = "svg"
    PNG = "png"
    CSV = "csv"
    JSON = "json"


class SideCoding(StrEnum):
    """Whether the two sides of a table are the candidates or the positions in which they were shown."""

    CANDIDATE = "candidate"
    SHOWN = "shown"


class SeenRule(StrEnum):
    """The votes that count, by whether people had seen the judge when they first chose."""

    NOTHING = "nothing"  # blind votes, and imported ones, which may not be blind
    BLIND = "blind"
    JUDGE = "judge"


class ReportPart(StrEnum):
    """The parts of a report. Each has its own page and can be requested alone."""

    DECISIONS = "decisions"
    AGREEMENT = "agreement"
    BIAS = "bias"
    WINS = "wins"
    PEOPLE = "people"
    JUDGES = "judges"
    SCORES = "scores"
    METHODOLOGY = "methodology"


@dataclass(frozen=True)
class ReportRules:
    """The rules of a report. ``where``: conditions, as pairs of key and value, that comparisons must meet.

    ``judges`` and ``reviewers``: names; empty for all. ``since`` and ``until``: the first and the last day on which
    reviewers' votes count. ``saved_filter``: comparisons must also match it. ``part``: the only part of the
    evaluation's split. ``all_pairs``: report every pair of reviewers, however many there are. ``with_excluded``: count
    reviewers whom the owner excluded, too. ``pass_from``: the score from which a single response passes; None for the
    better score of a scale of two, and no pass rate on others.
    """

    raters: str = "*"
    judges: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    seen: SeenRule = SeenRule.NOTHING
    since: date | None = None
    until: date | None = None
    where: tuple[tuple[str, str], ...] = ()
    saved_filter: NamedFilter | None = None
    part: SplitPart | None = None
    coding: SideCoding = SideCoding.CANDIDATE
    split_rule: SplitRule = SplitRule.TIE
    failed: FailedRule = FailedRule.EXCLUDE
    all_pairs: bool = False
    pass_from: float | None = None
    with_excluded: bool = False


@dataclass(frozen=True)
class ExcludedReviewer:
    """A reviewer whom the owner excluded from results, and the day of it in UTC."""

    name: str
    day: date


def candidate_conditions(first: str, second: str) -> tuple[tuple[str, str], ...]:
    """The filter by candidate in words: a pair, one candidate, or all."""
    names = sorted(filter(None, (first, second)))
    return tuple(zip(("candidate_a", "candidate_b") if len(names) > 1 else ("candidate",), names, strict=False))
