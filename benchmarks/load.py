"""Reviewers beside a run and an open report, on real web servers and workers: how long they wait, and what it costs.

    python benchmarks/load.py [--comparisons 100000] [--reviewers 50] [--seconds 120] [--in-flight 64]
    python benchmarks/load.py --reviewers 50 200 400 800     where it breaks

Makes a study in a database of its own (SQLite in a temporary folder, or the empty one of DATABASE_URL), and starts a
web server and workers on it. For each number of reviewers one line of JSON: how many milliseconds the steps of a
review, the overview and the report took over HTTP (median, p95), errors, the run's calls a second, the processor time
of the web processes and of the database's, and whether each acknowledged review is stored once. Beside a run the
processor time of the database is that of both: `--in-flight 0 --no-pages` measures reviews alone.

Targets at 50 reviewers: save p95 ≤ 120 ms, next ≤ 80, overview ≤ 100, report ≤ 300, no error, no lost or doubled
review, 289 calls a second with 64 in flight; ≤ 60 ms of processor time a review.
"""

import argparse
import itertools
import os
import random
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("JUDGEWEB_DATA_DIR", tempfile.mkdtemp(prefix="judgeweb-benchmark-"))
os.environ["DJANGO_SETTINGS_MODULE"] = "judgeweb.settings"

import django

django.setup()

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.models import Count
from django.urls import reverse

from benchmarks.judging.several import workers_running
from benchmarks.judging.study import server
from benchmarks.processor_time import read_processor_seconds, read_seconds_of_threads
from benchmarks.review_speed import (
    SLUG,
    Answer,
    Send,
    Times,
    clocked,
    figures,
    make_study,
    member,
    over_http,
    say,
    served,
    settle_down,
    work,
)
from evaluations.domain.judges import ACTIVE_RUN_STATES
from evaluations.domain.reviews import SAVED_REVIEW_STATES
from evaluations.domain.roles import Role
from evaluations.judges.runs.services import start_run
from evaluations.members.services import set_role
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Judge
from evaluations.models.runs import Call, Run
from evaluations.models.users import User
from evaluations.models.verdicts import Review
from evaluations.rendered_texts import render_next_comparisons
from evaluations.reviews.queues.items import fill_default_queue
from evaluations.verdicts.progress_recount import count_all_changes, recount_now
from tests.factories.judges import make_llm_judge

STEPS = ("next", "save", "confirm")
TARGETS_MS = {"save": 120, "next": 80, "overview": 100, "report": 300}
PAGE_SECONDS = 2.0  # between two looks at the overview and the report
START_SECONDS = 60
PLAN_SECONDS = 300
WARM_REVIEWS = 20  # fill what each process keeps of templates and plans
numbers = itertools.count(1)


class TimeIsUp(Exception):
    """The measured time ends while a reviewer rests."""


# A person and a comparison whose review the server said it had saved.
Saved = set[tuple[int, int]]


def noting_saves(send: Send, person: User, saved: Saved) -> Send:
    """Send, and note what was acknowledged, even if a later step of the same review fails."""

    def send_and_note(method: str, path: str, data: Mapping[str, str]) -> Answer:
        answer = send(method, path, data)
        if path.endswith("/save") and answer[0] in (200, 204):
            saved.add((person.pk, int(path.split("/")[-2])))
        return answer

    return send_and_note


def work_until(people: Sequence[User], port: int, seconds: float, think: float, saved: Saved) -> Times:
    """All at once until time is up, each resting on average so many seconds for a review.

    Who rests when time is up leaves without sending more: all would come back at the same moment.
    """
    together: Times = defaultdict(list)
    lock = threading.Lock()

    def rest(rng: random.Random) -> None:
        seconds = rng.expovariate(2 / think)
        if time.monotonic() + seconds > end:
            raise TimeIsUp
        time.sleep(seconds)

    def shift(send: Send, seed: int) -> None:
        rng = random.Random(seed)
        taken: Times = defaultdict(list)
        time.sleep(rng.random() * min(think, seconds))
        with suppress(TimeIsUp):
            while time.monotonic() < end:
                try_work(send, lambda: rest(rng), taken)
        with lock:
            for name, one in taken.items():
                together[name] += one

    # Signed in here, since each thread that asks the database has a connection of its own.
    sends = [noting_saves(over_http(person, port), person, saved) for person in people]
    shifts = [threading.Thread(target=shift, args=(send, seed)) for seed, send in enumerate(sends)]
    end = time.monotonic() + seconds
    for one in shifts:
        one.start()
    for one in shifts:
        one.join()
    return together


def try_work(send: Send, rest: Callable[[], None], taken: Times) -> None:
    """One review, or a failed request, as a person meets it."""
    try:
        work(send, 1, rest, into=taken)
    except OSError as fault:
        time.sleep(1)
        taken[f"failed: {type(fault).__name__}"].append(0.0)


@contextmanager
def pages_open(person: User, port: int, taken: Times) -> Iterator[None]:
    """Somebody who looks at the overview and the report again and again."""
    stopped, send = threading.Event(), over_http(person, port)

    def look() -> None:
        while not stopped.wait(PAGE_SECONDS):
            for name, page in (("overview", "evaluation"), ("report", "report")):
                try:
                    status, _ = clocked(taken, name, False, send, "GET", reverse(page, args=[SLUG]))
                except OSError as fault:
                    taken[f"failed: {type(fault).__name__}"].append(0)
                    continue
                if status != 200:
                    taken[f"answered {status}"].append(0)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield
    finally:
        stopped.set()
        looking.join()


def read_processor_times() -> dict[str, dict[int, float]]:
    """Seconds so far by process, of the web's and of the backends of this database, without this process's own."""
    used: dict[str, dict[int, float]] = {"web": {}, "database": {}}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            own = f"JUDGEWEB_DATA_DIR={settings.DATA_DIR}\0".encode() in (folder / "environ").read_bytes()
        except OSError:
            continue
        if own and "gunicorn" in command:
            used["web"][int(folder.name)] = read_seconds_of_threads(int(folder.name))
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            used["database"] = {pid: read_if_alive(pid) for (pid,) in cursor.fetchall()}
    return used


def seconds_between(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """What the processes used that are there at the end; a backend that ended meanwhile took its time with it."""
    return sum(max(seconds - before.get(pid, 0.0), 0.0) for pid, seconds in after.items())


def read_if_alive(pid: int) -> float:
    try:
        return read_processor_seconds(pid)
    except OSError:
        return 0.0


def measure(
    evaluation: Evaluation, viewer: User, reviewers: int, port: int, options: argparse.Namespace, judge: Judge | None
) -> None:
    people = [member(evaluation, f"reviewer {next(numbers)}") for _ in range(reviewers)]
    run = start_run(judge, user=None) if judge else None
    if run is not None:
        wait_until_answered(run)
    taken: Times = defaultdict(list)
    saved: Saved = set()
    before, began, answered_before = read_processor_times(), time.monotonic(), count_answered(run)
    with pages_open(viewer, port, taken) if options.pages else nullcontext():
        worked = work_until(people, port, options.seconds, options.think, saved)
    seconds = time.monotonic() - began
    used = {name: seconds_between(before[name], after) for name, after in read_processor_times().items()}
    calls = (count_answered(run) - answered_before) / seconds
    taken.update(worked)
    reviews = Review.objects.filter(rater__user__in=people, state__in=SAVED_REVIEW_STATES)
    stored = set(reviews.values_list("rater__user", "comparison"))
    saved_twice = Event.objects.filter(user__in=people, verb="saved first choices").values("object_id")
    say(
        "load",
        reviewers=reviewers,
        think_seconds=options.think,
        seconds=round(seconds, 1),
        ms={name: figures(one) for name, one in taken.items() if not is_fault(name)},
        faults={name: len(one) for name, one in taken.items() if is_fault(name)},
        acknowledged=len(saved),
        lost=len(saved - stored),
        doubled=saved_twice.annotate(times=Count("pk")).filter(times__gt=1).count(),
        run_calls_per_second=round(calls, 1) if run else None,
        web_processor_ms_per_review=round(used["web"] * 1000 / max(len(saved), 1), 1),
        database_processor_ms_per_review=round(used["database"] * 1000 / max(len(saved), 1), 1),
        missed=[name for name, most in TARGETS_MS.items() if figures(taken.get(name, ())).get("p95", 0) > most],
    )
    if run is not None:
        Run.objects.filter(pk=run.pk, state__in=ACTIVE_RUN_STATES).update(state="cancelled")


def is_fault(name: str) -> bool:
    return name.startswith(("answered", "failed"))


def wait_until_answered(run: Run) -> None:
    """Until the run is planned and workers are at it."""
    end = time.monotonic() + PLAN_SECONDS
    while not count_answered(run):
        if time.monotonic() > end:
            raise SystemExit(f"No call was answered within {PLAN_SECONDS} s.")
        time.sleep(0.5)


def count_answered(run: Run | None) -> int:
    return Call.objects.filter(run=run, state="answered").count() if run else 0


def wait_until_served(send: Send) -> None:
    """The first pages also fill what each process keeps of templates and plans."""
    for _ in range(2 * START_SECONDS):
        try:
            if send("GET", reverse("evaluation", args=[SLUG]), {})[0] == 200:
                return
        except OSError:
            time.sleep(0.5)
    raise SystemExit("The web server did not start.")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--comparisons", type=int, default=100_000)
    parser.add_argument("--reviewers", type=int, nargs="+", default=[50])
    parser.add_argument("--think", type=float, default=20.0, help="seconds that a reviewer rests for each review")
    parser.add_argument("--seconds", type=float, default=120.0, help="for each number of reviewers")
    parser.add_argument("--in-flight", type=int, default=64, help="of the run; 0: no run")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that the model takes")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--wanted", type=int, default=1)
    parser.add_argument("--no-pages", dest="pages", action="store_false", help="without an open overview and report")
    options = parser.parse_args()
    settings.ALLOWED_HOSTS = ["testserver", "127.0.0.1"]
    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    evaluation = make_study(options.comparisons, options.wanted)
    fill_default_queue(evaluation)
    settle_down()
    render_next_comparisons(evaluation)
    count_all_changes()
    recount_now(evaluation)
    viewer = User.objects.create_user("viewer of the report")
    set_role(evaluation, viewer, Role.VIEWER, by=None)
    with ExitStack() as stack:
        judge = None
        if options.in_flight:
            serving = stack.enter_context(server(options.latency))
            judge = make_llm_judge(evaluation, serving.base_url, max_in_flight=options.in_flight, mode="json_schema")
        stack.enter_context(workers_running(options.workers))
        port = stack.enter_context(served())
        wait_until_served(over_http(viewer, port))
        work(over_http(member(evaluation, "the first reviewer"), port), WARM_REVIEWS, lambda: None)
        for reviewers in options.reviewers:
            measure(evaluation, viewer, reviewers, port, options, judge)


if __name__ == "__main__":
    main()
