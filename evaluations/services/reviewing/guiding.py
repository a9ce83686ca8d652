"""The guidelines that people review by: how they changed, and whether someone has yet to hear of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from evaluations.models import Evaluation, Event, Rater, Review, User


@dataclass(frozen=True)
class Wording:
    """Guidelines as they stood until somebody changed them."""

    text: str
    replaced_at: datetime
    replaced_by: User | None


def changed_since_last_review(evaluation: Evaluation, rater: Rater | None) -> datetime | None:
    """When they changed, for someone who has finished no review since. A beginner has nothing to unlearn."""
    changed = evaluation.guidelines_changed_at
    if changed is None or rater is None:
        return None
    mine = Review.objects.filter(rater=rater, rubric_version=evaluation.review_rubric_id, finished_at__isnull=False)
    last = mine.order_by("-finished_at").values_list("finished_at", flat=True).first()
    return changed if last is not None and last < changed else None


def earlier_wordings(evaluation: Evaluation, most: int = 20) -> Sequence[Wording]:
    """What they said before, the last wording first. The Events keep all of them."""
    changes = Event.objects.filter(
        evaluation=evaluation, object_type="evaluation", verb="changed", before__has_key="guidelines"
    )
    said = changes.select_related("user").order_by("-pk")[:most]
    return [Wording(event.before["guidelines"], event.created_at, event.user) for event in said]
