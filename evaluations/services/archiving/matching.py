"""People and endpoints of a backup, held against those that are here."""

from collections.abc import Mapping
from typing import Any

from evaluations.models import Endpoint, Price, User
from evaluations.outside.addresses import checked_base_url, checked_key_variable
from evaluations.outside.extras import checked_body, checked_headers, checked_query


def accounts_for(people: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...], dict[int, int]]:
    """User names that were known, those that were not, and the accounts by their id in the backup."""
    names = {one["username"] for one in people.values()}
    known = dict(User.objects.filter(username__in=names).values_list("username", "pk"))
    ids, made = {}, []
    for pk, one in people.items():
        if one["username"] not in known:
            account = User(username=one["username"], display_name=one["display_name"], is_active=False)
            account.set_unusable_password()
            account.full_clean(exclude=["password"])
            account.save()
            known[account.username] = account.pk
            made.append(account.username)
        ids[int(pk)] = known[one["username"]]
    return tuple(sorted(names - set(made))), tuple(sorted(made)), ids


def endpoints_for(endpoints: Mapping[str, Any]) -> dict[int, int]:
    """The endpoint here with the same address and the same name of its key; else a new one, with its prices."""
    ids = {}
    for pk, told in endpoints.items():
        same = (
            Endpoint.objects.filter(base_url=told["base_url"], key_variable=told["key_variable"]).order_by("pk").first()
        )
        ids[int(pk)] = (same or new_endpoint(told)).pk
    return ids


def new_endpoint(told: Mapping[str, Any]) -> Endpoint:
    columns = {name: value for name, value in told.items() if name not in ("name", "prices")}
    columns |= {
        "base_url": checked_base_url(told["base_url"]),
        "key_variable": checked_key_variable(told["key_variable"]),
        "extra_headers": checked_headers(told.get("extra_headers", {})),
        "extra_query": checked_query(told.get("extra_query", {})),
        "extra_body": checked_body(told.get("extra_body", {})),
    }
    endpoint = Endpoint.objects.create(name=free_endpoint_name(told["name"]), **columns)
    Price.objects.bulk_create(Price(endpoint=endpoint, **price) for price in told["prices"])
    return endpoint


def free_endpoint_name(wanted: str) -> str:
    taken = set(Endpoint.objects.values_list("name", flat=True))
    return next(name for name in (wanted, *(f"{wanted} {n}" for n in range(2, 1000))) if name not in taken)
