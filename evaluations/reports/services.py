"""Whom results leave out."""

from collections.abc import Mapping
from typing import Final

from django.db import transaction

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import ScreeningChoice
from evaluations.domain.roles import RaterKind
from evaluations.models.clock import read_clock
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.users import User

SCREENING_VERBS: Final[Mapping[str, str]] = {
    ScreeningChoice.KEEP: "kept reviewer",
    ScreeningChoice.EXCLUDE: "excluded reviewer",
    "": "undid screening",
}


@transaction.atomic
def choose_reviewer(evaluation: Evaluation, rater: Rater, choice: str, *, user: User | None) -> Rater:
    """Keep a reviewer in results, exclude them, or undo the choice by an empty one. Raises InputRefused.

    Only results change: labels, exports, progress and queues count the reviewer as before.
    """
    if choice not in SCREENING_VERBS:
        raise InputRefused("Choose “keep” or “exclude”.", field="choice")
    reviewer = Rater.objects.select_for_update(no_key=True).get(pk=rater.pk, evaluation=evaluation)
    if reviewer.kind != RaterKind.HUMAN:
        raise InputRefused("Only reviewers can be excluded. Archive a judge instead.")
    if reviewer.screening_choice == choice:
        return reviewer
    before = {"reviewer": reviewer.name, "choice": reviewer.screening_choice}
    reviewer.screening_choice = choice
    reviewer.screening_chosen_at = read_clock() if choice else None
    reviewer.screening_chosen_by = user if choice else None
    reviewer.save(update_fields=["screening_choice", "screening_chosen_at", "screening_chosen_by"])
    after = {"reviewer": reviewer.name, "choice": choice}
    record_event(SCREENING_VERBS[choice], reviewer, user=user, evaluation=evaluation, before=before, after=after)
    return reviewer
