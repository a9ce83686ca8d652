"""The Batch API of an OpenAI-compatible server: many requests in one file, at a lower price, within a day.

Imports ``openai``: import this module late.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2
from openai import APIStatusError, Omit, OpenAI, OpenAIError
from openai.types import Batch

from evaluations.domain import storable
from evaluations.outside.dialects import GENERIC, adapter_of
from evaluations.outside.exchange import with_extra
from evaluations.outside.llm import (
    Answer,
    Request,
    Retry,
    Server,
    StopRun,
    answer_from,
    base_url_of,
    error_from,
    error_of,
    extra_fields,
    flawed_from,
    headers_of,
    key_of,
    query_of,
    without_bearer,
)
from evaluations.outside.wording import said_by

WINDOW: Final = "24h"
ENDED: Final = ("completed", "failed", "expired", "cancelled")
MARK: Final = "judgeweb_batch"  # in a batch's metadata: by it a batch is known again after a crash
LOOKED_THROUGH: Final = 200  # of the newest batches, for one that a killed worker sent


@dataclass(frozen=True)
class Remote:
    """A batch as its server tells of it. ``error`` says why it was refused as a whole."""

    id: str
    state: str
    output_file: str
    error_file: str
    answered: int
    error: str

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED


@dataclass(frozen=True)
class Line:
    """One request's answer: the HTTP answer that it would have had, or none, with the code that says why."""

    custom_id: str
    status: int | None
    body: Any
    code: str


def line_for(custom_id: str, request: Request, server: Server | None = None) -> bytes:
    """One request as a line of the file that is sent, in the dialect of its server."""
    adapter = adapter_of(server) if server else GENERIC
    body = with_extra(adapter.body(request), extra_fields(server, request))
    line = {"custom_id": custom_id, "method": "POST", "url": adapter.batch_path, "body": body}
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"


@dataclass(frozen=True)
class BatchServer:
    """What may be asked of the server about batches. Every method may raise LLMError."""

    client: OpenAI
    server: Server
    key: str
    without: Mapping[str, Omit] = field(default_factory=dict)  # headers that the client is not to send

    def send(self, file: Path, mark: str) -> Remote:
        """Upload the file and have it worked."""
        with self.errors():
            uploaded = self.client.files.create(file=file, purpose="batch", extra_headers=self.without)
            made = self.client.batches.create(
                input_file_id=uploaded.id,
                endpoint=adapter_of(self.server).batch_path,  # type: ignore[arg-type]  # a list of OpenAI's own
                completion_window=WINDOW,
                metadata={MARK: mark},
                extra_headers=self.without,
            )
        return remote_from(made)

    def find(self, mark: str) -> Remote | None:
        """The batch that was sent under this mark, if there is one."""
        with self.errors():
            for seen, made in enumerate(self.client.batches.list(limit=100, extra_headers=self.without)):
                if (made.metadata or {}).get(MARK) == mark:
                    return remote_from(made)
                if seen >= LOOKED_THROUGH:
                    break
        return None

    def look(self, remote_id: str) -> Remote:
        with self.errors():
            return remote_from(self.client.batches.retrieve(remote_id, extra_headers=self.without))

    def cancel(self, remote_id: str) -> Remote:
        with self.errors():
            return remote_from(self.client.batches.cancel(remote_id, extra_headers=self.without))

    def lines(self, file_id: str) -> Iterator[Line]:
        """The answers in a file, one at a time; a line that is no answer is left out."""
        with (
            self.errors(),
            self.client.files.with_streaming_response.content(file_id, extra_headers=self.without) as content,
        ):
            for text in content.iter_lines():
                if line := line_from(text):
                    yield line

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except APIStatusError as error:
            if error.status_code in (404, 405, 501):
                raise StopRun(
                    f"{self.server.base_url} has no Batch API, or knows this batch no more: "
                    "start a run that asks each call by itself.",
                    http_status=error.status_code,
                ) from None
            raise error_of(error, self.server, NOTHING_ASKED, self.key) from None
        except (OpenAIError, httpx2.HTTPError) as error:
            raise error_of(error, self.server, NOTHING_ASKED, self.key) from None


NOTHING_ASKED: Final = Request(messages=(), model="")


@contextmanager
def connected(server: Server) -> Iterator[BatchServer]:
    """The server's batches, over connections that close at the end."""
    key = key_of(server)
    if not adapter_of(server).batch_path:
        raise StopRun(
            f"{server.base_url} has no Batch API that is supported: start a run that asks each call by itself."
        )
    headers = headers_of(server, key)
    with OpenAI(
        base_url=base_url_of(server),
        api_key=key,
        max_retries=2,
        timeout=server.timeout_seconds,
        default_headers=headers,
        default_query=query_of(server),
    ) as client:
        yield BatchServer(client, server, key, without_bearer(headers))


def remote_from(made: Batch) -> Remote:
    errors = made.errors.data if made.errors and made.errors.data else []
    return Remote(
        id=made.id,
        state=made.status,
        output_file=made.output_file_id or "",
        error_file=made.error_file_id or "",
        answered=made.request_counts.completed if made.request_counts else 0,
        error=storable(" ".join(one.message or "" for one in errors).strip())[:1000],
    )


def line_from(text: str) -> Line | None:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or not isinstance(told.get("custom_id"), str):
        return None
    response, error = told.get("response"), told.get("error")
    status = response.get("status_code") if isinstance(response, dict) else None
    return Line(
        custom_id=told["custom_id"],
        status=status if isinstance(status, int) else None,
        body=response.get("body") if isinstance(response, dict) else None,
        code=str(error.get("code") or "") if isinstance(error, Mapping) else "",
    )


def answer_in(line: Line, server: Server, request: Request, key: str = "") -> Answer:
    """The answer that a line holds, by the same rules as one that came by itself; else LLMError."""
    if line.status is None:
        raise Retry(f"The batch ended before this was asked ({line.code or 'no reason given'}).")
    text = json.dumps(line.body, ensure_ascii=False)
    if line.status == 200:
        return answer_from(line.status, text, server, request, key)
    if flawed := flawed_from(said_by(line.status, text, key)):
        return flawed
    raise error_from(line.status, text, server, request, key)
