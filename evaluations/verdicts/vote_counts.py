"""How many raters voted on each comparison."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from django.db.models import Count, Q

from evaluations.domain.judges import FAILURE_STATES, OPEN_CALL_STATES
from evaluations.domain.roles import RaterKind
from evaluations.models.runs import Call
from evaluations.models.verdicts import Label, Score, Verdict
from evaluations.verdicts.score_choices import comparison_response_ids, load_imported_preferences


@dataclass(frozen=True)
class VoteCounts:
    """``labelled``: aspects that people's votes or an adjudication label; ``split``: those that are open."""

    people: int = 0
    gold: int = 0
    judges: int = 0
    waiting: int = 0
    failed: int = 0
    labelled: int = 0
    split: int = 0

    @property
    def has_calls(self) -> bool:
        return bool(self.judges or self.waiting or self.failed)

    @property
    def has_labels(self) -> bool:
        return bool(self.labelled or self.split)


def count_raters(comparison_ids: Collection[int]) -> Mapping[int, VoteCounts]:
    """By comparison, how many raters voted. The number of queries does not grow."""
    totals: dict[int, VoteCounts] = defaultdict(VoteCounts)
    verdicts = Verdict.objects.filter(comparison__in=comparison_ids).values_list("comparison_id", "rater__kind")
    column = {RaterKind.HUMAN: "people", RaterKind.GOLD: "gold", RaterKind.JUDGE: "judges"}
    for comparison_id, kind, raters in verdicts.annotate(Count("rater", distinct=True)):
        totals[comparison_id] = replace(totals[comparison_id], **{column[RaterKind(kind)]: raters})
    calls = Call.objects.filter(comparison__in=comparison_ids).values_list("comparison_id")
    counted = calls.annotate(
        waiting=Count("pk", filter=Q(state__in=OPEN_CALL_STATES)),
        failed=Count("pk", filter=Q(state__in=FAILURE_STATES)),
    )
    for comparison_id, waiting, failed in counted:
        totals[comparison_id] = replace(totals[comparison_id], waiting=waiting, failed=failed)
    labels = Label.objects.filter(comparison__in=comparison_ids).values_list("comparison_id")
    open_and_not = labels.annotate(labelled=Count("pk", filter=~Q(choice="")), split=Count("pk", filter=Q(choice="")))
    for comparison_id, labelled, split in open_and_not:
        totals[comparison_id] = replace(totals[comparison_id], labelled=labelled, split=split)
    return add_score_counts(totals, comparison_ids)


def add_score_counts(totals: dict[int, VoteCounts], comparison_ids: Collection[int]) -> Mapping[int, VoteCounts]:
    sides = comparison_response_ids(comparison_ids)
    responses = {response for pair in sides.values() for response in pair}
    calls = Call.objects.filter(response__in=responses).order_by().values_list("response_id")
    if not (calls.exists() or Score.objects.filter(response__in=responses).exists()):
        return totals
    scored = find_judges_that_scored(responses)
    open_or_failed = calls.annotate(
        waiting=Count("pk", filter=Q(state__in=OPEN_CALL_STATES)),
        failed=Count("pk", filter=Q(state__in=FAILURE_STATES)),
    )
    counts = {response: (waiting, failed) for response, waiting, failed in open_or_failed}
    in_files = find_raters_in_imported_scores(comparison_ids)
    for comparison_id, (a, b) in sides.items():
        of_a, of_b = counts.get(a, (0, 0)), counts.get(b, (0, 0))
        now = totals[comparison_id]
        totals[comparison_id] = replace(
            now,
            people=now.people + len(in_files[comparison_id, RaterKind.HUMAN]),
            gold=now.gold + len(in_files[comparison_id, RaterKind.GOLD]),
            judges=now.judges + len(scored[a] & scored[b]),
            waiting=now.waiting + of_a[0] + of_b[0],
            failed=now.failed + of_a[1] + of_b[1],
        )
    return totals


def find_judges_that_scored(responses: Collection[int]) -> Mapping[int, set[int]]:
    judges: dict[int, set[int]] = defaultdict(set)
    scores = Score.objects.filter(response__in=responses, rater__kind=RaterKind.JUDGE).order_by()
    for response, rater in scores.values_list("response_id", "rater_id").distinct():
        judges[response].add(rater)
    return judges


def find_raters_in_imported_scores(comparison_ids: Collection[int]) -> Mapping[tuple[int, RaterKind], set[int]]:
    """By comparison and kind of rater, the people or gold raters whose imported scores imply a choice."""
    raters: dict[tuple[int, RaterKind], set[int]] = defaultdict(set)
    for pair in load_imported_preferences(comparison_ids, (RaterKind.HUMAN, RaterKind.GOLD)):
        raters[pair.comparison, pair.kind].add(pair.rater)
    return raters
