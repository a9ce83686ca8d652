"""One sentence per judge, in plain words, from the numbers of its aspects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evaluations.stats.agreement import Agreement
from evaluations.stats.judges import JudgeReport
from evaluations.stats.numbers import Number
from evaluations.stats.simultaneous import Claim, Simultaneous

FEW: Final = 30  # below this many comparisons a share moves by several points with every further one


@dataclass(frozen=True)
class Held:
    """One aspect's agreement with whatever the judge is held against."""

    aspect: str
    against: str
    numbers: Agreement


def sentence(name: str, by_aspect: Mapping[str, JudgeReport], shown: Mapping[str, Simultaneous] | None = None) -> str:
    """What the numbers of a judge say; ``by_aspect`` has its reports by the aspect's name.

    ``shown``: by the same, what is shown of it beside reviewers over all that is claimed at once; without, nothing is.
    """
    who = f"{name} ({one.label})" if (one := next(iter(by_aspect.values()))).label else name
    held = held_against(by_aspect, "the majority of people") or held_against(by_aspect, "gold")
    if not held:
        judged = max(one.verdicts for one in by_aspect.values())
        said = f"{who} has a verdict on {judged:,} comparisons, but none that people or gold have a choice on."
        return " ".join([said, *of_calls(by_aspect)])
    return " ".join([f"{who} {told(held)}", *beside_reviewers(by_aspect, shown or {}), *remarks(held, by_aspect)])


def held_against(by_aspect: Mapping[str, JudgeReport], against: str) -> list[Held]:
    """The aspects on which there is something to hold the judge against."""
    found = []
    for aspect, one in by_aspect.items():
        block = one.judge_gold if against == "gold" else one.judge_human.majority
        if block.with_ties.n:
            found.append(Held(aspect, against, block.with_ties))
    return found


def told(held: Sequence[Held]) -> str:
    if len(held) > 1:
        return range_of(held)
    numbers = held[0].numbers
    share = percent(numbers.agreement)
    said = f"agrees with {held[0].against} on {numbers.agree:,} of {numbers.n:,} comparisons ({share})"
    chance = by_chance(numbers)
    return f"{said}." if chance is None else f"{said}; choosing blindly as often as they do would give {chance:.0%}."


def range_of(held: Sequence[Held]) -> str:
    least, most = min(held, key=lambda one: share_of(one.numbers)), max(held, key=lambda one: share_of(one.numbers))
    if share_of(least.numbers) == share_of(most.numbers):
        low = percent(least.numbers.agreement)
        return f"agrees with {least.against} on {low} of comparisons for each of {len(held)} aspects."
    low, high = percent(least.numbers.agreement), percent(most.numbers.agreement)
    return (
        f"agrees with {least.against} on {low} of comparisons for {least.aspect.lower()}, where it agrees least, "
        f"to {high} for {most.aspect.lower()}, where it agrees most."
    )


def beside_reviewers(by_aspect: Mapping[str, JudgeReport], shown: Mapping[str, Simultaneous]) -> list[str]:
    """The judge beside reviewers where both are compared with the same majorities: only that may be compared."""
    compared = {aspect: one for aspect, one in shown.items() if one.difference is not None}
    if not compared:
        return []
    if len(by_aspect) > 1:
        return [over_aspects(compared)]
    ((aspect, one),) = compared.items()
    level = by_aspect[aspect].ceiling.s1
    return [
        f"Against the same majorities it agrees on {percent(level.judge)} and a reviewer on {percent(level.people)}: "
        f"{claimed(one)}."
    ]


def claimed(one: Simultaneous) -> str:
    if one.claim is Claim.NONE:
        return "difference not significant" if one.rule else f"difference not tested. {one.why}".rstrip(".")
    return f"{one.claim} reviewers by {in_points(one)} ({within(one)})"


def within(one: Simultaneous) -> str:
    if one.ci95 is None:
        assert one.p is not None
        return f"p = {one.p:.3f}"
    low, high = one.ci95
    return f"simultaneous 95% CI {points(low)} to {points(high)}"


def over_aspects(compared: Mapping[str, Simultaneous]) -> str:
    """Every aspect on which a difference is shown is named; the others are counted."""
    said = []
    for claim in (Claim.BELOW, Claim.ABOVE):
        names = [f"{name.lower()} ({in_points(one)})" for name, one in compared.items() if one.claim is claim]
        if names:
            said.append(f"{claim} reviewers on {listed(names)}")
    alike = sum(one.claim is Claim.NONE and one.rule is not None for one in compared.values())
    untested = sum(one.rule is None for one in compared.values())
    if alike:
        said.append(f"difference not significant on {counted(alike)}")
    if untested:
        said.append(f"difference not tested on {counted(untested)}")
    family = next(iter(compared.values())).family
    return f"Against the same majorities, over all {family:,} differences at once: {'; '.join(said)}."


def counted(aspects: int) -> str:
    return f"{aspects} aspect{'s' * (aspects > 1)}"


def in_points(one: Simultaneous) -> str:
    assert one.difference is not None
    size = round(abs(100 * one.difference))
    return f"{size} point{'s' * (size != 1)}"


def points(value: float) -> str:
    return f"{100 * value:+.0f}".replace("-", "−")


def listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def percent(number: Number) -> str:
    """A share with its interval, where it has one."""
    assert number.value is not None
    if number.ci95 is None:
        return f"{number.value:.0%}"
    low, high = number.ci95
    return f"{number.value:.0%} [{100 * low:.0f}–{100 * high:.0f}]"


def share_of(numbers: Agreement) -> float:
    return numbers.agree / numbers.n


def by_chance(numbers: Agreement) -> float | None:
    """The agreement by chance that Cohen's kappa reckons with."""
    kappa = numbers.cohen_kappa.value
    if kappa is None or kappa == 1:
        return None
    return (share_of(numbers) - kappa) / (1 - kappa)


def remarks(held: Sequence[Held], by_aspect: Mapping[str, JudgeReport]) -> list[str]:
    """What a reader must know beside the share."""
    said = []
    fewest = min(one.numbers.n for one in held)
    if fewest < FEW:
        said.append(f"It rests on as few as {fewest} comparisons: expect it to move.")
    covered = min((one.coverage for one in by_aspect.values()), key=lambda one: one.judged)
    if covered.judged < covered.comparisons:
        said.append(f"It has a verdict on {covered.judged:,} of {covered.comparisons:,} comparisons.")
    return [*said, *of_calls(by_aspect)]


def of_calls(by_aspect: Mapping[str, JudgeReport]) -> list[str]:
    """The calls without an answer, of the aspect that has most of them."""
    calls = max((one.failed for one in by_aspect.values()), key=lambda one: one.calls)
    return [f"{calls.in_words[0].upper()}{calls.in_words[1:]}."] if calls.in_words else []
