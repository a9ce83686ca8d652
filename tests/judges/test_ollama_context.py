"""A run against an Ollama over its own API: the context that it is asked for holds each prompt."""

import pytest
from aiohttp import web

from evaluations.domain.judges import CallState, Dialect
from evaluations.judges.endpoints.selectors import server_for_endpoint
from evaluations.judges.runs.services import start_run
from evaluations.judges.services import JudgeSettings, create_judge
from evaluations.llm.dialects.registry import find_adapter
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint
from evaluations.models.runs import Call
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import work_run_here
from tests.helpers.replay_server import RecordedRequest, ReplayServer, replay_answers, replay_verdict

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

DEFAULT_CONTEXT = 4096


class Ollama(ReplayServer):
    """One that counts a token for each four bytes, and refuses what it is not to cut."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        asked = RecordedRequest(request.path, dict(request.headers), dict(request.query), await request.json())
        self.asked.append(asked)
        tokens = sum(len(message["content"].encode()) for message in asked.body["messages"]) // 4
        context = asked.body["options"].get("num_ctx", DEFAULT_CONTEXT)
        if tokens > context and asked.body["truncate"] is False:
            return web.json_response({"error": f"the prompt is longer than the context length ({context})"}, status=400)
        message = {"role": "assistant", "content": replay_verdict(asked)}
        counts = {"prompt_eval_count": min(tokens, context), "eval_count": 20}
        return web.json_response({"model": "m", "message": message, "done": True, "done_reason": "stop", **counts})


def contexts_asked_for(evaluation: Evaluation) -> list[int]:
    with replay_answers([], Ollama) as server:
        endpoint = Endpoint.objects.create(name="o", base_url=f"{server.address}/v1", dialect=Dialect.OLLAMA)
        judge = create_judge(
            evaluation,
            JudgeSettings(name="judge", model="m", version=evaluation.review_rubric, endpoint=endpoint, max_tokens=500),
            user=None,
        )
        work_run_here(start_run(judge, user=None, orders="as-stored"), seconds=30)
        assert {asked.path for asked in server.asked} == {"/api/chat"}
        return [asked.body["options"]["num_ctx"] for asked in server.asked]


def test_a_prompt_that_is_longer_than_ollamas_own_context_is_judged_whole() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation, response_a="a river runs past the mill. " * 1200, response_b="two")
    contexts = contexts_asked_for(evaluation)
    assert Call.objects.get().state == CallState.ANSWERED
    # 1,200 times 28 bytes are some 8,400 tokens, besides what the rubric says.
    assert min(contexts) >= 8400
    assert not [context for context in contexts if context % 4096]


def test_the_context_never_shrinks_since_each_size_loads_the_model_anew() -> None:
    evaluation = make_evaluation()
    for number in range(4):
        make_comparison(
            evaluation, response_a="a river runs past the mill. " * (1200 if number == 1 else 1), response_b="b"
        )
    contexts = contexts_asked_for(evaluation)
    assert contexts == sorted(contexts)
    assert set(Call.objects.values_list("state", flat=True)) == {CallState.ANSWERED}


@pytest.mark.parametrize(
    ("set_to", "base_url", "dialect"),
    [
        ("", "http://127.0.0.1:11434/v1", Dialect.OLLAMA),
        ("", "http://127.0.0.1:9999/v1", Dialect.GENERIC),
        ("ollama", "http://127.0.0.1:9999/v1", Dialect.OLLAMA),
        ("generic", "http://127.0.0.1:11434/v1", Dialect.GENERIC),
    ],
)
def test_a_dialect_that_was_set_goes_before_that_of_the_address(set_to: str, base_url: str, dialect: Dialect) -> None:
    endpoint = Endpoint(dialect=set_to, base_url=base_url)
    assert find_adapter(server_for_endpoint(endpoint)).dialect == dialect
