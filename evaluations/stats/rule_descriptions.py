"""Sentences that describe the rules of a report."""

from collections.abc import Sequence
from datetime import date
from typing import Final

from evaluations.domain.reports import ExcludedReviewer, FailedRule, ReportRules, SeenRule, SideCoding, SplitRule

SPLIT: Final = {
    SplitRule.TIE: "If no single choice leads, the majority is a tie. If the rubric offers no tie for the aspect, "
    "agreement excludes the comparison.",
    SplitRule.DROP: "If no single choice leads, the comparison is excluded.",
    SplitRule.FIRST: "If no single choice leads, the leading choice that was made first counts.",
}
FAILED: Final = {
    FailedRule.EXCLUDE: "A verdict that is missing because calls failed is excluded and counted as failed.",
    FailedRule.TIE: "A verdict that is missing because calls failed counts as a tie and as failed. The same applies to "
    "a choice in one order.",
}
SEEN: Final = {
    SeenRule.NOTHING: "Human votes from before the judge was seen count, and imported votes.",
    SeenRule.BLIND: "Only human votes that are known to be from before the judge was seen count.",
    SeenRule.JUDGE: "Only human votes from after the judge was seen count. They are not an independent check.",
}
CODING: Final = {
    SideCoding.CANDIDATE: "A is the model whose name sorts first, regardless of the order shown.",
    SideCoding.SHOWN: "Sides are first and second shown. A comparison counts if all raters compared saw it in the same "
    "known order; a verdict from both orders has no order.",
}
ALWAYS: Final = {
    "judge": "A judge has one verdict per comparison: in each order the choice of most samples. If two orders differ, "
    "it is a tie, marked inconsistent. If an order was requested and not answered, the verdict is missing.",
    "scores": "A judge of single responses has a derived choice: the response with the higher mean score over its "
    "samples, or a tie if the means differ by no more than the margin shown with its name. If either response has no "
    "score, there is no choice.",
    "panel": "A panel is a set of judges that were started together. Its choice is that of more than half of its "
    "judges with a choice, else a tie. If fewer than half have one, it is missing.",
    "people": "First choices count, from reviews before the judge was seen. Imported votes count too, although it is "
    "unknown whether they were blind. Reviews that saw the judge first are reported separately.",
    "drawn": "Estimates use votes on comparisons that were drawn at random, all with the same weight. Votes from "
    "queues with stratified random draws count too; if there are any, win rates and rankings weight each comparison by "
    "(all comparisons of its stratum) ÷ (those that count). Votes on comparisons that a strategy selected or a "
    "reviewer opened are excluded and counted until the random order reaches the comparison; calibration is always "
    "excluded. Imported votes and scores are assumed to be a random sample.",
    "responses": "Human scores of single responses follow the rules for votes. Of several reviews of a comparison, the "
    "newest counts. Imported scores, dated by the import of their file, and scores of judges count if the response is "
    "in one of these comparisons, or is in none and matches the filters. If there are stratified random draws, mean "
    "scores and pass rates weight each response by (all responses whose comparisons are in the same strata) ÷ (those "
    "that count).",
    "anchoring": "An effect of seeing the judge is claimed only if each comparison was randomly assigned to be "
    "reviewed blind or with the judge shown. It is agreement with the shown judge when shown, minus agreement when "
    "blind, for each judge separately.",
    "majority": "The majority is the choice of most votes.",
    "ties": "With ties, every choice is a category. Without ties, the majority is taken first; then comparisons with a "
    "tie or “both bad” on either side are dropped, and their share is reported.",
    "chance": "AC1 counts the choices that the rubric offers, two without ties. An imported rubric offers A, B and any "
    "other choice that occurs.",
    "gold": "Gold labels are compared with judges only and never count as a reviewer. Contradicting gold labels count "
    "as none.",
}


def describe_rules(rules: ReportRules) -> dict[str, str]:
    return {
        "raters": describe_raters(rules),
        "votes": describe_votes(rules),
        "comparisons": describe_comparisons(rules),
        "coding": CODING[rules.coding],
        "split": SPLIT[rules.split_rule],
        "failed": FAILED[rules.failed],
        "pass": describe_passes(rules),
        **ALWAYS,
    }


def describe_passes(rules: ReportRules) -> str:
    if rules.pass_from is None:
        return (
            "A single response passes with the better score of a scale of two. On other scales, pass rates need a "
            "threshold."
        )
    return (
        f"A single response passes from a score of {rules.pass_from:g}, or up to it where lower scores are better. "
        "Decisions on judges of single responses are based on the scores, not on this threshold."
    )


def describe_raters(rules: ReportRules) -> str:
    sentences = [] if rules.raters == "*" else [f"Only raters whose name matches “{rules.raters}”."]
    for names, kind in ((rules.judges, "judges"), (rules.reviewers, "reviewers")):
        if names:
            sentences.append(f"Only these {kind}: {', '.join(f'“{name}”' for name in names)}.")
    return " ".join(sentences) or "All raters count, except archived judges."


def describe_excluded_reviewers(
    rules: ReportRules, excluded: Sequence[ExcludedReviewer], *, are_named: bool = True
) -> str:
    """A sentence on the reviewers whom the owner excluded, empty without any. ``are_named``: else counted."""
    if not excluded:
        return ""
    names = ", ".join(f"“{reviewer.name}” ({format_day(reviewer.day)})" for reviewer in excluded)
    who = names if are_named else f"{len(excluded):,} reviewer{'s' * (len(excluded) > 1)}"
    return f"{'Included, but excluded' if rules.with_excluded else 'Excluded'} by the owner: {who}."


def format_day(day: date) -> str:
    return f"{day:%b} {day.day}, {day.year}"


def describe_votes(rules: ReportRules) -> str:
    since = f" from {rules.since}" if rules.since else ""
    until = f" until {rules.until}" if rules.until else ""
    return f"{SEEN[rules.seen]}{f' Only votes{since}{until} count.' if since or until else ''}"


def describe_comparisons(rules: ReportRules) -> str:
    sentences = []
    if rules.saved_filter:
        sentences.append(f"Only comparisons of the saved filter {rules.saved_filter.in_words()}.")
    if rules.part:
        sentences.append(
            f"Only the {rules.part} part of the evaluation's split (80% of clusters train, 10% dev, 10% test; clusters "
            "with an identical query are in the same part)."
        )
    if rules.where:
        sentences.append(
            "Only comparisons where " + " and ".join(f"{key} is “{value}”" for key, value in rules.where) + "."
        )
    return " ".join(sentences) or "All comparisons count."
