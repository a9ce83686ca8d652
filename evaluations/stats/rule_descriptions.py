"""The rules of the numbers in words, as every report prints them."""

from typing import Final

from evaluations.domain.reports import FailedRule, ReportRules, SeenRule, SideCoding, SplitRule

SPLIT: Final = {
    SplitRule.TIE: "Where no single choice leads among the votes, the majority counts as a tie. Agreement on an "
    "aspect whose rubric offers no tie leaves such a comparison out.",
    SplitRule.DROP: "Where no single choice leads among the votes, the comparison is left out.",
    SplitRule.FIRST: "Where no single choice leads among the votes, the leading choice that was made first counts.",
}
FAILED: Final = {
    FailedRule.EXCLUDE: "A verdict that is missing because calls failed is left out, and counted as failed.",
    FailedRule.TIE: "A verdict that is missing because calls failed counts as a tie, and as failed all the same; so "
    "does a choice in one order.",
}
SEEN: Final = {
    SeenRule.NOTHING: "People's votes count that were given before the judge was seen, and imported ones.",
    SeenRule.BLIND: "Only votes of people count that are known to have been given before the judge was seen.",
    SeenRule.JUDGE: "Only votes of people count that were given after the judge was seen: they are no independent "
    "check.",
}
CODING: Final = {
    SideCoding.CANDIDATE: "A is the candidate whose name sorts first, wherever its response was shown.",
    SideCoding.SHOWN: "Sides are first and second shown. Only comparisons count that everyone compared saw in the same "
    "known order; a verdict from both orders has none.",
}
ALWAYS: Final = {
    "judge": "A judge has one verdict on a comparison: in each order the choice of most samples, and where two orders "
    "differ a tie, marked inconsistent. An order that was asked and not answered makes the verdict missing.",
    "scores": "A judge that scores single responses has a derived choice between two: the one with the higher mean "
    "score over its samples, a tie where the means differ by at most the margin that stands with its name. Without a "
    "score of either there is none.",
    "panel": "A panel is judges that were started together: its choice is that of more than half of those that have "
    "one, else a tie. Where fewer than half of its judges have one it is missing.",
    "people": "First choices count, from reviews made before the judge was seen. Imported votes count too; whether "
    "they were blind is not known. Reviews that saw the judge first stand in a block of their own.",
    "drawn": "Estimates use votes on comparisons that were drawn at random, each with the same weight. Where rounds "
    "drew equally from categories or pairs of candidates these count too, and in win rates and rankings a comparison "
    "stands for (all comparisons of its group) ÷ (those of them that count). Votes on what a strategy picked, or what "
    "was opened by hand, are left out and counted until the random order reaches the comparison; so is calibration. "
    "Imported votes are assumed to be of a random sample.",
    "responses": "People's scores of single responses count by the same rules as votes: first ones, by what was known "
    "of the judge, how the comparison was drawn and the day, and of several reviews of a comparison the newest. Scores "
    "from files, given on the day their file came in, and scores of judges count where the response stands in one of "
    "these comparisons, or in none and fits the filters.",
    "anchoring": "An effect of seeing the judge is claimed only where blind or shown was drawn at random for each "
    "comparison: it is the agreement of votes with the shown judge, those drawn to see it minus those drawn blind. "
    "Where reviews were shown different judges, each judge stands apart with the reviews that were shown it.",
    "majority": "The majority is the choice of most votes.",
    "ties": "With ties every choice is a category. Without ties the majority is taken first, then comparisons are "
    "dropped where either side is a tie or both bad; the share dropped is printed.",
    "chance": "AC1 counts the choices that the rubric offers, two without ties. An imported rubric offers A, B and "
    "whatever else occurs.",
    "gold": "Gold is held against judges alone and is never a person. Gold labels that contradict each other count "
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
        **ALWAYS,
    }


def describe_raters(rules: ReportRules) -> str:
    sentences = [] if rules.raters == "*" else [f"Only raters whose name matches “{rules.raters}”."]
    for names, kind in ((rules.judges, "judges"), (rules.reviewers, "people")):
        if names:
            sentences.append(f"Of {kind} only {', '.join(f'“{name}”' for name in names)}.")
    return " ".join(sentences) or "Everyone counts, but for archived judges."


def describe_votes(rules: ReportRules) -> str:
    since = f" from {rules.since}" if rules.since else ""
    until = f" until {rules.until}" if rules.until else ""
    return f"{SEEN[rules.seen]}{f' Only votes{since}{until} count.' if since or until else ''}"


def describe_comparisons(rules: ReportRules) -> str:
    sentences = []
    if rules.sliced:
        sentences.append(f"Only comparisons of the slice {rules.sliced.in_words()}.")
    if rules.part:
        sentences.append(
            f"Only the {rules.part} part of the evaluation's own split (train 80 %, dev 10 %, test 10 % of clusters; "
            "clusters that share a query word for word are in one part)."
        )
    if rules.where:
        sentences.append(
            "Only comparisons where " + " and ".join(f"{key} is “{value}”" for key, value in rules.where) + "."
        )
    return " ".join(sentences) or "Every comparison counts."
