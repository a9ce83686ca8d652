"""Which addresses are of this machine or network, by what they say alone."""

import pytest

from evaluations.domain.errors import InputRefused
from evaluations.net.addresses import check_base_url, is_local_address


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


@pytest.mark.parametrize(
    "host",
    [
        *("169.254.169.254", "169.254.169.254.", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518"),
        *("[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[fd00:ec2::254]", "[FD00:0EC2:0::0254]"),
        *("169.254.170.2", "100.100.100.200", "metadata.google.internal", "Metadata.Google.Internal."),
    ],
)
def test_the_metadata_service_of_a_cloud_is_no_endpoint(host: str) -> None:
    with pytest.raises(InputRefused, match="metadata service of a cloud"):
        check_base_url(f"http://{host}/v1")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "169.254.1.1", "[fd00::7]", "ollama", "2130706433", "metadata.example.com"]
)
def test_local_servers_are_endpoints(host: str) -> None:
    assert check_base_url(f"http://{host}:8000/v1/") == f"http://{host}:8000/v1"
