"""The cookie by which a browser is known that signed in to an account before."""

import secrets
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse

from evaluations.models.users import User

SALT: Final = "judgeweb.device"
MAX_AGE_SECONDS: Final = 365 * 24 * 60 * 60
MAX_ACCOUNTS: Final = 10


@dataclass(frozen=True)
class Device:
    """A browser with the ids of the accounts that it signed in to, the last one at the end."""

    id: str
    accounts: tuple[int, ...]


def read_device(request: HttpRequest) -> Device | None:
    try:
        value = signing.loads(request.COOKIES.get(settings.DEVICE_COOKIE_NAME, ""), salt=SALT, max_age=MAX_AGE_SECONDS)
        return Device(str(value["id"]), tuple(map(int, value["accounts"])))
    except (signing.BadSignature, KeyError, TypeError, ValueError):
        return None


def find_device_id(request: HttpRequest, user: User | None) -> str:
    """The id of the browser if it signed in to this account before, else ""."""
    device = read_device(request)
    return device.id if device and user and user.pk in device.accounts else ""


def remember_device(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """Let the browser be known the next time that it signs in to this account."""
    device = read_device(request) or Device(secrets.token_urlsafe(16), ())
    accounts = [*(pk for pk in device.accounts if pk != user.pk), user.pk][-MAX_ACCOUNTS:]
    response.set_cookie(
        settings.DEVICE_COOKIE_NAME,
        signing.dumps({"id": device.id, "accounts": accounts}, salt=SALT),
        max_age=MAX_AGE_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
