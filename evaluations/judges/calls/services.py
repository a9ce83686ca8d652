"""Confirming the verdict of a suspect call, recording who saw a call."""

from django.db import transaction
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import CallState
from evaluations.judges.calls.conversations import load_attempts
from evaluations.judges.calls.reply_reparse import (
    PARSED_OUTCOMES,
    REPARSE_RELATIONS,
    correct_answers,
    find_latest_run,
    outcome_of_reading,
    parse_call_replies,
)
from evaluations.judges.calls.work_session import make_work_session
from evaluations.llm.retry_policy import RetryPolicy
from evaluations.models.runs import Call
from evaluations.models.users import User
from evaluations.replies.reply_parser import ParsedReply


@transaction.atomic
def confirm_suspect_call(call: Call, *, user: User) -> None:
    """Count the verdict of this suspect call like any other. No request is sent."""
    calls = Call.all_rows.select_for_update(of=("self",)).select_related("judge__evaluation", *REPARSE_RELATIONS)
    row = calls.get(pk=call.pk)
    if row.state != CallState.SUSPECT:
        raise InputRefused(f"Only suspect calls can be confirmed. This one is {row.state.replace('_', ' ')}.")
    if not row.is_confirmable:
        raise InputRefused("This call was imported without a reply, so there is no verdict to confirm.")
    session, root = make_work_session(find_latest_run(row.judge), RetryPolicy()), row.copied_from_id or row.pk
    replies = load_attempts([root], PARSED_OUTCOMES).get(root, ())
    readings = parse_call_replies(session, row, replies, {}, is_confirmed=True)
    readable = [reading for reading in readings if isinstance(reading.read, ParsedReply)]
    if not readable:
        raise InputRefused("The stored reply can no longer be parsed. Retry the call instead.")
    correct_answers(session, [outcome_of_reading(row, readable[-1])])
    Call.all_rows.filter(pk=row.pk).update(confirmed_by=user, confirmed_at=timezone.now())
    call.refresh_from_db()
    record_event("confirmed", call, user=user, evaluation=row.judge.evaluation, after={"judge": row.judge.name})
