"""The address from which a request came, and what of it may be believed."""

import ipaddress
from typing import Final, TypeAlias

from django.conf import settings
from django.http import HttpRequest

IpAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
# A provider gives each customer at least as much: within it addresses change at will.
IPV6_PREFIX: Final = 64


def read_client_address(request: HttpRequest) -> str:
    """The client's IPv4 address or IPv6 network; "" where only a proxy's address is known.

    A site behind https has a proxy: without trusted ones, every address is that of a proxy.
    """
    peer = parse_address(request.META.get("REMOTE_ADDR", ""))
    if peer is None:
        return ""
    if not settings.TRUSTED_PROXIES:
        return "" if settings.BEHIND_HTTPS else format_network(peer)
    if not is_trusted_proxy(peer):
        return format_network(peer)
    client = read_forwarded_address(request.headers.get("X-Forwarded-For", ""))
    return format_network(client) if client else ""


def may_be_shared(address: str) -> bool:
    """Whether all people of the site may have this address, so that it does not tell who asks.

    A loopback address is that of a proxy on this machine, if nobody named it among the trusted ones.
    """
    return not address or ((parsed := parse_address(address)) is not None and parsed.is_loopback)


def read_forwarded_address(header: str) -> IpAddress | None:
    """The last address of the header that no proxy of ours has. What is before it may be invented."""
    for text in reversed(header.split(",")):
        address = parse_address(text.strip())
        if address is None:
            return None
        if not is_trusted_proxy(address):
            return address
    return None


def is_trusted_proxy(address: IpAddress) -> bool:
    return any(address in network for network in settings.TRUSTED_PROXIES)


def parse_address(text: str) -> IpAddress | None:
    """An IPv4 address that was mapped into IPv6 counts as the IPv4 address that it is."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def format_network(address: IpAddress) -> str:
    """
    >>> format_network(ipaddress.ip_address("2001:db8::7"))
    '2001:db8::/64'
    """
    if address.version == 4 or address.is_loopback:
        return str(address)
    return str(ipaddress.ip_network((address, IPV6_PREFIX), strict=False))
