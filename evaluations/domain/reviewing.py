"""What one person says of one comparison."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Reveal(StrEnum):
    """When reviewers see the judge's choices."""

    BLIND = "blind"  # after their first save
    SHOWN = "shown"  # from the start
    NEVER = "never"
    RANDOMISED = "randomised"  # blind or shown, drawn per comparison


class ReviewState(StrEnum):
    DRAFT = "draft"
    FIRST = "first"  # first choices saved, judge revealed, final ones not confirmed yet
    FINAL = "final"
    SKIPPED = "skipped"


SAVED_REVIEW_STATES: Final = (ReviewState.FIRST, ReviewState.FINAL)


def review_rank(state: str, review_id: int) -> tuple[bool, int]:
    """Of one person's reviews of a comparison that have an aspect, the highest ranked one holds the vote.

    That is the newest final one. Before any is final it is the newest one with first choices.
    """
    return state == ReviewState.FINAL, review_id


class Reason(StrEnum):
    """Why a person differs from the judge or from other people."""

    MISSED_ERROR = "missed_error"
    LENGTH_OR_FORMAT = "length_or_format"
    POSITION = "position"
    IGNORED_INSTRUCTION = "ignored_instruction"
    RUBRIC_UNCLEAR = "rubric_unclear"
    QUERY_AMBIGUOUS = "query_ambiguous"
    BOTH_ACCEPTABLE = "both_acceptable"
    MY_MISTAKE = "my_mistake"
    OTHER = "other"


REASONS_IN_WORDS: Final[Mapping[Reason, str]] = {
    Reason.MISSED_ERROR: "judge missed a factual error",
    Reason.LENGTH_OR_FORMAT: "judged by length or format",
    Reason.POSITION: "judged by position",
    Reason.IGNORED_INSTRUCTION: "ignored the instruction",
    Reason.RUBRIC_UNCLEAR: "rubric unclear",
    Reason.QUERY_AMBIGUOUS: "query ambiguous",
    Reason.BOTH_ACCEPTABLE: "both acceptable",
    Reason.MY_MISTAKE: "my mistake",
    Reason.OTHER: "other",
}
