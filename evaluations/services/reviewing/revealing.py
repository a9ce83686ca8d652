"""What the shown judge says of a comparison, in the terms in which one person sees it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from evaluations.domain import FLIPPED, Choice, Shown
from evaluations.models import Comparison, Evaluation, Judge, Rater, Verdict
from evaluations.services.judging.consolidating import judge_choices


@dataclass(frozen=True)
class JudgeChoice:
    """``choice`` is as shown. ``orders``: how many orders of the two responses it was asked in."""

    choice: Choice
    inconsistent: bool
    orders: int
    rationale: str


@dataclass(frozen=True)
class JudgeRationale:
    """Words of the judge. ``turned``: its A is the person's B, because it saw the other order."""

    text: str
    turned: bool


@dataclass(frozen=True)
class JudgeAnswer:
    judge: Judge
    choices: Mapping[str, JudgeChoice]
    rationales: tuple[JudgeRationale, ...]


def turned(choice: Choice, shown: Shown) -> Choice:
    """From left and right to A and B as stored, and back again: it is its own inverse."""
    return FLIPPED[choice] if shown == Shown.SWAPPED else choice


def judge_answer(
    evaluation: Evaluation, comparison: Comparison, aspects: Collection[str], shown: Shown
) -> JudgeAnswer | None:
    """The shown judge's choices on these aspects; None where it has not answered one of them."""
    rater = Rater.objects.filter(judge=evaluation.shown_judge_id).select_related("judge").first()
    if evaluation.shown_judge_id is None or rater is None or rater.judge is None:
        return None
    told = judge_choices(rater, [comparison.pk]).get(comparison.pk, {})
    answered = {key: folded for key, folded in told.items() if key in aspects}
    if not answered:
        return None
    verdicts = list(Verdict.objects.filter(rater=rater, comparison=comparison).select_related("call", "aspect"))
    choices = {
        key: JudgeChoice(
            turned(folded.choice, shown),
            folded.inconsistent,
            orders_of([verdict for verdict in verdicts if verdict.aspect.key == key]),
            next((verdict.rationale for verdict in verdicts if verdict.aspect.key == key and verdict.rationale), ""),
        )
        for key, folded in answered.items()
    }
    return JudgeAnswer(rater.judge, choices, rationales(verdicts, shown))


def orders_of(verdicts: Collection[Verdict]) -> int:
    orders = {verdict.shown for verdict in verdicts}
    return 2 if Shown.FOLDED in orders else len(orders)


def rationales(verdicts: Collection[Verdict], shown: Shown) -> tuple[JudgeRationale, ...]:
    """What the judge wrote in each call; first those in the order that the person sees."""
    written = {
        verdict.call_id: JudgeRationale(verdict.call.rationale, is_turned(Shown(verdict.call.shown), shown))
        for verdict in sorted(verdicts, key=lambda verdict: verdict.pk)
        if verdict.call and verdict.call.rationale
    }
    return tuple(sorted(written.values(), key=lambda rationale: rationale.turned))


def is_turned(judged: Shown, shown: Shown) -> bool:
    return {judged, shown} == {Shown.AS_STORED, Shown.SWAPPED}
