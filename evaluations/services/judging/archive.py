"""Judges that are put away: out of reports, lists and choices, with all that they said kept."""

from django.db import transaction
from django.utils import timezone

from evaluations.domain import ACTIVE_RUN_STATES, InputRefused, RunState
from evaluations.models import Evaluation, Judge, Run, User
from evaluations.services.recording import record


@transaction.atomic
def archive_judge(judge: Judge, *, user: User | None) -> Judge:
    """Nothing reports, lists or exports it from now on. Refused while it is at work or shown to reviewers."""
    row = Judge.objects.select_for_update().get(pk=judge.pk)
    if row.archived_at:
        return row
    refuse_used(row)
    row.archived_at, row.archived_by = timezone.now(), user
    row.save(update_fields=["archived_at", "archived_by"])
    record("archived", row, user=user, evaluation=row.evaluation, after={"name": row.name})
    return row


@transaction.atomic
def restore_judge(judge: Judge, *, user: User | None) -> Judge:
    """With everything that it said."""
    row = Judge.objects.select_for_update().get(pk=judge.pk)
    if row.archived_at is None:
        return row
    row.archived_at, row.archived_by = None, None
    row.save(update_fields=["archived_at", "archived_by"])
    record("restored", row, user=user, evaluation=row.evaluation, after={"name": row.name})
    return row


def refuse_used(judge: Judge) -> None:
    if Run.objects.filter(judge=judge, state__in=(*ACTIVE_RUN_STATES, RunState.PAUSED)).exists():
        raise InputRefused(f"“{judge.name}” has a run that is not over: wait for its end or cancel it, then archive.")
    if Evaluation.objects.filter(pk=judge.evaluation_id, shown_judge=judge).exists():
        raise InputRefused(
            f"Reviewers are shown “{judge.name}”: choose another judge, or none, in the settings, then archive."
        )
