"""What scores that came with imports say of a few comparisons: who scored both responses prefers one, or neither."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Q

from evaluations.domain import Choice, RaterKind, ScoreRule
from evaluations.models import Score
from evaluations.services.importing.scaling import score_rules


class Scored(NamedTuple):
    """An imported score of a response that stands on one side of a comparison."""

    comparison: int
    aspect: int
    rater: int
    sample: int
    value: float
    rationale: str
    kind: str


@dataclass(frozen=True)
class Preference:
    """What one person's, or gold's, two scores of one sample say."""

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


def preferences(comparison_ids: Collection[int], kinds: Collection[RaterKind] = (RaterKind.HUMAN,)) -> list[Preference]:
    """One query where no response of these was scored in a file; three where some were."""
    first = {one[:4]: one for one in scored_on("a", comparison_ids, kinds)}
    if not first:
        return []
    rules = score_rules(Q(aspect__in={one.aspect for one in first.values()}))
    return [
        preference(first[one[:4]], one, rules.get(one.aspect, ScoreRule()))
        for one in scored_on("b", comparison_ids, kinds)
        if one[:4] in first
    ]


def scored_on(side: str, comparison_ids: Collection[int], kinds: Collection[RaterKind]) -> Iterator[Scored]:
    comparison = f"response__comparisons_as_{side}"
    imported = Score.objects.filter(source_import__isnull=False, rater__kind__in=kinds)
    rows = imported.filter(**{f"{comparison}__in": comparison_ids}).order_by("pk")
    columns = (comparison, "aspect_id", "rater_id", "sample", "value", "rationale", "rater__kind")
    return map(Scored._make, rows.values_list(*columns))


def preference(a: Scored, b: Scored, rule: ScoreRule) -> Preference:
    rationale = " ".join(dict.fromkeys(text for text in (a.rationale, b.rationale) if text))
    return Preference(*a[:4], a.value, b.value, rule, rationale, RaterKind(a.kind))
