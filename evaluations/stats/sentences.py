"""One sentence per judge, in plain words, from the numbers of its aspects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evaluations.stats.agreement import Agreement
from evaluations.stats.judges import JudgeReport, plural
from evaluations.stats.numbers import Number
from evaluations.stats.simultaneous import Claim, Simultaneous

FEW: Final = 30  # below this many comparisons a share moves by several points with every further one
LEAST_ONE_WAY: Final = 10  # fewer alike choices may be by chance
PEOPLE: Final = "the majority of people"
ONE_VOTE: Final = "the only reviewer of each comparison"
GOLD: Final = "gold"


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
    people, gold = with_people(by_aspect), with_gold(by_aspect)
    if not people and not gold:
        most = max((one.coverage for one in by_aspect.values()), key=lambda one: one.judged)
        why = one.judge_human.majority.with_ties.agreement.why
        on = f"{most.judged:,} of {comparisons(most.comparisons)}"
        said = f"{who} has a verdict on {on}, none with a majority of people or a gold label to compare it with."
        return " ".join([said, *filter(None, [why]), *beside_reviewers(by_aspect, shown or {}), *of_calls(by_aspect)])
    several = len(by_aspect) > 1
    told_of = [
        f"{'It' if place else who} {agreement_sentence(held, several)}"
        for place, held in enumerate(filter(None, (people, gold)))
    ]
    return " ".join([*told_of, *beside_reviewers(by_aspect, shown or {}), *remarks([*people, *gold], by_aspect)])


def with_people(by_aspect: Mapping[str, JudgeReport]) -> list[Held]:
    """The aspects on which people have a majority on anything that the judge has a verdict on."""
    found = {name: one.judge_human for name, one in by_aspect.items() if one.judge_human.majority.with_ties.n}
    alone = all(one.votes.with_ties.n == one.majority.with_ties.n for one in found.values())
    return [Held(name, ONE_VOTE if alone else PEOPLE, one.majority.with_ties) for name, one in found.items()]


def with_gold(by_aspect: Mapping[str, JudgeReport]) -> list[Held]:
    found = {name: one.judge_gold.with_ties for name, one in by_aspect.items()}
    return [Held(name, GOLD, numbers) for name, numbers in found.items() if numbers.n]


def agreement_sentence(held: Sequence[Held], several: bool) -> str:
    """``several``: whether the judge was asked about more than one aspect."""
    if len(held) > 1:
        return range_of(held)
    numbers = held[0].numbers
    about = f" for {held[0].aspect.lower()}" if several else ""
    said = f"agrees with {held[0].against} on {numbers.agree:,} of {comparisons(numbers.n)}{about}"
    said = f"{said} ({percent(numbers.agreement)})"
    chance = by_chance(numbers)
    return f"{said}." if chance is None else f"{said}; choosing blindly as often as they do would give {chance:.0%}."


def range_of(held: Sequence[Held]) -> str:
    least, most = min(held, key=lambda one: share_of(one.numbers)), max(held, key=lambda one: share_of(one.numbers))
    if share_of(least.numbers) == share_of(most.numbers):
        # Of the fewest comparisons, whose interval is the widest.
        fewest = min(held, key=lambda one: one.numbers.n)
        sizes = {one.numbers.n for one in held}
        of = f"{min(sizes):,} to {max(sizes):,}" if len(sizes) > 1 else f"{min(sizes):,}"
        low = percent(fewest.numbers.agreement)
        each = f"comparison{'s' * (of != '1')} for each of {len(held)} aspects"
        return f"agrees with {least.against} on {low} of {of} {each}."
    low, high = percent(least.numbers.agreement), percent(most.numbers.agreement)
    return (
        f"agrees with {least.against} on {low} of {comparisons(least.numbers.n)} for {least.aspect.lower()}, where it "
        f"agrees least, to {high} of {most.numbers.n:,} for {most.aspect.lower()}, where it agrees most."
    )


def comparisons(number: int) -> str:
    return f"{number:,} comparison{'s' * (number != 1)}"


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
        f"Against the same majorities it agrees on {percent(level.judge)} and a reviewer on {percent(level.people)}, "
        f"n = {level.n:,} vote{'s' * (level.n != 1)}: {claimed(one)}."
    ]


def claimed(one: Simultaneous) -> str:
    if one.claim is Claim.NONE:
        return "difference not significant" if one.rule else f"difference not tested. {one.why}".rstrip(".")
    return f"{one.claim} reviewers by {in_points(one)} ({'simultaneous ' if one.ci95 else ''}{within(one)})"


def within(one: Simultaneous) -> str:
    if one.ci95 is None:
        assert one.p is not None
        return f"p = {one.p:.3f}" if one.p >= 0.001 else "p < 0.001"
    low, high = one.ci95
    return f"95% CI {points(low)} to {points(high)}"


def over_aspects(compared: Mapping[str, Simultaneous]) -> str:
    """Every aspect on which a difference is shown is named; the others are counted."""
    said = []
    for claim in (Claim.BELOW, Claim.ABOVE):
        names = [
            f"{name.lower()} ({in_points(one)}, {within(one)})" for name, one in compared.items() if one.claim is claim
        ]
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
    size = points(abs(one.difference)).lstrip("+")
    return f"{size} point{'s' * (size != '1')}"


def points(value: float) -> str:
    """With as many decimals as it takes to be seen beside 0."""
    places = next((places for places in (0, 1, 2) if round(abs(100 * value), places)), 0)
    return f"{100 * value:+z.{places}f}".replace("-", "−")


def listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def percent(number: Number) -> str:
    """A share with its interval, where it has one. Only all of them are 100%, and none 0%."""
    assert number.value is not None
    places = 0 if number.value in (0, 1) or 0.005 <= number.value < 0.995 else 1
    share = f"{number.value:.{places}%}"
    if number.ci95 is None:
        return share
    low, high = number.ci95
    return f"{share} [{100 * low:.0f}–{100 * high:.0f}]"


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
    said = one_way(by_aspect)
    fewest = min(one.numbers.n for one in held)
    if fewest < FEW:
        said.append(f"Based on as few as {comparisons(fewest)}: it may change with more data.")
    return [*said, *covered(by_aspect), *of_calls(by_aspect)]


def one_way(by_aspect: Mapping[str, JudgeReport]) -> list[str]:
    """Who makes one choice throughout tells no comparison from another, however often it agrees."""
    found: dict[tuple[str, int], list[str]] = {}
    for name, one in by_aspect.items():
        made = {choice: sum(row) for choice, row in zip(one.confusion.choices, one.confusion.counts, strict=True)}
        made = {choice: n for choice, n in made.items() if n}
        if len(made) == 1 and not has_ties_for_failures(one) and (n := sum(made.values())) >= LEAST_ONE_WAY:
            found.setdefault((next(iter(made)), n), []).append(name.lower())
    said = []
    for (choice, n), names in found.items():
        about = f" for {listed(names)}" if len(by_aspect) > 1 else ""
        said.append(f"It chose {choice.replace('_', ' ')} on all {n:,} of these comparisons{about}.")
    return said


def covered(by_aspect: Mapping[str, JudgeReport]) -> list[str]:
    """On how many comparisons it has a verdict, of the aspect with fewest."""
    name, fewest = min(((name, one.coverage) for name, one in by_aspect.items()), key=lambda two: two[1].judged)
    if fewest.judged >= fewest.comparisons:
        return []
    differs = len({one.coverage.judged for one in by_aspect.values()}) > 1
    about = f" for {name.lower()}, where it has fewest" if differs else ""
    ties = ", and what is missing for failed calls counts as a tie" if has_ties_for_failures(by_aspect[name]) else ""
    return [f"It has a verdict on {fewest.judged:,} of {comparisons(fewest.comparisons)}{about}{ties}."]


def has_ties_for_failures(one: JudgeReport) -> bool:
    return one.verdicts > one.coverage.judged


def of_calls(by_aspect: Mapping[str, JudgeReport]) -> list[str]:
    """The calls without an answer, of the aspect that has most of them, and those of aspects without a verdict."""
    calls = max((one.failed for one in by_aspect.values()), key=lambda one: one.calls)
    said = [f"{calls.in_words[0].upper()}{calls.in_words[1:]}."] if calls.in_words else []
    if calls.elsewhere:
        said.append(f"{plural(calls.elsewhere).capitalize()} failed on aspects on which it has no verdict.")
    return said
