"""Calibration rounds: which labels are known beforehand, and rounds made of comparisons that have one."""

import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from evaluations.domain import Choice, InputRefused, PickedBy, RaterKind, RoundKind
from evaluations.models import (
    Adjudication,
    Comparison,
    Evaluation,
    Pick,
    QueueItem,
    Round,
    RubricVersion,
    User,
    Verdict,
)
from evaluations.services.recording import record
from evaluations.services.reviewing.assigning import refuse_name
from evaluations.services.reviewing.filling import ready

MOST: Final = 200

# Comparison → aspect → choice as stored.
Known = Mapping[int, Mapping[str, Choice]]


def with_known_labels(evaluation: Evaluation) -> "QuerySet[Comparison]":
    """Those with a gold verdict or an adjudicated label on an aspect that people are asked about here."""
    asked = asked_aspects(evaluation)
    gold = Verdict.objects.filter(comparison=OuterRef("pk"), rater__kind=RaterKind.GOLD, aspect__in=asked)
    settled = Adjudication.objects.filter(comparison=OuterRef("pk"), aspect__in=asked)
    comparisons: QuerySet[Comparison] = Comparison.objects.filter(evaluation=evaluation)
    return comparisons.filter(Exists(gold) | Exists(settled))


def asked_aspects(evaluation: Evaluation) -> list[int]:
    version = evaluation.review_rubric
    return list(version.asked.values_list("aspect", flat=True)) if version else []


def known_labels(comparisons: Collection[int]) -> Known:
    """Comparison → aspect → choice: what was settled, else what all gold verdicts say alike."""
    told: dict[int, dict[str, set[Choice]]] = defaultdict(lambda: defaultdict(set))
    gold = Verdict.objects.filter(comparison__in=comparisons, rater__kind=RaterKind.GOLD)
    for pk, key, choice in gold.values_list("comparison", "aspect__key", "choice"):
        told[pk][key].add(Choice(choice))
    settled = Adjudication.objects.filter(comparison__in=comparisons)
    for pk, key, choice in settled.values_list("comparison", "aspect__key", "choice"):
        told[pk][key] = {Choice(choice)}
    return {pk: {key: min(said) for key, said in by_key.items() if len(said) == 1} for pk, by_key in told.items()}


def begin(
    evaluation: Evaluation,
    *,
    name: str,
    size: int | None = None,
    comparisons: Collection[int] = (),
    seed: int = 0,
    user: User | None,
) -> Round:
    """A calibration round of these comparisons, or of so many drawn at random among those with known labels."""
    version = evaluation.review_rubric
    if version is None:
        raise InputRefused("This evaluation has no rubric for reviews yet: choose one in its settings.")
    refuse_name(evaluation, name := name.strip())
    ready(evaluation)
    possible = sorted(with_known_labels(evaluation).values_list("pk", flat=True))
    chosen = named_among(possible, comparisons) if comparisons else drawn_among(possible, size or 0, seed)
    with transaction.atomic():
        made = Round.objects.create(
            evaluation=evaluation,
            rubric_version=version,
            user=user,
            name=name,
            kind=RoundKind.CALIBRATION,
            strategy=PickedBy.CALIBRATION,
            random_percent=0,
            population=len(possible),
            seed=seed,
        )
        put_in(made, version, chosen)
        after = {"name": name, "kind": RoundKind.CALIBRATION, "comparisons": len(chosen), "seed": seed}
        record("made round", made, user=user, evaluation=evaluation, after=after)
    return made


def named_among(possible: Collection[int], comparisons: Collection[int]) -> list[int]:
    chosen = list(dict.fromkeys(comparisons))
    if unknown := sorted(set(chosen) - set(possible)):
        numbers = ", ".join(str(pk) for pk in unknown[:5])
        raise InputRefused(f"No label is known for {numbers}: name comparisons with a gold or an adjudicated label.")
    if len(chosen) > MOST:
        raise InputRefused(f"A calibration round takes at most {MOST} comparisons, and these are {len(chosen)}.")
    return chosen


def drawn_among(possible: Collection[int], size: int, seed: int) -> list[int]:
    if not possible:
        raise InputRefused(
            "No label is known here yet: import verdicts of raters of the kind “gold”, or settle disagreements first."
        )
    if not 1 <= size <= min(len(possible), MOST):
        raise InputRefused(f"Choose between 1 and {min(len(possible), MOST)} comparisons: so many have a known label.")
    return random.Random(seed).sample(sorted(possible), size)


def put_in(made: Round, version: RubricVersion, chosen: Iterable[int]) -> None:
    """The picks, with items of the queue for those that have none yet. They take no place in it."""
    wanted = made.evaluation.reviews_wanted
    shuffles = dict(Comparison.objects.filter(pk__in=list(chosen)).values_list("pk", "shuffle"))
    QueueItem.objects.bulk_create(
        [
            QueueItem(rubric_version=version, comparison_id=pk, position=position, wanted=wanted)
            for pk, position in shuffles.items()
        ],
        ignore_conflicts=True,
    )
    items = dict(
        QueueItem.objects.filter(rubric_version=version, comparison__in=shuffles).values_list("comparison", "pk")
    )
    Pick.objects.bulk_create(
        Pick(round=made, item_id=items[pk], place=place, picked_by=PickedBy.CALIBRATION)
        for place, pk in enumerate(chosen, start=1)
    )
