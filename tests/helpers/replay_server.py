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


def find_texts(given: Any) -> Iterator[str]:
    if isinstance(given, str):
        yield given
    elif isinstance(given, Mapping):
        for inside in given.values():
            yield from find_texts(inside)
    elif isinstance(given, list):
        for inside in given:
            yield from find_texts(inside)


def find_schemas(given: Any) -> Iterator[Mapping[str, Any]]:
    """The JSON schemas that stand anywhere in a body, the outermost first."""
    if isinstance(given, Mapping):
        if given.get("type") == "object" and isinstance(given.get("properties"), Mapping):
            yield given
        for inside in given.values():
            yield from find_schemas(inside)
    elif isinstance(given, list):
        for inside in given:
            yield from find_schemas(inside)


def replay_verdict(asked: RecordedRequest) -> str:
    return json.dumps(fill_schema(asked.schema or find_shown_form(asked), None))  # type: ignore[arg-type]  # it reads a prompt


def fill_replies(given: Any, reply: str) -> Any:
    """The body with the verdict in its place."""
    if isinstance(given, str):
        return given.replace(REPLY_MARK, reply)
    if isinstance(given, Mapping):
        return {name: fill_replies(inside, reply) for name, inside in given.items()}
    return [fill_replies(inside, reply) for inside in given] if isinstance(given, list) else given


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
        asked = RecordedRequest(request.path, dict(request.headers), dict(request.query), await request.json())
        told = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append(asked)
        self.faults += list(find_request_faults(asked, told))
        headers = {name: str(value) for name, value in told.get("headers", {}).items()}
        if "text" in told:
            return web.Response(
                text=told["text"], status=told.get("status", 200), headers={"content-type": "text/html", **headers}
            )
        body = fill_replies(told.get("body"), replay_verdict(asked))
        return web.json_response(body, status=told.get("status", 200), headers=headers)


def find_request_faults(asked: RecordedRequest, told: Mapping[str, Any]) -> Iterator[str]:
    path = told.get("only_if", {}).get("path")
    if path and path != asked.path:
        yield f"asked at {asked.path} instead of {path}"
    for name, value in told.get("request_has", {}).items():
        if not contains_wanted(asked.body.get(name), value):
            yield f"{name} is {asked.body.get(name)!r} instead of {value!r}"
    for name in told.get("request_lacks", []):
        if name in asked.body:
            yield f"{name} was sent"


def contains_wanted(sent: Any, wanted: Any) -> bool:
    """Whether it was sent as it stands; of an object, whether all that is wanted is in it."""
    if isinstance(sent, Mapping) and isinstance(wanted, Mapping):
        return all(name in sent and contains_wanted(sent[name], value) for name, value in wanted.items())
    return bool(sent == wanted)


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
