"""What a run says it spent, against the provider's bill; and the bill against the run's budget."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Sum

from evaluations.domain.judges import CallState, RunState
from evaluations.judges.runs.services import start_run
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Price
from evaluations.models.runs import Attempt, Call, Run
from tests.factories.evaluations import make_comparison
from tests.factories.judges import make_llm_judge, work_run_here
from tests.helpers.llm_server import LLMServer, Question, Script, ServerAnswer, llm_server, verdict_reply

pytestmark = pytest.mark.django_db(transaction=True)

IN, OUT = 1_000, 10_000  # nano-USD a token: $1 and $10 a million
LIMIT = 400


@pytest.fixture(autouse=True)
def sixty_comparisons(evaluation: Evaluation) -> None:
    for number in range(60):
        make_comparison(evaluation, response_a=f"a{number}")


class Bill:
    """A provider that counts what it charges, in nano-USD."""

    def __init__(self, thinks: Callable[[int], int], usage: Callable[[int, int, int], dict[str, Any]]) -> None:
        self.thinks, self.usage, self.charged, self.asked = thinks, usage, 0, 0

    def __call__(self, question: Question) -> ServerAnswer:
        prompt, out, thought = len(question.prompt) // 4, 60, self.thinks(self.asked)
        self.asked += 1
        self.charged += prompt * IN + (out + thought) * OUT
        message = {"role": "assistant", "content": verdict_reply(question)}
        return ServerAnswer(
            body={
                "model": question.body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": self.usage(prompt, out, thought),
            }
        )


def beside(prompt: int, out: int, thought: int) -> dict[str, Any]:
    """As xAI and Google count: the reasoning is in the total alone."""
    return {"prompt_tokens": prompt, "completion_tokens": out, "total_tokens": prompt + out + thought}


def beside_by_name(prompt: int, out: int, thought: int) -> dict[str, Any]:
    details = {"reasoning_tokens": thought}
    return {**beside(prompt, out, thought), "completion_tokens_details": details}


def inside(prompt: int, out: int, thought: int) -> dict[str, Any]:
    """As OpenAI counts, here with counts that are written as other numbers are."""
    details = {"reasoning_tokens": float(thought)}
    counts = {"prompt_tokens": float(prompt), "completion_tokens": float(out + thought)}
    return {**counts, "total_tokens": float(prompt + out + thought), "completion_tokens_details": details}


def run_with(evaluation: Evaluation, script: Script, budget: int | None, **price: Any) -> tuple[Run, LLMServer]:
    with llm_server(script, latency=0.01) as server:
        judge = make_llm_judge(evaluation, server.base_url, max_tokens=LIMIT)
        assert judge.endpoint is not None
        usd = {"tokens_in": IN * 10**6, "tokens_cached": IN * 10**6, "tokens_out": OUT * 10**6}
        Price.objects.create(endpoint=judge.endpoint, model=judge.model, **usd, **price)
        run = start_run(judge, user=None, budget=budget, orders="as-stored")
        return work_run_here(run), server


@pytest.mark.parametrize("usage", [beside, beside_by_name, inside])
def test_what_a_run_spent_is_what_the_provider_charged(evaluation: Evaluation, usage: Any) -> None:
    bill = Bill(lambda n: 100 + n * 4, usage)
    run, _ = run_with(evaluation, bill, None)
    assert run.state == RunState.DONE
    assert run.spent == bill.charged
    assert Attempt.objects.aggregate(Sum("cost"))["cost__sum"] == bill.charged


@pytest.mark.parametrize("usage", [beside, beside_by_name, inside])
@pytest.mark.parametrize("seed", range(4))
def test_no_bill_passes_the_budget_however_long_the_model_thinks(evaluation: Evaluation, usage: Any, seed: int) -> None:
    draw = random.Random(seed)
    bill = Bill(lambda n: draw.choice([50, 200, 3_000]), usage)
    budget = 400_000_000  # $0.40, where the sixty calls would cost about $0.66
    run, _ = run_with(evaluation, bill, budget)
    assert run.state == RunState.STOPPED
    assert (
        "The budget cannot be guaranteed: a reply of “test-model” exceeded the limit of 400 tokens." in run.stop_reason
    )
    assert run.spent == bill.charged <= budget
    assert Call.objects.filter(state=CallState.ANSWERED).count() == bill.asked


def test_the_models_longest_reply_bounds_what_its_limit_does_not(evaluation: Evaluation) -> None:
    bill = Bill(lambda n: 3_000, beside)
    budget = 800_000_000
    run, _ = run_with(evaluation, bill, budget, most_tokens_out=4_000)
    assert run.state == RunState.STOPPED
    assert run.stop_reason.startswith("The budget is used up")
    assert run.spent == bill.charged <= budget
    assert bill.charged > budget * 0.9


def test_a_cost_that_the_server_reports_is_what_was_spent_with_no_price_at_all(evaluation: Evaluation) -> None:
    def script(question: Question) -> ServerAnswer:
        told = Bill(lambda n: 0, inside)(question)
        told.body["usage"]["cost"] = 0.00125
        return told

    with llm_server(script) as server:
        judge = make_llm_judge(evaluation, server.base_url)
        run = work_run_here(start_run(judge, user=None, limit=5, orders="as-stored"))
    assert run.spent == 5 * 1_250_000
