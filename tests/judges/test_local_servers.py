"""A local server of models is found by what it answers, and forgotten when it is gone."""

import json
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.test import override_settings

from evaluations.judges.endpoints.services import add_found_server, refresh_local_server
from evaluations.llm.server_detection import OTHER_SERVER_KIND, probe_local_address
from evaluations.models.judges import Endpoint, LocalServer
from evaluations.tasks import look_for_local_server

pytestmark = pytest.mark.django_db

TAGS = {"/api/tags": json.dumps({"models": [{"name": "llama3.1:8b"}, {"name": "qwen3:4b"}, {"name": "qwen3:4b"}]})}
MODELS = {"/v1/models": json.dumps({"object": "list", "data": [{"id": "served-model", "object": "model"}]})}


@contextmanager
def server(pages: Mapping[str, str]) -> Iterator[str]:
    """The address of a server that has these pages; a page that begins with → leads elsewhere."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path)
            leads = page is not None and page.startswith("→")
            self.send_response(404 if page is None else 302 if leads else 200)
            if page is not None and leads:
                self.send_header("Location", page[1:])
            self.end_headers()
            self.wfile.write((page or "not found").encode())

        def log_message(self, *told: object) -> None:
            pass

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{serving.server_port}"
    finally:
        serving.shutdown()
        serving.server_close()
        thread.join(10)


def gone() -> str:
    """An address at which nobody listens any more."""
    with server({}) as address:
        return address


def test_an_ollama_is_kept_with_its_models_and_becomes_an_endpoint() -> None:
    with server(TAGS | MODELS) as address:
        found = refresh_local_server(address)
    assert found is not None
    assert (found.base_url, found.kind, found.model_names) == (f"{address}/v1", "ollama", ["llama3.1:8b", "qwen3:4b"])
    endpoint = add_found_server(found, user=None)
    assert (endpoint.base_url, endpoint.key_variable, endpoint.dialect) == (f"{address}/v1", "", "ollama")


def test_a_server_that_knows_the_open_protocol_alone_is_found_too() -> None:
    with server(MODELS) as address:
        found = probe_local_address(address)
    assert found is not None
    assert (found.kind, found.model_names) == ("OpenAI-compatible", ("served-model",))


@pytest.mark.parametrize(
    ("owner", "kind", "dialect"),
    [
        ("llamacpp", "llama.cpp", "llama_cpp"),
        ("vllm", "vLLM", "vllm"),
        ("sglang", "vLLM", "vllm"),
        ("me", OTHER_SERVER_KIND, ""),
    ],
)
def test_a_server_that_says_whose_it_is_is_named_and_its_endpoint_speaks_its_dialect(
    owner: str, kind: str, dialect: str
) -> None:
    listed = {"data": [{"id": "served-model", "owned_by": owner}]}
    with server({"/v1/models": json.dumps(listed)}) as address:
        found = refresh_local_server(address)
    assert found is not None
    assert found.kind == kind
    assert add_found_server(found, user=None).dialect == dialect


def test_it_is_seen_again_with_what_it_holds_now_and_forgotten_when_it_is_gone() -> None:
    pages = dict(TAGS)
    with server(pages) as address:
        refresh_local_server(address)
        before = LocalServer.objects.get()
        add_found_server(before, user=None)
        pages["/api/tags"] = json.dumps({"models": []})
        refresh_local_server(address)
        after = LocalServer.objects.get()
        assert (after.pk, after.model_names) == (before.pk, [])
        assert after.seen_at > before.seen_at
    assert refresh_local_server(address) is None
    assert not LocalServer.objects.exists()
    assert Endpoint.objects.filter(base_url=before.base_url).exists()


def test_nobody_there_costs_no_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        assert refresh_local_server(gone()) is None
    assert caplog.records == []


@pytest.mark.parametrize(
    "page",
    ["<!doctype html><title>Welcome</title>", '{"models": "none"}', "[]", '{"models": [', "[" * 100_000, "→/v1/other"],
)
def test_whatever_else_answers_there_is_no_server_of_models(page: str) -> None:
    with server({"/api/tags": page, "/v1/models": page, "/v1/other": MODELS["/v1/models"]}) as address:
        assert probe_local_address(address) is None


def test_names_that_no_database_keeps_are_made_storable() -> None:
    with server({"/api/tags": '{"models": [{"name": "a\\u0000b\\ud800"}, {"name": 7}, 8]}'}) as address:
        refresh_local_server(address)
    assert LocalServer.objects.get().model_names == ["a\ufffdb\ufffd"]


def test_the_task_looks_where_the_settings_say_and_nowhere_where_they_are_empty() -> None:
    with server(TAGS) as address:
        for url, count in ((address, 1), ("", 0)):
            with override_settings(OLLAMA_URL=url):
                look_for_local_server()
            assert LocalServer.objects.count() == count
