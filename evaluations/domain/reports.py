"""How a report is computed."""

from dataclasses import dataclass
from enum import StrEnum


class SplitRule(StrEnum):
    """What becomes of a majority where no single choice leads."""

    TIE = "tie"
    DROP = "drop"
    FIRST = "first"  # of the leading choices the one that was made first


class FailedRule(StrEnum):
    """What becomes of a judge's verdict that is missing because calls failed."""

    EXCLUDE = "exclude"
    TIE = "tie"


class Coding(StrEnum):
    """What the two sides of a table mean: the candidates, or the places in which they were shown."""

    CANDIDATE = "candidate"
    SHOWN = "shown"


@dataclass(frozen=True)
class Rules:
    """How a report is to be computed. ``where`` holds key and value pairs that must all hold."""

    raters: str = "*"
    where: tuple[tuple[str, str], ...] = ()
    coding: Coding = Coding.CANDIDATE
    split_rule: SplitRule = SplitRule.TIE
    failed: FailedRule = FailedRule.EXCLUDE
