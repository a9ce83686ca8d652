"""The words for how comparisons reach reviewers and how far a review has come."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Reveal(StrEnum):
    """When reviewers see the judge's choices."""

    BLIND = "blind"  # after their first save
    SHOWN = "shown"  # from the start
    NEVER = "never"
    RANDOMISED = "randomised"  # blind or shown, drawn per comparison


class NameReveal(StrEnum):
    """When reviewers see the names of the candidates, by which they could learn a candidate's style."""

    NEVER = "never"
    AFTER_LAST = "after_last"  # after their last comparison
    AFTER_SAVE = "after_save"  # after each save


class ReviewState(StrEnum):
    DRAFT = "draft"
    FIRST = "first"  # first choices saved, judge revealed, final ones not confirmed yet
    FINAL = "final"
    SKIPPED = "skipped"


SAVED_REVIEW_STATES: Final = (ReviewState.FIRST, ReviewState.FINAL)


class ScreeningChoice(StrEnum):
    """What the owner decided on a reviewer whose votes look careless."""

    KEEP = "keep"
    EXCLUDE = "exclude"


class DifferenceReason(StrEnum):
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


DIFFERENCE_REASON_TEXTS: Final[Mapping[DifferenceReason, str]] = {
    DifferenceReason.MISSED_ERROR: "judge missed a factual error",
    DifferenceReason.LENGTH_OR_FORMAT: "judged by length or format",
    DifferenceReason.POSITION: "judged by position",
    DifferenceReason.IGNORED_INSTRUCTION: "ignored the instruction",
    DifferenceReason.RUBRIC_UNCLEAR: "rubric unclear",
    DifferenceReason.QUERY_AMBIGUOUS: "query ambiguous",
    DifferenceReason.BOTH_ACCEPTABLE: "both acceptable",
    DifferenceReason.MY_MISTAKE: "my mistake",
    DifferenceReason.OTHER: "other",
}

# The reasons that a person who resolves a disagreement may choose, as their buttons say them.
RESOLUTION_REASON_TEXTS: Final[Mapping[DifferenceReason, str]] = {
    DifferenceReason.MISSED_ERROR: "Clear error",
    DifferenceReason.IGNORED_INSTRUCTION: "Ignored instruction",
    DifferenceReason.RUBRIC_UNCLEAR: "Rubric applied differently",
    DifferenceReason.LENGTH_OR_FORMAT: "Verbosity bias",
    DifferenceReason.POSITION: "Position bias",
    DifferenceReason.QUERY_AMBIGUOUS: "Ambiguous prompt",
    DifferenceReason.BOTH_ACCEPTABLE: "Both acceptable",
}


class QueueKind(StrEnum):
    REVIEW = "review"
    CALIBRATION = "calibration"  # a few comparisons with known labels, before a reviewer begins


class QueueAudience(StrEnum):
    EVERYONE = "everyone"
    SPLIT = "split"  # some reviewers, divided among them
    EACH = "each"  # some reviewers, all of it to each


class SelectionMethod(StrEnum):
    """How a comparison was selected for a person.

    RANDOM: by the random order drawn at import, so that all of these are one simple random sample. The next five are
    strategies, of which only STRATIFIED has a known probability, by which votes can be weighted. CALIBRATION: it has a
    known label. BY_HAND: the person opened it, or it was assigned outside any queue.
    """

    RANDOM = "random"
    STRATIFIED = "stratified"
    FLIPS = "flips"
    JUDGES_DISAGREE = "judges_disagree"
    PEOPLE_DISAGREE = "people_disagree"
    LEAST_CONFIDENT = "least_confident"
    CALIBRATION = "calibration"
    BY_HAND = "by_hand"


# The strategies that a queue may state, and the ways of selection whose reviews estimates may use.
SELECTION_STRATEGIES: Final = (
    SelectionMethod.RANDOM,
    SelectionMethod.STRATIFIED,
    SelectionMethod.FLIPS,
    SelectionMethod.JUDGES_DISAGREE,
    SelectionMethod.PEOPLE_DISAGREE,
    SelectionMethod.LEAST_CONFIDENT,
)

RANDOM_SELECTION: Final = (SelectionMethod.RANDOM, SelectionMethod.STRATIFIED)
SELECTION_TEXTS: Final[Mapping[SelectionMethod, str]] = {
    SelectionMethod.RANDOM: "random",
    SelectionMethod.STRATIFIED: "stratified random",
    SelectionMethod.FLIPS: "order-inconsistent",
    SelectionMethod.JUDGES_DISAGREE: "judges disagree",
    SelectionMethod.PEOPLE_DISAGREE: "reviewers disagree",
    SelectionMethod.LEAST_CONFIDENT: "low confidence",
    SelectionMethod.CALIBRATION: "calibration",
    SelectionMethod.BY_HAND: "hand-picked",
}


class StratifyBy(StrEnum):
    """The groups from which a stratified queue draws equally."""

    CATEGORY = "category"
    CANDIDATE_PAIR = "candidate_pair"


class AssignmentState(StrEnum):
    """RESERVED, ASSIGNED and DONE count toward the reviews wanted of a comparison; SKIPPED and EXPIRED do not."""

    RESERVED = "reserved"  # taken from the default queue, for a while
    ASSIGNED = "assigned"  # given to this person by name, without an end
    DONE = "done"
    SKIPPED = "skipped"
    EXPIRED = "expired"  # reserved for too long; still records how the comparison was selected


# The states of an assignment that take one of the places of a comparison.
TAKING_STATES: Final = (AssignmentState.RESERVED, AssignmentState.ASSIGNED, AssignmentState.DONE)
