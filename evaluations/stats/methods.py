"""A paragraph for a paper's methods section, made of the rules in force and of what there is."""

from collections.abc import Mapping
from typing import Final

from evaluations.domain import Coding, FailedRule, Rules, Seen, SplitRule
from evaluations.stats.bootstrap import RESAMPLES
from evaluations.stats.intervals import BOOTSTRAP_UP_TO, LEAST_CLUSTERS, LEAST_DISAGREEING
from evaluations.stats.report import AspectMaterial, AspectReport

SPLIT: Final = {
    SplitRule.TIE: "counted as a tie",
    SplitRule.DROP: "left out",
    SplitRule.FIRST: "decided by the leading choice that was made first",
}
VOTES: Final = {
    Seen.NOTHING: "Choices were recorded before the judge's verdict was shown; imported labels, of which this is not "
    "known, count too.",
    Seen.BLIND: "Only choices recorded before the judge's verdict was shown were used.",
    Seen.JUDGE: "Only choices recorded after the judge's verdict was shown were used.",
}
COEFFICIENTS: Final = (
    "We report raw agreement, Cohen's kappa (Cohen 1960) and Gwet's AC1 (Gwet 2008) with ties as a category and, "
    "dropping comparisons on which either side is a tie, without; among people also Krippendorff's alpha "
    "(Krippendorff 2004) and Fleiss' kappa (Fleiss 1971) where every comparison has equally many votes."
)
CEILING: Final = (
    "To compare a judge with people we leave out one person at a time and hold both the judge and that person against "
    "the majority of the remaining people on the same comparisons."
)
INTERVALS: Final = (
    "All intervals are 95 % and treat clusters of comparisons as the sampling unit: a bias-corrected, accelerated "
    f"bootstrap of clusters ({RESAMPLES:,} resamples with Poisson weights, fixed seed), above {BOOTSTRAP_UP_TO:,} "
    f"clusters cluster-robust linearisation. Below {LEAST_CLUSTERS} clusters, or with fewer than {LEAST_DISAGREEING} "
    "that hold a disagreement or an agreement, shares have Wilson's interval with the design effect, and coefficients "
    "have none."
)


def methods(
    materials: Mapping[str, AspectMaterial], aspects: Mapping[str, AspectReport], clusters: int, rules: Rules
) -> str:
    """Empty where nobody has given a verdict."""
    if not materials:
        return ""
    return " ".join([studied(materials, clusters), *said(materials, aspects, rules), COEFFICIENTS, CEILING, INTERVALS])


def studied(materials: Mapping[str, AspectMaterial], clusters: int) -> str:
    items = next(iter(materials.values())).items
    names = [one.name.lower() for one in materials.values()]
    about = f"on {listed(names)}" if len(names) < 8 else f"on {len(names)} aspects"
    return f"We compared {items:,} pairs of responses in {clusters:,} clusters {about}."


def said(materials: Mapping[str, AspectMaterial], aspects: Mapping[str, AspectReport], rules: Rules) -> list[str]:
    """Of people, of judges, and of what became of splits and failures."""
    people = {name for one in materials.values() for name in one.names}
    judges = sorted({judge.name for one in materials.values() for judge in one.judges})
    votes = max((len(one.people) for one in materials.values()), default=0)
    sentences = []
    if votes:
        sentences.append(f"{len(people)} people gave up to {votes:,} votes on an aspect. {VOTES[rules.seen]}")
        sentences.append(
            "The reference is the plurality of their votes; where no choice leads alone the comparison was "
            f"{SPLIT[rules.split_rule]}."
        )
    if judges:
        failures = max((judge.failed.calls for one in aspects.values() for judge in one.judges.values()), default=0)
        became = "left out" if rules.failed is FailedRule.EXCLUDE else "counted as ties"
        sentences.append(
            f"The verdict of a judge ({listed(judges)}) is the plurality of its samples in each order; orders that "
            f"differ make a tie. Verdicts missing because calls failed (up to {failures:,} of a judge) were {became}."
        )
    if rules.coding is Coding.SHOWN:
        sentences.append("Sides are the first and the second response shown.")
    return sentences


def listed(names: list[str]) -> str:
    """“a, b and c”."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
