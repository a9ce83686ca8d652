"""Where a judge may differ from a label, told by SQL: never too little, and seldom too much.

What several orders and samples say together is decided by `consolidating`; asked of all labels
that would be read for every page. These conditions leave it the comparisons that are worth asking about.
"""

from typing import Final

from django.db.models import Aggregate, Avg, Case, F, FloatField, Max, Min, OuterRef, Q, QuerySet, Subquery, Value, When

from evaluations.domain import Choice
from evaluations.models import Label, Rater, Score, Verdict
from evaluations.services.judging.consolidating import rules_of, scorers

# Means are not exact in binary: a label so near the margin is asked about too.
NEARLY: Final = 1e-6


def may_differ(rows: QuerySet[Label], judge: Rater) -> QuerySet[Label]:
    """Those of the labels with a choice from which this judge's verdict may differ."""
    if judge.judge is not None and judge.judge.is_pointwise:
        return scores_may_differ(rows, judge)
    if scorers([judge]):
        chosen, scored = verdicts_may_differ(rows, judge), scores_may_differ(rows, judge)
        return rows.filter(Q(pk__in=chosen.values("pk")) | Q(pk__in=scored.values("pk")))
    return verdicts_may_differ(rows, judge)


def verdicts_may_differ(rows: QuerySet[Label], judge: Rater) -> QuerySet[Label]:
    """Its verdicts are all one other choice; or they are several, which for a tie matters only among samples.

    Scalar subqueries: PostgreSQL would make a hash of all the judge's verdicts for each EXISTS.
    """
    rows = rows.alias(low=over_verdicts(judge, Min("choice")), high=over_verdicts(judge, Max("choice")))
    rows = rows.alias(most_samples=over_verdicts(judge, Max("sample")))
    another = Q(low__lt=F("choice")) | Q(low__gt=F("choice"))
    several = Q(low__lt=F("high"))
    return rows.filter((Q(low=F("high")) & another) | (several & (~Q(choice=Choice.TIE) | Q(most_samples__gt=0))))


def over_verdicts(judge: Rater, of: Aggregate) -> Subquery:
    """That aggregate of the judge's verdicts on the label's comparison and aspect."""
    said = Verdict.objects.filter(comparison=OuterRef("comparison"), aspect=OuterRef("aspect"), rater=judge)
    return Subquery(said.order_by().values("comparison").annotate(told=of).values("told"))


def scores_may_differ(rows: QuerySet[Label], judge: Rater) -> QuerySet[Label]:
    """The difference of its mean scores lies elsewhere than the label says, or so near the margin that it may."""
    rules = {aspect: rule for (_, aspect), rule in rules_of([judge]).items()}
    margins = [When(aspect=aspect, then=Value(rule.margin)) for aspect, rule in rules.items()]
    turned = [When(aspect=aspect, then=Value(-1.0)) for aspect, rule in rules.items() if rule.lower_is_better]
    apart = mean_of(judge, "comparison__response_a") - mean_of(judge, "comparison__response_b")
    rows = rows.alias(
        apart=apart * Case(*turned, default=Value(1.0), output_field=FloatField()),
        margin=Case(*margins, default=Value(0.0), output_field=FloatField()),
    )
    not_a, not_b = Q(apart__lt=F("margin") + NEARLY), Q(apart__gt=-F("margin") - NEARLY)
    no_tie = Q(apart__gt=F("margin") - NEARLY) | Q(apart__lt=NEARLY - F("margin"))
    return rows.filter(
        Q(Q(choice=Choice.A), not_a)
        | Q(Q(choice=Choice.B), not_b)
        | Q(Q(choice=Choice.TIE), no_tie)
        | Q(choice=Choice.BOTH_BAD, apart__isnull=False)
    )


def mean_of(judge: Rater, response: str) -> Subquery:
    scores: QuerySet[Score] = Score.objects.filter(rater=judge, response=OuterRef(response), aspect=OuterRef("aspect"))
    return Subquery(scores.order_by().values("response").annotate(mean=Avg("value")).values("mean"))
