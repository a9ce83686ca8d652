"""Signed webhook messages, by the Standard Webhooks specification (standardwebhooks.com).

An address is resolved once and reached by its IP address, so that it cannot change between the check and the
request. Redirects are not followed; proxies of the environment are not used.
"""

import asyncio
import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import httpx2

from evaluations.domain.texts import replace_unstorable
from evaluations.net.addresses import Network, resolve_reachable_address

SECRET_PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32
WEBHOOK_TIMEOUT_SECONDS: Final = 10.0
BODY_TIMEOUT_SECONDS: Final = 2.0
MAX_BODY_BYTES: Final = 1_000


@dataclass(frozen=True)
class WebhookAnswer:
    """The status and the beginning of the body, or the sentence that says why there is none."""

    http_status: int | None
    text: str
    error: str
    milliseconds: int

    @property
    def is_taken(self) -> bool:
        return self.http_status is not None and 200 <= self.http_status < 300


@dataclass(frozen=True)
class WebhookMessage:
    """A message. ``key`` identifies it in all attempts; ``moment`` is of this attempt, in seconds since 1970 UTC."""

    url: str
    secret: str
    key: str
    body: str
    moment: int

    def headers(self) -> dict[str, str]:
        return {
            "content-type": "application/json",
            "user-agent": "judgeweb-webhook",
            "webhook-id": self.key,
            "webhook-timestamp": str(self.moment),
            "webhook-signature": sign_webhook_message(self.secret, self.key, self.moment, self.body),
        }


def create_webhook_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def sign_webhook_message(secret: str, key: str, moment: int, body: str) -> str:
    """HMAC-SHA256 of id, time and body joined by dots, in base64 after the version."""
    shared = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    digest = hmac.new(shared, f"{key}.{moment}.{body}".encode(), hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def send_webhook_message(message: WebhookMessage, allowed: Sequence[Network] = ()) -> WebhookAnswer:
    """Make one attempt. ``allowed``: networks other than the public internet that may be reached. Never raises."""
    began = time.monotonic()

    def answer(status: int | None, text: str = "", error: str = "") -> WebhookAnswer:
        return WebhookAnswer(status, text, error, round((time.monotonic() - began) * 1000))

    try:
        address = resolve_reachable_address(message.url, allowed)
        status, text = asyncio.run(post_webhook_message(message, address))
    except TimeoutError:
        return answer(None, error=f"It did not answer within {WEBHOOK_TIMEOUT_SECONDS:.0f} seconds.")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        return answer(None, error=describe_connection_error(error))
    return answer(status, text)


async def post_webhook_message(message: WebhookMessage, address: str) -> tuple[int, str]:
    async with httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=WEBHOOK_TIMEOUT_SECONDS) as client:
        async with asyncio.timeout(WEBHOOK_TIMEOUT_SECONDS):
            response = await client.send(build_webhook_request(client, message, address), stream=True)
        try:
            return response.status_code, await read_body_start(response)
        finally:
            await response.aclose()


def build_webhook_request(client: httpx2.AsyncClient, message: WebhookMessage, address: str) -> httpx2.Request:
    parts = urlsplit(message.url)
    host = f"[{address}]" if ":" in address else address
    netloc = f"{host}:{parts.port}" if parts.port else host
    return client.build_request(
        "POST",
        parts._replace(netloc=netloc).geturl(),
        content=message.body.encode(),
        headers={**message.headers(), "host": parts.netloc},
        extensions={"sni_hostname": parts.hostname or ""},
    )


async def read_body_start(response: httpx2.Response) -> str:
    """The beginning of the body, as much as comes soon; the status alone decides about the message."""
    body = b""
    with suppress(TimeoutError, httpx2.HTTPError):
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
            async for part in response.aiter_raw():
                body += part
                if len(body) >= MAX_BODY_BYTES:
                    break
    return replace_unstorable(body[:MAX_BODY_BYTES].decode(errors="replace"))


def describe_connection_error(error: Exception) -> str:
    reason = " ".join(str(error).split()) or type(error).__name__
    return reason[:300]
