"""A person decides that the verdict of a suspect call counts: it is read from the stored reply and filed."""

from django.db import transaction
from django.utils import timezone

from evaluations.domain import CallState, InputRefused
from evaluations.judge.reading import Read
from evaluations.judge.retrying import Patience
from evaluations.models import Call, User
from evaluations.services.judging.rereading import (
    RELATED,
    correct,
    latest_run,
    outcome_of,
    readings_of,
    replies_of,
)
from evaluations.services.judging.working import bout_of
from evaluations.services.recording import record


@transaction.atomic
def confirm(call: Call, *, user: User) -> None:
    """Count the verdict of this suspect call like any other. Nothing is asked, and nothing is paid."""
    calls = Call.all_rows.select_for_update(of=("self",)).select_related("judge__evaluation", *RELATED)
    row = calls.get(pk=call.pk)
    if row.state != CallState.SUSPECT:
        raise InputRefused(f"Only a suspect call can be confirmed: this one is {row.state.replace('_', ' ')}.")
    if not row.is_confirmable:
        raise InputRefused("This call was imported without its reply: there is no verdict to confirm.")
    bout, root = bout_of(latest_run(row.judge), Patience()), row.copied_from_id or row.pk
    readings = readings_of(bout, row, replies_of([root]).get(root, ()), {}, is_confirmed=True)
    able = [one for one in readings if isinstance(one.read, Read)]
    if not able:
        raise InputRefused("The stored reply of this call can no longer be read: ask it again instead.")
    correct(bout, [outcome_of(row, able[-1])])
    Call.all_rows.filter(pk=row.pk).update(confirmed_by=user, confirmed_at=timezone.now())
    call.refresh_from_db()
    record("confirmed", call, user=user, evaluation=row.judge.evaluation, after={"judge": row.judge.name})
