"""A judge's one verdict on a comparison, made of all its orders, samples, scores."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from django.db.models import Q

from evaluations.domain.choices import Choice, ConsolidatedChoice, ShownOrder, consolidate_orders
from evaluations.domain.judges import JudgeKind
from evaluations.models.comparisons import Comparison
from evaluations.models.judges import Rater
from evaluations.models.runs import Call
from evaluations.models.verdicts import Verdict
from evaluations.verdicts.score_choices import derive_score_choices, imported_score_rules

ChoicesByComparison = Mapping[int, Mapping[str, ConsolidatedChoice]]


def load_judge_choices(rater: Rater, comparison_ids: Iterable[int]) -> ChoicesByComparison:
    """Comparison id → aspect key → this judge's choice. Incomplete ones are absent."""
    return load_choices_of_judges([rater], comparison_ids)[rater.pk]


def load_choices_of_judges(raters: Sequence[Rater], comparison_ids: Iterable[int]) -> Mapping[int, ChoicesByComparison]:
    """Rater id → each judge's choices, in the same few queries for any number of judges."""
    wanted = list(comparison_ids)
    choosing = [rater for rater in raters if rater.judge is None or not rater.judge.is_pointwise]
    scoring = scoring_raters(raters)
    told = load_pairwise_choices(choosing, wanted) if choosing else {}
    for rater, choices in (load_score_choices(scoring, wanted) if scoring else {}).items():
        told[rater] = merge_choices(told[rater], choices) if rater in told else choices
    return told


def scoring_raters(raters: Sequence[Rater]) -> list[Rater]:
    """The raters that may have scores: judges of single responses, and imported ones if scores were imported."""
    asked = [rater for rater in raters if rater.judge is not None and rater.judge.is_pointwise]
    imported = [rater for rater in raters if rater.judge is not None and rater.judge.kind == JudgeKind.IMPORTED]
    if imported and not imported_score_rules(Q(aspect__evaluation=imported[0].evaluation_id)):
        return asked
    return [*asked, *imported]


def merge_choices(one: ChoicesByComparison, other: ChoicesByComparison) -> ChoicesByComparison:
    """Merge the choices of an imported judge with those from its scores on other aspects."""
    return {pk: {**one.get(pk, {}), **other.get(pk, {})} for pk in {*one, *other}}


def load_pairwise_choices(raters: Sequence[Rater], comparison_ids: Sequence[int]) -> dict[int, ChoicesByComparison]:
    """Load the choices of pairwise judges."""
    given: dict[tuple[int, int, str], dict[ShownOrder, list[ConsolidatedChoice]]] = defaultdict(
        lambda: defaultdict(list)
    )
    verdicts = Verdict.objects.filter(rater__in=raters, comparison__in=comparison_ids).values_list(
        "rater_id", "comparison_id", "aspect__key", "shown", "choice", "inconsistent"
    )
    for rater_id, comparison_id, aspect, shown, choice, inconsistent in verdicts:
        given[rater_id, comparison_id, aspect][ShownOrder(shown)].append(
            ConsolidatedChoice(Choice(choice), inconsistent)
        )
    asked = load_asked_orders(raters, comparison_ids)
    told: dict[int, dict[int, dict[str, ConsolidatedChoice]]] = {rater.pk: defaultdict(dict) for rater in raters}
    for (rater_id, comparison_id, aspect), answers in given.items():
        folded = consolidate_orders(answers, asked[rater_id, comparison_id])
        if folded is not None:
            told[rater_id][comparison_id][aspect] = folded
    return dict(told)


def load_score_choices(raters: Sequence[Rater], comparison_ids: Sequence[int]) -> dict[int, ChoicesByComparison]:
    """Load the choices of judges that scored single responses."""
    return {
        rater: {pk: {key: ConsolidatedChoice(one.choice) for key, one in said.items()} for pk, said in derived.items()}
        for rater, derived in derive_score_choices(raters, comparison_response_ids(comparison_ids)).items()
    }


def load_asked_orders(
    raters: Sequence[Rater], comparison_ids: Sequence[int]
) -> Mapping[tuple[int, int], set[ShownOrder]]:
    """By rater and comparison the orders in which the judge was asked, answered or not.

    An order whose every call was cancelled or not yet worked counts as asked too: the verdict is
    then incomplete, and missing until it has been answered. Imported failures are calls as well.
    """
    asked: dict[tuple[int, int], set[ShownOrder]] = defaultdict(set)
    rater_of = {rater.judge_id: rater.pk for rater in raters}
    calls = Call.objects.filter(judge__in=list(rater_of), comparison__in=comparison_ids)
    for judge_id, comparison_id, shown in calls.values_list("judge_id", "comparison_id", "shown").distinct():
        asked[rater_of[judge_id], comparison_id].add(ShownOrder(shown))
    return asked


def comparison_response_ids(comparison_ids: Sequence[int]) -> dict[int, tuple[int, int]]:
    """The ids of the two responses of each comparison."""
    rows = Comparison.objects.filter(pk__in=comparison_ids).values_list("pk", "response_a_id", "response_b_id")
    return {pk: (a, b) for pk, a, b in rows}
