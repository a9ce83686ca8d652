"""Which addresses are of this machine or network, by what they say alone."""

import pytest

from evaluations.net.addresses import is_local_address


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost.",
        "127.0.0.1",
        "127.8.9.10",
        "[::1]",
        "[::ffff:10.0.0.5]",
        "10.1.2.3",
        "172.31.0.1",
        "192.168.1.20",
        "169.254.1.1",
        "100.101.102.103",
        "[fd00::7]",
        "[fe80::1]",
        "workstation.local",
        "GPU-BOX.Local",
        "host.docker.internal",
        "ollama",
    ],
)
def test_local_servers_are_known_by_their_address(host: str) -> None:
    assert is_local_address(f"http://{host}:11434/v1")
    assert is_local_address(f"http://{host}/v1")


@pytest.mark.parametrize(
    "host", ["api.openai.com", "8.8.8.8", "[2606:4700::1111]", "172.32.0.1", "local.example.com", "notlocal.com", ""]
)
def test_all_others_are_not_local(host: str) -> None:
    assert not is_local_address(f"https://{host}/v1")


@pytest.mark.parametrize("base_url", ["", "no address", "http://[::1", "http://"])
def test_what_is_no_address_is_not_local(base_url: str) -> None:
    assert not is_local_address(base_url)
