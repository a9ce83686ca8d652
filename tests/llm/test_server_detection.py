"""Whose server answers at an address, from what such servers say of themselves."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from evaluations.domain.judges import Dialect
from evaluations.llm.dialects.registry import hosted_dialect
from evaluations.llm.server_detection import DetectedServer, ServerPage, detect_server

Pages = Mapping[str, Any]


def getter(
    pages: Pages, asked: list[str] | None = None, otherwise: ServerPage | None = None
) -> Callable[[str], ServerPage | None]:
    """A server that has these pages: JSON, or a whole answer; 404 or whatever is given for every other."""

    def get(path: str) -> ServerPage | None:
        if asked is not None:
            asked.append(path)
        page = pages.get(path, otherwise or (404, {}, None))
        return page if isinstance(page, tuple) else (200, {}, page)

    return get


def seen(base_url: str, pages: Pages, **more: Any) -> DetectedServer:
    found = detect_server(base_url, getter(pages, **more), hosted=hosted_dialect(base_url))
    assert found is not None
    return found


def listing(*names: str, **fields: Any) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": name, "object": "model", **fields} for name in names]}


OLLAMA = {
    "/api/tags": {"models": [{"name": "qwen3:4b"}, {"name": "gemma3:1b"}]},
    "/api/version": {"version": "0.34.1"},
    "/api/ps": {"models": [{"name": "qwen3:4b", "size": 1, "context_length": 4096}]},
    "/v1/models": listing("qwen3:4b", "gemma3:1b", owned_by="library"),
}
BOTH_LISTS = {"models": [{"name": "m.gguf"}], **listing("m.gguf", owned_by="llamacpp", meta={"n_ctx": 4096})}
LLAMA_CPP = {
    "/v1/models": (200, {"Server": "llama.cpp"}, BOTH_LISTS),
    "/props": {"total_slots": 4, "default_generation_settings": {"n_ctx": 4096}, "build_info": "b1-7e4c0a9"},
}
VLLM = {
    "/v1/models": listing("org/model", owned_by="vllm", max_model_len=32768),
    "/version": {"version": "0.19.0"},
}
LM_STUDIO = {
    "/v1/models": listing("loaded", "stored", owned_by="organization_owner"),
    "/api/v0/models": {
        "data": [
            {"id": "loaded", "state": "loaded", "max_context_length": 131072, "loaded_context_length": 8192},
            {"id": "stored", "state": "not-loaded", "max_context_length": 32768},
        ]
    },
}


@pytest.mark.parametrize(
    "base_url", ["http://gpu:9000", "http://gpu:9000/", "http://gpu:9000/v1", "http://gpu:9000/api"]
)
def test_an_ollama_is_known_by_its_own_list_wherever_its_address_ends(base_url: str) -> None:
    found = seen(base_url, OLLAMA)
    assert (found.dialect, found.base_url, found.version) == (Dialect.OLLAMA, "http://gpu:9000/v1", "0.34.1")
    assert (found.model_names, found.context_tokens) == (("qwen3:4b", "gemma3:1b"), {"qwen3:4b": 4096})
    assert found.slots is None


def test_an_ollama_is_asked_how_long_the_context_of_a_model_may_be() -> None:
    asked: list[Any] = []

    def post(path: str, body: Mapping[str, Any]) -> ServerPage | None:
        asked.append((path, body["model"]))
        info = {"general.architecture": "qwen3", "qwen3.context_length": 40960}
        return (200, {}, {"model_info": info}) if body["model"] == "qwen3:4b" else (404, {}, {"error": "not found"})

    found = detect_server("http://gpu:9000/v1", getter(OLLAMA), post)
    assert found is not None
    assert found.context_tokens == {"qwen3:4b": 40960}
    assert asked == [("/api/show", "qwen3:4b"), ("/api/show", "gemma3:1b")]


def test_a_llama_cpp_server_tells_its_slots_and_their_context() -> None:
    found = seen("http://gpu:9000/v1", LLAMA_CPP)
    assert (found.dialect, found.slots, found.context_tokens) == (Dialect.LLAMA_CPP, 4, {"m.gguf": 4096})
    assert (found.version, found.model_names) == ("b1-7e4c0a9", ("m.gguf",))


def test_a_list_of_ollamas_kind_beside_that_of_openai_makes_no_ollama() -> None:
    assert seen("http://gpu:9000", {**LLAMA_CPP, "/api/tags": BOTH_LISTS}).dialect == Dialect.LLAMA_CPP


def test_a_llama_cpp_server_that_hides_its_properties_is_known_with_what_its_list_tells() -> None:
    refused = (401, {"Server": "llama.cpp"}, {"error": {"message": "Invalid API Key", "code": 401}})
    found = seen("http://gpu:9000/v1", {**LLAMA_CPP, "/props": refused, "/slots": refused})
    assert (found.dialect, found.slots, found.context_tokens) == (Dialect.LLAMA_CPP, None, {"m.gguf": 4096})


def test_a_llama_cpp_server_is_known_while_it_loads_its_model() -> None:
    loading = (503, {"Server": "llama.cpp"}, {"error": {"message": "Loading model", "code": 503}})
    found = seen("http://gpu:9000/v1", {}, otherwise=loading)
    assert (found.dialect, found.model_names, found.wants_key) == (Dialect.LLAMA_CPP, None, False)


def test_vllm_tells_the_longest_context_and_its_version() -> None:
    found = seen("http://gpu:9000/v1", VLLM)
    assert (found.dialect, found.context_tokens, found.version) == (Dialect.VLLM, {"org/model": 32768}, "0.19.0")


def test_sglang_speaks_the_dialect_of_vllm() -> None:
    pages = {"/v1/models": listing("org/model", owned_by="sglang", max_model_len=131072)}
    found = seen("http://gpu:9000/v1", {**pages, "/server_info": {"version": "0.5.2"}})
    assert (found.dialect, found.context_tokens, found.version) == (Dialect.VLLM, {"org/model": 131072}, "0.5.2")


def test_lm_studio_tells_the_context_with_which_a_model_is_loaded_before_the_one_that_it_may_have() -> None:
    wrong: ServerPage = (200, {}, {"error": "Unexpected endpoint or method. (GET /api/tags)"})
    found = seen("http://gpu:9000", LM_STUDIO, otherwise=wrong)
    assert (found.dialect, found.base_url) == (Dialect.LM_STUDIO, "http://gpu:9000/v1")
    assert found.context_tokens == {"loaded": 8192, "stored": 32768}
    assert (found.slots, found.model_names) == (None, ("loaded", "stored"))


def test_litellm_is_known_by_a_header_or_by_what_it_says_of_its_health() -> None:
    headed = {"/v1/models": (200, {"X-LiteLLM-Version": "1.75.0"}, listing("gpt"))}
    found = seen("http://gateway:4000", headed)
    assert (found.dialect, found.version) == (Dialect.LITELLM, "1.75.0")
    alive = {"/v1/models": listing("gpt"), "/health/liveliness": "I'm alive!"}
    assert seen("http://gateway:4000", alive).dialect == Dialect.LITELLM


def test_a_gateway_that_wants_a_key_is_named_all_the_same() -> None:
    refused = (401, {"x-litellm-call-id": "1"}, {"error": {"message": "No api key passed in."}})
    found = seen("http://gateway:4000/v1", {}, otherwise=refused)
    assert (found.dialect, found.wants_key, found.model_names) == (Dialect.LITELLM, True, None)


def test_a_hosted_provider_is_known_by_its_host_and_tells_contexts_in_its_list() -> None:
    asked: list[str] = []
    pages = {"/api/v1/models": listing("a/b", context_length=200000)}
    found = detect_server("https://openrouter.ai/api/v1", getter(pages, asked), hosted=Dialect.OPENROUTER)
    assert found is not None
    assert (found.dialect, found.context_tokens) == (Dialect.OPENROUTER, {"a/b": 200000})
    assert asked == ["/api/v1/models"]


def test_a_hosted_provider_is_known_though_its_list_is_refused() -> None:
    found = seen("https://api.openai.com/v1", {}, otherwise=(401, {}, {"error": {"message": "no key"}}))
    assert (found.dialect, found.wants_key, found.model_names) == (Dialect.OPENAI, True, None)


@pytest.mark.parametrize(
    ("given", "right", "where"),
    [
        ("http://box:9000", "http://box:9000/v1", "/v1/models"),
        ("http://box:9000/v1/chat/completions", "http://box:9000/v1", "/v1/models"),
        ("http://box:9000/models-api", "http://box:9000/models-api/v1", "/models-api/v1/models"),
        ("http://box:9000/v1", "http://box:9000/v1", "/v1/models"),
        ("http://box:9000/plain", "http://box:9000/plain", "/plain/models"),
        ("http://box:9000/v3", "http://box:9000/v1", "/v1/models"),
        ("https://box.example.com/v1beta/openai", "https://box.example.com/v1beta/openai", "/v1beta/openai/models"),
    ],
)
def test_the_base_url_that_works_is_told(given: str, right: str, where: str) -> None:
    found = seen(given, {where: listing("m")})
    assert (found.dialect, found.base_url, found.model_names) == (Dialect.GENERIC, right, ("m",))


def test_where_nobody_answers_two_questions_are_enough() -> None:
    asked: list[str] = []

    def get(path: str) -> ServerPage | None:
        asked.append(path)
        return None

    assert detect_server("http://gpu:9000", get) is None
    assert len(asked) == 2


@pytest.mark.parametrize(
    "page", [None, [], "text", 7, {"data": "none"}, {"models": "none"}, {"data": None}, {"error": "no"}]
)
def test_what_tells_nothing_of_models_is_no_server_of_models(page: object) -> None:
    assert detect_server("http://gpu:9000", getter({}, otherwise=(200, {}, page))) is None


def test_odd_entries_are_passed_over() -> None:
    odd = {
        "data": [7, {"id": 8}, {"id": ""}, {"id": "m" * 300, "max_model_len": -1}, {"id": "n", "max_model_len": 9.5}]
    }
    found = seen("http://gpu:9000", {"/v1/models": odd})
    assert (found.model_names, found.context_tokens) == (("m" * 200, "n"), {})
    ollama = {"/api/tags": {"models": [{"name": 1}, None, {"name": "a"}, {"name": "a"}]}, "/api/ps": {"models": [3]}}
    assert seen("http://gpu:9000", ollama).model_names == ("a",)
