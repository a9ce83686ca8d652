"""What one person may see of one comparison now: never a candidate's name, never a verdict too early."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from evaluations.domain import AspectSpec, Choice, Reveal, ReviewState, Shown, Stage
from evaluations.models import Comparison, Rater, Response, Review, RubricVersion, User
from evaluations.services.reviewing.drawing import judge_stands_from_the_start, order_shown
from evaluations.services.reviewing.queueing import SAVED
from evaluations.services.reviewing.revealing import JudgeAnswer, JudgeChoice, judge_answer, turned


@dataclass(frozen=True)
class Line:
    """One aspect on the sheet, every choice as the person sees it: A is on the left."""

    asked: AspectSpec
    first: Choice | None
    final: Choice | None
    note: str
    judge: JudgeChoice | None

    @property
    def differs(self) -> bool:
        """Whether the judge chose otherwise than the person at first."""
        return self.judge is not None and self.first is not None and self.judge.choice != self.first


@dataclass(frozen=True)
class Sheet:
    """``judge`` is None while its choices must not be seen, and where it made none."""

    comparison: Comparison
    left: Response
    right: Response
    review: Review | None
    lines: tuple[Line, ...]
    judge: JudgeAnswer | None

    @property
    def stage(self) -> Literal["choose", "confirm", "done"]:
        if self.review is None or self.review.state not in SAVED:
            return "choose"
        return "confirm" if self.review.state == ReviewState.FIRST else "done"

    @property
    def version(self) -> int:
        return self.review.version if self.review else 0

    @property
    def differing(self) -> int:
        return sum(line.differs for line in self.lines)


def sheet_for(user: User, comparison: Comparison, rubric: RubricVersion, rater: Rater | None) -> Sheet:
    """The comparison as this person should see it now. Reads only."""
    review = Review.objects.filter(rater=rater, comparison=comparison, rubric_version=rubric).first() if rater else None
    shown = Shown(review.shown) if review else order_shown(user, comparison)
    aspects = rubric.spec().aspects
    sides = (comparison.response_a, comparison.response_b)
    left, right = reversed(sides) if shown == Shown.SWAPPED else sides
    judge = None
    if may_see_judge(user, comparison, review):
        judge = judge_answer(comparison.evaluation, comparison, {aspect.key for aspect in aspects}, shown)
    return Sheet(comparison, left, right, review, tuple(lines(aspects, review, judge)), judge)


def lines(aspects: tuple[AspectSpec, ...], review: Review | None, judge: JudgeAnswer | None) -> Iterator[Line]:
    saved = review if review and review.state in SAVED else None
    first = choices_of(saved, Stage.FIRST) if saved else {}
    final = choices_of(saved, Stage.FINAL) if saved else {}
    notes = notes_of(saved) if saved else {}
    told: Mapping[str, JudgeChoice] = judge.choices if judge else {}
    for asked in aspects:
        key = asked.key
        yield Line(asked, first.get(key), final.get(key), notes.get(key, ""), told.get(key))


def may_see_judge(user: User, comparison: Comparison, review: Review | None) -> bool:
    evaluation = comparison.evaluation
    if evaluation.reveal == Reveal.NEVER:
        return False
    if judge_stands_from_the_start(evaluation, user, comparison):
        return True
    return review is not None and review.state in SAVED and was_revealed(review)


def was_revealed(review: Review) -> bool:
    """Whether others' choices stood before the person at or after the first save.

    A review that became final in the moment of its first save, and was blind, revealed nothing.
    """
    return not review.blind or review.finished_at != review.first_saved_at


def choices_of(review: Review, stage: Stage) -> dict[str, Choice]:
    """Aspect key → choice, as this person saw it."""
    shown = Shown(review.shown)
    rows = review.verdicts.filter(stage=stage).values_list("aspect__key", "choice")
    return {key: turned(Choice(choice), shown) for key, choice in rows}


def notes_of(review: Review) -> dict[str, str]:
    return dict(review.verdicts.filter(stage=Stage.FINAL).exclude(note="").values_list("aspect__key", "note"))
