"""One sentence per judge, in plain words, from the numbers of its aspects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evaluations.stats.agreement import Agreement
from evaluations.stats.ceiling import Beside
from evaluations.stats.judges import JudgeReport
from evaluations.stats.numbers import Number

FEW: Final = 30  # below this many comparisons a share moves by several points with every further one


@dataclass(frozen=True)
class Held:
    """One aspect's agreement with whatever the judge is held against."""

    aspect: str
    against: str
    numbers: Agreement


def sentence(name: str, by_aspect: Mapping[str, JudgeReport]) -> str:
    """What the numbers of a judge say; ``by_aspect`` has its reports by the aspect's name."""
    who = f"{name} ({one.label})" if (one := next(iter(by_aspect.values()))).label else name
    held = held_against(by_aspect, "the majority of people") or held_against(by_aspect, "gold")
    if not held:
        judged = max(one.verdicts for one in by_aspect.values())
        said = f"{who} has a verdict on {judged:,} comparisons, but none that people or gold have a choice on."
        return " ".join([said, *of_calls(by_aspect)])
    return " ".join([f"{who} {told(held)}", *beside_people(by_aspect), *remarks(held, by_aspect)])


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


def beside_people(by_aspect: Mapping[str, JudgeReport]) -> list[str]:
    """The judge beside people where both could be held against the people that remain: only that may be compared."""
    levels = {aspect: one.ceiling.s1 for aspect, one in by_aspect.items()}
    differences = {aspect: level.difference.value for aspect, level in levels.items()}
    compared = sorted((value, aspect) for aspect, value in differences.items() if value is not None)
    if not compared:
        return []
    (_, least), (_, most) = compared[0], compared[-1]
    if least == most:
        return [compare("It", levels[least])]
    return [
        compare(f"On {least.lower()}, where it stands furthest below people, it", levels[least]),
        compare(f"On {most.lower()}, where it stands best, it", levels[most]),
    ]


def compare(who: str, level: Beside) -> str:
    judge, people = percent(level.judge), percent(level.people)
    return (
        f"{who} agrees with people on {judge} where people agree with each other on {people}, all held against the "
        f"same majorities: {difference(level.difference)}."
    )


def difference(number: Number) -> str:
    if number.ci95 is None:
        return "whether they differ cannot be told"
    low, high = number.ci95
    if low <= 0 <= high:
        return "that may be chance"
    return "less than people" if high < 0 else "more than people"


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
