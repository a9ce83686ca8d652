"""What was entered and not saved yet, kept so that nothing is lost with a page.

A draft is no step: it changes no state, no verdict and no version, so no event is recorded. It
belongs to the version of the review that it was made from and goes when that moves on, save by a skip.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Q
from django.utils import timezone

from evaluations.domain import InputRefused, ReviewState
from evaluations.models import Comparison, Rater, Review, RubricVersion

CHANGED = "This review was changed elsewhere, in another tab perhaps: the draft was not kept."


@dataclass(frozen=True)
class Draft:
    """Names of fields and what stands in them; the time spent on them so far."""

    fields: Mapping[str, str]
    active_ms: int
    kept_at: datetime


class DraftedElsewhere(InputRefused):
    """Another page keeps a draft that this one has not seen; it stays as it is."""

    def __init__(self, review: Review) -> None:
        super().__init__("You entered something else here in another tab.")
        self.review = review


def keep(
    review: Review, *, version: int, fields: Mapping[str, str], number: int, tab: str, active_ms: int = 0
) -> Review:
    """Keep it, if nobody else did since this page saw draft ``number``: the conditional update is the lock.

    A page may always replace its own draft: the answer to the one before may have been lost.
    """
    draft = draft_with(fields, active_ms)
    still = Review.objects.filter(pk=review.pk, version=version).exclude(state=ReviewState.FINAL)
    seen = still.filter(Q(draft_number=number) | Q(draft_tab=tab))
    kept = seen.update(draft=draft, draft_number=F("draft_number") + 1, draft_tab=tab)
    review.refresh_from_db(fields=["state", "version", "draft", "draft_number", "draft_tab"])
    if kept:
        return review
    if review.version != version or review.state == ReviewState.FINAL:
        raise InputRefused(CHANGED)
    if review.draft.get("fields") == fields:
        return review
    raise DraftedElsewhere(review)


def draft_with(fields: Mapping[str, str], active_ms: int = 0) -> dict[str, Any]:
    """As it stands in the review; ``draft_of`` reads it."""
    return {"fields": dict(fields), "active_ms": active_ms, "kept_at": timezone.now().isoformat()}


def counted(draft: Mapping[str, Any]) -> dict[str, Any]:
    """The same once its time was counted with a step: it must not be counted again."""
    return {**draft, "active_ms": 0} if draft else {}


def draft_of(review: Review | None) -> Draft | None:
    """What is kept for it; None where there is nothing."""
    if review is None or not review.draft:
        return None
    kept: Mapping[str, Any] = review.draft
    return Draft(kept["fields"], kept["active_ms"], datetime.fromisoformat(kept["kept_at"]))


def draft_before(rater: Rater | None, comparison: Comparison, rubric: RubricVersion) -> Draft | None:
    """What this person entered by an earlier version of the rubric and had not saved when it was changed."""
    if rater is None or rubric.number == 1:
        return None
    earlier = {"rubric_version__rubric": rubric.rubric_id, "rubric_version__number__lt": rubric.number}
    begun = Review.objects.filter(rater=rater, comparison=comparison, state=ReviewState.DRAFT, **earlier)
    return draft_of(begun.exclude(draft={}).order_by("-rubric_version__number").first())
