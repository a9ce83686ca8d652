"""What imported scores of single responses say of comparisons."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Q

from evaluations.domain.choices import Choice, ScoreRule
from evaluations.domain.roles import RaterKind
from evaluations.domain.rubrics import RubricKind, RubricOrigin
from evaluations.models.evaluations import Evaluation
from evaluations.models.rubrics import Rubric, RubricAspect
from evaluations.models.verdicts import Score

# ---- what was brought so far ---------------------------------------------------------------------


def find_scores_rubric(evaluation: Evaluation) -> Rubric | None:
    rubrics = Rubric.objects.filter(evaluation=evaluation, origin=RubricOrigin.IMPORTED)
    return rubrics.filter(kind=RubricKind.POINTWISE).first()


def list_imported_score_aspects(evaluation: Evaluation) -> list[RubricAspect]:
    """The aspects of the newest version of the rubric for imported scores, in order."""
    rubric = find_scores_rubric(evaluation)
    version = rubric.versions.order_by("-number").first() if rubric else None
    return list(version.asked.select_related("aspect").order_by("position")) if version else []


def load_score_rules(among: Q) -> dict[int, ScoreRule]:
    """By aspect id, the rule that turns two imported scores into a choice. One query."""
    brought = RubricAspect.objects.filter(
        among,
        version__rubric__origin=RubricOrigin.IMPORTED,
        version__rubric__kind=RubricKind.POINTWISE,
    )
    columns = brought.order_by("version__number").values_list("aspect_id", "tie_margin", "lower_is_better")
    return {aspect: ScoreRule(margin, lower) for aspect, margin, lower in columns}


class ImportedScore(NamedTuple):
    """An imported score of a response that stands on one side of a comparison."""

    comparison: int
    aspect: int
    rater: int
    sample: int
    value: float
    rationale: str
    kind: str


@dataclass(frozen=True)
class ScorePreference:
    """The preference that two scores of a rater imply in one sample."""

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


def load_score_preferences(
    comparison_ids: Collection[int], kinds: Collection[RaterKind] = (RaterKind.HUMAN,)
) -> list[ScorePreference]:
    """The preferences that imported scores imply. One query if no response was scored, else three."""
    first = {one[:4]: one for one in load_scores_of_side("a", comparison_ids, kinds)}
    if not first:
        return []
    rules = load_score_rules(Q(aspect__in={one.aspect for one in first.values()}))
    return [
        build_score_preference(first[one[:4]], one, rules.get(one.aspect, ScoreRule()))
        for one in load_scores_of_side("b", comparison_ids, kinds)
        if one[:4] in first
    ]


def load_scores_of_side(
    side: str, comparison_ids: Collection[int], kinds: Collection[RaterKind]
) -> Iterator[ImportedScore]:
    comparison = f"response__comparisons_as_{side}"
    imported = Score.objects.filter(source_import__isnull=False, rater__kind__in=kinds)
    rows = imported.filter(**{f"{comparison}__in": comparison_ids}).order_by("pk")
    columns = (comparison, "aspect_id", "rater_id", "sample", "value", "rationale", "rater__kind")
    return map(ImportedScore._make, rows.values_list(*columns))


def build_score_preference(a: ImportedScore, b: ImportedScore, rule: ScoreRule) -> ScorePreference:
    rationale = " ".join(dict.fromkeys(text for text in (a.rationale, b.rationale) if text))
    return ScorePreference(*a[:4], a.value, b.value, rule, rationale, RaterKind(a.kind))
