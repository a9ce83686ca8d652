"""The Batch API of `tests/helpers/llm_server.py`: files and batches, answered by the server's own script.

    with llm_server(good) as server:
        …
        server.batches.work()           # as a day would: every batch that was sent is answered

Nothing is answered before ``work`` is called, so that a test decides when.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from tests.helpers.llm_server import LLMServer

# Whether a line is answered: the others stand in neither file, as where a batch expired.
Reached = Callable[[Mapping[str, Any]], bool]


@dataclass
class UploadedBatch:
    """One batch as the server keeps it."""

    id: str
    input_file: str
    metadata: Mapping[str, str]
    status: str = "validating"
    output_file: str = ""
    error_file: str = ""
    completed: int = 0
    errors: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        errors = {"object": "list", "data": [{"message": error, "code": "invalid"} for error in self.errors]}
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "created_at": 0,
            "input_file_id": self.input_file,
            "status": self.status,
            "output_file_id": self.output_file or None,
            "error_file_id": self.error_file or None,
            "errors": errors if self.errors else None,
            "metadata": dict(self.metadata),
            "request_counts": {"total": self.completed, "completed": self.completed, "failed": 0},
        }


class BatchApi:
    """``files`` and ``sent`` may be looked into; ``answers`` says which lines a batch gets to."""

    def __init__(self, server: LLMServer) -> None:
        self.server = server
        self.files: dict[str, bytes] = {}
        self.sent: dict[str, UploadedBatch] = {}
        self.answers: Reached = lambda line: True
        self.is_missing = False  # as at most servers

    # ---- what the product asks ----

    async def upload(self, request: web.Request) -> web.Response:
        if self.is_missing:
            return not_found_response()
        form = await request.post()
        assert form["purpose"] == "batch"
        file = form["file"]
        assert isinstance(file, web.FileField)
        name = self.keep(file.file.read())
        return web.json_response(
            {"id": name, "object": "file", "bytes": 1, "created_at": 0, "filename": "x", "purpose": "batch"}
            | {"status": "processed"}
        )

    async def content(self, request: web.Request) -> web.Response:
        held = self.files.get(request.match_info["file"])
        return web.Response(body=held) if held is not None else not_found_response()

    async def create(self, request: web.Request) -> web.Response:
        body = await request.json()
        batch = UploadedBatch(f"batch-{len(self.sent) + 1}", body["input_file_id"], body.get("metadata") or {})
        self.sent[batch.id] = batch
        return web.json_response(batch.as_json())

    async def listed(self, request: web.Request) -> web.Response:
        data = [batch.as_json() for batch in reversed(self.sent.values())]
        return web.json_response({"object": "list", "data": data, "has_more": False})

    async def retrieve(self, request: web.Request) -> web.Response:
        batch = self.sent.get(request.match_info["batch"])
        return web.json_response(batch.as_json()) if batch else not_found_response()

    async def cancel(self, request: web.Request) -> web.Response:
        batch = self.sent[request.match_info["batch"]]
        batch.status = "cancelled" if batch.status in ("validating", "in_progress") else batch.status
        return web.json_response(batch.as_json())

    # ---- what a day brings ----

    def work(self, status: str = "completed") -> None:
        """Answer the batches that wait, each line by the server's script where ``answers`` lets it through."""
        for batch in self.sent.values():
            if batch.status == "validating":
                self.work_one(batch, status)

    def work_one(self, batch: UploadedBatch, status: str) -> None:
        good: list[bytes] = []
        bad: list[bytes] = []
        for line in map(json.loads, self.files[batch.input_file].splitlines()):
            if self.answers(line):
                status_code, body = self.server.answer(line["body"])
                (good if status_code == 200 else bad).append(build_answer_line(line["custom_id"], status_code, body))
        batch.status, batch.completed = status, len(good)
        batch.output_file = self.keep(b"".join(good)) if good else ""
        batch.error_file = self.keep(b"".join(bad)) if bad else ""

    def refuse(self, *errors: str) -> None:
        """The server finds the files wrong as a whole."""
        for batch in self.sent.values():
            if batch.status == "validating":
                batch.status, batch.errors = "failed", list(errors)

    def add_to(self, application: web.Application) -> None:
        application.router.add_post("/v1/files", self.upload)
        application.router.add_get("/v1/files/{file}/content", self.content)
        application.router.add_post("/v1/batches", self.create)
        application.router.add_get("/v1/batches", self.listed)
        application.router.add_get("/v1/batches/{batch}", self.retrieve)
        application.router.add_post("/v1/batches/{batch}/cancel", self.cancel)

    def keep(self, content: bytes) -> str:
        name = f"file-{len(self.files) + 1}"
        self.files[name] = content
        return name


def build_answer_line(custom_id: str, status_code: int, body: Mapping[str, Any]) -> bytes:
    response = {"status_code": status_code, "request_id": "r", "body": body}
    return json.dumps({"id": "b", "custom_id": custom_id, "response": response, "error": None}).encode() + b"\n"


def not_found_response() -> web.Response:
    return web.json_response({"error": {"message": "No such object.", "code": None, "param": None}}, status=404)
