"""Which of one reviewer's reviews of a comparison holds the vote on an aspect.

The tables below are read as Python here and as SQL in `models.vote_holders`; a property test holds the two equal.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from evaluations.domain.reviews import ReviewState, SelectionMethod

# By state and by whether the review was practice: a review of a higher tier wins, within a tier the newest. Other
# states are unsaved and never count.
TIERS: Final[Mapping[tuple[ReviewState, bool], int]] = {
    (ReviewState.FINAL, False): 3,
    (ReviewState.FIRST, False): 2,
    (ReviewState.FINAL, True): 1,
    (ReviewState.FIRST, True): 0,
}
UNSAVED: Final = -1
# The same by plain strings, whose look-up is several times as fast: exports need it for every vote.
BY_WORD: Final = {(state.value, is_practice): tier for (state, is_practice), tier in TIERS.items()}
CALIBRATION: Final = SelectionMethod.CALIBRATION.value


@dataclass(frozen=True)
class VoteRule:
    """The reviews that may hold a vote for one use.

    ``blind``: whether the first choices were saved before the judge was seen, None for either. ``is_drawn``: whether
    only comparisons count that chance selected for review.
    """

    lowest_tier: int
    blind: bool | None = None
    is_drawn: bool = False

    def admits(self, review: "ReviewFacts") -> bool:
        return (
            get_tier(review.state, review.selection_method) >= self.lowest_tier
            and self.blind in (None, review.blind)
            and (review.is_drawn or not self.is_drawn)
        )


LABEL_VOTES: Final = VoteRule(lowest_tier=3)  # final choices
CURRENT_VOTES: Final = VoteRule(lowest_tier=2)  # final choices, or first choices if none is confirmed
BLIND_VOTES: Final = VoteRule(lowest_tier=2, blind=True, is_drawn=True)  # first choices in statistics
SHOWN_VOTES: Final = VoteRule(lowest_tier=2, blind=False, is_drawn=True)  # reported separately from blind ones
SHOWN_ON_PAGES: Final = VoteRule(lowest_tier=0)  # practice too, where there is nothing else
# A choice that is a vote by none of these rules counts nowhere.
COUNTED_SOMEWHERE: Final = (CURRENT_VOTES, BLIND_VOTES, SHOWN_VOTES)


class ReviewFacts(NamedTuple):
    """The facts that decide whether a review holds a vote. ``number``: its id, or its position by age."""

    number: int
    state: str
    selection_method: str
    blind: bool = True
    is_drawn: bool = True

    @property
    def rank(self) -> tuple[int, int]:
        return get_tier(self.state, self.selection_method), self.number


def get_tier(state: str, selection_method: str) -> int:
    return BY_WORD.get((state, selection_method == CALIBRATION), UNSAVED)


def find_vote_holder(reviews: Iterable[ReviewFacts], rule: VoteRule) -> ReviewFacts | None:
    """The review that holds the vote, of one reviewer's on one comparison that have the aspect."""
    return max((review for review in reviews if rule.admits(review)), key=lambda review: review.rank, default=None)


def find_counted_reviews(reviews: Iterable[ReviewFacts]) -> list[int]:
    """The numbers of the reviews that count somewhere, each once: first the one that the label counts."""
    listed = list(reviews)
    holders = (find_vote_holder(listed, rule) for rule in COUNTED_SOMEWHERE)
    return list(dict.fromkeys(holder.number for holder in holders if holder is not None))
