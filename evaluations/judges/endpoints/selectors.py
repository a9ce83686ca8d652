"""Questions about an endpoint: its use, its models, its checks, its timeout."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from evaluations.domain.judges import Dialect, JudgeKind
from evaluations.judges.endpoints.key_encryption import decrypt_key
from evaluations.llm.exchange import Server
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, EndpointCheck, Judge, LocalServer, Price
from evaluations.net.addresses import check_base_url, is_local_address


def endpoints_at_address(base_url: str) -> "QuerySet[Endpoint]":
    """The endpoints of this address, one per key name."""
    return Endpoint.objects.filter(base_url=check_base_url(base_url)).order_by("pk")


# The default timeout of servers on this machine or network: most are slow.
LOCAL_TIMEOUT_SECONDS: Final = 600


def endpoint_slots(endpoint: Endpoint) -> int | None:
    """How many requests the server handles at once, by its latest check; None if unknown."""
    latest = EndpointCheck.objects.filter(endpoint=endpoint).order_by("-checked_at", "-pk").first()
    slots = latest.result.get("slots") if latest and isinstance(latest.result, dict) else None
    return slots if isinstance(slots, int) and not isinstance(slots, bool) and slots > 0 else None


def endpoint_timeout(endpoint: Endpoint) -> float:
    """Seconds until a request times out: the endpoint's setting, else a default, long for local servers."""
    if endpoint.timeout_seconds is not None:
        return endpoint.timeout_seconds
    return LOCAL_TIMEOUT_SECONDS if is_local_address(endpoint.base_url) else settings.REQUEST_TIMEOUT_SECONDS


def server_for_endpoint(endpoint: Endpoint) -> Server:
    return Server(
        endpoint.base_url,
        endpoint.key_variable,
        endpoint_timeout(endpoint),
        Dialect(endpoint.dialect) if endpoint.dialect else None,
        endpoint.extra_headers,
        endpoint.extra_query,
        endpoint.extra_body,
        partial(decrypt_key, endpoint.encrypted_key) if endpoint.encrypted_key else None,
    )


def list_fixed_settings(endpoint: Endpoint) -> tuple[str, ...]:
    """The settings that no longer change because judges use the endpoint. One without a key can still get one."""
    if not endpoint.judges.exists():
        return ()
    return ("base_url", "key_variable") if endpoint.key_variable else ("base_url",)


def find_local_servers() -> list[LocalServer]:
    """The local servers that no endpoint uses yet."""
    used = {normalise_address(address) for address in Endpoint.objects.values_list("base_url", flat=True)}
    servers = LocalServer.objects.order_by("base_url")
    return [server for server in servers if normalise_address(server.base_url) not in used]


def normalise_address(address: str) -> str:
    """The address for comparisons: one name for this machine, no case, no trailing slash."""
    return address.rstrip("/").casefold().replace("//localhost", "//127.0.0.1", 1)


def list_model_names(evaluation: Evaluation, endpoints: "QuerySet[Endpoint]", *, sees_found_servers: bool) -> list[str]:
    """Names of models that were priced or found at these endpoints, or used in the evaluation, for autocompletion.

    ``sees_found_servers``: also those of local servers that are no endpoint yet.
    """
    addresses = {normalise_address(address) for address in endpoints.values_list("base_url", flat=True)}
    servers = [
        server
        for server in LocalServer.objects.all()
        if sees_found_servers or normalise_address(server.base_url) in addresses
    ]
    names = {name for server in servers for name in server.model_names}
    priced = set(Price.objects.filter(endpoint__in=endpoints.order_by()).values_list("model", flat=True))
    judges = Judge.objects.filter(evaluation=evaluation, kind=JudgeKind.LLM)
    return sorted(names | priced | set(judges.values_list("model", flat=True)))


CHECKS_SHOWN: Final = 5
CHECK_LATE_AFTER: Final = timedelta(seconds=30)


@dataclass(frozen=True)
class EndpointChecks:
    """The latest checks of an endpoint. ``is_late``: one is pending, and no worker has answered for a while."""

    checks: Sequence[EndpointCheck]
    is_testing: bool
    is_late: bool


def latest_model(endpoint: Endpoint, evaluation: Evaluation | None = None) -> str:
    """The model of the endpoint's newest judge, or of the evaluation's newest one there; "" if it has none."""
    judges = Judge.objects.filter(endpoint=endpoint, archived_at__isnull=True).order_by("-pk")
    if evaluation is not None:
        judges = judges.filter(evaluation=evaluation)
    return judges.values_list("model", flat=True).first() or ""


def list_latest_checks(endpoint: Endpoint) -> list[EndpointCheck]:
    return list(EndpointCheck.objects.filter(endpoint=endpoint).order_by("-checked_at", "-pk")[:CHECKS_SHOWN])


def summarize_checks(endpoint: Endpoint) -> EndpointChecks:
    rows = list_latest_checks(endpoint)
    waiting = [row for row in rows if "waiting_since" in row.result]
    is_late = any(row.checked_at < timezone.now() - CHECK_LATE_AFTER for row in waiting)
    return EndpointChecks([row for row in rows if row not in waiting], bool(waiting), is_late)


@dataclass(frozen=True)
class EndpointModels:
    """The models that an endpoint offers, as far as known, and the one to suggest; "" for none."""

    names: Sequence[str]
    suggested: str


def list_endpoint_models(endpoint: Endpoint, evaluation: Evaluation) -> EndpointModels:
    """The models of the latest check that listed some, else those of a local server found there.

    It suggests the one that the evaluation's newest judge there uses, else one that answered, else the only one.
    """
    results = [row.result for row in list_latest_checks(endpoint)]
    listed = next((result["models"] for result in results if result.get("models")), None)
    if listed is None:
        address = normalise_address(endpoint.base_url)
        servers = LocalServer.objects.all()
        listed = next((row.model_names for row in servers if normalise_address(row.base_url) == address), [])
    answered = next((str(result["model"]) for result in results if result.get("request_shape")), "")
    used = latest_model(endpoint, evaluation)
    return EndpointModels(list(listed), used or answered or (listed[0] if len(listed) == 1 else ""))


def find_latest_check_result(endpoint: Endpoint | None, model: str) -> Mapping[str, object]:
    """The result of the latest check of this model; empty if there was none, or it failed."""
    row = EndpointCheck.objects.filter(endpoint=endpoint, model=model).first() if endpoint else None
    return row.result if row and row.result.get("request_shape") else {}
