"""Which servers may be reached, and which secrets may be sent to them."""

import ipaddress
import queue
import re
import socket
import threading
from collections.abc import Sequence
from typing import Final
from urllib.parse import SplitResult, urlsplit

from evaluations.domain.errors import InputRefused
from evaluations.domain.secrets import is_probable_key

# Any other name could send the server's own secrets to an address that a user chose.
KEY_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]*_API_KEY|JUDGEWEB_KEY_[A-Z0-9_]+")


def parse_http_url(address: str) -> SplitResult | None:
    """The parts of an http(s) address; None if it is not one."""
    try:
        parts = urlsplit(address)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_http else None


def check_base_url(address: str) -> str:
    """The address without a trailing slash; InputRefused if it is not a plain http(s) one."""
    parts = parse_http_url(address.strip())
    if parts is None:
        raise InputRefused("The base URL is not an address: it must begin with http:// or https:// and name a server.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InputRefused("The base URL must hold no user name, password, ? or #: the key comes from the environment.")
    if is_metadata_host(parts.hostname or ""):
        raise InputRefused(
            "The base URL names the metadata service of a cloud, which hands out credentials. Enter an LLM server."
        )
    return address.strip().rstrip("/")


# Where clouds hand the credentials of a machine to the programs on it: no LLM server has these addresses.
METADATA_ADDRESSES: Final = frozenset(
    ipaddress.ip_address(number)
    for number in (
        *("169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200"),
        *("fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254"),
    )
)
METADATA_NAMES: Final = frozenset({"metadata", "metadata.google.internal", "instance-data"})


def is_metadata_host(host: str) -> bool:
    """Whether a host is the metadata service of a cloud, in any spelling of its address; no name is looked up."""
    host = host.rstrip(".").lower()
    address = parse_any_address(host)
    return host in METADATA_NAMES if address is None else address in METADATA_ADDRESSES


def parse_any_address(host: str) -> "Address | None":
    """The address that the system takes a host for: also 2852039166, 0xa9fea9fe or ::ffff:169.254.169.254.

    >>> parse_any_address("0x7f.1")
    IPv4Address('127.0.0.1')
    """
    try:
        number = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host)) if host.isascii() else None
        except (OSError, ValueError):
            return None
    return getattr(number, "ipv4_mapped", None) or number


def local_server_root(base_url: str) -> str:
    """The address of a local server: its base URL without the path of an API.

    >>> local_server_root("http://127.0.0.1:11434/v1")
    'http://127.0.0.1:11434'
    """
    return re.sub(r"(/api)?(/v\d+)?/*$|/api/*$", "", base_url.strip(), count=1)


def refuse_pasted_key(text: str, field: str) -> None:
    """InputRefused if an API key was pasted into a field that is stored and shown."""
    if is_probable_key(text):
        raise InputRefused(f"{field} looks like an API key. Keys belong in an environment variable, never here.")


def check_key_variable(name: str) -> str:
    """The name of an environment variable that may be sent as a key; "" for a server without keys."""
    name = name.strip()
    if name and not KEY_VARIABLE.fullmatch(name):
        raise InputRefused(
            "What was given cannot name a key. Enter the name of the environment variable that holds it, never the key "
            "itself: it must end in _API_KEY or start with JUDGEWEB_KEY_, in capital letters."
        )
    return name


# Names that the public DNS does not resolve.
LOCAL_NAMES: Final = (".localhost", ".local", ".lan", ".internal", ".home.arpa")


def is_local_address(base_url: str) -> bool:
    """Whether a server is on this machine or network, by its address alone: no name is looked up.

    Names without a dot, as containers and local machines have them, are local.
    """
    try:
        host = (urlsplit(base_url).hostname or "").rstrip(".")
    except ValueError:
        return False
    try:
        number = ipaddress.ip_address(host)
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(LOCAL_NAMES))
    return not (getattr(number, "ipv4_mapped", None) or number).is_global


Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# All of IPv6 that was ever assigned; other addresses lead into private networks or through translators (NAT64), if
# anywhere.
GLOBAL_UNICAST: Final = ipaddress.ip_network("2000::/3")
# Written down, since what `is_global` knows differs between versions of Python. From the registries of IANA for special
# purposes, with all that embeds an address of the other family, which hides where it leads (Teredo, 6to4).
SPECIAL_NETWORKS: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
        *("192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
        *("224.0.0.0/4", "240.0.0.0/4", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
    )
)
# The system itself may wait minutes for a silent name server.
LOOK_UP_SECONDS: Final = 5.0


class AddressNotReachable(ValueError):
    """The address may not be reached; the message says why."""


def check_webhook_url(address: str) -> str:
    """The address of a webhook; InputRefused if it is not a plain http(s) one."""
    address = address.strip()
    parts = parse_http_url(address)
    if parts is None or not address.isascii() or any(letter.isspace() for letter in address):
        raise InputRefused("This is not an address: begin with https:// or http:// and a server.", field="url")
    if parts.username or parts.password or parts.fragment:
        raise InputRefused(
            "Remove the user name, password or # from the address: messages are signed instead.", field="url"
        )
    return address


def url_without_path(url: str) -> str:
    """The server of a webhook's address: its path often holds a secret, so records leave it out."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}/…"


def resolve_reachable_address(url: str, allowed: Sequence[Network]) -> str:
    """The IP address at which this server may be reached.

    AddressNotReachable if the name resolves to nothing, not in time, or to a private network that is not allowed.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        numbers = resolve_host(host, parts.port or 443)
    except TimeoutError:
        raise AddressNotReachable(f"The name {host} was not found within {LOOK_UP_SECONDS:.0f} seconds.") from None
    except (OSError, UnicodeError):
        raise AddressNotReachable(f"The name {host} leads to no address.") from None
    for number in numbers:
        if not is_reachable_address(ipaddress.ip_address(number.partition("%")[0]), allowed):
            raise AddressNotReachable(
                f"{host} leads to {number}, which is no public address: the site's administrator can allow "
                "networks by JUDGEWEB_WEBHOOK_NETWORKS."
            )
    return numbers[0]


def resolve_host(host: str, port: int) -> list[str]:
    """The IP addresses of the name. TimeoutError if that takes too long, OSError or UnicodeError if there are none.

    Looked up in a separate thread, since the system's look-up cannot be cancelled.
    """
    answers: queue.SimpleQueue[list[str] | OSError | UnicodeError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            answers.put(error)
        else:
            answers.put(list(dict.fromkeys(str(row[4][0]) for row in rows)))

    threading.Thread(target=look_up, name="look-up", daemon=True).start()
    try:
        answer = answers.get(timeout=LOOK_UP_SECONDS)
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def is_reachable_address(address: Address, allowed: Sequence[Network]) -> bool:
    """Whether the address is public, or in a network that the site allows."""
    inner = getattr(address, "ipv4_mapped", None) or address
    if any(inner in network for network in allowed):
        return True
    is_unassigned = inner.version == 6 and inner not in GLOBAL_UNICAST
    return inner.is_global and not (is_unassigned or any(inner in network for network in SPECIAL_NETWORKS))
