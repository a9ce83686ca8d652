"""Which server of models answers at an address, from what it says of itself: no tokens, no cost.

What is asked is passed in: ``get`` takes a path on the address's host, such as /v1/models.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from evaluations.domain import Dialect
from evaluations.outside.addresses import root_of
from evaluations.outside.dialects import SPECIFIC
from evaluations.outside.usage import count, part_of

# Status, headers (in any case) and JSON of an answer, None for what is no JSON; None where nobody answers.
Page = tuple[int, Mapping[str, str], Any]
Get = Callable[[str], Page | None]
Post = Callable[[str, Mapping[str, Any]], Page | None]

KEY_WANTED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
# Who signs the entries of a list of models.
OWNERS: Final = {
    "llamacpp": Dialect.LLAMA_CPP,
    "vllm": Dialect.VLLM,
    "sglang": Dialect.VLLM,
    "library": Dialect.OLLAMA,
}
# Names that servers have for the tokens of a model's context: the one it was loaded with before the one it may have.
CONTEXTS: Final = (
    *("loaded_context_length", "max_model_len", "context_length", "context_window", "max_context_length"),
    *("n_ctx", "max_input_tokens"),
)
MOST_SHOWN: Final = 20  # models of an Ollama that are asked for one by one
LONGEST_NAME: Final = 200


@dataclass(frozen=True)
class Recognized:
    """``base_url`` is the one that works: with /v1 where it was left out. ``model_names`` is None without a list.

    ``context_tokens`` has the context of each model of which it is known, ``slots`` how many requests the server
    works on at a time; both as the server says, None or absent where it does not.
    """

    dialect: Dialect
    base_url: str
    model_names: tuple[str, ...] | None = None
    slots: int | None = None
    context_tokens: Mapping[str, int] = field(default_factory=dict)
    version: str = ""
    wants_key: bool = False


@dataclass(frozen=True)
class Listed:
    """A list of models, by the protocol of OpenAI, and the base URL below which it is."""

    base_url: str
    headers: Mapping[str, str]
    entries: tuple[Mapping[str, Any], ...]

    @property
    def names(self) -> list[str]:
        return names_under(self.entries, "id")


@dataclass(frozen=True)
class Closed:
    """A place that gives no list of models: for want of a key, because a model is loading, or for good."""

    base_url: str
    headers: Mapping[str, str]
    wants_key: bool


def recognized(base_url: str, get: Get, post: Post | None = None) -> Recognized | None:
    """Who answers at this base URL; None where nobody does, or nobody who tells anything of models.

    A hosted provider is known by its host, whether or not it answers.
    """
    given = base_url.strip().rstrip("/").removesuffix("/chat/completions")
    hosted = dialect_of_host(given)
    if hosted is None and (tags := ollama_tags(root_of(given), get)) is not None:
        return ollama(root_of(given), tags, get, post)
    listed = list_of(given, get)
    if isinstance(listed, Listed):
        return local(listed, get) if hosted is None else plain(listed, hosted)
    dialect = hosted or (dialect_of_headers(listed.headers) if listed else None)
    wants_key = listed is not None and listed.wants_key
    if dialect is None and not wants_key:
        return None
    return Recognized(dialect or Dialect.GENERIC, listed.base_url if listed else given, wants_key=wants_key)


def dialect_of_host(base_url: str) -> Dialect | None:
    host = (urlsplit(base_url).hostname or "").lower()
    ends = ((one.dialect, end) for one in SPECIFIC for end in one.hosts)
    return next((dialect for dialect, end in ends if host == end or host.endswith(f".{end}")), None)


# ---- lists of models -----------------------------------------------------------------------


def list_of(given: str, get: Get) -> Listed | Closed | None:
    """The list of models below the base URL or where it should be; None where nobody answers."""
    closed: list[Closed] = []
    for base_url in dict.fromkeys(places_of(given)):
        page = get(f"{path_of(base_url)}/models")
        if page is None:
            break
        status, headers, told = page
        entries = told.get("data") if isinstance(told, Mapping) else None
        if status == HTTPStatus.OK and isinstance(entries, list):
            objects = tuple(one for one in entries if isinstance(one, Mapping))
            return Listed(base_url, lower(headers), objects)
        closed.append(Closed(base_url, lower(headers), status in KEY_WANTED))
    return max(closed, key=lambda one: one.wants_key, default=None)


def places_of(given: str) -> Iterator[str]:
    """Base URLs to be tried: /v1 first where it was left out, as a server may answer both ways to some questions."""
    if not re.search(r"/v\d+(beta)?(/|$)", urlsplit(given).path):
        yield f"{given}/v1"
    yield given
    yield f"{root_of(given)}/v1"


def path_of(address: str) -> str:
    return urlsplit(address).path.rstrip("/")


def lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def names_under(listed: object, key: str) -> list[str]:
    given = [one.get(key) for one in listed if isinstance(one, Mapping)] if isinstance(listed, (list, tuple)) else []
    return [name for name in given if isinstance(name, str) and name]


def kept(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name[:LONGEST_NAME] for name in names))


def contexts_in(entries: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    found = {str(one.get("id", ""))[:LONGEST_NAME]: context_in(one) for one in entries}
    return {name: context for name, context in found.items() if name and context is not None}


def context_in(entry: Mapping[str, Any]) -> int | None:
    """How many tokens prompt and reply may have together; llama.cpp says it one level deeper."""
    told = (count(one.get(name)) for one in (entry, part_of(entry, "meta")) for name in CONTEXTS)
    return next((context for context in told if context), None)


# ---- servers of one's own ------------------------------------------------------------------


def local(listed: Listed, get: Get) -> Recognized:
    """A server that has told its models, asked for what else its kind can tell."""
    dialect, root = dialect_of_list(listed), path_of(root_of(listed.base_url))
    if dialect == Dialect.LLAMA_CPP:
        return llama_cpp(listed, root, get)
    if dialect == Dialect.VLLM:
        return plain(listed, Dialect.VLLM, version_at(f"{root}/version", get) or version_at(f"{root}/server_info", get))
    if dialect == Dialect.LITELLM:
        return plain(listed, Dialect.LITELLM, listed.headers.get("x-litellm-version", ""))
    if (studio := lm_studio(listed, root, get)) is not None:
        return studio
    if json_at(f"{root}/health/liveliness", get) == "I'm alive!":
        return plain(listed, Dialect.LITELLM)
    return plain(listed, Dialect.GENERIC)


def dialect_of_list(listed: Listed) -> Dialect | None:
    if (dialect := dialect_of_headers(listed.headers)) is not None:
        return dialect
    owners = {str(one.get("owned_by", "")).lower() for one in listed.entries}
    return next((dialect for owner, dialect in OWNERS.items() if owner in owners), None)


def dialect_of_headers(headers: Mapping[str, str]) -> Dialect | None:
    if any(name.startswith("x-litellm-") for name in headers):
        return Dialect.LITELLM
    return Dialect.LLAMA_CPP if "llama.cpp" in headers.get("server", "").lower() else None


def plain(listed: Listed, dialect: Dialect, version: str = "") -> Recognized:
    names, contexts = kept(listed.names), contexts_in(listed.entries)
    return Recognized(dialect, listed.base_url, names, context_tokens=contexts, version=version)


def llama_cpp(listed: Listed, root: str, get: Get) -> Recognized:
    """Its properties say how many slots it has, and how long the context of one is."""
    told = json_at(f"{root}/props", get)
    props = told if isinstance(told, Mapping) else {}
    names = kept(listed.names)
    context = count(part_of(props, "default_generation_settings").get("n_ctx"))
    contexts = dict.fromkeys(names, context) if context else contexts_in(listed.entries)
    return Recognized(
        Dialect.LLAMA_CPP,
        listed.base_url,
        names,
        slots=count(props.get("total_slots")) or slots_at(f"{root}/slots", get),
        context_tokens=contexts,
        version=text_in(props.get("build_info")),
    )


def slots_at(path: str, get: Get) -> int | None:
    told = json_at(path, get)
    return len(told) if isinstance(told, list) and told else None


def lm_studio(listed: Listed, root: str, get: Get) -> Recognized | None:
    """LM Studio has a list of its own, with the context of each model; it answers other paths with 200 as well."""
    told = json_at(f"{root}/api/v0/models", get)
    entries = told.get("data") if isinstance(told, Mapping) else None
    if not isinstance(entries, list):
        return None
    objects = [one for one in entries if isinstance(one, Mapping) and "state" in one]
    if not objects and listed.entries:
        return None
    return Recognized(Dialect.LM_STUDIO, listed.base_url, kept(listed.names), context_tokens=contexts_in(objects))


# ---- Ollama --------------------------------------------------------------------------------


def ollama_tags(root: str, get: Get) -> list[str] | None:
    """Ollama's own list, {"models": [{"name": …}]}. Others who answer there give it beside that of OpenAI."""
    told = json_at(f"{path_of(root)}/api/tags", get)
    if not isinstance(told, Mapping) or not isinstance(told.get("models"), list) or "data" in told:
        return None
    return names_under(told["models"], "name")


def ollama(root: str, names: list[str], get: Get, post: Post | None) -> Recognized:
    at = path_of(root)
    contexts = contexts_loaded(json_at(f"{at}/api/ps", get))
    if post is not None:
        shown = {name: context_shown(post(f"{at}/api/show", {"model": name})) for name in names[:MOST_SHOWN]}
        contexts |= {name[:LONGEST_NAME]: context for name, context in shown.items() if context}
    return Recognized(
        Dialect.OLLAMA,
        f"{root}/v1",
        kept(names),
        context_tokens=contexts,
        version=version_at(f"{at}/api/version", get),
    )


def contexts_loaded(told: object) -> dict[str, int]:
    """The contexts with which models are loaded now."""
    models = told.get("models") if isinstance(told, Mapping) else None
    loaded = [one for one in models if isinstance(one, Mapping)] if isinstance(models, list) else []
    return contexts_in({"id": one.get("name"), **one} for one in loaded)


def context_shown(page: Page | None) -> int | None:
    """The longest context of a model, which a request may ask for."""
    told = page[2] if page is not None and page[0] == HTTPStatus.OK else None
    info = part_of(told, "model_info") if isinstance(told, Mapping) else {}
    return next((count(value) for name, value in info.items() if str(name).endswith(".context_length")), None)


# ---- pages ---------------------------------------------------------------------------------


def json_at(path: str, get: Get) -> Any:
    page = get(path)
    return page[2] if page is not None and page[0] == HTTPStatus.OK else None


def version_at(path: str, get: Get) -> str:
    told = json_at(path, get)
    return text_in(told.get("version")) if isinstance(told, Mapping) else ""


def text_in(given: object) -> str:
    return given[:LONGEST_NAME] if isinstance(given, str) else ""
