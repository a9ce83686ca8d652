"""Several worker processes at one run, and the web server meanwhile."""

import http.client
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection

from benchmarks.judging.study import ROOT, answered, judge_of, resident_mib, server, tell
from evaluations.domain.judges import RunState
from evaluations.domain.roles import Role
from evaluations.judges.runs.planner import plan_run_calls
from evaluations.judges.runs.services import start_run
from evaluations.models.evaluations import Evaluation
from evaluations.models.jobs import Worker
from evaluations.models.runs import Call, Run
from evaluations.models.users import Membership, User

WEB_PORT = 8149


def together(workers: int, in_flight: int, latency: float, seconds: float) -> None:
    """One run, worked by so many processes that divide the places at once among them."""
    with server(latency) as serving, workers_running(workers) as processes:
        judge = judge_of(int(in_flight / latency * seconds / 2), serving.base_url, in_flight=in_flight)
        run = start_run(judge, user=None)
        plan_run_calls(run.pk, until=float("inf"))
        before = [processor_seconds_of(process.pid) for process in processes]
        moments = until_done(run)
        used = [processor_seconds_of(one.pid) - then for one, then in zip(processes, before, strict=True)]
        count = answered(run)
        tell(
            mode="several",
            workers=workers,
            in_flight=in_flight,
            calls=count,
            per_second=round(middle_rate(moments), 1),
            of_ideal=round(middle_rate(moments) / (in_flight / latency), 3),
            most_in_flight=serving.stats()["most_in_flight"],
            cpu_ms_per_call=round(sum(used) * 1000 / count, 2),
            cpu_of_each=[round(one / max(sum(used), 1e-9), 2) for one in used],
            mib_of_each=[round(resident_mib(process.pid)) for process in processes],
        )


def web_meanwhile(in_flight: int, latency: float, seconds: float) -> None:
    """How long pages take while a worker judges, and before."""
    with server(latency) as serving, workers_running(1), web_running() as cookie:
        judge = judge_of(int(in_flight / latency * seconds / 2), serving.base_url, in_flight=in_flight)
        Membership.objects.create(evaluation=judge.evaluation, user=User.objects.get(username="bench"), role=Role.OWNER)
        path = f"/e/{judge.evaluation.slug}/data/comparisons"
        quiet = page_times(path, cookie, 3)
        run = start_run(judge, user=None)
        plan_run_calls(run.pk, until=float("inf"))
        time.sleep(6)  # until the sweep has found it
        busy = page_times(path, cookie, seconds)
        tell(mode="web", in_flight=in_flight, path=path, quiet=quiet, judging=busy, answered_meanwhile=answered(run))


def until_done(run: Run) -> list[tuple[float, int]]:
    """When how many were answered, looked at twice a second."""
    moments = []
    while Run.objects.filter(pk=run.pk, state=RunState.RUNNING).exists():
        moments.append((time.monotonic(), Call.objects.filter(run=run, state="answered").count()))
        time.sleep(0.5)
    return moments


def middle_rate(moments: list[tuple[float, int]]) -> float:
    """Between a third and nine tenths of the answers: after all had joined, and before the tail."""
    last = moments[-1][1]
    middle = [moment for moment in moments if last / 3 <= moment[1] <= 0.9 * last]
    return (middle[-1][1] - middle[0][1]) / (middle[-1][0] - middle[0][0])


def environment(data_dir: str) -> dict[str, str]:
    name = str(connection.settings_dict["NAME"])
    database_url = os.environ.get("DATABASE_URL", "")
    url = (
        urlsplit(database_url)._replace(path=f"/{name}").geturl()
        if database_url.startswith("postgres")
        else f"sqlite:///{name}"
    )
    return {**os.environ, "DATABASE_URL": url, "JUDGEWEB_DATA_DIR": data_dir, "PORT": str(WEB_PORT)}


@contextmanager
def workers_running(count: int) -> "Iterator[list[subprocess.Popen[bytes]]]":
    """Celery workers on the benchmark's database, with a broker of their own."""
    command = [sys.executable, "-m", "celery", "-A", "judgeweb"]
    with ExitStack() as stack:
        env = environment(stack.enter_context(tempfile.TemporaryDirectory()))
        start = [[*command, "worker", "--pool", "threads", "-n", f"w{number}"] for number in range(count)]
        processes = [subprocess.Popen(arguments, cwd=ROOT, env=env) for arguments in start]
        try:
            while Worker.objects.alive().count() < count:
                time.sleep(0.2)
            time.sleep(6)  # a heartbeat each, so that every one knows of the others
            yield processes
        finally:
            for process in processes:
                process.kill()
                process.wait()


@contextmanager
def web_running() -> Iterator[str]:
    user = User.objects.create_user("bench")
    session = SessionStore()
    session.update({"_auth_user_id": str(user.pk), "_auth_user_backend": "django.contrib.auth.backends.ModelBackend"})
    session["_auth_user_hash"] = user.get_session_auth_hash()
    session.save()
    env = environment(str(settings.DATA_DIR)) | {"JUDGEWEB_DEBUG": "1", "JUDGEWEB_SECRET_KEY": settings.SECRET_KEY}
    command = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{WEB_PORT}", "--worker-class", "gthread"]
    process = subprocess.Popen([*command, "--threads", "8", "--no-control-socket", "judgeweb.wsgi"], cwd=ROOT, env=env)
    try:
        time.sleep(8)
        yield f"judgeweb_{WEB_PORT}={session.session_key}"
    finally:
        process.kill()
        process.wait()
        Evaluation.objects.filter(memberships__user=user).update(archived_at=None)


def page_times(path: str, cookie: str, seconds: float) -> dict[str, float]:
    """Milliseconds of a page asked for some thirty times a second; the first, which loads the code, is left out."""
    times, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        web = http.client.HTTPConnection("127.0.0.1", WEB_PORT, timeout=30)
        web.request("GET", path, headers={"Cookie": cookie})
        answer = web.getresponse()
        answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise SystemExit(f"{path} answered {answer.status}")
        times.append((time.monotonic() - began) * 1000)
        web.close()
        time.sleep(0.01)
    cuts = statistics.quantiles(times[1:], n=100)
    return {"pages": len(times), "p50_ms": round(cuts[49], 1), "p99_ms": round(cuts[98], 1)}


def processor_seconds_of(process: int) -> float:
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
