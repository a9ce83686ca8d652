"""Creating, changing and checking endpoints."""

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Final
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.jobs import CHECK_ENDPOINT
from evaluations.domain.json_values import JsonDict, JsonMapping
from evaluations.domain.judges import Dialect
from evaluations.domain.money import format_exact_usd
from evaluations.domain.texts import find_free_name, replace_unstorable
from evaluations.jobs.queue import enqueue_job
from evaluations.judges.endpoints.check_spending import refuse_check_beyond_day
from evaluations.judges.endpoints.grants import stop_runs_no_longer_offered
from evaluations.judges.endpoints.key_encryption import check_api_key, encrypt_key
from evaluations.judges.endpoints.selectors import list_fixed_settings
from evaluations.llm.request_extras import ExtrasInput, check_extra_body, check_extra_headers, check_extra_query
from evaluations.llm.server_detection import dialect_of_server_kind, probe_local_address
from evaluations.models.judges import Endpoint, EndpointCheck, LocalServer
from evaluations.models.users import User
from evaluations.net.addresses import check_base_url, check_key_variable, refuse_pasted_key

MAX_IN_FLIGHT_LIMIT: Final = 1000
MAX_PER_MINUTE_LIMIT: Final = 2_000_000_000
MAX_TIMEOUT_SECONDS: Final = 86_400
SPENDING_FIELDS: Final = ("daily_budget", "is_offered")
# Columns that say how requests are sent, besides the limits.
REQUEST_OPTION_FIELDS: Final = ("dialect", "timeout_seconds", "extra_headers", "extra_query", "extra_body")


@dataclass(frozen=True)
class EndpointSettings:
    """The columns of an endpoint that people set, as they enter them.

    ``api_key`` is stored encrypted; "" leaves the stored one as it is, and ``removes_key`` removes it.
    """

    name: str = ""
    base_url: str = ""
    key_variable: str = ""
    max_in_flight: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    dialect: str = ""
    timeout_seconds: int | None = None
    daily_budget: int | None = None  # nano-USD
    is_offered: bool = False
    extra_headers: ExtrasInput = ""
    extra_query: ExtrasInput = ""
    extra_body: ExtrasInput = ""
    api_key: str = field(default="", repr=False)
    removes_key: bool = False


KEY_FIELDS: Final = ("api_key", "removes_key")


def read_stored_settings(endpoint: Endpoint) -> EndpointSettings:
    names = (column.name for column in fields(EndpointSettings) if column.name not in KEY_FIELDS)
    return EndpointSettings(**{name: getattr(endpoint, name) for name in names})


def check_dialect(dialect: str) -> str:
    """The dialect's name; "" leaves it to the endpoint's address and check."""
    if dialect not in ("", *Dialect):
        raise InputRefused(f"Provider: use one of {', '.join(Dialect)}, or leave it empty.")
    return str(dialect)


# Each limit with its name and largest value.
LIMITS: Final = {
    "max_in_flight": ("Max concurrency", MAX_IN_FLIGHT_LIMIT),
    "requests_per_minute": ("Requests per minute", MAX_PER_MINUTE_LIMIT),
    "tokens_per_minute": ("Tokens per minute", MAX_PER_MINUTE_LIMIT),
    "timeout_seconds": ("Timeout in seconds", MAX_TIMEOUT_SECONDS),
}


def check_settings(settings: EndpointSettings, others: QuerySet[Endpoint]) -> EndpointSettings:
    """The settings as they are stored; InputRefused with the first fault."""
    checked = replace(
        settings,
        name=check_endpoint_name(settings.name, others),
        base_url=check_base_url(settings.base_url),
        key_variable=check_key_variable(settings.key_variable),
        dialect=check_dialect(settings.dialect),
        extra_headers=check_extra_headers(settings.extra_headers),
        extra_query=check_extra_query(settings.extra_query),
        extra_body=check_extra_body(settings.extra_body),
        api_key=check_api_key(settings.api_key) if settings.api_key.strip() else "",
    )
    if checked.api_key and checked.key_variable:
        raise InputRefused("Paste an API key or name a variable that holds it, not both.", field="api_key")
    for name, (label, highest) in LIMITS.items():
        limit = getattr(settings, name)
        if limit is not None and not 1 <= limit <= highest:
            raise InputRefused(f"{label}: a whole number from 1 to {highest}.", field=name)
    if settings.daily_budget is not None and settings.daily_budget <= 0:
        raise InputRefused("The budget must be more than USD 0.", field="daily_budget")
    return checked


def settings_columns(settings: EndpointSettings) -> JsonDict:
    """The columns of checked settings, with the key encrypted if there is a new one."""
    columns = {name: value for name, value in asdict(settings).items() if name not in KEY_FIELDS}
    if settings.api_key:
        return columns | {"encrypted_key": encrypt_key(settings.api_key)}
    return columns | ({"encrypted_key": ""} if settings.removes_key else {})


def check_endpoint_name(name: str, others: QuerySet[Endpoint]) -> str:
    if not name.strip():
        raise InputRefused("Name the endpoint.")
    refuse_pasted_key(name, "The name")
    if others.filter(name=name.strip()).exists():
        raise InputRefused(f"An endpoint “{name.strip()}” already exists. Choose another name.")
    return name.strip()


@transaction.atomic
def create_endpoint(settings: EndpointSettings, *, user: User | None) -> Endpoint:
    """An endpoint for judges. Only for site administrators and commands."""
    endpoint = Endpoint.objects.create(**settings_columns(check_settings(settings, Endpoint.objects.all())))
    after = {"name": endpoint.name, "base_url": endpoint.base_url, "key_variable": endpoint.key_variable}
    optional = (*REQUEST_OPTION_FIELDS, *SPENDING_FIELDS, "encrypted_key")
    added = {name: getattr(endpoint, name) for name in optional if getattr(endpoint, name)}
    record_event("created", endpoint, user=user, evaluation=None, after=after | endpoint_event_fields(added))
    return endpoint


@transaction.atomic
def find_or_create_endpoint(
    *,
    base_url: str,
    key_variable: str,
    max_in_flight: int | None,
    timeout_seconds: int | None = None,
    dialect: str = "",
) -> Endpoint:
    """The endpoint of this address and key name; a given limit, timeout or dialect replaces its own."""
    address, variable = check_base_url(base_url), check_key_variable(key_variable)
    same = Endpoint.objects.filter(base_url=address, key_variable=variable, encrypted_key="")
    endpoint = same.order_by("pk").first()
    settings = (
        read_stored_settings(endpoint)
        if endpoint
        else EndpointSettings(choose_endpoint_name(urlsplit(address).netloc), address, variable)
    )
    settings = replace(
        settings,
        max_in_flight=settings.max_in_flight if max_in_flight is None else max_in_flight,
        timeout_seconds=settings.timeout_seconds if timeout_seconds is None else timeout_seconds,
        dialect=dialect or settings.dialect,
    )
    if endpoint is None:
        return create_endpoint(settings, user=None)
    change_endpoint(endpoint, settings, user=None)
    endpoint.refresh_from_db()
    return endpoint


@transaction.atomic
def change_endpoint(endpoint: Endpoint, settings: EndpointSettings, *, user: User | None) -> bool:
    """Change the endpoint and record what changed; False if nothing did."""
    endpoint = Endpoint.objects.select_for_update(no_key=True).get(pk=endpoint.pk)
    checked = settings_columns(check_settings(settings, Endpoint.objects.exclude(pk=endpoint.pk)))
    after = {column: value for column, value in checked.items() if getattr(endpoint, column) != value}
    if set(list_fixed_settings(endpoint)) & set(after):
        raise InputRefused("Judges use this address and key variable. Add another endpoint to use others.")
    if endpoint.encrypted_key and "encrypted_key" not in after:
        refuse_moving_stored_key(after)
    if not after:
        return False
    before = {column: getattr(endpoint, column) for column in after}
    for column, value in after.items():
        setattr(endpoint, column, value)
    if "daily_budget" in after and endpoint.pause_reason:
        # What it paused goes on within the new one; a quota of the provider pauses again at the next request.
        Endpoint.objects.filter(pk=endpoint.pk).update(paused_until=None, pause_reason="")
    if "is_offered" in after and not endpoint.is_offered:
        stop_runs_no_longer_offered(endpoint)
    endpoint.save(update_fields=list(after))
    before, after = endpoint_event_fields(before), endpoint_event_fields(after)
    record_event("changed", endpoint, user=user, evaluation=None, before=before, after=after)
    return True


def refuse_moving_stored_key(after: JsonMapping) -> None:
    """Refuse changes that would send a stored key to another address, or add a second key."""
    if "base_url" in after:
        raise InputRefused(
            "The stored API key is only sent to the address it was stored for. Paste the key again to change the "
            "address.",
            field="api_key",
        )
    if after.get("key_variable"):
        raise InputRefused("An API key is stored here. Remove it to use a variable.", field="key_variable")


def endpoint_event_fields(columns: JsonMapping) -> JsonDict:
    """The columns for an event, with the daily budget in USD, and without the key."""
    fields = dict(columns)
    if "encrypted_key" in fields:
        fields["api_key"] = "stored" if fields.pop("encrypted_key") else None
    if "daily_budget" in fields:
        budget = fields.pop("daily_budget")
        fields["daily_budget_usd"] = None if budget is None else format_exact_usd(budget)
    return fields


def choose_endpoint_name(host: str) -> str:
    return find_free_name(host, Endpoint.objects.filter(name__startswith=host).values_list("name", flat=True))


@transaction.atomic
def add_found_server(server: LocalServer, *, user: User | None) -> Endpoint:
    """An endpoint for a local server; the existing one if another person was faster."""
    endpoint = Endpoint.objects.filter(base_url=check_base_url(server.base_url)).order_by("pk").first()
    if endpoint is not None:
        return endpoint
    name = choose_endpoint_name(urlsplit(server.base_url).netloc)
    dialect = dialect_of_server_kind(server.kind) or ""
    return create_endpoint(EndpointSettings(name=name, base_url=server.base_url, dialect=dialect), user=user)


MAX_MODEL_LENGTH: Final = 200


@transaction.atomic
def request_check(endpoint: Endpoint, model: str) -> EndpointCheck:
    """Request a check of this model from a worker; "" means the judges' model, or the first one offered."""
    model = model.strip()
    refuse_pasted_key(model, "The model")
    if len(model) > MAX_MODEL_LENGTH:
        raise InputRefused(f"Model: use at most {MAX_MODEL_LENGTH} characters.")
    refuse_check_beyond_day(endpoint)
    now = timezone.now()
    columns = {"checked_at": now, "result": {"waiting_since": now.isoformat()}}
    row, _ = EndpointCheck.objects.update_or_create(endpoint=endpoint, model=model, defaults=columns)
    enqueue_job(CHECK_ENDPOINT, row.pk, evaluation=None)
    return row


def refresh_local_server(address: str) -> LocalServer | None:
    """Look for a server at this address now; "" means not to look.

    Other servers found before are forgotten; endpoints made from them stay.
    """
    detected = probe_local_address(address) if address else None
    gone = LocalServer.objects.exclude(base_url=detected.base_url) if detected else LocalServer.objects.all()
    if gone.exists():  # on SQLite even a DELETE of no rows waits for other writers
        gone.delete()
    if detected is None:
        return None
    names = [replace_unstorable(name) for name in detected.model_names or ()]
    server, _ = LocalServer.objects.update_or_create(
        base_url=detected.base_url,
        defaults={"kind": detected.kind, "model_names": names, "seen_at": timezone.now()},
    )
    return server
