"""A small OpenAI-compatible server that answers by script, over real HTTP.

    with llm_server(good) as server:
        endpoint = server.base_url

A script is a function from what was asked to what is answered. `first` and `by_prompt` join
scripts. Standing alone for benchmarks: ``python -m tests.helpers.llm_server --port 8139 --latency 0.2``.
"""

import argparse
import asyncio
import json
import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.helpers.batch_server import BatchApi


@dataclass(frozen=True)
class Question:
    """One request as it came in. ``times``: how often this very prompt was asked, this time included."""

    body: Mapping[str, Any]
    headers: Mapping[str, str]
    times: int

    @property
    def prompt(self) -> str:
        return prompt_text(self.body)

    @property
    def shape(self) -> str:
        return str((self.body.get("response_format") or {}).get("type", "text"))

    @property
    def schema(self) -> Mapping[str, Any] | None:
        response_format = self.body.get("response_format") or {}
        return response_format.get("json_schema", {}).get("schema") if response_format else None

    @property
    def turns(self) -> int:
        """How often the model has spoken before in this conversation."""
        return sum(message["role"] == "assistant" for message in self.body["messages"])


@dataclass(frozen=True)
class ServerAnswer:
    """One answer: a completion's text, or whatever else a server may send; ``body`` as it stands."""

    text: str | None = None
    finish_reason: str = "stop"
    refusal: str | None = None
    status: int = 200
    error: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    html: str | None = None
    hang: bool = False
    drop: bool = False
    body: Any = None
    logprobs: Sequence[Mapping[str, Any]] | None = None


Script = Callable[[Question], ServerAnswer]


def prompt_text(body: Mapping[str, Any]) -> str:
    return "\n\n".join(message["content"] for message in body["messages"])


# ---- scripts -------------------------------------------------------------------------------


JUDGE_REASON = "The first one answers the question."


def verdict_reply(question: Question, label: str | None = None) -> str:
    """A reply that fits what was asked for, by its schema or by the form that the prompt shows.

    The first label offered of each, and the highest number, unless a ``label`` is given.
    """
    return json.dumps(fill_schema(question.schema or find_shown_form(question), label))


def fill_schema(schema: Mapping[str, Any], label: str | None) -> Any:
    """A value that the schema allows."""
    if schema.get("type") == "object":
        return {key: fill_schema(inside, label) for key, inside in schema["properties"].items()}
    if "enum" in schema:
        return keep_value_type(label, schema["enum"][0])
    if schema.get("type") in ("number", "integer"):
        return keep_value_type(label, schema.get("maximum", 1))
    return JUDGE_REASON


def keep_value_type(label: str | None, like: Any) -> Any:
    """The label as text or as a number, whichever was asked for."""
    if label is None:
        return like
    return label if isinstance(like, str) else json.loads(label)


SIX = ("engagement", "clarity", "helpfulness", "factuality", "depth", "safety")


def find_shown_form(question: Question) -> Mapping[str, Any]:
    """The schema of the last JSON form in the prompt, such as ``{"choice": "<A | B>"}``; or the six aspects."""
    shown_form: Any = {"rationale": "<why>", "choices": dict.fromkeys(SIX, "<A | tie | B>")}
    # What stands in for a number stands there without quotes.
    prompt = re.sub(r"(:\s*)(<[^<>]*>)", r'\1"\2"', question.prompt)
    place = prompt.find("{")
    while place >= 0:
        try:
            form, end = json.JSONDecoder().raw_decode(prompt, place)
        except ValueError:
            form, end = None, place + 1
        shown_form = form if is_reply_form(form) else shown_form
        place = prompt.find("{", end)
    return form_schema(shown_form)


def is_reply_form(form: Any) -> bool:
    if isinstance(form, dict):
        return bool(form) and all(map(is_reply_form, form.values()))
    return isinstance(form, str) and form.startswith("<")


def form_schema(form: Any) -> dict[str, Any]:
    if isinstance(form, dict):
        return {"type": "object", "properties": {key: form_schema(value) for key, value in form.items()}}
    if form.startswith("<a number from"):
        return {"type": "number", "maximum": json.loads(form.split()[5].strip(">"))}
    labels = [label.strip() for label in form.strip("<>").split("|")]
    return {"enum": labels} if len(labels) > 1 else {"type": "string"}


def answer_well(question: Question) -> ServerAnswer:
    return ServerAnswer(verdict_reply(question))


def answer_always(label: str) -> Script:
    return lambda question: ServerAnswer(verdict_reply(question, label))


def answer_fenced(question: Question) -> ServerAnswer:
    return ServerAnswer(f"Here is my judgment:\n\n```json\n{verdict_reply(question)}\n```\n")


def answer_broken(question: Question) -> ServerAnswer:
    return ServerAnswer(verdict_reply(question)[:-9])


def refuse_answer(question: Question) -> ServerAnswer:
    return ServerAnswer(refusal="I will not compare these.")


def answer_filtered(question: Question) -> ServerAnswer:
    return ServerAnswer("", finish_reason="content_filter")


def answer_truncated(question: Question) -> ServerAnswer:
    return ServerAnswer(verdict_reply(question)[:40], finish_reason="length")


def hang(question: Question) -> ServerAnswer:
    return ServerAnswer(hang=True)


def drop_connection(question: Question) -> ServerAnswer:
    """The connection is lost before an answer comes."""
    return ServerAnswer(drop=True)


def answer_web_page(question: Question) -> ServerAnswer:
    return ServerAnswer(html="<!doctype html><title>Welcome</title><p>Nothing to see here.")


def fail_with(status: int, message: str = "", **fields: Any) -> Script:
    """An error as the API words it; ``retry_after`` becomes the header, the rest its fields."""
    headers = {"Retry-After": str(fields.pop("retry_after"))} if "retry_after" in fields else {}
    error = {"message": message or f"status {status}", "type": "error", "param": None, "code": None, **fields}
    return lambda question: ServerAnswer(status=status, error=error, headers=headers)


def accept_shapes(*shapes: str, then: Script = answer_well) -> Script:
    """A server that knows these shapes alone; ``text`` needs no knowing."""

    def script(question: Question) -> ServerAnswer:
        if question.shape in ("text", *shapes):
            return then(question)
        return fail_with(400, f"Invalid parameter: 'response_format' of type '{question.shape}' is not supported.")(
            question
        )

    return script


without_formats: Script = accept_shapes()


def answer_in_turn(scripts: Sequence[Script], then: Script = answer_well) -> Script:
    """The n-th request of all is answered by the n-th script, afterwards the last one answers."""
    left = list(scripts)
    return lambda question: (left.pop(0) if left else then)(question)


def alternate_scripts(*scripts: Script) -> Script:
    """By how often the model has spoken before in this conversation; the last script for all later turns."""
    return lambda question: scripts[min(question.turns, len(scripts) - 1)](question)


def answer_text(text: str) -> Script:
    return lambda question: ServerAnswer(text)


def refuse_setting(name: str, then: Script = answer_well) -> Script:
    """A server that does not know a parameter."""
    refused = fail_with(400, f"Unsupported parameter: '{name}' is not supported with this model.", param=name)
    return lambda question: (refused if name in question.body else then)(question)


def answer_with_logprobs(chances: Mapping[str, float]) -> Script:
    """Chooses the likeliest label everywhere, and tells how likely each was where that is asked for."""
    label = max(chances, key=lambda offered: chances[offered])

    def script(question: Question) -> ServerAnswer:
        reply = verdict_reply(question, label)
        wants_logprobs = question.body.get("logprobs")
        return ServerAnswer(reply, logprobs=reply_tokens(reply, label, chances) if wants_logprobs else None)

    return script


def reply_tokens(reply: str, label: str, chances: Mapping[str, float]) -> list[dict[str, Any]]:
    """A reply in tokens of one word or one mark each."""
    return [
        make_token(piece, chances[piece], chances) if piece == label else make_token(piece, 0.99, {piece: 0.99})
        for piece in re.findall(r"\w+|\W", reply)
    ]


def make_token(text: str, chance: float, likeliest: Mapping[str, float]) -> dict[str, Any]:
    others = [{"token": other, "logprob": math.log(p), "bytes": list(other.encode())} for other, p in likeliest.items()]
    return {"token": text, "logprob": math.log(chance), "bytes": list(text.encode()), "top_logprobs": others}


def answer_first(scripts: Sequence[Script], then: Script = answer_well) -> Script:
    """Per prompt: the n-th time it is asked the n-th script answers, afterwards the last one."""
    return lambda question: (scripts[question.times - 1] if question.times <= len(scripts) else then)(question)


def answer_recorded(replies: Mapping[str, ServerAnswer]) -> Script:
    """Replay what was once said to each prompt; the prompt holds the texts in the order shown."""
    unknown = fail_with(418, "no reply was recorded for this prompt")
    return lambda question: replies.get(question.prompt) or unknown(question)


# ---- the server ----------------------------------------------------------------------------


class LLMServer:
    """Counts what it is asked; ``script`` and ``latency`` may be changed while it runs."""

    def __init__(self, script: Script = answer_well, latency: float = 0.0, models: Sequence[str] = ()) -> None:
        self.script = script
        self.models = models
        self.latency = latency
        self.asked: Counter[str] = Counter()
        self.questions: list[Question] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.base_url = ""
        self.batches = BatchApi(self)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked[prompt_text(body)] += 1
        question = Question(body, dict(request.headers), self.asked[prompt_text(body)])
        self.questions.append(question)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.latency)
            answer = self.script(question)
            if answer.drop and request.transport is not None:
                request.transport.close()
            return await answered(question, answer)
        finally:
            self.in_flight -= 1

    def answer(self, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and body for a request that came in a batch, by the same script."""
        self.asked[prompt_text(body)] += 1
        question = Question(body, {}, self.asked[prompt_text(body)])
        self.questions.append(question)
        answer = self.script(question)
        return answer.status, {"error": answer.error} if answer.error is not None else build_completion(
            question, answer
        )

    async def list_models(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"data": [{"id": name} for name in self.models]})

    async def start(self, port: int = 0) -> web.AppRunner:
        application = web.Application()
        application.router.add_post("/v1/chat/completions", self.complete)
        if self.models:
            application.router.add_get("/v1/models", self.list_models)
        self.batches.add_to(application)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        self.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        return runner


async def answered(question: Question, answer: ServerAnswer) -> web.StreamResponse:
    if answer.hang:
        await asyncio.sleep(3600)
    if answer.html is not None:
        return web.Response(text=answer.html, content_type="text/html", status=answer.status)
    if answer.body is not None:
        return web.json_response(answer.body, status=answer.status, headers=answer.headers)
    if answer.error is not None:
        return web.json_response({"error": answer.error}, status=answer.status, headers=answer.headers)
    return web.json_response(build_completion(question, answer))


def build_completion(question: Question, answer: ServerAnswer) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
    logprobs = None if answer.logprobs is None else {"content": list(answer.logprobs)}
    choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason, "logprobs": logprobs}
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 0,
        "model": question.body["model"],
        "choices": [choice],
        "usage": {"prompt_tokens": len(question.prompt) // 4, "completion_tokens": 20, "total_tokens": 0},
    }


async def stop(runner: web.AppRunner) -> None:
    await runner.cleanup()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:  # answers that hang
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


@contextmanager
def llm_server(
    script: Script = answer_well, latency: float = 0.0, port: int = 0, models: Sequence[str] = ()
) -> Iterator[LLMServer]:
    """The server, in a thread with a loop of its own."""
    server = LLMServer(script, latency, models)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    runner = asyncio.run_coroutine_threadsafe(server.start(port), loop).result(10)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(stop(runner), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def serve(port: int, latency: float) -> None:
    await LLMServer(latency=latency).start(port)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8139)
    parser.add_argument("--latency", type=float, default=0.2)
    options = parser.parse_args()
    asyncio.run(serve(options.port, options.latency))
