"""A llama.cpp server says how many requests it works on at once: a judge keeps to that from its first contact."""

import asyncio

import pytest
from aiohttp import web

from evaluations.domain.judges import CallState
from evaluations.judges.runs.services import start_run
from evaluations.judges.services import JudgeSettings, create_judge
from evaluations.models.judges import Endpoint
from evaluations.models.runs import Call
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import work_run_here
from tests.helpers.replay_server import RecordedRequest, ReplayServer, replay_answers, replay_verdict

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
SLOTS = 3


class LlamaServer(ReplayServer):
    """One with three slots, which tells them at /props as llama.cpp does."""

    in_flight = most = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/v1/models":
            return web.json_response({"object": "list", "data": [{"id": "m", "owned_by": "llamacpp"}]})
        if request.path == "/props":
            return web.json_response({"total_slots": SLOTS, "default_generation_settings": {"n_ctx": 4096}})
        if request.method != "POST":
            return web.json_response({"error": "not here"}, status=404)
        asked = RecordedRequest(request.path, dict(request.headers), dict(request.query), await request.json())
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        await asyncio.sleep(0.05)
        self.in_flight -= 1
        message = {"role": "assistant", "content": replay_verdict(asked)}
        return web.json_response({"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]})


def test_no_more_requests_fly_than_a_local_server_has_slots() -> None:
    evaluation = make_evaluation()
    for number in range(40):
        make_comparison(evaluation, response_a=f"a{number}")
    with replay_answers([], LlamaServer) as server:
        assert isinstance(server, LlamaServer)
        endpoint = Endpoint.objects.create(name="here", base_url=f"{server.address}/v1")
        judge = create_judge(
            evaluation,
            JudgeSettings(name="judge", model="m", version=evaluation.review_rubric, endpoint=endpoint),
            user=None,
        )
        work_run_here(start_run(judge, user=None))
    assert Call.objects.filter(state=CallState.ANSWERED).count() == 80
    assert server.most == SLOTS
