"""What the evaluation finally says: one label per comparison and aspect, by its policy."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.db.models import Q

from evaluations.domain import Choice, LabelSource, RaterKind, Stage
from evaluations.models import Verdict


@dataclass(frozen=True)
class Label:
    """``choice`` is None where the votes are split. ``n`` counts them, ties included."""

    choice: Choice | None
    source: LabelSource
    n: int
    votes: Mapping[Choice, int] = field(default_factory=dict)


Labels = Mapping[int, Mapping[str, Label]]


def labels(comparison_ids: Iterable[int]) -> Labels:
    """Comparison id → aspect key → label, in one query. Where no person voted there is none."""
    votes: dict[int, dict[str, Counter[Choice]]] = defaultdict(lambda: defaultdict(Counter))
    final = Verdict.objects.filter(Q(review__isnull=True) | Q(stage=Stage.FINAL), rater__kind=RaterKind.HUMAN)
    cast = final.filter(comparison__in=list(comparison_ids)).values_list("comparison_id", "aspect__key", "choice")
    for comparison_id, aspect, choice in cast:
        votes[comparison_id][aspect][Choice(choice)] += 1
    return {
        comparison_id: {aspect: label_of(counted) for aspect, counted in aspects.items()}
        for comparison_id, aspects in votes.items()
    }


def label_of(votes: Mapping[Choice, int]) -> Label:
    """The choice with more votes than any other; a split gives none, and never asks a judge."""
    n = sum(votes.values())
    (choice, most), *others = sorted(votes.items(), key=lambda one: -one[1])
    if others and others[0][1] == most:
        return Label(None, LabelSource.SPLIT, n, votes)
    return Label(choice, LabelSource.SINGLE if n == 1 else LabelSource.MAJORITY, n, votes)
