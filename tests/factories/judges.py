"""Judges and runs for tests, worked without a worker."""

from typing import Any

from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricOrigin, RubricSpec
from evaluations.judges.calls.live_worker import work_run_calls
from evaluations.judges.endpoints.services import find_or_create_endpoint
from evaluations.judges.runs.services import start_run
from evaluations.judges.services import JudgeSettings, create_judge
from evaluations.llm.retry_policy import RetryPolicy
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge
from evaluations.models.rubrics import RubricVersion
from evaluations.models.runs import Run
from evaluations.rubrics.services import add_rubric

# Retries within milliseconds, so that tests do not wait for them.
FAST_RETRIES = RetryPolicy(
    first_seconds=0.01,
    most_seconds=0.05,
    tries=4,
    tries_when_busy=8,
    tries_unreachable=2,
    tries_timed_out=6,
    most_seconds_timed_out=0.01,
)


def make_llm_judge(
    evaluation: Evaluation,
    base_url: str,
    *,
    name: str = "judge",
    model: str = "test-model",
    version: RubricVersion | None = None,
    key_variable: str = "",
    max_in_flight: int | None = None,
    **settings: Any,
) -> Judge:
    endpoint = find_or_create_endpoint(base_url=base_url, key_variable=key_variable, max_in_flight=max_in_flight)
    return create_judge(
        evaluation,
        JudgeSettings(
            name=name, model=model, version=version or evaluation.review_rubric, endpoint=endpoint, **settings
        ),
        user=None,
    )


def make_baseline_judge(
    evaluation: Evaluation, *, name: str = "longest", version: RubricVersion | None = None
) -> Judge:
    return create_judge(
        evaluation, JudgeSettings(name=name, model="longest", version=version or evaluation.review_rubric), user=None
    )


def make_pasted_rubric(
    evaluation: Evaluation, text: str, placeholders: dict[str, str], *aspects: AspectSpec, **columns: Any
) -> RubricVersion:
    keys = tuple(aspect.key for aspect in aspects)
    spec = RubricSpec(RubricKind.PAIRWISE, text, aspects, keys, placeholders, **columns)
    return add_rubric(evaluation, name="pasted", spec=spec, origin=RubricOrigin.OWN, user=None)


def make_rubric_without_query(evaluation: Evaluation) -> RubricVersion:
    """A pasted prompt with placeholders for the two responses alone."""
    places = {"{x}": "response_a", "{y}": "response_b"}
    return make_pasted_rubric(evaluation, "Which is better, {x} or {y}?", places, AspectSpec("overall", "Overall", ""))


def work_run_here(run: Run, *, seconds: float = 30.0, retry_policy: RetryPolicy = FAST_RETRIES) -> Run:
    """Plan and work the run here, as one task of a worker does; the run as it stands afterwards."""
    work_run_calls(run.pk, hand_over=lambda: None, seconds=seconds, retry_policy=retry_policy)
    return Run.objects.get(pk=run.pk)


def run_judge_here(judge: Judge, **options: Any) -> Run:
    return work_run_here(start_run(judge, user=None, **options))
