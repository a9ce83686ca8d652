"""Unsaved input of a review, stored with the version that it was entered on."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F
from django.utils import timezone

from evaluations.domain.errors import InputRefused
from evaluations.domain.json_values import JsonMapping
from evaluations.domain.reviews import ReviewState
from evaluations.models.comparisons import Comparison
from evaluations.models.judges import Rater
from evaluations.models.rubrics import RubricVersion
from evaluations.models.verdicts import Review

DRAFT_REFUSED = "This review was changed elsewhere, perhaps in another tab. The draft was not saved."


@dataclass(frozen=True)
class Draft:
    """Field values, with the time spent on them so far."""

    fields: Mapping[str, str]
    active_ms: int
    kept_at: datetime


class DraftChangedElsewhere(InputRefused):
    """Another page stored a draft that this one has not seen; the stored one stays."""

    def __init__(self, review: Review) -> None:
        super().__init__("You entered something else here in another tab.")
        self.review = review


def save_draft(
    review: Review, *, version: int, fields: Mapping[str, str], number: int, tab: str, active_ms: int = 0
) -> Review:
    """Store the draft unless it changed since ``number`` was read: the conditional update is the lock.

    A page may always replace its own draft: the answer to the one before may have been lost.
    """
    draft = build_draft(fields, active_ms)
    # Without the join of `objects`, whose subquery would not be read again once another step has let go of the row.
    unchanged = Review.all_rows.filter(pk=review.pk, version=version).exclude(state=ReviewState.FINAL)
    if unchanged.filter(draft_number=number).update(draft=draft, draft_number=number + 1, draft_tab=tab):
        review.draft, review.draft_number, review.draft_tab = draft, number + 1, tab
        return review
    is_saved = unchanged.filter(draft_tab=tab).update(draft=draft, draft_number=F("draft_number") + 1)
    review.refresh_from_db(fields=["state", "version", "draft", "draft_number", "draft_tab"])
    if is_saved:
        return review
    if review.version != version or review.state == ReviewState.FINAL:
        raise InputRefused(DRAFT_REFUSED)
    if review.draft.get("fields") == fields:
        return review
    raise DraftChangedElsewhere(review)


def build_draft(fields: Mapping[str, str], active_ms: int = 0) -> dict[str, object]:
    """The stored form of a draft."""
    return {"fields": dict(fields), "active_ms": active_ms, "kept_at": timezone.now().isoformat()}


def reset_draft_time(draft: Mapping[str, object]) -> dict[str, object]:
    """The draft with zero time, once its time was counted with a step."""
    return {**draft, "active_ms": 0} if draft else {}


def read_draft(review: Review | None) -> Draft | None:
    """The stored draft; None if there is none."""
    if review is None or not review.draft:
        return None
    stored: JsonMapping = review.draft
    return Draft(stored["fields"], stored["active_ms"], datetime.fromisoformat(stored["kept_at"]))


def read_draft_of_earlier_version(rater: Rater | None, comparison: Comparison, rubric: RubricVersion) -> Draft | None:
    """This reviewer's unsaved draft on an earlier rubric version."""
    if rater is None or rubric.number == 1:
        return None
    versions = {"rubric_version__rubric": rubric.rubric_id, "rubric_version__number__lt": rubric.number}
    drafts = Review.objects.filter(rater=rater, comparison=comparison, state=ReviewState.DRAFT, **versions)
    return read_draft(drafts.exclude(draft={}).order_by("-rubric_version__number").first())
