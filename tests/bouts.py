"""Stretches of work in tests: calls claimed and settled here, without a network or a worker."""

from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from evaluations.domain import AttemptOutcome, AttemptStep, CallState, Choice, RubricKind
from evaluations.judge.retrying import Patience
from evaluations.models import Call, Evaluation, Judge, Price, RubricVersion, Run
from evaluations.services.judging import claiming, running, working
from evaluations.services.judging.working import Bout, Held, Outcome
from evaluations.services.preparing.preparing import begin_builtin
from tests.judges import make_judge

NOWHERE = "http://127.0.0.1:9/v1"
SAID: dict[str, Any] = {"outcome": AttemptOutcome.ANSWERED, "latency_ms": 5, "raw": "{}", "http_status": 200}
# One nano-USD for a token in and ten for one out, so that sums can be worked by hand.
ONE_AND_TEN = {"tokens_in": 1_000_000, "tokens_cached": 1_000_000, "tokens_out": 10_000_000}


def work_on(run: Run) -> Bout:
    bout = working.begin(run.pk, Patience())
    assert bout is not None
    return bout


def bout_on(judge: Judge, **options: Any) -> Bout:
    run = running.start_run(judge, user=None, **options)
    running.plan(run.pk, until=float("inf"))
    return work_on(run)


def claimed(bout: Bout, room: int = 64) -> list[Held]:
    return list(claiming.claim(bout, room).questions)


def answered(bout: Bout, held: Held, choice: Choice = Choice.A, **said: Any) -> Outcome:
    """Every aspect answered by that choice, or by the lowest score."""
    outcome = {"rationale": "Because.", "prompt_sha256": held.prompt_sha256}
    if bout.spec.kind == RubricKind.POINTWISE:
        scores = {aspect.key: aspect.scale_min or 0.0 for aspect in bout.spec.aspects}
        return Outcome(held, CallState.ANSWERED, SAID | said, scores=scores, **outcome)  # type: ignore[arg-type]
    choices = {aspect.key: choice for aspect in bout.spec.aspects}
    return Outcome(held, CallState.ANSWERED, SAID | said, choices=choices, **outcome)  # type: ignore[arg-type]


def unreadable(held: Held, **said: Any) -> Outcome:
    attempt = SAID | {"outcome": AttemptOutcome.UNREADABLE, "raw": "Hm.", "error": "There is no verdict."} | said
    return Outcome(held, CallState.UNREADABLE, attempt, error="There is no verdict.")


def to_wait(held: Held, seconds: float, *, busy: bool = False, **said: Any) -> Outcome:
    attempt = SAID | {"outcome": AttemptOutcome.RETRY, "http_status": 500} | said
    return Outcome(held, CallState.PENDING, attempt, error="later", wait_seconds=seconds, busy=busy)


def evaluated(held: Held, text: str = "It is concise.") -> Outcome:
    """The first of two steps: an evaluation in free text, its score still to be asked for."""
    return Outcome(held, CallState.PENDING, SAID | {"raw": text}, next_step=AttemptStep.SCORE)


def expire(*held: Held) -> None:
    ids = [one.call_id for one in held]
    Call.objects.filter(pk__in=ids).update(lease_until=Now() - timedelta(seconds=1))


def due_again() -> None:
    Call.objects.filter(not_before__isnull=False).update(not_before=Now() - timedelta(seconds=1))


def priced(judge: Judge, **columns: Any) -> Price:
    assert judge.endpoint is not None
    columns = ONE_AND_TEN | columns
    return Price.objects.get_or_create(endpoint=judge.endpoint, model=judge.model, defaults=columns)[0]


def rating_judge(evaluation: Evaluation, **settings: Any) -> Judge:
    """A judge of one response at a time, in two steps."""
    return make_judge(evaluation, NOWHERE, version=rating_rubric(evaluation), **settings)


def rating_rubric(evaluation: Evaluation) -> RubricVersion:
    known = RubricVersion.objects.filter(rubric__evaluation=evaluation, rubric__name="summary-rating").first()
    return known or begin_builtin(evaluation, builtin="summary-rating", user=None)
