"""SQL conditions for labels that a judge's verdict may differ from."""

from typing import Final

from django.db.models import Aggregate, Avg, Case, F, FloatField, Max, Min, OuterRef, Q, QuerySet, Subquery, Value, When

from evaluations.domain.choices import Choice
from evaluations.models.judges import Rater
from evaluations.models.verdicts import Label, Score, Verdict
from evaluations.verdicts.judge_choices import scoring_raters
from evaluations.verdicts.score_choices import score_rules_by_rater

# Means are not exact in binary: a label so near the margin is asked about too.
MEAN_TOLERANCE: Final = 1e-6


def filter_possible_differences(rows: QuerySet[Label], judge: Rater) -> QuerySet[Label]:
    if judge.judge is not None and judge.judge.is_pointwise:
        return filter_by_scores(rows, judge)
    if scoring_raters([judge]):
        chosen, scored = filter_by_verdicts(rows, judge), filter_by_scores(rows, judge)
        return rows.filter(Q(pk__in=chosen.values("pk")) | Q(pk__in=scored.values("pk")))
    return filter_by_verdicts(rows, judge)


def filter_by_verdicts(rows: QuerySet[Label], judge: Rater) -> QuerySet[Label]:
    """Its verdicts are all one other choice; or they are several, which for a tie matters only among samples.

    Scalar subqueries: PostgreSQL would make a hash of all the judge's verdicts for each EXISTS.
    """
    rows = rows.alias(
        low=aggregate_judge_verdicts(judge, Min("choice")), high=aggregate_judge_verdicts(judge, Max("choice"))
    )
    rows = rows.alias(most_samples=aggregate_judge_verdicts(judge, Max("sample")))
    another = Q(low__lt=F("choice")) | Q(low__gt=F("choice"))
    several = Q(low__lt=F("high"))
    return rows.filter((Q(low=F("high")) & another) | (several & (~Q(choice=Choice.TIE) | Q(most_samples__gt=0))))


def aggregate_judge_verdicts(judge: Rater, of: Aggregate) -> Subquery:
    """That aggregate of the judge's verdicts on the label's comparison and aspect."""
    verdicts = Verdict.objects.filter(comparison=OuterRef("comparison"), aspect=OuterRef("aspect"), rater=judge)
    return Subquery(verdicts.order_by().values("comparison").annotate(value=of).values("value"))


def filter_by_scores(rows: QuerySet[Label], judge: Rater) -> QuerySet[Label]:
    """The difference of its mean scores lies elsewhere than the label says, or so near the margin that it may."""
    rules = {aspect: rule for (_, aspect), rule in score_rules_by_rater([judge]).items()}
    margins = [When(aspect=aspect, then=Value(rule.margin)) for aspect, rule in rules.items()]
    turned = [When(aspect=aspect, then=Value(-1.0)) for aspect, rule in rules.items() if rule.lower_is_better]
    apart = mean_judge_score(judge, "comparison__response_a") - mean_judge_score(judge, "comparison__response_b")
    rows = rows.alias(
        apart=apart * Case(*turned, default=Value(1.0), output_field=FloatField()),
        margin=Case(*margins, default=Value(0.0), output_field=FloatField()),
    )
    not_a, not_b = Q(apart__lt=F("margin") + MEAN_TOLERANCE), Q(apart__gt=-F("margin") - MEAN_TOLERANCE)
    no_tie = Q(apart__gt=F("margin") - MEAN_TOLERANCE) | Q(apart__lt=MEAN_TOLERANCE - F("margin"))
    return rows.filter(
        Q(Q(choice=Choice.A), not_a)
        | Q(Q(choice=Choice.B), not_b)
        | Q(Q(choice=Choice.TIE), no_tie)
        | Q(choice=Choice.BOTH_BAD, apart__isnull=False)
    )


def mean_judge_score(judge: Rater, response: str) -> Subquery:
    scores: QuerySet[Score] = Score.objects.filter(rater=judge, response=OuterRef(response), aspect=OuterRef("aspect"))
    return Subquery(scores.order_by().values("response").annotate(mean=Avg("value")).values("mean"))
