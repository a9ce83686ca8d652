"""Whose address a request has, and which headers are believed."""

import ipaddress

import pytest
from django.conf import LazySettings
from django.test import RequestFactory

from evaluations.web.client_address import may_be_shared, read_client_address


def address_of(peer: str, forwarded: str | None = None) -> str:
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    return read_client_address(RequestFactory().get("/", REMOTE_ADDR=peer, headers=headers))


@pytest.fixture
def proxied(settings: LazySettings) -> None:
    settings.BEHIND_HTTPS = True
    settings.TRUSTED_PROXIES = [ipaddress.ip_network("127.0.0.1/32"), ipaddress.ip_network("10.0.0.0/8")]


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix:", ""),
    ],
)
def test_without_a_proxy_the_address_is_that_of_the_connection(peer: str, address: str) -> None:
    assert address_of(peer) == address


def test_a_header_is_not_believed_from_anyone() -> None:
    assert address_of("192.0.2.7", "198.51.100.1") == "192.0.2.7"


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "127.5.5.5"])
def test_a_loopback_address_is_shown_and_says_nothing_about_who_asks(peer: str) -> None:
    address = address_of(peer, "198.51.100.1")
    assert address == peer
    assert may_be_shared(address)


@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8:1:2::/64"])
def test_any_other_address_is_that_of_a_client(address: str) -> None:
    assert not may_be_shared(address)


def test_behind_https_every_address_is_that_of_a_proxy_that_nobody_named(settings: LazySettings) -> None:
    settings.BEHIND_HTTPS = True
    assert address_of("172.18.0.2", "198.51.100.1") == address_of("127.0.0.1") == ""


@pytest.mark.usefixtures("proxied")
@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        ("198.51.100.1", "198.51.100.1"),
        ("203.0.113.9, 198.51.100.1", "198.51.100.1"),  # what is before it may be invented
        ("198.51.100.1, 10.1.2.3", "198.51.100.1"),  # two proxies
        ("2001:db8::1", "2001:db8::/64"),
        ("198.51.100.1, nonsense", ""),
        ("10.1.2.3", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_from_a_trusted_proxy_the_last_address_that_is_no_proxy_counts(forwarded: str | None, address: str) -> None:
    assert address_of("127.0.0.1", forwarded) == address


@pytest.mark.usefixtures("proxied")
def test_who_reaches_the_port_past_the_proxy_invents_no_address() -> None:
    assert address_of("192.0.2.7", "198.51.100.1") == "192.0.2.7"
