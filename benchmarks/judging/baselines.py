"""The ways in which it is done today, beside ours, against the same server.

Each sends what our judge sends, reads it with our reader, and stores an Attempt and six verdicts
for every call as such tools do: at once, one transaction a call, through the ORM.
"""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections, connections, transaction
from openai import AsyncOpenAI, OpenAI

from benchmarks.judging.several import environment
from benchmarks.judging.study import ROOT, answered, judge_of, planned, server, tell
from evaluations.domain.choices import ShownOrder
from evaluations.domain.judges import CallState
from evaluations.domain.texts import PairTexts
from evaluations.judge_prompts.prompt_builder import build_messages
from evaluations.judges.calls.live_worker import work_run_calls
from evaluations.judges.calls.work_session import begin_work_session
from evaluations.judges.calls.worker_registry import registered_worker
from evaluations.llm.retry_policy import RetryPolicy
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.verdicts import Verdict
from evaluations.replies.reply_format import build_reply_schema
from evaluations.replies.reply_parser import ParsedReply, RawReply, parse_reply

SUBJECT = ("comparison__query", "comparison__response_a", "comparison__response_b")


def beside_today(calls: int, latency: float) -> None:
    """A thread pool of 8, a semaphore of 5, a Celery task a call; then ours, told nothing."""
    ways: dict[str, Callable[[Run, str], None]] = {
        "8 threads": by_threads,
        "semaphore of 5": by_semaphore,
        "a Celery task a call": by_tasks,
        "ours": by_us,
    }
    for name, way in ways.items():
        with server(latency) as serving:
            run = planned(judge_of(calls // 2, serving.base_url, name=name))
            began = time.monotonic()
            way(run, serving.base_url)
            took = time.monotonic() - began
            count = answered(run)
            tell(mode="baselines", way=name, calls=count, per_second=round(count / took, 1))


def by_us(run: Run, base_url: str) -> None:
    with registered_worker():
        work_run_calls(run.pk, hand_over=lambda: None, seconds=600)


def by_threads(run: Run, base_url: str) -> None:
    """AutoArena's default: eight threads, each asking and then storing."""
    client, plain = OpenAI(base_url=base_url, api_key="none"), Plain(run)

    def one(call_id: int) -> None:
        close_old_connections()
        call = plain.call(call_id)
        plain.keep(call, client.chat.completions.create(**plain.request(call)).choices[0].message.content or "")

    together = threading.Barrier(8)

    def close() -> None:
        together.wait()  # one on each of the eight
        connections.close_all()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(one, plain.ids()))
        for _ in range(8):
            threads.submit(close)


def by_semaphore(run: Run, base_url: str) -> None:
    """MetaEvaluator's: five requests at once on one loop."""
    plain = Plain(run)
    ids = plain.ids()

    async def everything() -> None:
        places = asyncio.Semaphore(5)
        async with AsyncOpenAI(base_url=base_url, api_key="none") as client:

            async def one(call_id: int) -> None:
                async with places:
                    call = await sync_to_async(plain.call)(call_id)
                    reply = await client.chat.completions.create(**plain.request(call))
                    await sync_to_async(plain.keep)(call, reply.choices[0].message.content or "")

            await asyncio.gather(*(one(call_id) for call_id in ids))

            await sync_to_async(connections.close_all)()

    asyncio.run(everything())


def by_tasks(run: Run, base_url: str) -> None:
    """One Celery task a call, in a worker of two processes (prefork, as Celery has it by itself)."""
    from benchmarks.judging.one_task import judge_one  # noqa: PLC0415 - it makes a Celery application

    with TemporaryDirectory() as folder:
        Path(folder, "broker", "control").mkdir(parents=True)
        env = environment(folder) | {"BENCHMARK_BASE_URL": base_url}
        judge_one.app.conf.broker_transport_options = {
            "data_folder_in": f"{folder}/broker",
            "data_folder_out": f"{folder}/broker",
            "control_folder": f"{folder}/broker/control",
        }
        command = [sys.executable, "-m", "celery", "-A", "benchmarks.judging.one_task", "worker", "-c", "2"]
        worker = subprocess.Popen([*command, "--pool", "prefork"], cwd=ROOT, env=env)
        try:
            for call_id in Plain(run).ids():
                judge_one.delay(run.pk, call_id)
            while Call.objects.filter(run=run, state=CallState.PENDING).exists():
                time.sleep(0.2)
        finally:
            worker.terminate()
            worker.wait()


class Plain:
    """What every way does with one call, without leases, batches or a loop."""

    def __init__(self, run: Run) -> None:
        session = begin_work_session(run.pk, RetryPolicy())
        assert session is not None
        self.run, self.session, self.schema = run, session, build_reply_schema(session.spec)

    def ids(self) -> list[int]:
        return list(Call.objects.filter(run=self.run).order_by("pk").values_list("pk", flat=True))

    def call(self, call_id: int) -> Call:
        return Call.objects.select_related(*SUBJECT).get(pk=call_id)

    def texts(self, call: Call) -> PairTexts:
        assert call.comparison is not None
        return call.comparison.judged_texts()

    def request(self, call: Call) -> dict[str, Any]:
        judge, schema = self.session.judge, {"name": "verdict", "strict": True, "schema": self.schema}
        messages = build_messages(self.session.spec, self.texts(call), ShownOrder(call.shown), judge.fence_key)
        form = {"type": "json_schema", "json_schema": schema}
        return {"model": judge.model, "messages": messages, "response_format": form}

    @transaction.atomic
    def keep(self, call: Call, text: str) -> None:
        parsed = parse_reply(self.session.spec, ShownOrder(call.shown), RawReply(text))
        assert isinstance(parsed, ParsedReply)
        Attempt.objects.create(call=call, run=self.run, number=1, outcome="answered", raw=text, latency_ms=0)
        for key, choice in parsed.choices.items():
            Verdict.objects.create(
                rater_id=self.session.rater_id,
                comparison_id=call.comparison_id,
                aspect_id=self.session.aspect_ids[key],
                choice=choice,
                shown=call.shown,
                call=call,
            )
        Call.objects.filter(pk=call.pk).update(state=CallState.ANSWERED, rationale=parsed.rationale)
