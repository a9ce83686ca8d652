"""What one person may see of one comparison now: never a candidate's name, never a verdict too early."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from django.db.models import Exists, OuterRef

from evaluations.domain import (
    SAVED_REVIEW_STATES,
    AspectSpec,
    Choice,
    PickedBy,
    Reveal,
    ReviewState,
    RoundKind,
    RubricKind,
    RubricSpec,
    Shown,
)
from evaluations.models import (
    Assignment,
    Comparison,
    Evaluation,
    Pick,
    QueueItem,
    Rater,
    Response,
    Review,
    RubricVersion,
    User,
)
from evaluations.services.reviewing.drawing import judge_stands_from_the_start, order_shown
from evaluations.services.reviewing.revealing import (
    JudgeAnswer,
    JudgeChoice,
    before_choosing,
    judge_answer,
    judge_shown_to,
)
from evaluations.services.reviewing.saying import Given, Said, choice_in, said_in


@dataclass(frozen=True)
class Line:
    """One aspect on the sheet, everything as the person sees it: A is on the left."""

    asked: AspectSpec
    first: Given | None
    final: Given | None
    note: str
    reason: str
    judge: JudgeChoice | None

    @property
    def first_choice(self) -> Choice | None:
        """What was chosen at first, or what the first scores say."""
        return None if self.first is None else choice_in(self.asked, self.first)

    @property
    def final_choice(self) -> Choice | None:
        return None if self.final is None else choice_in(self.asked, self.final)

    @property
    def differs(self) -> bool:
        """Whether the judge chose otherwise than the person at first."""
        return self.judge is not None and self.first is not None and self.judge.choice != self.first_choice


@dataclass(frozen=True)
class Sheet:
    """``judge`` is None while its choices must not be seen, and where it made none.

    ``may_reveal``: after the first save the judge's choices appear, if it has answered by then.
    ``comes_back``: the judge has answered since what was chosen became final without it.
    """

    comparison: Comparison
    left: Response
    right: Response
    kind: RubricKind
    review: Review | None
    lines: tuple[Line, ...]
    judge: JudgeAnswer | None
    may_reveal: bool = False
    comes_back: bool = False

    @property
    def stage(self) -> Literal["choose", "confirm", "done"]:
        if self.review is None or self.review.state not in SAVED_REVIEW_STATES:
            return "choose"
        return "confirm" if self.review.state == ReviewState.FIRST else "done"

    @property
    def is_pointwise(self) -> bool:
        return self.kind == RubricKind.POINTWISE

    @property
    def version(self) -> int:
        return self.review.version if self.review else 0

    @property
    def after_save(self) -> Literal["reveal", "next"]:
        """What saving leads to: the same comparison with the judge's choices, or the next one."""
        return "reveal" if self.stage == "choose" and self.may_reveal else "next"

    @property
    def differing(self) -> int:
        return sum(line.differs for line in self.lines)


def sheet_for(
    user: User, comparison: Comparison, rubric: RubricVersion, rater: Rater | None, spec: RubricSpec | None = None
) -> Sheet:
    """The comparison as this person should see it now. Reads only. ``spec``: that of the rubric, if it was read."""
    review = Review.objects.filter(rater=rater, comparison=comparison, rubric_version=rubric).first() if rater else None
    if review is not None:
        review.comparison = comparison
    shown = Shown(review.shown) if review else order_shown(user, comparison)
    spec = spec or rubric.spec()
    sides = (comparison.response_a, comparison.response_b)
    left, right = reversed(sides) if shown == Shown.SWAPPED else sides
    told = None
    if may_see_judge(user, comparison, review, rater) or awaits_judge(review):
        told = judge_answer(
            judge_shown_to(review, comparison.evaluation), comparison, {aspect.key for aspect in spec.aspects}, shown
        )
    comes_back = awaits_judge(review) and told is not None
    judge = None if awaits_judge(review) else told
    if judge is not None and (review is None or review.state not in SAVED_REVIEW_STATES):
        judge = before_choosing(judge)
    reveals = may_reveal(comparison.evaluation, user, comparison)
    rows = tuple(lines(spec, review, judge))
    return Sheet(comparison, left, right, spec.kind, review, rows, judge, reveals, comes_back)


def lines(spec: RubricSpec, review: Review | None, judge: JudgeAnswer | None) -> Iterator[Line]:
    said = said_in(review, spec.kind) if review and review.state in SAVED_REVIEW_STATES else Said()
    told: Mapping[str, JudgeChoice] = judge.choices if judge else {}
    for asked in spec.aspects:
        key = asked.key
        words = (said.notes.get(key, ""), said.reasons.get(key, ""))
        yield Line(asked, said.first.get(key), said.final.get(key), *words, told.get(key))


def may_see_judge(user: User, comparison: Comparison, review: Review | None, rater: Rater | None) -> bool:
    """What was decided at the first save holds, whatever the evaluation's rule has become since; but never is never."""
    evaluation = comparison.evaluation
    if evaluation.reveal == Reveal.NEVER:
        return False
    if review is not None and review.state in SAVED_REVIEW_STATES:
        return review.picked_by != PickedBy.CALIBRATION and was_revealed(review)
    return judge_stands_from_the_start(evaluation, user, comparison) and not calibrates(rater, comparison)


def may_reveal(evaluation: Evaluation, user: User, comparison: Comparison) -> bool:
    """Whether a judge is to be shown after the first save: there is one, and it was hidden before."""
    if evaluation.shown_judge_id is None or evaluation.reveal == Reveal.NEVER:
        return False
    return not judge_stands_from_the_start(evaluation, user, comparison)


def calibrates(rater: Rater | None, comparison: Comparison) -> bool:
    """Whether it stands in a calibration, however the person came to it: its labels are known, and no judge helps."""
    items = QueueItem.objects.filter(comparison=comparison, rubric_version=comparison.evaluation.review_rubric_id)
    met = Assignment.objects.filter(item=OuterRef("pk"), rater=rater, picked_by=PickedBy.CALIBRATION)
    posed = Pick.objects.filter(item=OuterRef("pk"), round__kind=RoundKind.CALIBRATION, round__closed_at__isnull=True)
    return items.filter(Exists(met) | Exists(posed)).exists()


def awaits_judge(review: Review | None) -> bool:
    """Whether it is to be shown the judge's choices once there are any."""
    if review is None or review.comparison.evaluation.reveal == Reveal.NEVER:
        return False
    return review.awaits_judge and review.state == ReviewState.FINAL


def was_revealed(review: Review) -> bool:
    """Whether others' choices stood before the person at or after the first save.

    A review that became final in the moment of its first save, and was blind, revealed nothing.
    """
    return not review.blind or review.finished_at != review.first_saved_at
