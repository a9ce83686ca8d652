"""A server that replays a provider's recorded answers over real HTTP, whatever path is asked.

``$REPLY`` in an answer stands for the verdict."""

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.helpers.llm_server import fill_schema, find_shown_form, stop

REPLY_MARK = "$REPLY"


@dataclass(frozen=True)
class RecordedRequest:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def prompt(self) -> str:
        return "\n\n".join(find_texts(self.body))

    @property
    def schema(self) -> Mapping[str, Any] | None:
        return next(find_schemas(self.body), None)


def find_texts(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, Mapping):
        for inner in part.values():
            yield from find_texts(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from find_texts(inner)


def find_schemas(part: Any) -> Iterator[Mapping[str, Any]]:
    """The JSON schemas that stand anywhere in a body, the outermost first."""
    if isinstance(part, Mapping):
        if part.get("type") == "object" and isinstance(part.get("properties"), Mapping):
            yield part
        for inner in part.values():
            yield from find_schemas(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from find_schemas(inner)


def replay_verdict(request: RecordedRequest) -> str:
    return json.dumps(fill_schema(request.schema or find_shown_form(request), None))  # type: ignore[arg-type]  # it reads a prompt


def fill_replies(part: Any, reply: str) -> Any:
    """The body with the verdict in its place."""
    if isinstance(part, str):
        return part.replace(REPLY_MARK, reply)
    if isinstance(part, Mapping):
        return {name: fill_replies(inner, reply) for name, inner in part.items()}
    return [fill_replies(inner, reply) for inner in part] if isinstance(part, list) else part


@dataclass
class ReplayServer:
    """The answers of one case in turn, the last of them for ever; ``faults`` says what was asked for wrongly."""

    answers: Sequence[Mapping[str, Any]]
    asked: list[RecordedRequest] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    address: str = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            return web.json_response({"error": "not here"}, status=404)
        recorded = RecordedRequest(request.path, dict(request.headers), dict(request.query), await request.json())
        canned = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append(recorded)
        self.faults += list(find_request_faults(recorded, canned))
        headers = {name: str(value) for name, value in canned.get("headers", {}).items()}
        if "text" in canned:
            return web.Response(
                text=canned["text"], status=canned.get("status", 200), headers={"content-type": "text/html", **headers}
            )
        body = fill_replies(canned.get("body"), replay_verdict(recorded))
        return web.json_response(body, status=canned.get("status", 200), headers=headers)


def find_request_faults(request: RecordedRequest, canned: Mapping[str, Any]) -> Iterator[str]:
    path = canned.get("only_if", {}).get("path")
    if path and path != request.path:
        yield f"asked at {request.path} instead of {path}"
    for name, value in canned.get("request_has", {}).items():
        if not contains_wanted(request.body.get(name), value):
            yield f"{name} is {request.body.get(name)!r} instead of {value!r}"
    for name in canned.get("request_lacks", []):
        if name in request.body:
            yield f"{name} was sent"


def contains_wanted(sent: Any, expected: Any) -> bool:
    """Whether it was sent as it stands; of an object, whether all that is wanted is in it."""
    if isinstance(sent, Mapping) and isinstance(expected, Mapping):
        return all(name in sent and contains_wanted(sent[name], value) for name, value in expected.items())
    return bool(sent == expected)


@contextmanager
def replay_answers(
    answers: Sequence[Mapping[str, Any]], kind: type[ReplayServer] = ReplayServer
) -> Iterator[ReplayServer]:
    """The server, in a thread with a loop of its own; ``address`` is without a path."""
    replay, loop = kind(answers), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    runner = asyncio.run_coroutine_threadsafe(start_replay(replay), loop).result(10)
    try:
        yield replay
    finally:
        asyncio.run_coroutine_threadsafe(stop(runner), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def start_replay(replay: ReplayServer) -> web.AppRunner:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", replay.answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    replay.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    return runner
