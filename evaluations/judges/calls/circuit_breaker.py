"""The circuit breaker pauses a run whose requests all fail in the same way."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from django.conf import settings
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet

from evaluations.domain.judges import AttemptOutcome, AttemptStep
from evaluations.judges.calls.work_session import CallOutcome, WorkSession
from evaluations.judges.endpoints import outages
from evaluations.models.runs import Attempt, Run

# Outcomes that count against the server or the judge. A refusal is an answer and counts against neither.
FAILURE_OUTCOMES: Final = (
    AttemptOutcome.FAILED,
    AttemptOutcome.RETRY,
    AttemptOutcome.UNREADABLE,
    AttemptOutcome.TRUNCATED,
    AttemptOutcome.TOO_LONG,
)
# Failures of one of these kinds are equal even if their messages differ.
UNIFORM_FAILURES: Final = (AttemptOutcome.UNREADABLE, AttemptOutcome.TRUNCATED, AttemptOutcome.TOO_LONG)
ATTEMPTS_PER_FAILURE: Final = 20  # attempts looked at, for each failure that pauses
TOO_MANY_REQUESTS: Final = 429
# How requests fail while a server is down or restarts.
OUTAGE_STATUSES: Final = (502, 503, 504)
CONNECTION_ERRORS: Final = ("The connection to ", "Nobody answers at ")
MAX_KIND_LENGTH: Final = 120


class AttemptFailure(NamedTuple):
    outcome: str
    http_status: int | None
    step: str
    error: str
    aspect: str
    is_blank: bool

    @property
    def kind(self) -> tuple[str, int | None, str]:
        """A key that equal failures share; numbers in their messages are ignored."""
        if self.outcome in UNIFORM_FAILURES:
            return self.outcome, None, ""
        return "fault", self.http_status, re.sub(r"\d+", "0", self.error)[:MAX_KIND_LENGTH]


def find_reason_to_pause(session: WorkSession, outcomes: Sequence[CallOutcome]) -> str:
    """The reason to pause the run after these outcomes, as a sentence; "" if it may continue."""
    limit = settings.PAUSE_AFTER_FAILURES
    if not limit or not any((outcome.attempt or {}).get("outcome") in FAILURE_OUTCOMES for outcome in outcomes):
        return ""
    attempts = find_attempts_since_resumed(session.run).order_by("-pk")[: ATTEMPTS_PER_FAILURE * limit]
    failures = find_recent_failures(session, attempts, has_answered=was_run_answered(session.run))
    for kind, count in Counter(failure.kind for failure in failures).most_common(1):
        if count >= limit:
            newest = next(failure for failure in failures if failure.kind == kind)
            return pause_sentence(newest, count)
    return ""


def find_attempts_since_resumed(run: Run) -> "QuerySet[Attempt]":
    attempts = Attempt.objects.filter(run=run)
    resumed_at = Run.objects.values_list("resumed_at", flat=True).get(pk=run.pk)
    return attempts.filter(created_at__gt=resumed_at) if resumed_at else attempts


def was_run_answered(run: Run) -> bool:
    return find_attempts_since_resumed(run).filter(outcome=AttemptOutcome.ANSWERED).exists()


def find_recent_failures(
    session: WorkSession, newest_first: "QuerySet[Attempt]", *, has_answered: bool
) -> list[AttemptFailure]:
    """The failures since the last success, newest first; with one aspect per call, since the last success per aspect.

    Once the endpoint has answered, repeated requests count only when their call is given up: servers restart.
    """
    failures: list[AttemptFailure] = []
    answered: set[str] = set()
    blank = ExpressionWrapper(Q(raw=""), BooleanField())
    rows = newest_first.annotate(blank=blank).values_list("outcome", "http_status", "step", "error", "aspect", "blank")
    for attempt in map(AttemptFailure._make, rows):
        if attempt.outcome == AttemptOutcome.ANSWERED:
            if not attempt.aspect:
                break
            answered.add(attempt.aspect)
        elif attempt.aspect not in answered and is_counted_failure(session, attempt, has_answered=has_answered):
            failures.append(attempt)
    return failures


def is_counted_failure(session: WorkSession, attempt: AttemptFailure, *, has_answered: bool) -> bool:
    if attempt.outcome == AttemptOutcome.RETRY:
        if attempt.http_status in OUTAGE_STATUSES or attempt.error.startswith(CONNECTION_ERRORS):
            has_answered = has_answered or has_endpoint_answered(session)
        return not has_answered and attempt.http_status not in (TOO_MANY_REQUESTS, 200)  # busy, or an empty reply
    # A reply to be repaired has not failed yet; an empty reply is not repaired.
    is_to_be_repaired = session.judge.repairs and attempt.step != AttemptStep.REPAIR and not attempt.is_blank
    if attempt.outcome == AttemptOutcome.UNREADABLE and is_to_be_repaired:
        return False
    return attempt.outcome in FAILURE_OUTCOMES


def has_endpoint_answered(session: WorkSession) -> bool:
    """Whether the endpoint is known to work, asked once per session: an outage of it ends by itself."""
    if session.knows_endpoint is None:
        session.knows_endpoint = bool(session.judge.endpoint and outages.has_endpoint_answered(session.judge.endpoint))
    return session.knows_endpoint


def pause_sentence(failure: AttemptFailure, count: int) -> str:
    description = {
        AttemptOutcome.UNREADABLE: "replies in a row could not be parsed",
        AttemptOutcome.TRUNCATED: "replies in a row were cut off at the token limit",
        AttemptOutcome.TOO_LONG: "prompts in a row were too long for the model",
    }.get(AttemptOutcome(failure.outcome), "requests in a row failed the same way")
    return f"{count} {description}. Last error: {failure.error} Fix the cause, then resume the run."
