"""Endpoints after they were made: what may change of them, and local servers that become one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from django.db import transaction
from django.utils import timezone

from evaluations.domain import InputRefused, JudgeKind
from evaluations.models import Endpoint, Evaluation, Handshake, Judge, LocalServer, Price, User
from evaluations.outside.addresses import checked_base_url, checked_key_variable, refuse_key
from evaluations.outside.extras import Given, checked_body, checked_headers, checked_query
from evaluations.outside.local_servers import dialect_of
from evaluations.services.judging.judging import (
    MOST_A_MINUTE,
    checked_dialect,
    checked_limit,
    checked_timeout,
    create_endpoint,
    unused_endpoint_name,
)
from evaluations.services.recording import record


def is_used(endpoint: Endpoint) -> bool:
    """Whether a judge is asked there: then its address and the name of its key stay as they are."""
    return endpoint.judges.exists()


@transaction.atomic
def change_endpoint(
    endpoint: Endpoint,
    *,
    name: str,
    base_url: str,
    key_variable: str,
    max_in_flight: int | None,
    requests_per_minute: int | None,
    tokens_per_minute: int | None,
    dialect: str,
    timeout_seconds: int | None,
    extra_headers: Given,
    extra_query: Given,
    extra_body: Given,
    user: User | None,
) -> bool:
    """Write what changed, and what it was before into the record. False where nothing did."""
    endpoint = Endpoint.objects.select_for_update().get(pk=endpoint.pk)
    given: dict[str, Any] = {
        "name": checked_name(endpoint, name),
        "base_url": checked_base_url(base_url),
        "key_variable": checked_key_variable(key_variable),
        "max_in_flight": checked_limit(max_in_flight),
        "requests_per_minute": checked_limit(requests_per_minute, "Requests a minute", MOST_A_MINUTE),
        "tokens_per_minute": checked_limit(tokens_per_minute, "Tokens a minute", MOST_A_MINUTE),
        "dialect": checked_dialect(dialect),
        "timeout_seconds": checked_timeout(timeout_seconds),
        "extra_headers": checked_headers(extra_headers),
        "extra_query": checked_query(extra_query),
        "extra_body": checked_body(extra_body),
    }
    after = {column: value for column, value in given.items() if getattr(endpoint, column) != value}
    if {"base_url", "key_variable"} & set(after) and is_used(endpoint):
        raise InputRefused("Judges are asked at this address with this key: add another endpoint for a new one.")
    if not after:
        return False
    before = {column: getattr(endpoint, column) for column in after}
    Endpoint.objects.filter(pk=endpoint.pk).update(**after)
    record("changed", endpoint, user=user, evaluation=None, before=before, after=after)
    return True


def checked_name(endpoint: Endpoint, name: str) -> str:
    if not name.strip():
        raise InputRefused("An endpoint needs a name.")
    refuse_key(name, "The name")
    if Endpoint.objects.filter(name=name.strip()).exclude(pk=endpoint.pk).exists():
        raise InputRefused(f"There is an endpoint “{name.strip()}” already: choose another name.")
    return name.strip()


def found_servers() -> list[LocalServer]:
    """The local servers that no endpoint speaks to yet."""
    known = {plain_address(address) for address in Endpoint.objects.values_list("base_url", flat=True)}
    return [one for one in LocalServer.objects.order_by("base_url") if plain_address(one.base_url) not in known]


def plain_address(address: str) -> str:
    """The address as it is compared: this machine has one name, and case and a last slash say nothing."""
    return address.rstrip("/").casefold().replace("//localhost", "//127.0.0.1", 1)


@transaction.atomic
def add_found_server(server: LocalServer, *, user: User | None) -> Endpoint:
    """The endpoint of a local server; the one that there is already where someone was faster."""
    endpoint = Endpoint.objects.filter(base_url=checked_base_url(server.base_url)).order_by("pk").first()
    if endpoint is not None:
        return endpoint
    name = unused_endpoint_name(urlsplit(server.base_url).netloc)
    return create_endpoint(name=name, base_url=server.base_url, dialect=dialect_of(server.kind) or "", user=user)


def known_models(evaluation: Evaluation) -> list[str]:
    """Names of models that were priced, found, or asked in this evaluation, to choose from while typing."""
    found = {name for server in LocalServer.objects.all() for name in server.model_names}
    priced = set(Price.objects.values_list("model", flat=True))
    judges = Judge.objects.filter(evaluation=evaluation, kind=JudgeKind.LLM)
    return sorted(found | priced | set(judges.values_list("model", flat=True)))


# ---- handshakes ----------------------------------------------------------------------------

HANDSHAKES_SHOWN: Final = 5
LONGEST_MODEL: Final = 200
LATE_AFTER: Final = timedelta(seconds=30)


@dataclass(frozen=True)
class Handshakes:
    """The latest of an endpoint. ``is_late``: one is under way, and no worker has answered for a while."""

    done: Sequence[Handshake]
    is_testing: bool
    is_late: bool


def begin_handshake(endpoint: Endpoint, model: str) -> Handshake:
    """Have a worker test this model there; without a name the one that its judges use, or the first it offers."""
    model = model.strip()
    refuse_key(model, "The model")
    if len(model) > LONGEST_MODEL:
        raise InputRefused(f"A model's name has at most {LONGEST_MODEL} characters.")
    now = timezone.now()
    waiting = {"waiting_since": now.isoformat()}
    row, _ = Handshake.objects.update_or_create(
        endpoint=endpoint, model=model, defaults={"checked_at": now, "result": waiting}
    )
    return row


def usual_model(endpoint: Endpoint) -> str:
    """The model of its newest judge; "" where no judge is asked there."""
    judges = Judge.objects.filter(endpoint=endpoint, archived_at__isnull=True).order_by("-pk")
    return judges.values_list("model", flat=True).first() or ""


def latest_handshakes(endpoint: Endpoint) -> list[Handshake]:
    return list(Handshake.objects.filter(endpoint=endpoint).order_by("-checked_at", "-pk")[:HANDSHAKES_SHOWN])


def handshakes_of(endpoint: Endpoint) -> Handshakes:
    rows = latest_handshakes(endpoint)
    waiting = [one for one in rows if "waiting_since" in one.result]
    late = any(one.checked_at < timezone.now() - LATE_AFTER for one in waiting)
    return Handshakes([one for one in rows if one not in waiting], bool(waiting), late)


def found_before(endpoint: Endpoint | None, model: str) -> Mapping[str, Any]:
    """What the latest handshake of this model found; empty where there was none, or it failed."""
    row = Handshake.objects.filter(endpoint=endpoint, model=model).first() if endpoint else None
    return row.result if row and row.result.get("sent_as") else {}
