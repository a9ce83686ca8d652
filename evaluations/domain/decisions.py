"""Whether a judge may stand in for a reviewer: outcomes, and the bars that are set before looking."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Outcome(StrEnum):
    """The decision on a judge, the first that applies (`stats.decisions.decision`)."""

    CLARIFY_RUBRIC = "clarify the rubric first"
    NOT_RELIABLE = "not reliable"
    STAND_IN = "can stand in for a reviewer"
    SPOT_CHECKS = "use with spot checks"
    NOT_ENOUGH_DATA = "not enough data"


class AspectOutcome(StrEnum):
    """What is shown of a judge on one aspect."""

    STAND_IN = "can stand in"
    NOT_RELIABLE = "not reliable"
    NOT_SHOWN = "inconclusive"


@dataclass(frozen=True)
class DecisionBars:
    """The bars of decisions, all as shares of 1.

    ``stand_in``: how far below reviewers a judge may agree and still stand in. ``aspect``: the same for one aspect.
    ``unreliable``: from how far below reviewers it is not reliable. ``failures`` and ``inconsistency``: the largest
    share of failed calls, and of comparisons on which its orders disagree. ``bias``: the largest effect of position,
    length or own family. ``half_width``: how exactly spot checks are to estimate a win rate.
    """

    stand_in: float = 0.05
    aspect: float = 0.10
    unreliable: float = 0.10
    failures: float = 0.05
    inconsistency: float = 0.40
    bias: float = 0.10
    half_width: float = 0.05


DEFAULT_BARS: Final = DecisionBars()
