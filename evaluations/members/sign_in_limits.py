"""The limit on tries to sign in, counted in the cache of each web process."""

from typing import Final

from django.core.cache import cache
from django.http import HttpRequest

WAIT_SECONDS: Final = 15 * 60
TRIES_FROM_ONE_ADDRESS: Final = 5
TRIES_FROM_ANYWHERE: Final = 50


def try_limits(request: HttpRequest, username: str) -> dict[str, int]:
    """How often this account may be tried: from this address, and from all together."""
    account = username.strip().casefold().encode().hex()
    return {
        f"sign-in:{account}:{request.META.get('REMOTE_ADDR')}": TRIES_FROM_ONE_ADDRESS,
        f"sign-in:{account}": TRIES_FROM_ANYWHERE,
    }


def is_try_allowed(request: HttpRequest, username: str) -> bool:
    """Count this try, before the password is looked at: many at once count as many."""
    return all(increment_tries(key) <= allowed for key, allowed in try_limits(request, username).items())


def increment_tries(key: str) -> int:
    cache.add(key, 0, WAIT_SECONDS)
    return cache.incr(key)


def reset_tries(request: HttpRequest, username: str) -> None:
    """After a sign-in this address starts afresh; the count of all addresses runs on."""
    cache.delete(next(iter(try_limits(request, username))))
