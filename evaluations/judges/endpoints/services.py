"""Creating endpoints, changing them, requesting their handshakes."""

from typing import Final
from urllib.parse import urlsplit

from django.db import transaction
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.json_values import JsonDict
from evaluations.domain.judges import Dialect
from evaluations.domain.texts import replace_unstorable
from evaluations.jobs.nudges import WorkerTask, nudge
from evaluations.judges.endpoints.selectors import is_endpoint_used
from evaluations.llm.request_extras import ExtrasInput, check_extra_body, check_extra_headers, check_extra_query
from evaluations.llm.server_detection import dialect_of_server_kind, probe_local_address
from evaluations.models.judges import Endpoint, Handshake, LocalServer
from evaluations.models.users import User
from evaluations.net.addresses import check_base_url, check_key_variable, refuse_pasted_key

MAX_IN_FLIGHT_LIMIT: Final = 1000

MAX_PER_MINUTE_LIMIT: Final = 2_000_000_000

MAX_TIMEOUT_SECONDS: Final = 86_400

# Columns of an endpoint that say how it is asked, beside its limits.
REQUEST_OPTION_FIELDS: Final = ("dialect", "timeout_seconds", "extra_headers", "extra_query", "extra_body")


@transaction.atomic
def create_endpoint(
    *,
    name: str,
    base_url: str,
    key_variable: str = "",
    max_in_flight: int | None = None,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
    dialect: str = "",
    timeout_seconds: int | None = None,
    extra_headers: ExtrasInput = "",
    extra_query: ExtrasInput = "",
    extra_body: ExtrasInput = "",
    user: User | None,
) -> Endpoint:
    """A server that judges may be asked on. For site administrators and commands alone."""
    if not name.strip():
        raise InputRefused("An endpoint needs a name.")
    refuse_pasted_key(name, "The name")
    if Endpoint.objects.filter(name=name.strip()).exists():
        raise InputRefused(f"There is an endpoint “{name.strip()}” already: choose another name.")
    endpoint = Endpoint.objects.create(
        name=name.strip(),
        base_url=check_base_url(base_url),
        key_variable=check_key_variable(key_variable),
        max_in_flight=check_limit(max_in_flight),
        requests_per_minute=check_limit(requests_per_minute, "Requests a minute", MAX_PER_MINUTE_LIMIT),
        tokens_per_minute=check_limit(tokens_per_minute, "Tokens a minute", MAX_PER_MINUTE_LIMIT),
        dialect=check_dialect(dialect),
        timeout_seconds=check_timeout(timeout_seconds),
        extra_headers=check_extra_headers(extra_headers),
        extra_query=check_extra_query(extra_query),
        extra_body=check_extra_body(extra_body),
    )
    after = {"name": endpoint.name, "base_url": endpoint.base_url, "key_variable": endpoint.key_variable}
    added = {name: getattr(endpoint, name) for name in REQUEST_OPTION_FIELDS if getattr(endpoint, name)}
    record_event("created", endpoint, user=user, evaluation=None, after=after | added)
    return endpoint


def check_dialect(dialect: str) -> str:
    """The name of a dialect; empty where it is left to the endpoint's address and handshake."""
    if dialect not in ("", *Dialect):
        raise InputRefused(f"Provider: one of {', '.join(Dialect)}, or none for automatic.")
    return str(dialect)


def check_timeout(seconds: int | None) -> int | None:
    return check_limit(seconds, "Timeout in seconds", MAX_TIMEOUT_SECONDS)


def check_limit(limit: int | None, what: str = "Requests in flight", most: int = MAX_IN_FLIGHT_LIMIT) -> int | None:
    if limit is not None and not 1 <= limit <= most:
        raise InputRefused(f"{what}: a whole number from 1 to {most}.")
    return limit


@transaction.atomic
def find_or_create_endpoint(
    *,
    base_url: str,
    key_variable: str,
    max_in_flight: int | None,
    timeout_seconds: int | None = None,
    dialect: str = "",
) -> Endpoint:
    """The endpoint of this address and key name; a limit, time-out or dialect that is given becomes its own."""
    address, variable = check_base_url(base_url), check_key_variable(key_variable)
    endpoint = Endpoint.objects.filter(base_url=address, key_variable=variable).order_by("pk").first()
    if endpoint is None:
        return create_endpoint(
            name=unused_endpoint_name(urlsplit(address).netloc),
            base_url=address,
            key_variable=variable,
            max_in_flight=max_in_flight,
            timeout_seconds=timeout_seconds,
            dialect=dialect,
            user=None,
        )
    given = {
        "max_in_flight": check_limit(max_in_flight),
        "timeout_seconds": check_timeout(timeout_seconds),
        "dialect": check_dialect(dialect) or None,
    }
    after = {name: value for name, value in given.items() if value not in (None, getattr(endpoint, name))}
    if after:
        before = {name: getattr(endpoint, name) for name in after}
        for name, value in after.items():
            setattr(endpoint, name, value)
        endpoint.save(update_fields=list(after))
        record_event("changed", endpoint, user=None, evaluation=None, before=before, after=after)
    return endpoint


def unused_endpoint_name(host: str) -> str:
    taken = set(Endpoint.objects.filter(name__startswith=host).values_list("name", flat=True))
    return next(name for name in (host, *(f"{host} {n}" for n in range(2, len(taken) + 3))) if name not in taken)


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
    extra_headers: ExtrasInput,
    extra_query: ExtrasInput,
    extra_body: ExtrasInput,
    user: User | None,
) -> bool:
    """Write what changed, and what it was before into the record. False where nothing did."""
    endpoint = Endpoint.objects.select_for_update().get(pk=endpoint.pk)
    given: JsonDict = {
        "name": check_endpoint_name(endpoint, name),
        "base_url": check_base_url(base_url),
        "key_variable": check_key_variable(key_variable),
        "max_in_flight": check_limit(max_in_flight),
        "requests_per_minute": check_limit(requests_per_minute, "Requests a minute", MAX_PER_MINUTE_LIMIT),
        "tokens_per_minute": check_limit(tokens_per_minute, "Tokens a minute", MAX_PER_MINUTE_LIMIT),
        "dialect": check_dialect(dialect),
        "timeout_seconds": check_timeout(timeout_seconds),
        "extra_headers": check_extra_headers(extra_headers),
        "extra_query": check_extra_query(extra_query),
        "extra_body": check_extra_body(extra_body),
    }
    after = {column: value for column, value in given.items() if getattr(endpoint, column) != value}
    if {"base_url", "key_variable"} & set(after) and is_endpoint_used(endpoint):
        raise InputRefused("Judges are asked at this address with this key: add another endpoint for a new one.")
    if not after:
        return False
    before = {column: getattr(endpoint, column) for column in after}
    Endpoint.objects.filter(pk=endpoint.pk).update(**after)
    record_event("changed", endpoint, user=user, evaluation=None, before=before, after=after)
    return True


def check_endpoint_name(endpoint: Endpoint, name: str) -> str:
    if not name.strip():
        raise InputRefused("An endpoint needs a name.")
    refuse_pasted_key(name, "The name")
    if Endpoint.objects.filter(name=name.strip()).exclude(pk=endpoint.pk).exists():
        raise InputRefused(f"There is an endpoint “{name.strip()}” already: choose another name.")
    return name.strip()


@transaction.atomic
def add_found_server(server: LocalServer, *, user: User | None) -> Endpoint:
    """The endpoint of a local server; the one that there is already where someone was faster."""
    endpoint = Endpoint.objects.filter(base_url=check_base_url(server.base_url)).order_by("pk").first()
    if endpoint is not None:
        return endpoint
    name = unused_endpoint_name(urlsplit(server.base_url).netloc)
    return create_endpoint(
        name=name, base_url=server.base_url, dialect=dialect_of_server_kind(server.kind) or "", user=user
    )


MAX_MODEL_LENGTH: Final = 200


def begin_handshake(endpoint: Endpoint, model: str) -> Handshake:
    """Have a worker test this model there; without a name the one that its judges use, or the first it offers."""
    model = model.strip()
    refuse_pasted_key(model, "The model")
    if len(model) > MAX_MODEL_LENGTH:
        raise InputRefused(f"A model's name has at most {MAX_MODEL_LENGTH} characters.")
    now = timezone.now()
    waiting = {"waiting_since": now.isoformat()}
    row, _ = Handshake.objects.update_or_create(
        endpoint=endpoint, model=model, defaults={"checked_at": now, "result": waiting}
    )
    nudge(WorkerTask.CHECK_ENDPOINT, row.pk)
    return row


def refresh_local_server(address: str) -> LocalServer | None:
    """Look at this address now and keep what answers there; an empty address means not to look.

    Whatever else was found before is forgotten; endpoints that were made of it stay.
    """
    found = probe_local_address(address) if address else None
    gone = LocalServer.objects.exclude(base_url=found.base_url) if found else LocalServer.objects.all()
    if gone.exists():  # on SQLite even a DELETE of nothing waits for the other writers
        gone.delete()
    if found is None:
        return None
    names = [replace_unstorable(name) for name in found.model_names]
    server, _ = LocalServer.objects.update_or_create(
        base_url=found.base_url,
        defaults={"kind": found.kind, "model_names": names, "seen_at": timezone.now()},
    )
    return server
