"""Which LLM server answers at an address, by what it reports of itself, at no cost.

``get`` takes a path on the address's host, such as /v1/models.
"""

import http.client
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from evaluations.domain.judges import Dialect
from evaluations.llm.error_body import parse_json_object
from evaluations.llm.token_usage import object_member, parse_token_count
from evaluations.net.addresses import local_server_root

# Status, headers (in any case) and JSON of an answer (None if it is no JSON); None if nothing answers.
ServerPage = tuple[int, Mapping[str, str], object]

GetPage = Callable[[str], ServerPage | None]

PostPage = Callable[[str, Mapping[str, object]], ServerPage | None]

KEY_REQUIRED_STATUSES: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
# The owners named in lists of models.
DIALECT_BY_OWNER: Final = {
    "llamacpp": Dialect.LLAMA_CPP,
    "vllm": Dialect.VLLM,
    "sglang": Dialect.VLLM,
    "library": Dialect.OLLAMA,
}

# Servers' names for a model's context in tokens: the loaded one before the largest one.
CONTEXT_NAMES: Final = (
    *("loaded_context_length", "max_model_len", "context_length", "context_window", "max_context_length"),
    *("n_ctx", "max_input_tokens"),
)

MAX_MODEL_NAMES: Final = 20  # Ollama's models that are queried one by one
MAX_MODEL_NAME_LENGTH: Final = 200


@dataclass(frozen=True)
class DetectedServer:
    """A server. ``base_url``: the working one, with /v1 if it was left out. ``model_names``: None without a list.

    ``context_tokens``: context per model, as far as reported. ``slots``: requests at a time, None if not reported.
    """

    dialect: Dialect
    base_url: str
    model_names: tuple[str, ...] | None = None
    slots: int | None = None
    context_tokens: Mapping[str, int] = field(default_factory=dict)
    version: str = ""
    wants_key: bool = False

    @property
    def kind(self) -> str:
        """The name of the server on pages."""
        return SERVER_KINDS.get(self.dialect, OTHER_SERVER_KIND)


@dataclass(frozen=True)
class ModelList:
    """A list of models in OpenAI's protocol, and the base URL that it is below.

    ``entries`` is None if the list is not available: a key is missing, a model is loading, or there is none.
    """

    base_url: str
    headers: Mapping[str, str]
    entries: tuple[Mapping[str, object], ...] | None = None
    wants_key: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return limit_model_names(model_names(self.entries, "id"))

    @property
    def contexts(self) -> dict[str, int]:
        return model_contexts(self.entries or ())


def detect_server(
    base_url: str, get: GetPage, post: PostPage | None = None, hosted: Dialect | None = None
) -> DetectedServer | None:
    """The server at this base URL; None if nothing answers, or nothing that lists models.

    ``hosted``: the dialect of a hosted provider, which is known by its host whether or not it answers.
    """
    address = base_url.strip().rstrip("/").removesuffix("/chat/completions")
    if hosted is None and (tags := ollama_model_names(local_server_root(address), get)) is not None:
        return detect_ollama(local_server_root(address), tags, get, post)
    listed = find_model_list(address, get)
    if listed is not None and listed.entries is not None:
        return detect_local_details(listed, get) if hosted is None else make_detected_server(listed, hosted)
    dialect = hosted or (dialect_from_headers(listed.headers) if listed else None)
    wants_key = listed is not None and listed.wants_key
    if dialect is None and not wants_key:
        return None
    return DetectedServer(dialect or Dialect.GENERIC, listed.base_url if listed else address, wants_key=wants_key)


def find_model_list(address: str, get: GetPage) -> ModelList | None:
    """The list of models at the base URL or where it should be; None if nothing answers."""
    unavailable: list[ModelList] = []
    for base_url in dict.fromkeys(candidate_base_urls(address)):
        page = get(f"{address_path(base_url)}/models")
        if page is None:
            break
        status, headers, answer = page
        headers = {name.lower(): value for name, value in headers.items()}
        entries = answer.get("data") if isinstance(answer, Mapping) else None
        if status == HTTPStatus.OK and isinstance(entries, list):
            return ModelList(base_url, headers, tuple(entry for entry in entries if isinstance(entry, Mapping)))
        unavailable.append(ModelList(base_url, headers, wants_key=status in KEY_REQUIRED_STATUSES))
    return max(unavailable, key=lambda listed: listed.wants_key, default=None)


def candidate_base_urls(address: str) -> Iterator[str]:
    """Base URLs to try, /v1 first if it was left out: some servers answer both ways to some requests."""
    if not re.search(r"/v\d+(beta)?(/|$)", urlsplit(address).path):
        yield f"{address}/v1"
    yield address
    yield f"{local_server_root(address)}/v1"


def address_path(address: str) -> str:
    return urlsplit(address).path.rstrip("/")


def model_names(listed: object, key: str) -> list[str]:
    entries = listed if isinstance(listed, (list, tuple)) else ()
    names = [entry.get(key) for entry in entries if isinstance(entry, Mapping)]
    return [name for name in names if isinstance(name, str) and name]


def limit_model_names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name[:MAX_MODEL_NAME_LENGTH] for name in names))


def model_contexts(entries: Iterable[Mapping[str, object]]) -> dict[str, int]:
    contexts = {str(entry.get("id", ""))[:MAX_MODEL_NAME_LENGTH]: model_context(entry) for entry in entries}
    return {name: context for name, context in contexts.items() if name and context is not None}


def model_context(entry: Mapping[str, object]) -> int | None:
    """How many tokens prompt and reply may have together; llama.cpp nests it one level deeper."""
    places = (entry, object_member(entry, "meta"))
    contexts = (parse_token_count(place.get(name)) for place in places for name in CONTEXT_NAMES)
    return next((context for context in contexts if context), None)


def detect_local_details(listed: ModelList, get: GetPage) -> DetectedServer:
    """A server with a list of models, and what else its kind reports."""
    dialect, root = dialect_of_model_list(listed), address_path(local_server_root(listed.base_url))
    if dialect == Dialect.LLAMA_CPP:
        return detect_llama_cpp(listed, root, get)
    if dialect == Dialect.VLLM:
        version = fetch_version(f"{root}/version", get) or fetch_version(f"{root}/server_info", get)
        return make_detected_server(listed, Dialect.VLLM, version)
    if dialect == Dialect.LITELLM:
        return make_detected_server(listed, Dialect.LITELLM, listed.headers.get("x-litellm-version", ""))
    if (studio := detect_lm_studio(listed, root, get)) is not None:
        return studio
    if fetch_json(f"{root}/health/liveliness", get) == "I'm alive!":
        return make_detected_server(listed, Dialect.LITELLM)
    return make_detected_server(listed, Dialect.GENERIC)


def dialect_of_model_list(listed: ModelList) -> Dialect | None:
    if (dialect := dialect_from_headers(listed.headers)) is not None:
        return dialect
    owners = {str(entry.get("owned_by", "")).lower() for entry in listed.entries or ()}
    return next((dialect for owner, dialect in DIALECT_BY_OWNER.items() if owner in owners), None)


def dialect_from_headers(headers: Mapping[str, str]) -> Dialect | None:
    if any(name.startswith("x-litellm-") for name in headers):
        return Dialect.LITELLM
    return Dialect.LLAMA_CPP if "llama.cpp" in headers.get("server", "").lower() else None


def make_detected_server(listed: ModelList, dialect: Dialect, version: str = "") -> DetectedServer:
    return DetectedServer(dialect, listed.base_url, listed.names, context_tokens=listed.contexts, version=version)


def detect_llama_cpp(listed: ModelList, root: str, get: GetPage) -> DetectedServer:
    """llama.cpp reports its slots, and the context of one slot."""
    answer = fetch_json(f"{root}/props", get)
    props = answer if isinstance(answer, Mapping) else {}
    context = parse_token_count(object_member(props, "default_generation_settings").get("n_ctx"))
    return DetectedServer(
        Dialect.LLAMA_CPP,
        listed.base_url,
        listed.names,
        slots=parse_token_count(props.get("total_slots")) or llama_cpp_slots(f"{root}/slots", get),
        context_tokens=dict.fromkeys(listed.names, context) if context else listed.contexts,
        version=text_or_empty(props.get("build_info")),
    )


def llama_cpp_slots(path: str, get: GetPage) -> int | None:
    answer = fetch_json(path, get)
    return len(answer) if isinstance(answer, list) and answer else None


def detect_lm_studio(listed: ModelList, root: str, get: GetPage) -> DetectedServer | None:
    """LM Studio has its own list with contexts; it also answers other paths with 200."""
    answer = fetch_json(f"{root}/api/v0/models", get)
    entries = answer.get("data") if isinstance(answer, Mapping) else None
    if not isinstance(entries, list):
        return None
    objects = [entry for entry in entries if isinstance(entry, Mapping) and "state" in entry]
    if not objects and listed.entries:
        return None
    return DetectedServer(Dialect.LM_STUDIO, listed.base_url, listed.names, context_tokens=model_contexts(objects))


def ollama_model_names(root: str, get: GetPage) -> list[str] | None:
    """Ollama's own list, {"models": [{"name": …}]}. Other servers return it together with OpenAI's."""
    answer = fetch_json(f"{address_path(root)}/api/tags", get)
    if not isinstance(answer, Mapping) or not isinstance(answer.get("models"), list) or "data" in answer:
        return None
    return model_names(answer["models"], "name")


def detect_ollama(root: str, names: list[str], get: GetPage, post: PostPage | None) -> DetectedServer:
    path = address_path(root)
    contexts = ollama_loaded_contexts(fetch_json(f"{path}/api/ps", get))
    if post is not None:
        shown = {name: post(f"{path}/api/show", {"model": name}) for name in names[:MAX_MODEL_NAMES]}
        largest = {name[:MAX_MODEL_NAME_LENGTH]: ollama_max_context(page) for name, page in shown.items()}
        contexts |= {name: context for name, context in largest.items() if context}
    return DetectedServer(
        Dialect.OLLAMA,
        f"{root}/v1",
        limit_model_names(names),
        context_tokens=contexts,
        version=fetch_version(f"{path}/api/version", get),
    )


def ollama_loaded_contexts(answer: object) -> dict[str, int]:
    """The contexts of the models that are loaded now."""
    models = answer.get("models") if isinstance(answer, Mapping) else None
    loaded = [model for model in models if isinstance(model, Mapping)] if isinstance(models, list) else []
    return model_contexts({"id": model.get("name"), **model} for model in loaded)


def ollama_max_context(page: ServerPage | None) -> int | None:
    """The longest context that a request may ask for."""
    answer = page[2] if page is not None and page[0] == HTTPStatus.OK else None
    info = object_member(answer, "model_info") if isinstance(answer, Mapping) else {}
    contexts = (parse_token_count(value) for name, value in info.items() if str(name).endswith(".context_length"))
    return next(contexts, None)


def fetch_json(path: str, get: GetPage) -> object:
    page = get(path)
    return page[2] if page is not None and page[0] == HTTPStatus.OK else None


def fetch_version(path: str, get: GetPage) -> str:
    answer = fetch_json(path, get)
    return text_or_empty(answer.get("version")) if isinstance(answer, Mapping) else ""


def text_or_empty(value: object) -> str:
    return value[:MAX_MODEL_NAME_LENGTH] if isinstance(value, str) else ""


OTHER_SERVER_KIND: Final = "OpenAI-compatible"
# Names on pages.
SERVER_KINDS: Final = {
    Dialect.OLLAMA: "ollama",
    Dialect.LLAMA_CPP: "llama.cpp",
    Dialect.LM_STUDIO: "LM Studio",
    Dialect.VLLM: "vLLM",
    Dialect.LITELLM: "LiteLLM",
}

# Servers on this machine answer at once; a silent listener is no LLM server.
LOCAL_PROBE_TIMEOUT_SECONDS: Final = 2.0
MAX_PAGE_BYTES: Final = 1_000_000


def probe_local_address(address: str) -> DetectedServer | None:
    """The server at this address (scheme, host and port) with its models; None if there is none."""
    server = detect_server(address, lambda path: fetch_local_page(address, path))
    return server if server and server.model_names is not None else None


def dialect_of_server_kind(kind: str) -> Dialect | None:
    """The dialect of a server kind; None if only the protocol is known."""
    return next((dialect for dialect, name in SERVER_KINDS.items() if name == kind), None)


def fetch_local_page(address: str, path: str) -> ServerPage | None:
    """The page, without a proxy or redirects; None if nothing speaks HTTP there."""
    parts = urlsplit(address)
    connect = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    try:
        with closing(connect(parts.hostname or "", parts.port, timeout=LOCAL_PROBE_TIMEOUT_SECONDS)) as connection:
            connection.request("GET", path, headers={"Accept": "application/json"})
            answer = connection.getresponse()
            text = answer.read(MAX_PAGE_BYTES)
            return answer.status, dict(answer.getheaders()), parse_json_object(text)
    except (OSError, http.client.HTTPException):
        return None
