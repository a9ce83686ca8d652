"""The plain sentences that summarise the numbers of a judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evaluations.stats.agreement import Agreement
from evaluations.stats.estimates import Estimate
from evaluations.stats.judge_report import JudgeReport
from evaluations.stats.phrases import count_phrase, join_words
from evaluations.stats.simultaneous_intervals import Claim, SimultaneousDifference

FEW: Final = 30  # comparisons; below, each further one changes a share by several points
MIN_ONE_WAY: Final = 10  # equal choices; fewer may be by chance
PEOPLE: Final = "the reviewer majority"
ONE_VOTE: Final = "the only reviewer of each comparison"
GOLD: Final = "gold"


@dataclass(frozen=True)
class AspectAgreement:
    """The agreement of the judge with its reference on one aspect."""

    aspect: str
    reference: str
    numbers: Agreement


def judge_sentence(
    name: str, by_aspect: Mapping[str, JudgeReport], shown: Mapping[str, SimultaneousDifference] | None = None
) -> str:
    """The sentences on one judge. ``by_aspect``: its reports by the aspect's name.

    ``shown``: by aspect name, its difference from reviewers with an interval that is simultaneous over the report.
    """
    subject = f"{name} ({report.label})" if (report := next(iter(by_aspect.values()))).label else name
    people, gold = agreements_with_people(by_aspect), agreements_with_gold(by_aspect)
    if not people and not gold:
        most = max((report.coverage for report in by_aspect.values()), key=lambda report: report.judged)
        why = report.judge_human.majority.with_ties.agreement.why
        on = f"{most.judged:,} of {count_phrase(most.comparisons, 'comparison')}"
        sentences = [f"{subject} has a verdict on {on}, none with a reviewer majority or a gold label."]
        sentences += [why] if why else []
        remarks = failed_call_remarks(by_aspect)
    else:
        several = len(by_aspect) > 1
        sentences = [
            f"{'It' if number else subject} {agreement_sentence(agreements, several)}"
            for number, agreements in enumerate(filter(None, (people, gold)))
        ]
        remarks = agreement_remarks([*people, *gold], by_aspect)
    return " ".join([*sentences, *reviewer_comparison_sentences(by_aspect, shown or {}), *remarks])


def agreements_with_people(by_aspect: Mapping[str, JudgeReport]) -> list[AspectAgreement]:
    """The aspects on which people have a majority on anything that the judge has a verdict on."""
    agreements = {
        name: report.judge_human for name, report in by_aspect.items() if report.judge_human.majority.with_ties.n
    }
    alone = all(agreement.votes.with_ties.n == agreement.majority.with_ties.n for agreement in agreements.values())
    return [
        AspectAgreement(name, ONE_VOTE if alone else PEOPLE, agreement.majority.with_ties)
        for name, agreement in agreements.items()
    ]


def agreements_with_gold(by_aspect: Mapping[str, JudgeReport]) -> list[AspectAgreement]:
    agreements = {name: report.judge_gold.with_ties for name, report in by_aspect.items()}
    return [AspectAgreement(name, GOLD, numbers) for name, numbers in agreements.items() if numbers.n]


def agreement_sentence(agreements: Sequence[AspectAgreement], several: bool) -> str:
    """``several``: whether the judge was asked about more than one aspect."""
    if len(agreements) > 1:
        return agreement_range(agreements)
    numbers = agreements[0].numbers
    about = f" for {agreements[0].aspect.lower()}" if several else ""
    sentence = (
        f"agrees with {agreements[0].reference} on {numbers.agree:,} of {count_phrase(numbers.n, 'comparison')}{about} "
        f"({percent_with_interval(numbers.agreement)})"
    )
    chance = chance_agreement(numbers)
    if chance is None:
        return f"{sentence}."
    return f"{sentence}; chance agreement is {chance:.0%}."


def agreement_range(agreements: Sequence[AspectAgreement]) -> str:
    least = min(agreements, key=lambda agreement: agreement_share(agreement.numbers))
    most = max(agreements, key=lambda agreement: agreement_share(agreement.numbers))
    if agreement_share(least.numbers) == agreement_share(most.numbers):
        # Of the fewest comparisons, whose interval is the widest.
        fewest = min(agreements, key=lambda agreement: agreement.numbers.n)
        sizes = {agreement.numbers.n for agreement in agreements}
        of = f"{min(sizes):,} to {max(sizes):,}" if len(sizes) > 1 else f"{min(sizes):,}"
        low = percent_with_interval(fewest.numbers.agreement)
        each = f"comparison{'s' * (of != '1')} for each of {len(agreements)} aspects"
        return f"agrees with {least.reference} on {low} of {of} {each}."
    low, high = percent_with_interval(least.numbers.agreement), percent_with_interval(most.numbers.agreement)
    return (
        f"agrees with {least.reference} on {low} of {count_phrase(least.numbers.n, 'comparison')} for "
        f"{least.aspect.lower()} (lowest) "
        f"to {high} of {most.numbers.n:,} for {most.aspect.lower()} (highest)."
    )


def reviewer_comparison_sentences(
    by_aspect: Mapping[str, JudgeReport], shown: Mapping[str, SimultaneousDifference]
) -> list[str]:
    compared = {aspect: difference for aspect, difference in shown.items() if difference.difference is not None}
    if not compared:
        return []
    if len(by_aspect) > 1:
        return [claims_over_aspects(compared)]
    ((aspect, difference),) = compared.items()
    level = by_aspect[aspect].ceiling.s1
    return [
        f"With the same leave-one-out majorities, it agrees on {percent_with_interval(level.judge)} and a "
        f"reviewer on {percent_with_interval(level.people)}, "
        f"n = {count_phrase(level.n, 'vote')}: {claim_phrase(difference)}."
    ]


def claim_phrase(difference: SimultaneousDifference) -> str:
    if difference.claim is Claim.NONE:
        return (
            "difference not significant" if difference.rule else f"difference not tested. {difference.why}".rstrip(".")
        )
    return (
        f"{difference.claim} reviewers by {difference_in_points(difference)} "
        f"({'simultaneous ' if difference.ci95 else ''}{within_phrase(difference)})"
    )


def within_phrase(difference: SimultaneousDifference) -> str:
    if difference.ci95 is None:
        assert difference.p is not None
        return f"p = {difference.p:.3f}" if difference.p >= 0.001 else "p < 0.001"
    low, high = difference.ci95
    return f"95% CI {format_points(low)} to {format_points(high)}"


def claims_over_aspects(compared: Mapping[str, SimultaneousDifference]) -> str:
    """A sentence that names each aspect with a claimed difference and counts the others."""
    parts = []
    for claim in (Claim.BELOW, Claim.ABOVE):
        names = [
            f"{name.lower()} ({difference_in_points(difference)}, {within_phrase(difference)})"
            for name, difference in compared.items()
            if difference.claim is claim
        ]
        if names:
            parts.append(f"{claim} reviewers on {join_words(names)}")
    not_significant = sum(
        difference.claim is Claim.NONE and difference.rule is not None for difference in compared.values()
    )
    untested = sum(difference.rule is None for difference in compared.values())
    if not_significant:
        parts.append(f"difference not significant on {count_phrase(not_significant, 'aspect')}")
    if untested:
        parts.append(f"difference not tested on {count_phrase(untested, 'aspect')}")
    family = next(iter(compared.values())).family
    return f"With the same leave-one-out majorities, over all {family:,} differences at once: {'; '.join(parts)}."


def difference_in_points(difference: SimultaneousDifference) -> str:
    assert difference.difference is not None
    size = format_points(abs(difference.difference)).lstrip("+")
    return f"{size} point{'s' * (size != '1')}"


def format_points(value: float) -> str:
    """A difference in percentage points, with enough decimals (up to 2) not to be shown as 0."""
    decimals = next((decimals for decimals in (0, 1, 2) if round(abs(100 * value), decimals)), 0)
    return f"{100 * value:+z.{decimals}f}".replace("-", "−")


def percent_with_interval(number: Estimate) -> str:
    """A share with its interval, if any. Only a share of exactly 1 is shown as 100%, and of exactly 0 as 0%."""
    assert number.value is not None
    decimals = 0 if number.value in (0, 1) or 0.005 <= number.value < 0.995 else 1
    share = f"{number.value:.{decimals}%}"
    if number.ci95 is None:
        return share
    low, high = number.ci95
    return f"{share} [{100 * low:.0f}–{100 * high:.0f}]"


def agreement_share(numbers: Agreement) -> float:
    return numbers.agree / numbers.n


def chance_agreement(numbers: Agreement) -> float | None:
    """The agreement by chance that Cohen's kappa assumes; None where kappa is undefined or 1."""
    kappa = numbers.cohen_kappa.value
    if kappa is None or kappa == 1:
        return None
    return (agreement_share(numbers) - kappa) / (1 - kappa)


def agreement_remarks(agreements: Sequence[AspectAgreement], by_aspect: Mapping[str, JudgeReport]) -> list[str]:
    """Remarks that a reader needs with the share of agreement."""
    remarks = one_way_remarks(by_aspect)
    fewest = min(agreement.numbers.n for agreement in agreements)
    if fewest < FEW:
        remarks.append(f"Based on as few as {count_phrase(fewest, 'comparison')}: it may change with more data.")
    return [*remarks, *coverage_remarks(by_aspect), *failed_call_remarks(by_aspect)]


def one_way_remarks(by_aspect: Mapping[str, JudgeReport]) -> list[str]:
    """Remarks on judges or people that always make the same choice."""
    aspects_by_side: dict[tuple[str, int], list[str]] = {}
    for name, report in by_aspect.items():
        counts = {
            choice: sum(row) for choice, row in zip(report.confusion.choices, report.confusion.counts, strict=True)
        }
        counts = {choice: n for choice, n in counts.items() if n}
        if len(counts) == 1 and not has_ties_for_failures(report) and (n := sum(counts.values())) >= MIN_ONE_WAY:
            aspects_by_side.setdefault((next(iter(counts)), n), []).append(name.lower())
    remarks = []
    for (choice, n), names in aspects_by_side.items():
        about = f" for {join_words(names)}" if len(by_aspect) > 1 else ""
        remarks.append(f"It chose {choice.replace('_', ' ')} on all {n:,} of these comparisons{about}.")
    return remarks


def coverage_remarks(by_aspect: Mapping[str, JudgeReport]) -> list[str]:
    """Remarks on the number of comparisons with a verdict, on the aspect with fewest."""
    name, fewest = min(
        ((name, report.coverage) for name, report in by_aspect.items()), key=lambda named: named[1].judged
    )
    if fewest.judged >= fewest.comparisons:
        return []
    differs = len({report.coverage.judged for report in by_aspect.values()}) > 1
    about = f" for {name.lower()} (fewest)" if differs else ""
    ties = ", and missing verdicts of failed calls count as ties" if has_ties_for_failures(by_aspect[name]) else ""
    return [f"It has a verdict on {fewest.judged:,} of {count_phrase(fewest.comparisons, 'comparison')}{about}{ties}."]


def has_ties_for_failures(report: JudgeReport) -> bool:
    return report.verdicts > report.coverage.judged


def failed_call_remarks(by_aspect: Mapping[str, JudgeReport]) -> list[str]:
    """The calls without an answer, of the aspect that has most of them, and those of aspects without a verdict."""
    calls = max((report.failed for report in by_aspect.values()), key=lambda failed: failed.calls)
    remarks = [f"{calls.in_words[0].upper()}{calls.in_words[1:]}."] if calls.in_words else []
    if calls.elsewhere:
        remarks.append(f"{count_phrase(calls.elsewhere, 'call')} failed on aspects without a verdict.")
    return remarks
