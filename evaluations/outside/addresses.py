"""Which servers may be reached, and which secrets may be sent to them."""

import re
from typing import Final
from urllib.parse import urlsplit

from evaluations.domain import InputRefused

# A name of any other form could hand the server's own secrets to whoever names the address.
KEY_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]*_API_KEY|JUDGEWEB_KEY_[A-Z0-9_]+")


def checked_base_url(given: str) -> str:
    """The address without a slash at its end; InputRefused where it is not a plain http(s) one."""
    try:
        parts = urlsplit(given.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InputRefused(f"“{given}” is not an address: it must begin with http:// or https:// and name a server.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InputRefused("The address must hold no user name, password, ? or #: the key comes from the environment.")
    return given.strip().rstrip("/")


def checked_key_variable(given: str) -> str:
    """The name of an environment variable that may be sent as a key; empty for a keyless server."""
    name = given.strip()
    if name and not KEY_VARIABLE.fullmatch(name):
        raise InputRefused(
            f"“{given}” cannot name a key: it must end in _API_KEY or start with JUDGEWEB_KEY_, in capital letters."
        )
    return name
