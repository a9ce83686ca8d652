"""Everything that a reviewer may see of a comparison now."""

from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Final, Literal

from django.db.models import Exists, OuterRef, QuerySet

from evaluations.domain.choices import Choice, CompleteSideScores, ShownOrder
from evaluations.domain.reviews import SAVED_REVIEW_STATES, QueueKind, Reveal, ReviewState, SelectionMethod
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricSpec
from evaluations.models.comparisons import Comparison, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge, Rater
from evaluations.models.queues import Assignment, QueueItem, QueueSlot
from evaluations.models.rubrics import RubricVersion
from evaluations.models.runs import Call
from evaluations.models.users import User
from evaluations.models.verdicts import Review, Verdict
from evaluations.reviews.answers import (
    Answer,
    ReviewAnswers,
    ScorePair,
    SingleScore,
    are_scores_equal,
    get_choice_of_answer,
    read_answers,
    swap_choice,
)
from evaluations.reviews.selectors import get_order_shown, is_judge_shown_first
from evaluations.verdicts.judge_choices import fold_verdicts, load_judge_choices, scoring_raters
from evaluations.verdicts.score_choices import derive_score_choices
from evaluations.visibility import was_revealed

# The columns of a judge's rater that decide which of its answers are choices.
KIND_OF_JUDGE: Final = ("evaluation_id", "judge__kind", "judge__rubric_version__rubric__kind")
ONLY_RESPONSE: Final = "this response"
SWAPPABLE_ORDERS: Final = frozenset({ShownOrder.AS_STORED, ShownOrder.SWAPPED})


@dataclass(frozen=True)
class JudgeChoice:
    """``choice`` is as shown. ``orders``: the number of orders of the responses that the judge saw.

    ``remark`` and ``scores`` are set if the choice was derived from the judge's scores; of a single response there is
    a score alone, and ``choice`` is None.
    """

    choice: Choice | None
    inconsistent: bool
    orders: int
    rationale: str
    remark: str = ""
    scores: ScorePair | SingleScore | None = None


@dataclass(frozen=True)
class JudgeRationale:
    """A judge's rationale. ``swapped``: its A is the reviewer's B.

    ``about``: the letter, as shown, of the only response that it is about, or ONLY_RESPONSE.
    """

    text: str
    swapped: bool
    about: str = ""


@dataclass(frozen=True)
class JudgeAnswer:
    judge: Judge
    choices: Mapping[str, JudgeChoice]
    rationales: tuple[JudgeRationale, ...]


def get_judge_shown_to(review: Review | None, evaluation: Evaluation) -> int | None:
    """The judge whose choices are for this review: fixed with its first save, unless they are still awaited."""
    if review is None or review.state not in SAVED_REVIEW_STATES or review.awaits_judge:
        return evaluation.shown_judge_id
    return review.judge_id


def get_judge_answer(
    judge: int | None, comparison: Comparison, aspects: Collection[str], shown: ShownOrder
) -> JudgeAnswer | None:
    """The judge's choices on these aspects; None if it has answered none of them."""
    rater = find_judge_rater(judge)
    if rater is None or rater.judge is None:
        return None
    if rater.judge.is_pointwise:
        return build_scored_answer(rater, rater.judge, comparison, aspects, shown)
    sides = {comparison.pk: (comparison.response_a_id, comparison.response_b_id)}
    derived = derive_score_choices(scoring_raters([rater]), sides).get(rater.pk, {}).get(comparison.pk, {})
    verdicts = list(Verdict.objects.filter(rater=rater, comparison=comparison).select_related("call", "aspect"))
    folded_choices = fold_verdicts(rater, comparison.pk, verdicts)
    answered = {key: choice for key, choice in folded_choices.items() if key in aspects}
    choices = {
        key: JudgeChoice(
            swap_choice(choice.choice, shown),
            choice.inconsistent,
            count_orders([verdict for verdict in verdicts if verdict.aspect.key == key]),
            next((verdict.rationale for verdict in verdicts if verdict.aspect.key == key and verdict.rationale), ""),
        )
        for key, choice in answered.items()
    }
    choices |= {
        key: build_derived_choice(scores, comparison, shown) for key, scores in derived.items() if key in aspects
    }
    return JudgeAnswer(rater.judge, choices, collect_rationales(verdicts, shown)) if choices else None


def has_judge_answered(judge: int | None, comparison: Comparison, aspects: Set[str]) -> bool:
    """Whether the judge has a choice on any of these aspects."""
    rater = None if judge is None else list_judge_raters(judge).only(*KIND_OF_JUDGE).first()
    if rater is None:
        return False
    return not aspects.isdisjoint(load_judge_choices(rater, [comparison.pk]).get(comparison.pk, {}))


def find_judge_rater(judge: int | None) -> Rater | None:
    """The rater of a judge, with what says how it chooses."""
    return None if judge is None else list_judge_raters(judge).first()


def list_judge_raters(judge: int) -> QuerySet[Rater]:
    return Rater.objects.select_related("judge__rubric_version__rubric").filter(judge=judge)


def limit_before_first_save(answer: JudgeAnswer) -> JudgeAnswer:
    """The judge's answer before the first save: without rationales from a single order.

    These reveal which response the judge read first, and in a run of one order that is always A, or always B.
    """
    order_flags = [item.swapped for item in answer.rationales if not item.about]
    rationales = answer.rationales if order_flags.count(True) == order_flags.count(False) else ()
    choices = {key: replace(item, rationale="") for key, item in answer.choices.items()}
    return replace(answer, choices=choices, rationales=rationales)


def build_scored_answer(
    rater: Rater, judge: Judge, comparison: Comparison, aspects: Collection[str], shown: ShownOrder
) -> JudgeAnswer | None:
    """The choices that the judge's scores of both responses make."""
    sides = (comparison.response_a_id, comparison.response_b_id)
    derived = derive_score_choices([rater], {comparison.pk: sides})[rater.pk].get(comparison.pk, {})
    choices = {
        key: build_derived_choice(scores, comparison, shown) for key, scores in derived.items() if key in aspects
    }
    if not choices:
        return None
    calls = Call.objects.filter(judge=judge, response__in=sides).exclude(rationale="").order_by("sample", "pk")
    as_seen = sides[::-1] if shown == ShownOrder.SWAPPED else sides
    letters = (ONLY_RESPONSE,) if comparison.is_single else ("A", "B")
    rationales = [(as_seen.index(call.response_id or 0), call.rationale) for call in calls]
    return JudgeAnswer(
        judge, choices, tuple(JudgeRationale(text, False, letters[side]) for side, text in sorted(rationales))
    )


def build_derived_choice(derived: CompleteSideScores, comparison: Comparison, shown: ShownOrder) -> JudgeChoice:
    if comparison.is_single:
        return JudgeChoice(None, False, 0, "", "", SingleScore(derived.score_a))
    stored = (derived.score_a, derived.score_b)
    scores = ScorePair(*(stored[::-1] if shown == ShownOrder.SWAPPED else stored))
    remark = f"{scores.left:.10g} to {scores.right:.10g}, {derived.rule.remark}"
    return JudgeChoice(swap_choice(derived.choice, shown), False, 0, "", remark, scores)


def count_orders(verdicts: Collection[Verdict]) -> int:
    orders = {verdict.shown for verdict in verdicts}
    return 2 if ShownOrder.FOLDED in orders else len(orders)


def collect_rationales(verdicts: Collection[Verdict], shown: ShownOrder) -> tuple[JudgeRationale, ...]:
    """The judge's rationale of each call, first those in the order that the reviewer sees."""
    by_call = {
        verdict.call_id: JudgeRationale(verdict.call.rationale, {verdict.call.shown, shown} == SWAPPABLE_ORDERS)
        for verdict in sorted(verdicts, key=lambda verdict: verdict.pk)
        if verdict.call and verdict.call.rationale
    }
    return tuple(sorted(by_call.values(), key=lambda rationale: rationale.swapped))


@dataclass(frozen=True)
class SheetLine:
    """One aspect as the reviewer sees it: A is on the left."""

    aspect: AspectSpec
    first: Answer | None
    final: Answer | None
    note: str
    reason: str
    judge: JudgeChoice | None

    @property
    def first_choice(self) -> Choice | None:
        """The first choice, or that of the first scores."""
        return None if self.first is None else get_choice_of_answer(self.aspect, self.first)

    @property
    def final_choice(self) -> Choice | None:
        return None if self.final is None else get_choice_of_answer(self.aspect, self.final)

    @property
    def differs(self) -> bool:
        """Whether the judge chose or scored otherwise than the person at first."""
        if self.judge is None or self.first is None:
            return False
        if isinstance(self.first, SingleScore) and isinstance(self.judge.scores, SingleScore):
            return not are_scores_equal(self.aspect, self.first, self.judge.scores)
        return self.judge.choice != self.first_choice


@dataclass(frozen=True)
class ReviewSheet:
    """The sheet. ``judge`` is None while its choices are hidden, and if it made none.

    ``may_reveal``: after the first save the judge's choices appear, if it has answered by then.
    ``comes_back``: the judge has answered since the choices became final without it.
    """

    comparison: Comparison
    is_swapped: bool
    kind: RubricKind
    review: Review | None
    lines: tuple[SheetLine, ...]
    judge: JudgeAnswer | None
    may_reveal: bool = False
    comes_back: bool = False

    @property
    def left(self) -> Response:
        return self.comparison.response_b if self.is_swapped else self.comparison.response_a

    @property
    def right(self) -> Response:
        return self.comparison.response_a if self.is_swapped else self.comparison.response_b

    @property
    def sides(self) -> tuple[tuple[str, Response], ...]:
        """The letter and the response of each side, in the order shown; one without a letter if it is single."""
        return (("", self.left),) if self.comparison.is_single else (("A", self.left), ("B", self.right))

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
        """The page after saving: the same comparison with the judge's choices, or the next one."""
        return "reveal" if self.stage == "choose" and self.may_reveal else "next"

    @property
    def differing(self) -> int:
        return sum(line.differs for line in self.lines)

    @property
    def differs_in_part(self) -> bool:
        return 0 < self.differing < len(self.lines)


def build_sheet(
    user: User, comparison: Comparison, rubric: RubricVersion, rater: Rater | None, spec: RubricSpec | None = None
) -> ReviewSheet:
    """The comparison as this user may see it now. Reads only. ``spec``: the rubric's, if already read."""
    review = Review.objects.filter(rater=rater, comparison=comparison, rubric_version=rubric).first() if rater else None
    if review is not None:
        review.comparison = comparison
    return build_sheet_of_review(user, comparison, review, rater, spec or rubric.spec())


def build_sheet_of_review(
    user: User, comparison: Comparison, review: Review | None, rater: Rater | None, spec: RubricSpec
) -> ReviewSheet:
    shown = ShownOrder(review.shown) if review else get_order_shown(user, comparison)
    answer = None
    if is_judge_visible(user, comparison, review, rater) or is_awaiting_judge(review):
        answer = get_judge_answer(
            get_judge_shown_to(review, comparison.evaluation),
            comparison,
            {aspect.key for aspect in spec.aspects},
            shown,
        )
    comes_back = is_awaiting_judge(review) and answer is not None
    judge = None if is_awaiting_judge(review) else answer
    if judge is not None and (review is None or review.state not in SAVED_REVIEW_STATES):
        judge = limit_before_first_save(judge)
    reveals = is_judge_to_be_revealed(comparison.evaluation, user, comparison)
    rows = tuple(build_sheet_lines(spec, review, judge))
    is_swapped = shown == ShownOrder.SWAPPED
    return ReviewSheet(comparison, is_swapped, spec.kind, review, rows, judge, reveals, comes_back)


def build_sheet_lines(spec: RubricSpec, review: Review | None, judge: JudgeAnswer | None) -> Iterator[SheetLine]:
    answers = read_answers(review, spec.kind) if review and review.state in SAVED_REVIEW_STATES else ReviewAnswers()
    judge_choices: Mapping[str, JudgeChoice] = judge.choices if judge else {}
    for aspect in spec.aspects:
        key = aspect.key
        texts = (answers.notes.get(key, ""), answers.reasons.get(key, ""))
        yield SheetLine(aspect, answers.first.get(key), answers.final.get(key), *texts, judge_choices.get(key))


def is_judge_visible(user: User, comparison: Comparison, review: Review | None, rater: Rater | None) -> bool:
    """Whether the judge is visible now: what the first save fixed holds, except that NEVER always hides."""
    evaluation = comparison.evaluation
    if evaluation.reveal == Reveal.NEVER:
        return False
    if review is not None and review.state in SAVED_REVIEW_STATES:
        return review.selection_method != SelectionMethod.CALIBRATION and was_revealed(review)
    return is_judge_shown_first(evaluation, user, comparison) and not is_in_calibration(rater, comparison)


def is_judge_to_be_revealed(evaluation: Evaluation, user: User, comparison: Comparison) -> bool:
    """Whether the judge is revealed after the first save."""
    if evaluation.shown_judge_id is None or evaluation.reveal == Reveal.NEVER:
        return False
    return not is_judge_shown_first(evaluation, user, comparison)


def is_in_calibration(rater: Rater | None, comparison: Comparison) -> bool:
    """Whether the comparison is in a calibration: its labels are known, so no judge is shown."""
    items = QueueItem.objects.filter(comparison=comparison, rubric_version=comparison.evaluation.review_rubric_id)
    assignments = Assignment.objects.filter(
        item=OuterRef("pk"), rater=rater, selection_method=SelectionMethod.CALIBRATION
    )
    slots = QueueSlot.objects.filter(
        item=OuterRef("pk"), queue__kind=QueueKind.CALIBRATION, queue__closed_at__isnull=True
    )
    return items.filter(Exists(assignments) | Exists(slots)).exists()


def is_awaiting_judge(review: Review | None) -> bool:
    """Whether the review is to be shown the judge's choices once there are any."""
    if review is None or review.comparison.evaluation.reveal == Reveal.NEVER:
        return False
    return review.awaits_judge and review.state == ReviewState.FINAL
