"""Agreement of scores of single responses in credits: 1 − the distance of two scores as a share of the scale.

On a scale of two values this is whether two scores are equal, so that passes and failures are choices of two.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.decisions.agreement_credits import JudgeCredits
from evaluations.stats.score_reliability import PersonScores
from evaluations.stats.votes import vote_pairs

MOST_ANSWERS: Final = 21  # constant answers that are tried: each value of the scale, or so many quantiles


@dataclass(frozen=True)
class Scale:
    """The lowest and the highest score of reviewers."""

    low: float
    high: float

    def place(self, value: FloatArray) -> FloatArray:
        """Scores from 0 to 1; those of a judge beyond the scale are at its ends."""
        return np.clip((value - self.low) / (self.high - self.low), 0.0, 1.0)


def score_scale(people: PersonScores) -> Scale | None:
    """The scale of the scores that reviewers gave; None where they gave but one, or none."""
    if not len(people.value):
        return None
    low, high = float(people.value.min()), float(people.value.max())
    return Scale(low, high) if low < high else None


@dataclass(frozen=True)
class ReviewerScoreCredits:
    """The responses with scores of two reviewers or more.

    ``score`` of each kept score, from 0 to 1, with its response as index in ``item``. ``reviewer``: credits of a
    left-out reviewer with each other. ``answers``: the constant answers, from 0 to 1.
    """

    item: IntArray
    index: IntArray
    score: FloatArray
    reviewer: FloatArray
    answers: FloatArray
    names: tuple[str, ...]

    def mean(self, value: FloatArray) -> FloatArray:
        """The mean over the scores of each response."""
        return np.asarray(np.bincount(self.index, value, len(self.item)) / np.bincount(self.index))


def reviewer_score_credits(each: PersonScores, scale: Scale) -> ReviewerScoreCredits:
    """``each``: one score of each person on a response."""
    scores = np.bincount(each.unit)
    kept = scores[each.unit] > 1
    item, index = np.unique(each.unit[kept], return_inverse=True)
    score = scale.place(each.value[kept])
    first, second = vote_pairs(index)
    apart = np.abs(score[first] - score[second])
    pairs = np.bincount(index[first], minlength=len(item))
    values = np.unique(score)
    answers = values if len(values) <= MOST_ANSWERS else np.quantile(score, np.linspace(0, 1, MOST_ANSWERS))
    return ReviewerScoreCredits(
        item=item,
        index=index,
        score=score,
        reviewer=1 - np.bincount(index[first], apart, len(item)) / pairs,
        answers=answers,
        names=tuple(f"{scale.low + answer * (scale.high - scale.low):g}" for answer in answers.tolist()),
    )


def judge_score_credits(
    judge: FloatArray, failed: BoolArray, reviewers: ReviewerScoreCredits, scale: Scale
) -> JudgeCredits:
    """The credits of a judge on the responses that it scored or failed on; a failed call earns nothing.

    ``judge``: its score of each response, NaN where it has none; ``failed``: whether its call failed.
    """
    placed, has_failed = scale.place(judge[reviewers.item]), failed[reviewers.item]
    kept = ~np.isnan(placed) | has_failed
    own = np.nan_to_num(placed)
    earned = 1 - reviewers.mean(np.abs(reviewers.score - own[reviewers.index]))
    constant = np.empty((len(reviewers.answers), len(reviewers.item)))
    for row, answer in zip(constant, reviewers.answers, strict=True):
        row[:] = 1 - reviewers.mean(np.abs(reviewers.score - answer))
    return JudgeCredits(
        item=reviewers.item[kept],
        judge=np.where(has_failed, 0.0, earned)[kept],
        reviewer=reviewers.reviewer[kept],
        constant=constant[:, kept],
        answers=reviewers.names,
        judge_score=placed[kept],
        score=reviewers.mean(reviewers.score)[kept],
        square=reviewers.mean(reviewers.score**2)[kept],
    )
