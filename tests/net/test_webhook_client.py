"""Messages to other programs over real HTTP, and the addresses that none is sent to."""

import ipaddress
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from evaluations.domain.errors import InputRefused
from evaluations.net import addresses, webhook_client
from evaluations.net.addresses import (
    AddressNotReachable,
    check_webhook_url,
    is_reachable_address,
    resolve_reachable_address,
)
from evaluations.net.webhook_client import (
    WebhookMessage,
    create_webhook_secret,
    send_webhook_message,
    sign_webhook_message,
)

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8")]
# The worked example of the specification.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Receiver(HTTPServer):
    """Answers what it is told to and keeps what it was sent."""

    status = 204
    location = ""
    drips = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.done = threading.Event()
        self.sent: list[tuple[str, dict[str, str], str]] = []
        self.url = f"http://localhost:{self.server_port}/hook?from=here"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.server.sent.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.end_headers()
        if self.server.drips:
            self.drip()
        elif self.server.status != 204:
            self.wfile.write(b"no room \x00" + b"x" * 5_000)

    def drip(self) -> None:
        """A body without an end, a sign at a time."""
        with suppress(OSError):
            while not self.server.done.wait(0.01):
                self.wfile.write(b".")

    def log_message(self, *args: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.done.set()
    server.shutdown()
    thread.join()
    server.server_close()


def message(url: str, body: str = '{"test": 2432232314}') -> WebhookMessage:
    return WebhookMessage(url=url, secret=SECRET, key="msg_p5jXN8AQM9LWM0D4loKWxJek", body=body, moment=1614265330)


def test_the_signature_is_that_of_the_specification() -> None:
    told = message("https://example.org").headers()
    assert told["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert (told["webhook-id"], told["webhook-timestamp"]) == ("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330")


def test_every_secret_is_another_and_of_256_bits() -> None:
    one, other = create_webhook_secret(), create_webhook_secret()
    assert one != other
    assert sign_webhook_message(one, "k", 1, "{}") != sign_webhook_message(other, "k", 1, "{}")
    assert len(one.removeprefix("whsec_")) == 44  # 32 bytes in base64


def test_a_message_arrives_as_it_was_signed(receiver: Receiver) -> None:
    answer = send_webhook_message(message(receiver.url, json.dumps({"name": "Zoë"}, ensure_ascii=False)), LOOPBACK)
    assert (answer.http_status, answer.is_taken, answer.error) == (204, True, "")
    [(path, headers, body)] = receiver.sent
    assert path == "/hook?from=here"
    assert headers["host"] == f"localhost:{receiver.server_port}"  # its name, though its number was asked
    assert headers["content-type"] == "application/json"
    assert headers["webhook-signature"] == sign_webhook_message(SECRET, headers["webhook-id"], 1614265330, body)
    assert json.loads(body) == {"name": "Zoë"}


def test_what_a_receiver_says_is_kept_as_far_as_it_is_worth(receiver: Receiver) -> None:
    receiver.status = 503
    answer = send_webhook_message(message(receiver.url), LOOPBACK)
    assert (answer.http_status, answer.is_taken) == (503, False)
    assert answer.text.startswith("no room \ufffdxxx")
    assert len(answer.text) == 1_000


def test_a_message_that_was_taken_is_taken_however_long_the_receiver_goes_on(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_client, "BODY_TIMEOUT_SECONDS", 0.2)
    receiver.status, receiver.drips = 200, True
    answer = send_webhook_message(message(receiver.url), LOOPBACK)
    assert (answer.http_status, answer.is_taken, answer.error) == (200, True, "")
    assert len(answer.text) < 1_000  # cut off by the time, not by its length


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "[::ffff:7f00:1]"])
def test_this_machine_is_refused_however_its_number_is_written(host: str, receiver: Receiver) -> None:
    answer = send_webhook_message(message(f"http://{host}:{receiver.server_port}/"), [])
    assert "no public address" in answer.error
    assert receiver.sent == []


def test_a_redirect_is_an_answer_and_not_followed(receiver: Receiver) -> None:
    receiver.status, receiver.location = 302, receiver.url
    assert send_webhook_message(message(receiver.url), LOOPBACK).http_status == 302
    assert len(receiver.sent) == 1


def test_nobody_listening_is_told_in_words() -> None:
    answer = send_webhook_message(message("http://127.0.0.1:9/hook"), LOOPBACK)
    assert (answer.http_status, answer.is_taken) == (None, False)
    assert "onnect" in answer.error


@pytest.mark.parametrize(
    "number",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("224.0.0.1", "255.255.255.255", "::1", "fe80::1", "fc00::1", "::ffff:10.0.0.1", "ff02::1"),
        # 10.0.0.1, translated and tunnelled
        *("64:ff9b::a00:1", "64:ff9b:1::a00:1", "2002:a00:1::1", "2001:0:a00:1::1", "::10.0.0.1"),
        *("fec0::1", "100::1", "240.0.0.1", "198.18.0.1", "fe80::1%eth0", "fd00:ec2::254"),
        # for protocols, relays, benchmarks and documents, which some versions of Python call global
        *("192.0.0.9", "192.0.0.170", "192.88.99.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "0.1.2.3"),
        *("2001:db8::1", "3fff::1", "2001:20::1", "2001:1::1", "5f00::1", "4000::1"),
    ],
)
def test_no_private_address_is_reached(number: str) -> None:
    assert not is_reachable_address(ipaddress.ip_address(number), [])


@pytest.mark.parametrize("number", ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::ffff:93.184.215.14"])
def test_the_public_internet_is_reached(number: str) -> None:
    assert is_reachable_address(ipaddress.ip_address(number), [])


def test_only_the_networks_that_are_allowed_are_reached_besides() -> None:
    allowed = [ipaddress.ip_network("10.0.0.0/24")]
    assert is_reachable_address(ipaddress.ip_address("10.0.0.7"), allowed)
    assert is_reachable_address(ipaddress.ip_address("::ffff:10.0.0.7"), allowed)
    assert not is_reachable_address(ipaddress.ip_address("10.0.1.7"), allowed)


def test_a_name_that_leads_to_a_private_address_among_public_ones_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(2, 1, 6, "", (number, 443)) for number in ("93.184.215.14", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **options: found)
    with pytest.raises(AddressNotReachable, match=r"leads to 10\.0\.0\.1, which is no public address"):
        resolve_reachable_address("https://rebinding.example/", [])


def test_a_name_that_changes_its_address_after_the_check_is_reached_where_it_was_checked(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, looked_up = socket.getaddrinfo, list[object]()

    def change(host: object, *args: object, **options: object) -> object:
        if host != "rebinding.example":
            return real(host, *args, **options)  # type: ignore[arg-type]
        looked_up.append(host)
        number = "127.0.0.1" if len(looked_up) == 1 else "10.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (number, receiver.server_port))]

    monkeypatch.setattr(socket, "getaddrinfo", change)
    answer = send_webhook_message(message(f"http://rebinding.example:{receiver.server_port}/"), LOOPBACK)
    assert (answer.http_status, len(looked_up)) == (204, 1)


def test_a_proxy_of_the_environment_is_not_asked(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert send_webhook_message(message(receiver.url), LOOPBACK).http_status == 204


def test_a_name_server_that_is_silent_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **options: [answered.wait(60)][:0])
    monkeypatch.setattr(addresses, "LOOK_UP_SECONDS", 0.1)
    began = time.monotonic()
    answer = send_webhook_message(message("https://silent.example/"), [])
    answered.set()
    assert answer.error == "The name silent.example was not found within 0 seconds."
    assert time.monotonic() - began < 10


def test_a_name_that_is_none_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise socket.gaierror("Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert (
        send_webhook_message(message("https://nowhere.example/"), []).error
        == "The name nowhere.example leads to no address."
    )


def test_the_address_of_this_machine_is_refused_without_a_request(receiver: Receiver) -> None:
    answer = send_webhook_message(message(receiver.url), [])
    assert "no public address" in answer.error
    assert receiver.sent == []


@pytest.mark.parametrize(
    "given",
    [
        "",
        "example.org",
        "ftp://example.org",
        "http://",
        "https://user:word@example.org",
        "https://a/#b",
        "https://a b/",
        "https://good.example\\@127.0.0.1/",
        "https://ⓔxample.org/",
        "https://example.org:99999/",
        "https://[::1/",
    ],
)
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(InputRefused):
        check_webhook_url(given)
