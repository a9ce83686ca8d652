"""A server is asked for its models with the key, headers and query that a judge's requests have."""

import pytest
from aiohttp import web

from evaluations.domain.judges import Dialect
from evaluations.llm.batch_client import connect_batches
from evaluations.llm.client import find_connection_problem, server_getter
from evaluations.llm.exchange import Server, StopRun
from tests.helpers.replay_server import RecordedRequest, ReplayServer, replay_answers

KEY = "key-of-a-provider"


class Guarded(ReplayServer):
    """It lists its models to whoever brings the key in the header, and the version, that its provider wants."""

    header, query = "x-api-key", ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        is_let_in = request.headers.get(self.header) == KEY and self.query in request.query_string
        return web.json_response({"data": [{"id": "m"}]}, status=200 if is_let_in else 401)


class GuardedAzure(Guarded):
    header, query = "api-key", "api-version=2025-04-01"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGEWEB_KEY_TEST", KEY)


@pytest.mark.parametrize(
    ("dialect", "kind", "query"),
    [(Dialect.ANTHROPIC, Guarded, {}), (Dialect.AZURE, GuardedAzure, {"api-version": "2025-04-01"})],
)
def test_a_provider_with_a_key_header_of_its_own_is_not_said_to_refuse_a_good_key(
    dialect: Dialect, kind: type[Guarded], query: dict[str, str]
) -> None:
    with replay_answers([], kind) as running:
        server = Server(f"{running.address}/v1", "JUDGEWEB_KEY_TEST", dialect=dialect, query=query)
        assert find_connection_problem(server) == ""
        assert server_getter(server)("/v1/models") is not None
        keyless = Server(f"{running.address}/v1", dialect=dialect, query=query)
        assert find_connection_problem(keyless) == "It requires an API key."


def test_a_header_that_names_a_variable_which_is_not_set_is_the_trouble() -> None:
    server = Server("http://127.0.0.1:9/v1", headers={"X-Gateway": "$JUDGEWEB_KEY_ABSENT"})
    assert "JUDGEWEB_KEY_ABSENT" in find_connection_problem(server)
    assert server_getter(server)("/v1/models") is None


def test_a_batch_is_asked_for_with_the_key_in_its_providers_header_alone() -> None:
    class Recorder(ReplayServer):
        async def answer(self, request: web.Request) -> web.StreamResponse:
            self.asked.append(RecordedRequest(request.path, dict(request.headers), dict(request.query), {}))
            return web.json_response({"error": {"message": "no such batch"}}, status=404)

    with replay_answers([], Recorder) as running:
        server = Server(f"{running.address}/openai/v1", "JUDGEWEB_KEY_TEST", dialect=Dialect.AZURE)
        with connect_batches(server) as batches, pytest.raises(StopRun):
            batches.retrieve("batch-1")
    headers = {name.lower(): value for name, value in running.asked[0].headers.items()}
    assert headers["api-key"] == KEY
    assert "authorization" not in headers
