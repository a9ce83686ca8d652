"""The responses on which a judge and reviewers differ most, with what they scored."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.db.models import Q

from evaluations.domain.reports import ReportRules
from evaluations.models.comparisons import Comparison, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.selection import select_report_comparisons, select_single_responses
from evaluations.models.users import User
from evaluations.reports.score_material import read_aspect_scores
from evaluations.stats.score_calibration import LARGE_SHARE, largest_differences
from evaluations.stats.score_report import AspectScores, review_scores
from evaluations.verdicts.asked_aspects import list_aspects_in_order, read_asked_aspects
from evaluations.verdicts.comparison_arrays import get_comparison_table, index_report_comparisons
from evaluations.verdicts.verdict_arrays import list_counted_raters
from evaluations.visibility import reveal_comparisons

MAX_LISTED: Final = 20


@dataclass(frozen=True)
class LargeDifference:
    """``comparison``: one that the response is in, if any."""

    response: Response
    judge_score: float
    reviewers_score: float
    reviewers: int
    comparison: int | None

    @property
    def difference(self) -> float:
        return self.judge_score - self.reviewers_score


def reveal_large_differences(
    user: User, evaluation: Evaluation, rules: ReportRules, aspect: str, judge: str
) -> list[LargeDifference]:
    """The largest differences first, of a user who sees everything; none if they share no scores on the aspect.

    On the comparisons of these responses, the user now counts as having seen what others scored.
    """
    scores = read_report_scores(evaluation, rules).get(aspect)
    if scores is None or judge not in scores.judges:
        return []
    found = find_large_differences(scores, judge)
    in_one = Q(response_a__in=[one.response for one in found]) | Q(response_b__in=[one.response for one in found])
    comparisons = list(Comparison.with_singles.filter(in_one, evaluation=evaluation).order_by("pk"))
    reveal_comparisons(user, evaluation, comparisons)
    return add_comparisons(found, [comparison for comparison in comparisons if not comparison.is_single])


def read_report_scores(evaluation: Evaluation, rules: ReportRules) -> dict[str, AspectScores]:
    """The scores on which a report by these rules is, by aspect key."""
    everything = Comparison.objects.filter(evaluation=evaluation)
    selected = select_report_comparisons(everything, evaluation, rules, or_responses=True)
    is_narrowed = bool(rules.where or rules.saved_filter or rules.part)
    narrowed, raters = selected if is_narrowed else None, list_counted_raters(evaluation, rules)
    places = index_report_comparisons(get_comparison_table(evaluation), narrowed)
    aspects = list_aspects_in_order(evaluation, read_asked_aspects(evaluation, narrowed, raters))
    alone = select_single_responses(evaluation, rules)
    return read_aspect_scores(aspects, raters, selected, places.ids, alone, rules)


def find_large_differences(scores: AspectScores, judge: str) -> list[LargeDifference]:
    reviewed, given = review_scores(scores), scores.judges[judge]
    threshold = LARGE_SHARE * scores.observed_range(judge)
    places = largest_differences(given, reviewed.mean, threshold, MAX_LISTED).tolist() if threshold else []
    ids = {place: int(scores.responses[place]) for place in places}
    responses = Response.objects.select_related("query", "candidate").in_bulk(list(ids.values()))
    return [
        LargeDifference(
            responses[ids[place]],
            float(given[place]),
            float(reviewed.mean[place]),
            int((reviewed.each.unit == place).sum()),
            None,
        )
        for place in places
        if ids[place] in responses
    ]


def add_comparisons(found: Sequence[LargeDifference], comparisons: Sequence[Comparison]) -> list[LargeDifference]:
    sides = ((side, one.pk) for one in reversed(comparisons) for side in (one.response_a_id, one.response_b_id))
    first = dict(sides)
    return [replace(one, comparison=first.get(one.response.pk)) for one in found]
