"""Work sessions in tests: calls are claimed, resolved without a network or a worker."""

from datetime import timedelta
from typing import Any, Unpack

from django.db.models.functions import Now

from evaluations.domain.choices import Choice
from evaluations.domain.judges import AttemptOutcome, AttemptStep, CallState
from evaluations.domain.rubrics import RubricKind
from evaluations.judges.calls.claims import claim_calls
from evaluations.judges.calls.work_session import CallOutcome, ClaimedCall, WorkSession, begin_work_session
from evaluations.judges.runs.planner import plan_run_calls
from evaluations.judges.runs.selection import ExpectedCalls, SelectionOptions, count_expected_calls, make_selection
from evaluations.judges.runs.services import start_run
from evaluations.llm.retry_policy import RetryPolicy
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge, Price
from evaluations.models.rubrics import RubricVersion
from evaluations.models.runs import Call, Run
from evaluations.rubrics.services import create_builtin_rubric
from tests.factories.judges import make_llm_judge

CLOSED_ADDRESS = "http://127.0.0.1:9/v1"
ANSWERED_ATTEMPT: dict[str, Any] = {
    "outcome": AttemptOutcome.ANSWERED,
    "latency_ms": 5,
    "raw": "{}",
    "http_status": 200,
}
# One nano-USD for a token in and ten for one out, so that sums can be worked by hand.
PRICE_COLUMNS = {"tokens_in": 1_000_000, "tokens_cached": 1_000_000, "tokens_out": 10_000_000}


def start_work_session(run: Run) -> WorkSession:
    session = begin_work_session(run.pk, RetryPolicy())
    assert session is not None
    return session


def start_run_session(judge: Judge, **options: Any) -> WorkSession:
    run = start_run(judge, user=None, **options)
    plan_run_calls(run.pk, until=float("inf"))
    return start_work_session(run)


def claim_session_calls(session: WorkSession, room: int = 64) -> list[ClaimedCall]:
    return list(claim_calls(session, room).calls)


def answered_outcome(
    session: WorkSession, claimed: ClaimedCall, choice: Choice = Choice.A, **fields: Any
) -> CallOutcome:
    """Every aspect answered by that choice, or by the lowest score."""
    outcome = {"rationale": "Because.", "prompt_sha256": claimed.prompt_sha256}
    if session.spec.kind == RubricKind.POINTWISE:
        scores = {aspect.key: aspect.scale_min or 0.0 for aspect in session.spec.aspects}
        return CallOutcome(claimed, CallState.ANSWERED, ANSWERED_ATTEMPT | fields, scores=scores, **outcome)  # type: ignore[arg-type]
    choices = {aspect.key: choice for aspect in session.spec.aspects}
    return CallOutcome(claimed, CallState.ANSWERED, ANSWERED_ATTEMPT | fields, choices=choices, **outcome)  # type: ignore[arg-type]


def unreadable_outcome(claimed: ClaimedCall, **fields: Any) -> CallOutcome:
    attempt = (
        ANSWERED_ATTEMPT
        | {"outcome": AttemptOutcome.UNREADABLE, "raw": "Hm.", "error": "There is no verdict."}
        | fields
    )
    return CallOutcome(claimed, CallState.UNREADABLE, attempt, error="There is no verdict.")


def waiting_outcome(claimed: ClaimedCall, seconds: float, *, busy: bool = False, **fields: Any) -> CallOutcome:
    attempt = ANSWERED_ATTEMPT | {"outcome": AttemptOutcome.RETRY, "http_status": 500} | fields
    return CallOutcome(claimed, CallState.PENDING, attempt, error="later", wait_seconds=seconds, busy=busy)


def evaluated_outcome(claimed: ClaimedCall, text: str = "It is concise.") -> CallOutcome:
    """The first of two steps: an evaluation in free text, its score still to be asked for."""
    return CallOutcome(claimed, CallState.PENDING, ANSWERED_ATTEMPT | {"raw": text}, next_step=AttemptStep.SCORE)


def expire_leases(*claimed: ClaimedCall) -> None:
    ids = [call.call_id for call in claimed]
    Call.objects.filter(pk__in=ids).update(lease_until=Now() - timedelta(seconds=1))


def make_calls_due() -> None:
    Call.objects.filter(not_before__isnull=False).update(not_before=Now() - timedelta(seconds=1))


def set_judge_price(judge: Judge, **columns: Any) -> Price:
    assert judge.endpoint is not None
    columns = PRICE_COLUMNS | columns
    return Price.objects.get_or_create(endpoint=judge.endpoint, model=judge.model, defaults=columns)[0]


def make_rating_judge(evaluation: Evaluation, **settings: Any) -> Judge:
    """A judge of one response at a time, in two steps."""
    return make_llm_judge(evaluation, CLOSED_ADDRESS, version=make_rating_rubric(evaluation), **settings)


def make_rating_rubric(evaluation: Evaluation) -> RubricVersion:
    existing = RubricVersion.objects.filter(rubric__evaluation=evaluation, rubric__name="summary-rating").first()
    return existing or create_builtin_rubric(evaluation, builtin="summary-rating", user=None)


def expect_calls(judge: Judge, **options: Unpack[SelectionOptions]) -> ExpectedCalls:
    """What a run with these options would do now."""
    return count_expected_calls(make_selection(judge, **options))
