"""A decision in words: a headline, one plain sentence, and the reasons against a judge."""

from typing import Final

from evaluations.domain.decisions import AspectOutcome, Outcome
from evaluations.stats.decisions.gauges import Gauge
from evaluations.stats.decisions.results import Decision
from evaluations.stats.decisions.spot_checks import SpotChecks
from evaluations.stats.estimates import Estimate
from evaluations.stats.phrases import count_phrase, join_words

HALF: Final = 0.5
MOST_NAMES: Final = 8


def decision_headline(decision: Decision) -> str:
    """“Can stand in for a reviewer (inconclusive for safety)”."""
    words = decision.outcome[0].upper() + decision.outcome[1:]
    if decision.outcome is Outcome.STAND_IN:
        not_shown = name_aspects(decision, AspectOutcome.NOT_SHOWN)
        return f"{words} (inconclusive for {not_shown})" if not_shown else words
    if decision.outcome is Outcome.SPOT_CHECKS and decision.spot_checks and decision.spot_checks.per_100:
        return f"{words} (review {decision.spot_checks.per_100} per 100)"
    if decision.outcome is Outcome.NOT_ENOUGH_DATA and decision.more:
        return f"{words} (needs about {decision.more:,} more {noun(decision)}s with two reviews)"
    return words


def noun(decision: Decision) -> str:
    return "response" if decision.scale else "comparison"


def name_aspects(decision: Decision, outcome: AspectOutcome) -> str:
    """The names of the aspects with this outcome, or how many of many; empty where there is none."""
    names = [aspect.name.lower() for aspect in decision.aspects.values() if aspect.outcome is outcome]
    if len(names) > MOST_NAMES:
        return f"{len(names)} of {len(decision.aspects)} aspects"
    return join_words(names) if names else ""


def decision_sentence(decision: Decision) -> str:
    return " ".join(filter(None, [*SENTENCES[decision.outcome](decision), unreliable_aspects(decision)]))


def unreliable_aspects(decision: Decision) -> str:
    """Aspects on which a judge is not reliable, where the decision is another."""
    names = name_aspects(decision, AspectOutcome.NOT_RELIABLE)
    return f"Not reliable for {names}." if names and decision.outcome in (Outcome.STAND_IN, Outcome.SPOT_CHECKS) else ""


def name_scale(decision: Decision) -> str:
    """“the 1–5 scale”; “the scale” where aspects have different ones."""
    return "the scale" if not decision.scale or "," in decision.scale else f"the {decision.scale} scale"


def agreement_phrase(decision: Decision) -> str:
    """“Reviewers agree with it 78% of the time and with each other 79% (n = 120).”"""
    levels = decision.levels
    if decision.scale:
        return (
            f"Its scores differ from a reviewer’s by {distance(levels.judge)} of {name_scale(decision)}, and "
            f"reviewers’ scores from each other’s by {distance(levels.reviewers)} (n = {decision.n:,})."
        )
    return (
        f"Reviewers agree with it {percent(levels.judge)} of the time and with each other "
        f"{percent(levels.reviewers)} (n = {decision.n:,})."
    )


def distance(number: Estimate) -> str:
    """What is left to full agreement."""
    assert number.value is not None
    return f"{100 * (1 - number.value):.0f}%"


def percent(number: Estimate) -> str:
    assert number.value is not None
    return f"{100 * number.value:.0f}%"


def points(share: float) -> str:
    size = f"{100 * share:.0f}"
    return f"{size} point{'s' * (size != '1')}"


def stand_in_sentences(decision: Decision) -> list[str]:
    return [agreement_phrase(decision), f"Any gap is under {points(decision.bars.stand_in)}."]


def spot_check_sentences(decision: Decision) -> list[str]:
    rates = "mean scores" if decision.scale else "win rates"
    why = decision.coverage.why or f"The gap could still be {points(decision.bars.stand_in)} or more."
    more = (
        f"About {decision.more:,} more {noun(decision)}s with two reviews should settle that." if decision.more else ""
    )
    return [
        agreement_phrase(decision),
        why,
        "" if decision.coverage.why else more,
        describe_spot_checks(decision.spot_checks, rates),
    ]


def describe_spot_checks(checks: SpotChecks | None, rates: str) -> str:
    if checks is None:
        return ""
    if checks.n is None:
        return f"Even reviewing all of the next {checks.comparisons:,} gives {rates} only to ±{points(checks.reached)}."
    return f"Review {checks.n:,} of the next {checks.comparisons:,} to know {rates} to ±{points(checks.half_width)}."


def not_reliable_sentences(decision: Decision) -> list[str]:
    return list(decision.reasons)


def clarify_sentences(decision: Decision) -> list[str]:
    levels = decision.levels
    unclear = [aspect.name.lower() for aspect in decision.aspects.values() if aspect.n and not aspect.reviewers_agree]
    agreement = (
        f"Reviewers’ scores differ from each other’s by {distance(levels.reviewers)} of {name_scale(decision)}, "
        f"and from the best fixed score by {distance(levels.constant)} (n = {decision.n:,})."
        if decision.scale
        else f"Reviewers agree with each other {percent(levels.reviewers)} of the time; always giving the same answer "
        f"would agree {percent(levels.constant)} (n = {decision.n:,})."
    )
    return [
        agreement,
        f"Unclear: {join_words(unclear)}." if unclear else "",
    ]


def not_enough_sentences(decision: Decision) -> list[str]:
    what = "score" if decision.scale else "verdict"
    if not decision.n:
        return [f"No {noun(decision)} has the judge’s {what} and two reviews yet."]
    if decision.more is None:
        return [agreement_phrase(decision), "More data will hardly help: the gap is too large."]
    has = "has" if decision.n == 1 else "have"
    return [f"Only {count_phrase(decision.n, noun(decision))} {has} the judge’s {what} and two reviews."]


SENTENCES: Final = {
    Outcome.STAND_IN: stand_in_sentences,
    Outcome.SPOT_CHECKS: spot_check_sentences,
    Outcome.NOT_RELIABLE: not_reliable_sentences,
    Outcome.CLARIFY_RUBRIC: clarify_sentences,
    Outcome.NOT_ENOUGH_DATA: not_enough_sentences,
}


def unreliability_reasons(decision: Decision, *, is_far_below: bool) -> tuple[str, ...]:
    """What makes the judge not reliable, each in a sentence. ``is_far_below``: whether its agreement does."""
    if decision.outcome is not Outcome.NOT_RELIABLE:
        return ()
    gauges = decision.gauges
    each = (
        (f"Calls failed on {{}} of {noun(decision)}s (limit {{}})", gauges.failures),
        ("It flips with the order on {} of comparisons (limit {})", gauges.inconsistency),
    )
    shares = [
        words.format(percent(gauge.number), percent_of(gauge.bar)) + "." for words, gauge in each if gauge.exceeds
    ]
    reasons = [agreement_phrase(decision)] if is_far_below else []
    if gauges.position.exceeds:
        shares.append(describe_position(gauges.position))
    for words, gauge in (("the longer response", gauges.length), ("its own family", gauges.own_family)):
        if gauge.exceeds:
            shares.append(describe_preference(words, gauge))
    return (*reasons, *shares)


def percent_of(share: float) -> str:
    return f"{100 * share:.0f}%"


def describe_position(gauge: Gauge) -> str:
    assert gauge.number.value is not None
    first = gauge.number.value > HALF
    share = gauge.number.value if first else 1 - gauge.number.value
    where = "first" if first else "second"
    return f"It prefers the {where} response {100 * share:.0f}% of the time (limit {percent_of(HALF + gauge.bar)})."


def describe_preference(words: str, gauge: Gauge) -> str:
    assert gauge.number.value is not None
    how = "more" if gauge.number.value > 0 else "less"
    return (
        f"It chooses {words} {points(abs(gauge.number.value))} {how} often than reviewers do "
        f"(limit {100 * gauge.bar:.0f})."
    )
