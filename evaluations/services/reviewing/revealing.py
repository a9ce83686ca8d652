"""What the shown judge says of a comparison, in the terms in which one person sees it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from evaluations.domain import SAVED_REVIEW_STATES, Choice, Shown
from evaluations.models import Call, Comparison, Evaluation, Judge, Rater, Review, Verdict
from evaluations.services.judging.consolidating import Derivation, derivations, judge_choices, scorers
from evaluations.services.reviewing.saying import Scores, turned


@dataclass(frozen=True)
class JudgeChoice:
    """``choice`` is as shown. ``orders``: how many orders of the two responses it was asked in.

    ``remark``: what must be said of a choice that the judge did not give itself; ``scores``: what it gave instead.
    """

    choice: Choice
    inconsistent: bool
    orders: int
    rationale: str
    remark: str = ""
    scores: Scores | None = None


@dataclass(frozen=True)
class JudgeRationale:
    """Words of the judge. ``turned``: its A is the person's B, because it saw the other order.

    ``about``: the one response that they are on, as the person sees it.
    """

    text: str
    turned: bool
    about: str = ""


@dataclass(frozen=True)
class JudgeAnswer:
    judge: Judge
    choices: Mapping[str, JudgeChoice]
    rationales: tuple[JudgeRationale, ...]


def judge_shown_to(review: Review | None, evaluation: Evaluation) -> int | None:
    """The judge whose choices are for this review: fixed with its first save, unless they are still awaited."""
    if review is None or review.state not in SAVED_REVIEW_STATES or review.awaits_judge:
        return evaluation.shown_judge_id
    return review.judge_id


def judge_answer(
    judge: int | None, comparison: Comparison, aspects: Collection[str], shown: Shown
) -> JudgeAnswer | None:
    """The choices of the judge with this id on these aspects; None where it has not answered one of them."""
    if judge is None:
        return None
    rater = Rater.objects.select_related("judge__rubric_version__rubric").filter(judge=judge).first()
    if rater is None or rater.judge is None:
        return None
    if rater.judge.is_pointwise:
        return derived_answer(rater, rater.judge, comparison, aspects, shown)
    sides = {comparison.pk: (comparison.response_a_id, comparison.response_b_id)}
    derived = derivations(scorers([rater]), sides).get(rater.pk, {}).get(comparison.pk, {})
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
    choices |= {key: choice_derived(one, shown) for key, one in derived.items() if key in answered}
    return JudgeAnswer(rater.judge, choices, rationales(verdicts, shown))


def before_choosing(answer: JudgeAnswer) -> JudgeAnswer:
    """What a person may see of it before their first save: no rationales from one order alone.

    They tell which response the judge read first, and in a run of one order that is always A, or always B. Those that
    came with imported verdicts may tell it too.
    """
    turned = [one.turned for one in answer.rationales if not one.about]
    written = answer.rationales if turned.count(True) == turned.count(False) else ()
    choices = {key: replace(one, rationale="") for key, one in answer.choices.items()}
    return replace(answer, choices=choices, rationales=written)


def derived_answer(
    rater: Rater, judge: Judge, comparison: Comparison, aspects: Collection[str], shown: Shown
) -> JudgeAnswer | None:
    """What its scores of the two responses say, with them and the margin."""
    sides = (comparison.response_a_id, comparison.response_b_id)
    told = derivations([rater], {comparison.pk: sides})[rater.pk].get(comparison.pk, {})
    choices = {key: choice_derived(one, shown) for key, one in told.items() if key in aspects}
    if not choices:
        return None
    calls = Call.objects.filter(judge=judge, response__in=sides).exclude(rationale="").order_by("sample", "pk")
    as_seen = sides[::-1] if shown == Shown.SWAPPED else sides
    written = [(as_seen.index(call.response_id or 0), call.rationale) for call in calls]
    return JudgeAnswer(
        judge, choices, tuple(JudgeRationale(text, False, "AB"[place]) for place, text in sorted(written))
    )


def choice_derived(one: Derivation, shown: Shown) -> JudgeChoice:
    return JudgeChoice(turned(one.choice, shown), False, 0, "", remark_on(one, shown), scores_shown(one, shown))


def remark_on(derived: Derivation, shown: Shown) -> str:
    scores = scores_shown(derived, shown)
    return f"{scores.left:.10g} to {scores.right:.10g}, {derived.rule.remark}"


def scores_shown(derived: Derivation, shown: Shown) -> Scores:
    scores = (derived.score_a, derived.score_b)
    return Scores(*(scores[::-1] if shown == Shown.SWAPPED else scores))


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
