"""How comparisons come before people."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class RoundKind(StrEnum):
    REVIEW = "review"
    CALIBRATION = "calibration"  # a few comparisons with known labels, before a reviewer begins


class PickedBy(StrEnum):
    """How a comparison came before a person.

    RANDOM: it was its turn in the one random order that was drawn when it came in. The next five
    are strategies: of them STRATIFIED alone leaves a known probability, and is the only one by whose
    probability a vote may be weighed: all that are RANDOM are one simple random sample. CALIBRATION: it has a known
    label. BY_HAND: the person opened it, or was given it by name outside any round.
    """

    RANDOM = "random"
    STRATIFIED = "stratified"
    FLIPS = "flips"
    JUDGES_DISAGREE = "judges_disagree"
    PEOPLE_DISAGREE = "people_disagree"
    LEAST_CONFIDENT = "least_confident"
    CALIBRATION = "calibration"
    BY_HAND = "by_hand"


# The strategies that a round may state, and the ways of picking whose reviews estimates may use.
STRATEGIES: Final = (
    PickedBy.RANDOM,
    PickedBy.STRATIFIED,
    PickedBy.FLIPS,
    PickedBy.JUDGES_DISAGREE,
    PickedBy.PEOPLE_DISAGREE,
    PickedBy.LEAST_CONFIDENT,
)
DRAWN: Final = (PickedBy.RANDOM, PickedBy.STRATIFIED)
PICKED_IN_WORDS: Final[Mapping[PickedBy, str]] = {
    PickedBy.RANDOM: "at random",
    PickedBy.STRATIFIED: "at random, in strata",
    PickedBy.FLIPS: "a judge flips between orders",
    PickedBy.JUDGES_DISAGREE: "judges disagree",
    PickedBy.PEOPLE_DISAGREE: "people disagree",
    PickedBy.LEAST_CONFIDENT: "a judge is least confident",
    PickedBy.CALIBRATION: "calibration",
    PickedBy.BY_HAND: "by hand",
}


class Strata(StrEnum):
    """What a stratified round draws equally from."""

    CATEGORY = "category"
    CANDIDATE_PAIR = "candidate_pair"


class AssignmentState(StrEnum):
    """HELD, NAMED and DONE take one of the places of a comparison, SKIPPED and LAPSED leave it to others."""

    HELD = "held"  # taken from the pool, for a while
    NAMED = "named"  # given to this person by name, without an end
    DONE = "done"
    SKIPPED = "skipped"
    LAPSED = "lapsed"  # held for too long; how it was picked is still known when the person comes back


# The states of an assignment that take one of the places of a comparison.
PLACES_TAKEN: Final = (AssignmentState.HELD, AssignmentState.NAMED, AssignmentState.DONE)
