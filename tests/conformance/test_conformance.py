"""Every provider's answers, replayed over HTTP: what becomes of the call, what it costs, and what the run says.

A provider is one file in ``providers/``; the table of what is expected stands in it, beside each answer.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from evaluations.domain.judges import Dialect
from evaluations.domain.money import format_exact_usd
from evaluations.judge_prompts.builtin_rubrics import BUILTIN_RUBRICS
from evaluations.judges.runs.services import start_run
from evaluations.judges.services import JudgeSettings, create_judge
from evaluations.llm.dialects.registry import PROVIDER_ADAPTERS
from evaluations.llm.retry_policy import RetryPolicy
from evaluations.models.judges import Endpoint, Judge, Price
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.verdicts import Score, Verdict
from evaluations.rubrics.services import create_builtin_rubric
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import work_run_here
from tests.helpers.replay_server import ReplayServer, replay_answers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

PROVIDERS = Path(__file__).parent / "providers"
IN, CACHED, OUT = 1_000_000_000, 500_000_000, 10_000_000_000  # nano-USD for a million tokens
IMPATIENT = RetryPolicy(first_seconds=0.01, most_seconds=0.02, tries=3, tries_when_busy=3, tries_unreachable=2)
KNOWN = {
    *("state", "run", "requests", "tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning", "cost_usd"),
    *("sentence", "request_shape", "shape", "reasoning", "paused_seconds"),
}


def cases() -> Iterator[Any]:
    for file in sorted(PROVIDERS.glob("*.json")):
        provider = json.loads(file.read_text())
        for case in provider["cases"]:
            yield pytest.param(provider["dialect"], case, id=f"{file.stem}: {case['name']}")


@pytest.mark.parametrize(("dialect", "case"), list(cases()))
def test_a_providers_answers_become_what_its_file_says(dialect: str, case: Mapping[str, Any]) -> None:
    expect = case["expect"]
    assert set(expect) <= KNOWN
    assert {"state", "run"} & set(expect)
    with replay_answers(case["answers"]) as replay:
        run, judge = run_against(replay, dialect, case)
    assert not replay.faults
    assert told(run, judge, replay, set(expect)) == {name: value for name, value in expect.items() if name in EQUAL}
    assert expect.get("sentence", "") in said(run)
    assert expect.get("reasoning", "") in "".join(Attempt.objects.values_list("reasoning", flat=True))
    if "paused_seconds" in expect:
        assert abs(paused_seconds() - expect["paused_seconds"]) <= 0.2 * expect["paused_seconds"] + 5
    assert_no_verdict_without_an_answer()


def run_against(replay: ReplayServer, dialect: str, case: Mapping[str, Any]) -> tuple[Run, Judge]:
    settings = {"max_tokens": 1000, **case.get("judge", {})}
    evaluation = make_evaluation()
    make_comparison(evaluation, response_a="one", response_b="two")
    rubric = settings.pop("rubric", "")
    version = (
        create_builtin_rubric(evaluation, builtin=rubric, user=None)
        if rubric in BUILTIN_RUBRICS
        else evaluation.review_rubric
    )
    endpoint = Endpoint.objects.create(
        name="provider", base_url=f"{replay.address}{case.get('base_path', '/v1')}", dialect=dialect
    )
    Price.objects.create(endpoint=endpoint, model="model", tokens_in=IN, tokens_cached=CACHED, tokens_out=OUT)
    judge = create_judge(
        evaluation,
        JudgeSettings(name="judge", model="model", version=version, endpoint=endpoint, **settings),
        user=None,
    )
    options = {} if judge.is_pointwise else {"orders": "as-stored"}
    run = work_run_here(start_run(judge, user=None, limit=1, **options), retry_policy=IMPATIENT, seconds=20)  # type: ignore[arg-type]
    judge.refresh_from_db()
    return run, judge


EQUAL = KNOWN - {"sentence", "reasoning", "paused_seconds"}


def told(run: Run, judge: Judge, replay: ReplayServer, names: set[str]) -> dict[str, Any]:
    """What came of it, as far as the file speaks of it."""
    last = Attempt.objects.order_by("pk").last()
    assert last is not None
    whole = {
        "state": Call.objects.get().state,
        "run": run.state,
        "requests": len(replay.asked),
        **{name: getattr(last, name) for name in ("tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning")},
        "cost_usd": float(format_exact_usd(run.spent)),
        "request_shape": {name: value for name, value in (judge.request_shape or {}).items() if value},
        "shape": judge.reply_shape,
    }
    return {name: value for name, value in whole.items() if name in names}


def said(run: Run) -> str:
    """What a person reads: on the call, on the run, on the endpoint that is left alone."""
    return f"{Call.objects.get().error} {run.stop_reason} {Endpoint.objects.get().pause_reason}"


def paused_seconds() -> float:
    until = Endpoint.objects.get().paused_until
    assert until is not None
    return (until - timezone.now()).total_seconds()


def assert_no_verdict_without_an_answer() -> None:
    failed = Call.objects.exclude(state="answered")
    assert not Verdict.objects.filter(call__in=failed).exists()
    assert not Score.objects.filter(call__in=failed).exists()


def test_every_dialect_has_a_file_of_its_providers_answers() -> None:
    told_of = {json.loads(file.read_text())["dialect"] for file in PROVIDERS.glob("*.json")}
    assert {one.dialect for one in PROVIDER_ADAPTERS} | {Dialect.GENERIC} <= {Dialect(name) for name in told_of}


def test_every_case_names_its_source_and_no_name_stands_twice() -> None:
    for file in PROVIDERS.glob("*.json"):
        listed = json.loads(file.read_text())["cases"]
        assert all(case["source"].startswith("https://") for case in listed)
        assert len({case["name"] for case in listed}) == len(listed)
