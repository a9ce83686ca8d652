"""Agreement of a judge, a left-out reviewer and constant answers with each remaining vote, in half credits.

Two choices agree 1 if equal, ½ if exactly one of them is a tie, 0 if opposite; both bad counts as a tie. Nothing here
takes a majority, so that neither a rule for split votes nor the number of reviewers moves the result.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import MISSING, TIE, A, B, BoolArray, FloatArray, IntArray
from evaluations.stats.judge_verdicts import ConsolidatedVerdicts
from evaluations.stats.polls import Poll

CONSTANTS: Final = ("A", "B", "tie")  # by the code of the choice


@dataclass(frozen=True)
class ReviewerCredits:
    """The items with votes of two reviewers or more on one aspect.

    ``item``: their numbers. ``constant``: credits of always A, always B and always tie with a vote, 3 × items.
    ``reviewer``: of a left-out reviewer with each of the others, averaged over who is left out. ``votes``: how many
    votes for A, B and tie, 3 × items.
    """

    item: IntArray
    constant: FloatArray
    reviewer: FloatArray
    votes: IntArray


def reviewer_credits(poll: Poll) -> ReviewerCredits:
    """The credits of reviewers. ``poll``: the votes that count on one aspect."""
    of_choices = poll.per_rater.tally
    tally = np.stack([of_choices[A], of_choices[B], of_choices[TIE:].sum(axis=0)])
    has_two = tally.sum(axis=0) > 1
    item, counted = poll.items[has_two], tally[:, has_two].astype(np.int64)
    a, b, tie = counted
    n = counted.sum(axis=0)
    equal = (counted * (counted - 1)).sum(axis=0)
    return ReviewerCredits(
        item=item,
        constant=np.stack([a + tie / 2, b + tie / 2, tie + (a + b) / 2]) / n,
        reviewer=(equal + tie * (a + b)) / (n * (n - 1)),
        votes=counted,
    )


@dataclass(frozen=True)
class JudgeCredits:
    """A judge and reviewers on the same items of one aspect; every array has one entry for each item.

    ``item``: their numbers. ``choice``: the judge's, MISSING where its call failed, which earns nothing.
    """

    item: IntArray
    choice: IntArray
    judge: FloatArray
    reviewer: FloatArray
    constant: FloatArray
    votes: IntArray

    @property
    def n(self) -> int:
        return len(self.item)

    @property
    def best_constant(self) -> int:
        """The code of the constant answer that agrees best with reviewers on these items."""
        return int(self.constant.mean(axis=1).argmax())


def judge_credits(own: ConsolidatedVerdicts, reviewers: ReviewerCredits) -> JudgeCredits:
    """The credits of one judge on the items on which it has a verdict or a failed call."""
    kept = (own.choice[reviewers.item] != MISSING) | own.failed[reviewers.item]
    item, constant = reviewers.item[kept], reviewers.constant[:, kept]
    choice = np.where(own.failed[item], MISSING, own.choice[item])
    earned = constant[np.minimum(choice, TIE), np.arange(len(item))]
    return JudgeCredits(
        item=item,
        choice=choice,
        judge=np.where(choice == MISSING, 0.0, earned),
        reviewer=reviewers.reviewer[kept],
        constant=constant,
        votes=reviewers.votes[:, kept],
    )


def preference_score(choice: IntArray) -> FloatArray:
    """1 for A, ½ for a tie and both bad, 0 for B."""
    return np.select([choice == A, choice == B], [1.0, 0.0], 0.5)


def has_answer(credits_of_judge: JudgeCredits) -> BoolArray:
    return np.asarray(credits_of_judge.choice != MISSING)
