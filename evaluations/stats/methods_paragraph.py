"""The paragraph of a report for a paper's methods section."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

import numpy as np

from evaluations.domain.choices import ScoreRule
from evaluations.domain.reports import FailedRule, ReportPart, ReportRules, SeenRule, SideCoding, SplitRule
from evaluations.stats.aspect_facts import AspectFacts
from evaluations.stats.confidence_intervals import BOOTSTRAP_UP_TO, MIN_CLUSTERS, MIN_DISAGREEING, RESAMPLES
from evaluations.stats.pass_rates import PassRule
from evaluations.stats.phrases import count_phrase, join_words
from evaluations.stats.score_report import AspectScores

SPLIT: Final = {
    SplitRule.TIE: "counted as a tie",
    SplitRule.DROP: "excluded",
    SplitRule.FIRST: "decided by the earliest of the leading choices",
}
VOTES: Final = {
    SeenRule.BLIND: "Only choices recorded before the judge's verdict was shown were used.",
    SeenRule.JUDGE: "Only choices recorded after the judge's verdict was shown were used.",
}
SCORES: Final = {
    SeenRule.BLIND: "Only scores recorded before the judge's answer was shown were used.",
    SeenRule.JUDGE: "Only scores recorded after the judge's answer was shown were used.",
}
COEFFICIENTS: Final = (
    "We report raw agreement, Cohen's kappa (Cohen 1960) and Gwet's AC1 (Gwet 2008) with ties as a category and, "
    "dropping comparisons on which either side is a tie, without"
)
AMONG_PEOPLE: Final = (
    "; among reviewers also Krippendorff's alpha (Krippendorff 2004) and Fleiss' kappa (Fleiss 1971) if every "
    "comparison has the same number of votes"
)
CEILING: Final = (
    "To compare a judge with reviewers, we leave out one reviewer at a time and compare both the judge and that "
    "reviewer with the majority of the remaining reviewers on the same comparisons. We claim a difference only if its "
    "interval, simultaneous over all aspects and judges, excludes 0 (max-|t| bootstrap of clusters; for few clusters "
    "t tests adjusted by Holm 1979)."
)
PASS_REFERENCE: Final = (
    "The reference is the result of more than half of its reviewers, and responses with an even split are excluded. "
    "TPR and TNR have intervals by Wilson with the design effect; pass rates corrected by them (Rogan and Gladen 1978) "
    "have Fieller's (1954), with the errors of TPR, TNR and the judge's pass rate by cluster."
)
CORRECTED_SCORES: Final = (
    "Means from reviewers and a judge together, and differences between candidates, are prediction-powered (PPI++, "
    "Angelopoulos, Duchi and Zrnic 2023), with t over the reviewed clusters."
)
SCORE_CEILING: Final = (
    "To compare a judge's scores with reviewers', we leave out one reviewer at a time and compare both with the mean "
    "of the remaining reviewers on the same responses; the alternative annotator test takes S = −|difference| and "
    "−RMSE."
)
INTERVALS: Final = (
    "All intervals are 95% and treat clusters of comparisons as the sampling unit. They are pointwise; clusters "
    "of uneven size count as the effective number (Σn)² ÷ Σn²."
)
# Of each part in its own words; those that name the bootstrap or Wilson's interval have it described after them.
OF_PART: Final = {
    ReportPart.DECISIONS: (
        "A judge can stand in for a reviewer if its agreement with each reviewer is shown to be close to that of a "
        "left-out reviewer, averaged over the aspects (equal choices count 1, a tie and a side ½, opposite sides and "
        "failed calls 0), by one-sided studentised bootstraps of clusters at 5% divided by the number of judges; "
        "aspects step down by the largest t (Romano and Wolf 2005)."
    ),
    ReportPart.AGREEMENT: (
        "Agreement and its coefficients have intervals by bootstrap; below "
        f"{MIN_CLUSTERS} clusters, or with fewer than {MIN_DISAGREEING} that have a disagreement or an agreement, "
        "shares have Wilson's interval and coefficients have none. How often a judge's two orders agree and how often "
        "they contradict each other has Wilson's interval, and how often the response shown first is chosen is "
        "linearised by cluster, with t."
    ),
    ReportPart.WINS: (
        f"Win rates have intervals of t with the variance by cluster, and Wilson's below {MIN_CLUSTERS} clusters or "
        f"if fewer than {MIN_DISAGREEING} have anything but the most common outcome. Win rates from reviewers and "
        "judge together are prediction-powered (PPI++, Angelopoulos, Duchi and Zrnic 2023), with t over the reviewed "
        "clusters. Scores of a ranking (Bradley and Terry 1952) have intervals by bootstrap; those corrected by "
        "reviewers, and win rates at equal length, are linearised by cluster, with t."
    ),
    ReportPart.BIAS: (
        "In the bias part, shares have Wilson's interval; differences from reviewers, slopes by length, and how often "
        f"the response shown first is chosen are linearised by cluster, with t. Below {MIN_CLUSTERS} clusters, or with "
        f"fewer than {MIN_DISAGREEING} that differ, the last has Wilson's and the others none."
    ),
    ReportPart.PEOPLE: (
        "Agreement of single reviewers, and over time, has Wilson's interval; kappas of single reviewers are "
        "linearised by cluster, with t. The alternative annotator test (Calderon, Reichart and Dror 2025) is a "
        "one-sided t test over comparisons, and over means of clusters where clusters repeat, corrected for several "
        "reviewers by Benjamini and Yekutieli (2001); the judge's mean advantage has its interval by bootstrap."
    ),
    ReportPart.JUDGES: (
        "Two judges are tested by exact McNemar where every cluster holds one comparison, else by flipping the signs "
        "of whole clusters, corrected for several aspects by Holm (1979). Their agreement and its difference have "
        f"intervals by bootstrap; below {MIN_CLUSTERS} clusters, or with fewer than {MIN_DISAGREEING} that differ, "
        "agreement has Wilson's and the difference none. A judge's confidence has Wilson's interval in each bin, "
        "the calibration error one from draws of the bins' noise by cluster, and the Brier score one by bootstrap."
    ),
    ReportPart.SCORES: (
        "Mean scores have intervals of t, with variances by the jackknife of clusters. Other numbers of scores have "
        "them by bootstrap; rank correlations and ordinal alpha of more than eleven values are linearised by cluster. "
        f"Below {MIN_CLUSTERS} clusters mean differences have intervals of t, and these others none."
    ),
}
WILSON: Final = (
    "Wilson's interval (Wilson 1927) has the design effect (Kish 1965) and t on clusters − 1 degrees of freedom."
)
BOOTSTRAP: Final = (
    f"The bootstrap is of clusters, bias-corrected and accelerated ({RESAMPLES:,} resamples with Poisson weights, "
    f"fixed seed); above {BOOTSTRAP_UP_TO:,} clusters, or where a few large ones dominate, cluster-robust "
    "linearisation replaces it."
)


def methods_paragraph(
    facts: Mapping[str, AspectFacts],
    scores: Mapping[str, AspectScores],
    clusters: int,
    rules: ReportRules,
    parts: Collection[ReportPart],
    *,
    excluded_reviewers: int = 0,
) -> str:
    """The paragraph, empty without verdicts or scores. ``excluded_reviewers``: how many the owner excluded."""
    excluded = describe_excluded_reviewers(excluded_reviewers, rules, is_decided=bool(facts))
    if not facts:
        described = [*describe_scores_alone(scores), *describe_scores(scores, rules), *excluded] if scores else []
        return " ".join([*described, *describe_intervals(parts)]) if scores else ""
    measured = []
    if {ReportPart.AGREEMENT, ReportPart.METHODOLOGY}.intersection(parts):
        measured.append(f"{COEFFICIENTS}{AMONG_PEOPLE if any(fact.voted_by_two for fact in facts.values()) else ''}.")
        measured += [CEILING] * any(fact.judged_and_voted for fact in facts.values())
    return " ".join(
        [
            describe_study(facts, clusters, rules),
            *describe_derived_choices(facts),
            *describe_ratings(facts, rules),
            *describe_scores(scores, rules),
            *excluded,
            *measured,
            *describe_intervals(parts),
        ]
    )


def describe_intervals(parts: Collection[ReportPart]) -> list[str]:
    """Sentences on the intervals of the numbers of these parts."""
    parts_used = [words for part, words in OF_PART.items() if part in parts]
    described = [WILSON] * any("Wilson" in words for words in parts_used)
    described += [BOOTSTRAP] * any("bootstrap" in words for words in parts_used)
    return [INTERVALS, *parts_used, *described] if parts_used else []


def describe_study(facts: Mapping[str, AspectFacts], clusters: int, rules: ReportRules) -> str:
    items = next(iter(facts.values())).items
    names = [fact.name.lower() for fact in facts.values()]
    about = f"on {join_words(names)}" if len(names) < 8 else f"on {len(names)} aspects"
    pairs, groups = count_phrase(items, "pair"), count_phrase(clusters, "cluster")
    part = f", the {rules.part} part of a split by cluster," if rules.part else ""
    return f"We compared {pairs} of responses in {groups}{part} {about}."


def describe_scores_alone(scores: Mapping[str, AspectScores]) -> Iterator[str]:
    """Sentences on an evaluation without comparisons."""
    counts = [np.unique(score.people.unit) for score in scores.values()]
    counts += [np.flatnonzero(~np.isnan(values)) for score in scores.values() for values in score.judges.values()]
    responses = np.unique(np.concatenate(counts))
    names, cluster = [score.name.lower() for score in scores.values()], next(iter(scores.values())).cluster
    clusters = len(np.unique(cluster[responses]))
    yield (
        f"Scores of {count_phrase(len(responses), 'single response')} in "
        f"{count_phrase(clusters, 'cluster')} on {join_words(names)} were compared."
    )


def describe_derived_choices(facts: Mapping[str, AspectFacts]) -> Iterator[str]:
    """How choices were derived from scores: one sentence for each rule."""
    by_rule: dict[tuple[ScoreRule, bool], list[str]] = {}
    for fact in facts.values():
        for rule in fact.score_rules:
            by_rule.setdefault((rule, fact.is_chosen), []).append(fact.name.lower())
    for (rule, is_chosen), names in by_rule.items():
        better = "lower" if rule.lower_is_better else "higher"
        tie = f"scores that differ by {rule.margin:g} or less" if rule.margin else "equal scores"
        yield (
            f"{'Some choices' if is_chosen else 'Choices'} on {join_words(names)} were derived from scores of the two "
            f"responses: the {better} score wins, and {tie} make a tie; of a judge's several scores of a response the "
            "mean counts."
        )


def describe_ratings(facts: Mapping[str, AspectFacts], rules: ReportRules) -> list[str]:
    """Sentences on people, gold labels and judges, on splits and on failures."""
    people: set[str] = set().union(*(fact.people for fact in facts.values()))
    sentences = []
    if people:
        votes, voted = max(fact.votes for fact in facts.values()), max(fact.voted for fact in facts.values())
        on = f" of up to {count_phrase(voted, 'pair')}" if voted < next(iter(facts.values())).items else ""
        sentences.append(f"{people_phrase(people)} cast up to {count_phrase(votes, 'vote')} on an aspect{on}.")
        sentences += describe_blindness(
            [(fact.blind, fact.votes - fact.blind) for fact in facts.values()], "choice", rules, VOTES
        )
        sentences += describe_reference(facts, rules)
    sentences += describe_excluded_votes(facts)
    if any(fact.labels for fact in facts.values()):
        labels = max(fact.labels for fact in facts.values())
        also = " also" if people else ""
        sentences.append(
            f"Judges are{also} compared with gold labels, on up to {count_phrase(labels, 'pair')} an aspect."
        )
    sentences += describe_judge_verdicts(facts, rules)
    if rules.coding is SideCoding.SHOWN:
        sentences.append("Sides are the first and the second response shown.")
    return sentences


def describe_excluded_votes(facts: Mapping[str, AspectFacts]) -> Iterator[str]:
    counts = (
        (max(fact.saw_judge_first for fact in facts.values()), "of reviewers who saw a judge's answer first"),
        (max(fact.not_drawn for fact in facts.values()), "on comparisons that were not drawn at random"),
    )
    phrases = [f"up to {count_phrase(number, 'vote')} {reason}" for number, reason in counts if number]
    if phrases:
        yield f"Excluded on an aspect are {join_words(phrases)}."


def describe_excluded_reviewers(number: int, rules: ReportRules, *, is_decided: bool) -> Iterator[str]:
    """``is_decided``: whether there are decisions, which are reported with and without these reviewers."""
    if not number:
        return
    who = count_phrase(number, "reviewer")
    if rules.with_excluded:
        yield f"These numbers include {who} whom we excluded from the main results after screening."
        return
    both = "; decisions are reported with and without them" if is_decided else ""
    yield (
        "After screening reviewers for copied, random, inverted, one-sided and too fast choices, we excluded "
        f"{who}{both}."
    )


def describe_blindness(
    counts: list[tuple[int, int]], noun: str, rules: ReportRules, by_rule: Mapping[SeenRule, str]
) -> list[str]:
    """A sentence on blindness. ``counts``: how many votes are known to be blind, and how many are not."""
    if rules.seen in by_rule:
        return [by_rule[rules.seen]]
    blind, unknown = (sum(column) for column in zip(*counts, strict=True))
    sentences = [f"{noun.capitalize()}s were recorded before a judge's answer was shown."] if blind else []
    if unknown:
        too = " too" if blind else ""
        sentences.append(
            f"For imported {noun}s it is unknown whether a judge's answer was seen first; they count{too}."
        )
    return sentences


def describe_reference(facts: Mapping[str, AspectFacts], rules: ReportRules) -> Iterator[str]:
    """The majority, and what becomes of a split, aspect by aspect where a rubric offers no tie."""
    dropped = [fact.name.lower() for fact in facts.values() if fact.splits_are_dropped and fact.people]
    voted = sum(bool(fact.people) for fact in facts.values())
    became = SPLIT[rules.split_rule]
    if dropped and rules.split_rule is SplitRule.TIE:
        without = SPLIT[SplitRule.DROP]
        became = f"{became}, and {without} from agreement on {join_words(dropped)}, which offered no tie"
        if len(dropped) == voted:
            became = f"{without} from agreement, since no tie was offered, and {SPLIT[rules.split_rule]} elsewhere"
    if any(fact.voted_by_two or fact.votes > fact.voted for fact in facts.values()):
        yield (
            f"The reference is the plurality of their votes; if no single choice leads, the comparison was {became}."
        )
    else:
        yield "The reference is their vote; no pair has two."


def describe_judge_verdicts(facts: Mapping[str, AspectFacts], rules: ReportRules) -> Iterator[str]:
    judges = {name for fact in facts.values() for name in fact.judges}
    choosing = sorted(set().union(*(fact.choosing for fact in facts.values())))
    if choosing:
        yield (
            f"The verdict of a judge ({join_words(choosing)}) is the plurality of its samples in each order; orders "
            "that differ count as a tie."
        )
    if judges and any(fact.panels for fact in facts.values()):
        yield "The verdict of a panel is that of more than half of its judges with a verdict, else a tie."
    fewest: dict[str, int] = {}
    for fact in facts.values():
        for name, verdicts in fact.partial.items():
            fewest[name] = min(verdicts, fewest.get(name, verdicts))
    if fewest:
        items = next(iter(facts.values())).items
        counts = [f"{verdicts:,} from {name}" for name, verdicts in sorted(fewest.items())]
        pairs = count_phrase(items, "pair")
        yield f"Not all of the {pairs} have a verdict: on an aspect as few as {join_words(counts)}."
    failures = max(fact.failures for fact in facts.values())
    if failures:
        became = "excluded" if rules.failed is FailedRule.EXCLUDE else "counted as ties"
        yield (
            f"Up to {count_phrase(failures, 'call')} of a judge failed; verdicts missing for this reason were {became}."
        )
    silent = sorted({name for fact in facts.values() for name in fact.unanswered} - judges)
    if silent:
        yield f"No call of {join_words(silent)} was answered."


def describe_scores(scores: Mapping[str, AspectScores], rules: ReportRules) -> list[str]:
    """Sentences on people who scored single responses."""
    people = {score.names[rater] for score in scores.values() for rater in np.unique(score.people.rater).tolist()}
    if not people:
        return []
    most = max(len(score.people.value) for score in scores.values())
    blindness = describe_blindness(
        [(score.counts.blind, score.counts.unknown) for score in scores.values()], "score", rules, SCORES
    )
    return [
        f"{people_phrase(people)} entered up to {count_phrase(most, 'score')} of single responses on an aspect.",
        *blindness,
        "Several scores of a response by one reviewer count as their mean.",
        *describe_passes(scores, rules),
        *describe_corrected_scores(scores),
    ]


def describe_passes(scores: Mapping[str, AspectScores], rules: ReportRules) -> Iterator[str]:
    """What passes, one sentence for each threshold, and whose result is the reference."""
    by_rule: dict[PassRule, list[str]] = {}
    for score in scores.values():
        if (rule := score.pass_rule(rules.pass_from)) is not None:
            by_rule.setdefault(rule, []).append(score.name.lower())
    for rule, names in by_rule.items():
        direction = "up to" if rule.lower_is_better else "from"
        yield f"On {join_words(names)}, a response passes {direction} a score of {rule.pass_from:g}."
    if by_rule:
        yield PASS_REFERENCE


def describe_corrected_scores(scores: Mapping[str, AspectScores]) -> Iterator[str]:
    if any(score.judges and len(score.people.value) for score in scores.values()):
        yield CORRECTED_SCORES
        yield SCORE_CEILING


def people_phrase(people: Collection[str]) -> str:
    return "1 reviewer" if len(people) == 1 else f"{len(people):,} reviewers"
