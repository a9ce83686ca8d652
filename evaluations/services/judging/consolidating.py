"""A judge's one verdict on a comparison, made when it is read from every order and sample."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from evaluations.domain import FAILURE_STATES, Choice, Folded, Shown, fold
from evaluations.models import Call, Rater, Verdict

Choices = Mapping[int, Mapping[str, Folded]]


def judge_choices(rater: Rater, comparison_ids: Iterable[int]) -> Choices:
    """What this judge says: comparison id → aspect key → choice. What is incomplete is absent."""
    wanted = list(comparison_ids)
    given: dict[tuple[int, str], dict[Shown, list[Folded]]] = defaultdict(lambda: defaultdict(list))
    verdicts = Verdict.objects.filter(rater=rater, comparison__in=wanted).values_list(
        "comparison_id", "aspect__key", "shown", "choice", "inconsistent"
    )
    for comparison_id, aspect, shown, choice, inconsistent in verdicts:
        given[comparison_id, aspect][Shown(shown)].append(Folded(Choice(choice), inconsistent))
    asked = orders_asked(rater, wanted)
    told: dict[int, dict[str, Folded]] = defaultdict(dict)
    for (comparison_id, aspect), answers in given.items():
        folded = fold(answers, asked[comparison_id])
        if folded is not None:
            told[comparison_id][aspect] = folded
    return told


def orders_asked(rater: Rater, comparison_ids: Iterable[int]) -> dict[int, set[Shown]]:
    """The orders in which the judge was asked about each comparison, answered or not.

    An order whose every call was cancelled or not yet worked counts as asked too: the verdict is
    then incomplete, and missing until it has been answered. Imported failures are calls as well.
    """
    asked: dict[int, set[Shown]] = defaultdict(set)
    calls = Call.objects.filter(judge=rater.judge, comparison__in=list(comparison_ids))
    for comparison_id, shown in calls.values_list("comparison_id", "shown").distinct():
        asked[comparison_id].add(Shown(shown))
    return asked


def failures(rater: Rater, comparison_ids: Iterable[int]) -> dict[int, list[str]]:
    """The failure states of this judge's calls on each comparison."""
    failed: dict[int, list[str]] = defaultdict(list)
    calls = Call.objects.filter(judge=rater.judge, comparison__in=list(comparison_ids), state__in=FAILURE_STATES)
    for comparison_id, state in calls.values_list("comparison_id", "state"):
        failed[comparison_id].append(state)
    return failed
