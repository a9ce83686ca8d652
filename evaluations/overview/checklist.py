"""The checklist on the overview of the example: what to try, ticked by what was done."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.urls import reverse

from evaluations.domain.reports import ReportPart
from evaluations.domain.roles import REVIEWING_ROLES
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import Membership, User
from evaluations.models.verdicts import Adjudication
from evaluations.overview.selectors import EvaluationProgress

REVIEWS_TO_TRY: Final = 3


class ChecklistStep(StrEnum):
    """What is recorded by a click, because nothing else tells that it was done."""

    BIAS = "bias"
    RESULTS = "results"
    DISMISS = "dismiss"


@dataclass(frozen=True)
class ChecklistItem:
    """``step``: recorded by a click on the item; None for an item that opens ``url``."""

    text: str
    is_done: bool
    url: str
    step: ChecklistStep | None = None


def build_checklist(
    evaluation: Evaluation, membership: Membership, progress: EvaluationProgress
) -> list[ChecklistItem]:
    """The items for this member; none where there is nothing to learn, or they dismissed it."""
    clicked = membership.checklist_steps.split()
    is_offered = evaluation.is_example and not evaluation.archived_at and membership.role in REVIEWING_ROLES
    if not is_offered or ChecklistStep.DISMISS in clicked:
        return []
    slug = evaluation.slug
    resolved = Adjudication.objects.filter(comparison__evaluation=evaluation, user=membership.user_id)
    return [
        ChecklistItem(
            f"Review {REVIEWS_TO_TRY} comparisons",
            progress.reviewed_by_me >= REVIEWS_TO_TRY,
            reverse("review", args=[slug]),
        ),
        ChecklistItem(
            "See where a judge is fooled",
            ChecklistStep.BIAS in clicked,
            get_step_url(slug, ChecklistStep.BIAS),
            ChecklistStep.BIAS,
        ),
        ChecklistItem("Resolve a disagreement", resolved.exists(), reverse("disagreements", args=[slug])),
        ChecklistItem(
            "Open the results",
            ChecklistStep.RESULTS in clicked,
            get_step_url(slug, ChecklistStep.RESULTS),
            ChecklistStep.RESULTS,
        ),
        ChecklistItem("Export the labels", progress.exports > 0, reverse("exports", args=[slug])),
    ]


def get_step_url(slug: str, step: ChecklistStep) -> str:
    """The page to which a step leads."""
    if step is ChecklistStep.BIAS:
        return reverse("report_part", args=[slug, ReportPart.BIAS.value])
    return reverse("report" if step is ChecklistStep.RESULTS else "evaluation", args=[slug])


def record_step(user: User, evaluation: Evaluation, step: ChecklistStep) -> None:
    membership = Membership.objects.get(user=user, evaluation=evaluation)
    steps = membership.checklist_steps.split()
    if step not in steps:
        membership.checklist_steps = " ".join([*steps, step])
        membership.save(update_fields=["checklist_steps"])
