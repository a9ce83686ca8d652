"""The Batch API of an OpenAI-compatible server: many requests in one file, at a lower price, within a day.

This module imports ``openai``: import it late."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

import httpx2
from openai import APIStatusError, Omit, OpenAI, OpenAIError
from openai.types import Batch

from evaluations.domain.texts import replace_unstorable
from evaluations.llm.client import (
    extra_body_fields,
    omit_bearer_header,
    parse_answer,
    parse_http_error,
    refuse_unsent_variables,
    request_headers,
    request_query,
    salvage_flawed_answer,
    server_base_url,
    server_key,
    translate_sdk_error,
)
from evaluations.llm.dialects.registry import GENERIC_ADAPTER, find_adapter
from evaluations.llm.error_body import parse_error_body
from evaluations.llm.exchange import Answer, Request, Retry, Server, StopRun, merge_extra_fields

COMPLETION_WINDOW: Final = "24h"
ENDED_STATES: Final = ("completed", "failed", "expired", "cancelled")
BATCH_MARK_NAME: Final = "judgeweb_batch"  # in a batch's metadata: identifies the batch after a crash
MAX_LISTED_BATCHES: Final = 200  # of the newest, searched for one that a killed worker sent


@dataclass(frozen=True)
class RemoteBatch:
    """A batch as its server describes it. ``error`` says why it was refused as a whole."""

    id: str
    state: str
    output_file: str
    error_file: str
    answered: int
    error: str

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED_STATES


@dataclass(frozen=True)
class BatchLine:
    """One answer of a batch: the status and body of a single request, or a code that says why there is none."""

    custom_id: str
    status: int | None
    body: object
    code: str


def build_batch_line(custom_id: str, request: Request, server: Server | None = None) -> bytes:
    """One request as a line of the batch file, in the dialect of its server."""
    adapter = find_adapter(server) if server else GENERIC_ADAPTER
    if server:
        refuse_unsent_variables(server, request)
    body = merge_extra_fields(adapter.body(request), extra_body_fields(server, request))
    line = {"custom_id": custom_id, "method": "POST", "url": adapter.batch_path, "body": body}
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"


@dataclass(frozen=True)
class BatchServer:
    """The Batch API of one server. Every method may raise LLMError."""

    client: OpenAI
    server: Server
    key: str
    omitted_headers: Mapping[str, Omit] = field(default_factory=dict)  # headers that the client must not send

    def send(self, file: Path, mark: str) -> RemoteBatch:
        """Upload the file and start a batch."""
        with self.errors():
            uploaded = self.client.files.create(file=file, purpose="batch", extra_headers=self.omitted_headers)
            batch = self.client.batches.create(
                input_file_id=uploaded.id,
                endpoint=find_adapter(self.server).batch_path,  # type: ignore[arg-type]  # a list of OpenAI's own
                completion_window=COMPLETION_WINDOW,
                metadata={BATCH_MARK_NAME: mark},
                extra_headers=self.omitted_headers,
            )
        return parse_remote_batch(batch)

    def find(self, mark: str) -> RemoteBatch | None:
        """The batch with this mark, if there is one."""
        with self.errors():
            batches = self.client.batches.list(limit=100, extra_headers=self.omitted_headers)
            for batch in islice(batches, MAX_LISTED_BATCHES + 1):
                if (batch.metadata or {}).get(BATCH_MARK_NAME) == mark:
                    return parse_remote_batch(batch)
        return None

    def retrieve(self, remote_id: str) -> RemoteBatch:
        with self.errors():
            return parse_remote_batch(self.client.batches.retrieve(remote_id, extra_headers=self.omitted_headers))

    def cancel(self, remote_id: str) -> RemoteBatch:
        with self.errors():
            return parse_remote_batch(self.client.batches.cancel(remote_id, extra_headers=self.omitted_headers))

    def lines(self, file_id: str) -> Iterator[BatchLine]:
        """The answers in a file, one at a time; invalid lines are skipped."""
        with (
            self.errors(),
            self.client.files.with_streaming_response.content(file_id, extra_headers=self.omitted_headers) as content,
        ):
            for text in content.iter_lines():
                if line := parse_batch_line(text):
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
            raise translate_sdk_error(error, self.server, EMPTY_REQUEST, self.key) from None
        except (OpenAIError, httpx2.HTTPError) as error:
            raise translate_sdk_error(error, self.server, EMPTY_REQUEST, self.key) from None


EMPTY_REQUEST: Final = Request(messages=(), model="")


@contextmanager
def connect_batches(server: Server) -> Iterator[BatchServer]:
    """The server's Batch API, over connections that close at the end."""
    key = server_key(server)
    if not find_adapter(server).batch_path:
        raise StopRun(
            f"{server.base_url} has no Batch API that is supported: start a run that asks each call by itself."
        )
    headers = request_headers(server, key)
    with OpenAI(
        base_url=server_base_url(server),
        api_key=key,
        max_retries=2,
        timeout=server.timeout_seconds,
        default_headers=headers,
        default_query=request_query(server),
    ) as client:
        yield BatchServer(client, server, key, omit_bearer_header(headers))


def parse_remote_batch(batch: Batch) -> RemoteBatch:
    errors = batch.errors.data if batch.errors and batch.errors.data else []
    return RemoteBatch(
        id=batch.id,
        state=batch.status,
        output_file=batch.output_file_id or "",
        error_file=batch.error_file_id or "",
        answered=batch.request_counts.completed if batch.request_counts else 0,
        error=replace_unstorable(" ".join(error.message or "" for error in errors).strip())[:1000],
    )


def parse_batch_line(text: str) -> BatchLine | None:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict) or not isinstance(line.get("custom_id"), str):
        return None
    response, error = line.get("response"), line.get("error")
    status = response.get("status_code") if isinstance(response, dict) else None
    return BatchLine(
        custom_id=line["custom_id"],
        status=status if isinstance(status, int) else None,
        body=response.get("body") if isinstance(response, dict) else None,
        code=str(error.get("code") or "") if isinstance(error, Mapping) else "",
    )


def parse_line_answer(line: BatchLine, server: Server, request: Request, key: str = "") -> Answer:
    """The answer in a line, by the rules of single requests; else LLMError."""
    if line.status is None:
        raise Retry(f"The batch ended before this was asked ({line.code or 'no reason given'}).")
    text = json.dumps(line.body, ensure_ascii=False)
    if line.status == 200:
        return parse_answer(line.status, text, server, request, key)
    if flawed := salvage_flawed_answer(parse_error_body(line.status, text, key)):
        return flawed
    raise parse_http_error(line.status, text, server, request, key)
