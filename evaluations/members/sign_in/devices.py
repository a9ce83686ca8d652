"""The cookie by which a browser is known that signed in to an account before."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import salted_hmac

from evaluations.models.users import User

SALT: Final = "judgeweb.device"
MAX_AGE_SECONDS: Final = 365 * 24 * 60 * 60
MAX_ACCOUNTS: Final = 10
DIGEST_CHARACTERS: Final = 16


@dataclass(frozen=True)
class Device:
    """A browser with the accounts that it signed in to, the last one at the end: the password of each by its id.

    A password is a digest. A browser that signed in with an earlier password may belong to somebody else.
    """

    id: str
    accounts: Mapping[int, str]


def read_device(request: HttpRequest) -> Device | None:
    try:
        value = signing.loads(request.COOKIES.get(settings.DEVICE_COOKIE_NAME, ""), salt=SALT, max_age=MAX_AGE_SECONDS)
        return Device(str(value["id"]), {int(pk): str(password) for pk, password in value["accounts"].items()})
    except (signing.BadSignature, AttributeError, KeyError, TypeError, ValueError):
        return None


def find_device_id(request: HttpRequest, user: User | None) -> str:
    """The id of the browser if it signed in to this account since its password was set, else ""."""
    device = read_device(request)
    return device.id if device and user and device.accounts.get(user.pk) == digest_password(user) else ""


def digest_password(user: User) -> str:
    return salted_hmac(SALT, user.password, algorithm="sha256").hexdigest()[:DIGEST_CHARACTERS]


def remember_device(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """Let the browser be known the next time that it signs in to this account."""
    device = read_device(request) or Device(secrets.token_urlsafe(16), {})
    others = [(pk, password) for pk, password in device.accounts.items() if pk != user.pk]
    accounts = dict([*others, (user.pk, digest_password(user))][-MAX_ACCOUNTS:])
    response.set_cookie(
        settings.DEVICE_COOKIE_NAME,
        signing.dumps({"id": device.id, "accounts": accounts}, salt=SALT),
        max_age=MAX_AGE_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
