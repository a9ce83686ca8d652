"""A judge's one verdict on a comparison, made when it is read from every order and sample."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from django.db.models import Q

from evaluations.domain import Choice, Folded, JudgeKind, ScoreRule, Shown, fold
from evaluations.models import Call, Comparison, Rater, RubricAspect, Score, Verdict
from evaluations.services.importing.scaling import score_rules

Choices = Mapping[int, Mapping[str, Folded]]


@dataclass(frozen=True)
class Derivation:
    """What the mean scores of two responses say; the judge was asked about each alone."""

    score_a: float
    score_b: float
    rule: ScoreRule

    @property
    def choice(self) -> Choice:
        choice = self.rule.choice(self.score_a, self.score_b)
        assert choice is not None
        return choice


def judge_choices(rater: Rater, comparison_ids: Iterable[int]) -> Choices:
    """What this judge says: comparison id → aspect key → choice. What is incomplete is absent."""
    return judges_choices([rater], comparison_ids)[rater.pk]


def judges_choices(raters: Sequence[Rater], comparison_ids: Iterable[int]) -> Mapping[int, Choices]:
    """By rater id what each judge says, in the same few queries however many they are."""
    wanted = list(comparison_ids)
    choosing = [rater for rater in raters if rater.judge is None or not rater.judge.is_pointwise]
    scoring = scorers(raters)
    told = chosen(choosing, wanted) if choosing else {}
    for rater, choices in (scored(scoring, wanted) if scoring else {}).items():
        told[rater] = together(told[rater], choices) if rater in told else choices
    return told


def scorers(raters: Sequence[Rater]) -> list[Rater]:
    """Those that may have given scores: judges of single responses, and imported ones where scores were imported."""
    asked = [rater for rater in raters if rater.judge is not None and rater.judge.is_pointwise]
    imported = [rater for rater in raters if rater.judge is not None and rater.judge.kind == JudgeKind.IMPORTED]
    if imported and not score_rules(Q(aspect__evaluation=imported[0].evaluation_id)):
        return asked
    return [*asked, *imported]


def together(one: Choices, other: Choices) -> Choices:
    """What an imported judge chose, and on other aspects scored."""
    return {pk: {**one.get(pk, {}), **other.get(pk, {})} for pk in {*one, *other}}


def chosen(raters: Sequence[Rater], comparison_ids: Sequence[int]) -> dict[int, Choices]:
    """Of judges that were asked about both responses together."""
    given: dict[tuple[int, int, str], dict[Shown, list[Folded]]] = defaultdict(lambda: defaultdict(list))
    verdicts = Verdict.objects.filter(rater__in=raters, comparison__in=comparison_ids).values_list(
        "rater_id", "comparison_id", "aspect__key", "shown", "choice", "inconsistent"
    )
    for rater_id, comparison_id, aspect, shown, choice, inconsistent in verdicts:
        given[rater_id, comparison_id, aspect][Shown(shown)].append(Folded(Choice(choice), inconsistent))
    asked = orders_asked(raters, comparison_ids)
    told: dict[int, dict[int, dict[str, Folded]]] = {rater.pk: defaultdict(dict) for rater in raters}
    for (rater_id, comparison_id, aspect), answers in given.items():
        folded = fold(answers, asked[rater_id, comparison_id])
        if folded is not None:
            told[rater_id][comparison_id][aspect] = folded
    return dict(told)


def scored(raters: Sequence[Rater], comparison_ids: Sequence[int]) -> dict[int, Choices]:
    """Of judges that scored single responses."""
    return {
        rater: {pk: {key: Folded(one.choice) for key, one in said.items()} for pk, said in derived.items()}
        for rater, derived in derivations(raters, sides_of(comparison_ids)).items()
    }


def orders_asked(raters: Sequence[Rater], comparison_ids: Sequence[int]) -> Mapping[tuple[int, int], set[Shown]]:
    """By rater and comparison the orders in which the judge was asked, answered or not.

    An order whose every call was cancelled or not yet worked counts as asked too: the verdict is
    then incomplete, and missing until it has been answered. Imported failures are calls as well.
    """
    asked: dict[tuple[int, int], set[Shown]] = defaultdict(set)
    rater_of = {rater.judge_id: rater.pk for rater in raters}
    calls = Call.objects.filter(judge__in=list(rater_of), comparison__in=comparison_ids)
    for judge_id, comparison_id, shown in calls.values_list("judge_id", "comparison_id", "shown").distinct():
        asked[rater_of[judge_id], comparison_id].add(Shown(shown))
    return asked


def sides_of(comparison_ids: Sequence[int]) -> dict[int, tuple[int, int]]:
    """The ids of the two responses of each comparison."""
    rows = Comparison.objects.filter(pk__in=comparison_ids).values_list("pk", "response_a_id", "response_b_id")
    return {pk: (a, b) for pk, a, b in rows}


def derivations(
    raters: Sequence[Rater], sides: Mapping[int, tuple[int, int]]
) -> Mapping[int, Mapping[int, Mapping[str, Derivation]]]:
    """Rater id → comparison id → aspect key → what its scores say; absent where a response has none.

    The raters are judges that scored single responses; the same few queries however many they and the comparisons are.
    """
    responses = {response for pair in sides.values() for response in pair}
    given: dict[tuple[int, int, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    scores = Score.objects.filter(rater__in=raters, response__in=responses).order_by("pk")
    columns = scores.values_list("rater_id", "aspect_id", "aspect__key", "response_id", "value")
    for rater_id, aspect, key, response, value in columns:
        given[rater_id, aspect, key][response].append(value)
    rules = rules_of(raters)
    told: dict[int, dict[int, dict[str, Derivation]]] = {rater.pk: defaultdict(dict) for rater in raters}
    for (rater_id, aspect, key), values in given.items():
        rule = rules.get((rater_id, aspect), ScoreRule())
        for pk, (a, b) in sides.items():
            if a in values and b in values:
                told[rater_id][pk][key] = Derivation(fmean(values[a]), fmean(values[b]), rule)
    return told


def rules_of(raters: Collection[Rater]) -> dict[tuple[int, int], ScoreRule]:
    """How scores are held against each other, by rater id and aspect id: of imported judges as their files said."""
    rules = {place: ScoreRule(margin) for place, margin in margins_of(raters).items()}
    imported = [rater for rater in raters if rater.judge is not None and rater.judge.kind == JudgeKind.IMPORTED]
    brought = score_rules(Q(aspect__evaluation=imported[0].evaluation_id)) if imported else {}
    return rules | {(rater.pk, aspect): rule for rater in imported for aspect, rule in brought.items()}


def margins_of(raters: Iterable[Rater]) -> dict[tuple[int, int], float]:
    """The margin of a tie by rater id and aspect id, as the rubric of each judge has it."""
    version = {rater.pk: rater.judge.rubric_version_id for rater in raters if rater.judge}
    rows = RubricAspect.objects.filter(version__in=set(version.values())).order_by()
    told = list(rows.values_list("version_id", "aspect_id", "tie_margin"))
    return {(rater, one): margin for rater, asked in version.items() for by, one, margin in told if by == asked}
