"""The choices that scores of two responses make, and the margins and directions by which they make them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from evaluations.domain.choices import Choice, ScoreRule
from evaluations.domain.judges import JudgeKind
from evaluations.domain.roles import RaterKind
from evaluations.domain.rubrics import RubricKind, RubricOrigin
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.rubrics import RubricAspect, RubricVersion
from evaluations.models.verdicts import Score


def imported_score_rules(among: Q) -> dict[int, ScoreRule]:
    """The rules that derive choices from two imported scores, by aspect id. One query."""
    brought = RubricAspect.objects.filter(
        among,
        version__rubric__origin=RubricOrigin.IMPORTED,
        version__rubric__kind=RubricKind.POINTWISE,
    )
    columns = brought.order_by("version__number").values_list("aspect_id", "tie_margin", "lower_is_better")
    return {aspect: ScoreRule(margin, lower) for aspect, margin, lower in columns}


@dataclass(frozen=True)
class ScoreDerivation:
    """The choice from the mean scores of two responses, each judged alone."""

    score_a: float
    score_b: float
    rule: ScoreRule

    @property
    def choice(self) -> Choice:
        choice = self.rule.choice(self.score_a, self.score_b)
        assert choice is not None
        return choice


def derive_score_choices(
    raters: Sequence[Rater], sides: Mapping[int, tuple[int, int]]
) -> Mapping[int, Mapping[int, Mapping[str, ScoreDerivation]]]:
    """Rater id → comparison id → aspect key → what its scores say; absent where a response has none.

    The raters are judges that scored single responses; the same few queries however many they and the comparisons are.
    """
    responses = {response for pair in sides.values() for response in pair}
    given: dict[tuple[int, int, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    scores = Score.objects.filter(rater__in=raters, response__in=responses).order_by("pk")
    columns = scores.values_list("rater_id", "aspect_id", "aspect__key", "response_id", "value")
    for rater_id, aspect, key, response, value in columns:
        given[rater_id, aspect, key][response].append(value)
    rules = score_rules_by_rater(raters)
    told: dict[int, dict[int, dict[str, ScoreDerivation]]] = {rater.pk: defaultdict(dict) for rater in raters}
    for (rater_id, aspect, key), values in given.items():
        rule = rules.get((rater_id, aspect), ScoreRule())
        for pk, (a, b) in sides.items():
            if a in values and b in values:
                told[rater_id][pk][key] = ScoreDerivation(fmean(values[a]), fmean(values[b]), rule)
    return told


def score_rules_by_rater(raters: Collection[Rater]) -> dict[tuple[int, int], ScoreRule]:
    """The rules that derive choices from scores, by rater and aspect id; imported judges have those of their files."""
    rules = {place: ScoreRule(margin) for place, margin in tie_margins_by_rater(raters).items()}
    imported = [rater for rater in raters if rater.judge is not None and rater.judge.kind == JudgeKind.IMPORTED]
    brought = imported_score_rules(Q(aspect__evaluation=imported[0].evaluation_id)) if imported else {}
    return rules | {(rater.pk, aspect): rule for rater in imported for aspect, rule in brought.items()}


def tie_margins_by_rater(raters: Iterable[Rater]) -> dict[tuple[int, int], float]:
    """The margin of a tie by rater id and aspect id, as the rubric of each judge has it."""
    version = {rater.pk: rater.judge.rubric_version_id for rater in raters if rater.judge}
    margins = get_tie_margins({one for one in version.values() if one is not None})
    return {
        (rater, aspect): margins[by, aspect]
        for rater, asked in version.items()
        for by, aspect in margins
        if by == asked
    }


def get_tie_margins(versions: "Collection[int] | QuerySet[RubricVersion, Any]") -> dict[tuple[int, int], float]:
    """The margin of a tie by rubric version and aspect."""
    rows = RubricAspect.objects.filter(version__in=versions).order_by()
    columns = rows.values_list("version_id", "aspect_id", "tie_margin")
    return {(version, aspect): margin for version, aspect, margin in columns}


def score_rules_by_version(evaluation: Evaluation, aspects: Collection[int]) -> dict[tuple[int | None, int], ScoreRule]:
    """The rules that derive choices from two scores, by rubric version and aspect; None for those of files."""
    rows = RubricAspect.objects.filter(version__rubric__evaluation=evaluation).order_by()
    columns = rows.values_list("version_id", "aspect_id", "tie_margin", "lower_is_better")
    own: dict[tuple[int | None, int], ScoreRule] = {
        (version, aspect): ScoreRule(margin, lower) for version, aspect, margin, lower in columns
    }
    imported = imported_score_rules(Q(aspect__in=aspects))
    return {**own, **{(None, aspect): rule for aspect, rule in imported.items()}}


class ImportedScoreOfSide(NamedTuple):
    """An imported score of one response of a comparison."""

    comparison: int
    aspect: int
    rater: int
    sample: int
    value: float
    rationale: str
    kind: str


@dataclass(frozen=True)
class ImportedPreference:
    """The preference from two scores of one sample, by a person or gold."""

    comparison: int
    aspect: int
    rater: int
    sample: int
    score_a: float
    score_b: float
    rule: ScoreRule
    rationale: str
    kind: RaterKind

    @property
    def choice(self) -> Choice:
        choice = self.rule.choice(self.score_a, self.score_b)
        assert choice is not None
        return choice


def load_imported_preferences(
    comparison_ids: Collection[int], kinds: Collection[RaterKind] = (RaterKind.HUMAN,)
) -> list[ImportedPreference]:
    """One query where no response of these was scored in a file; three where some were."""
    first = {one[:4]: one for one in read_imported_scores_of_side("a", comparison_ids, kinds)}
    if not first:
        return []
    rules = imported_score_rules(Q(aspect__in={one.aspect for one in first.values()}))
    return [
        build_imported_preference(first[one[:4]], one, rules.get(one.aspect, ScoreRule()))
        for one in read_imported_scores_of_side("b", comparison_ids, kinds)
        if one[:4] in first
    ]


def read_imported_scores_of_side(
    side: str, comparison_ids: Collection[int], kinds: Collection[RaterKind]
) -> Iterator[ImportedScoreOfSide]:
    comparison = f"response__comparisons_as_{side}"
    imported = Score.objects.filter(source_import__isnull=False, rater__kind__in=kinds)
    rows = imported.filter(**{f"{comparison}__in": comparison_ids}).order_by("pk")
    columns = (comparison, "aspect_id", "rater_id", "sample", "value", "rationale", "rater__kind")
    return map(ImportedScoreOfSide._make, rows.values_list(*columns))


def build_imported_preference(a: ImportedScoreOfSide, b: ImportedScoreOfSide, rule: ScoreRule) -> ImportedPreference:
    rationale = " ".join(dict.fromkeys(text for text in (a.rationale, b.rationale) if text))
    return ImportedPreference(*a[:4], a.value, b.value, rule, rationale, RaterKind(a.kind))
