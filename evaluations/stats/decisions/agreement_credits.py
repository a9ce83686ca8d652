"""Agreement of a judge, a left-out reviewer and constant answers with each remaining vote, in half credits.

Two choices agree 1 if equal, ½ if exactly one of them is a tie, 0 if opposite; both bad counts as a tie. Nothing here
takes a majority, so that neither a rule for split votes nor the number of reviewers moves the result.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import MISSING, TIE, A, B, FloatArray, IntArray
from evaluations.stats.judge_verdicts import ConsolidatedVerdicts
from evaluations.stats.polls import Poll

CONSTANTS: Final = ("A", "B", "tie")  # by the code of the choice
SCORES: Final[FloatArray] = np.array([1.0, 0.0, 0.5, 0.5, np.nan])  # of A, B, tie, both bad and MISSING, the last


@dataclass(frozen=True)
class ReviewerCredits:
    """The items with votes of two reviewers or more on one aspect.

    ``item``: their numbers. ``constant``: credits of always A, always B and always tie with a vote, 3 × items.
    ``reviewer``: of a left-out reviewer with each of the others, averaged over who is left out. ``score``: the mean
    score of the votes, A 1, tie ½ and B 0; ``square``: that of their squares.
    """

    item: IntArray
    constant: FloatArray
    reviewer: FloatArray
    score: FloatArray
    square: FloatArray


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
        score=(a + tie / 2) / n,
        square=(a + tie / 4) / n,
    )


@dataclass(frozen=True)
class JudgeCredits:
    """A judge and reviewers on the same items of one aspect; every array has one entry for each item.

    ``item``: their numbers. ``judge``, ``reviewer`` and ``constant``: credits, the last by answer, whose names are
    ``answers``. ``judge_score``: from 0 to 1, NaN where its call failed, which earns nothing; ``score`` and ``square``:
    means of the reviewers' scores and of their squares.
    """

    item: IntArray
    judge: FloatArray
    reviewer: FloatArray
    constant: FloatArray
    answers: tuple[str, ...]
    judge_score: FloatArray
    score: FloatArray
    square: FloatArray

    @property
    def n(self) -> int:
        return len(self.item)

    @property
    def best_constant(self) -> int:
        """The index of the constant answer that agrees best with reviewers on these items."""
        return int(self.constant.mean(axis=1).argmax())


def judge_credits(own: ConsolidatedVerdicts, reviewers: ReviewerCredits) -> JudgeCredits:
    """The credits of one judge on the items on which it has a verdict or a failed call."""
    kept = (own.choice[reviewers.item] != MISSING) | own.failed[reviewers.item]
    item, constant = reviewers.item[kept], reviewers.constant[:, kept]
    choice = np.where(own.failed[item], MISSING, own.choice[item])
    earned = constant[np.minimum(choice, TIE), np.arange(len(item))]
    return JudgeCredits(
        item=item,
        judge=np.where(choice == MISSING, 0.0, earned),
        reviewer=reviewers.reviewer[kept],
        constant=constant,
        answers=CONSTANTS,
        judge_score=SCORES[choice],
        score=reviewers.score[kept],
        square=reviewers.square[kept],
    )
