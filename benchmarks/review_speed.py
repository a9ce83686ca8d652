"""How long a reviewer waits: the next comparison, its page and a save, at 100,000 comparisons, alone and among 50.

    python benchmarks/review_speed.py [--comparisons 100000] [--times 200] [--people 50] [--think 20]

Makes a study in a database of its own (SQLite in a temporary folder, or the empty one of
DATABASE_URL): texts of 1 kB, an answer of the shown judge on every tenth comparison, k reviews
wanted of each. One JSON object a line, milliseconds as median and 95th percentile:

- ``service``: taking a place, and the progress, for a newcomer, for somebody far ahead, when half
  is full, and when nothing is left;
- ``client``: the next fragment (with its place taken) and the save, through Django's test client;
- ``served``: the same over HTTP from the server as `make run` starts it, by one person;
- ``people``: the same by many at once, who rest so many seconds on average after each review.

The first two also say how much of it the processor worked in this process, and in the server of PostgreSQL. Over HTTP
the time is that of the request as its sender sees it; `benchmarks/load.py` says what the servers work meanwhile.
"""

import argparse
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("JUDGEWEB_DATA_DIR", tempfile.mkdtemp(prefix="judgeweb-benchmark-"))
os.environ["DJANGO_SETTINGS_MODULE"] = "judgeweb.settings"

import django

django.setup()

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.datastructures import CaseInsensitiveMapping

from benchmarks.processor_time import Cost, measure_into
from benchmarks.row_writer import insert_rows
from evaluations.domain.choices import Choice
from evaluations.domain.reviews import ReviewState
from evaluations.domain.roles import Role
from evaluations.domain.texts import cluster_number
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.judge_prompts.builtin_rubrics import SIX_ASPECT
from evaluations.members.services import set_role
from evaluations.models.comparisons import Candidate, Comparison, Query, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge, Rater, get_or_create_rater
from evaluations.models.rubrics import Aspect
from evaluations.models.runs import Call
from evaluations.models.users import User
from evaluations.models.verdicts import Review, Verdict
from evaluations.overview.services import create_evaluation
from evaluations.rendered_texts import render_next_comparisons
from evaluations.reviews.queues.items import fill_default_queue
from evaluations.reviews.queues.next_comparison import reserve_next_comparison
from evaluations.reviews.selectors import get_review_progress
from evaluations.reviews.services import save_final_choices, save_first_choices
from judgeweb.serving import build_web_command, listen

SLUG = "benchmark"
ROWS = 5_000
JUDGED = 10  # every so many-th
WORDS = "A response of one kilobyte with *some* **marks**, `code` and a list.\n\n- one\n- two\n\n" * 12
ALL_A = {aspect.key: Choice.A for aspect in SIX_ASPECT.aspects}
FIELDS = {f"choice_{key}": choice.value for key, choice in ALL_A.items()}

Times = dict[str, list[float]]


# ---- the study -----------------------------------------------------------------------------


def make_study(comparisons: int, wanted: int) -> Evaluation:
    evaluation = create_evaluation(slug=SLUG, name="Benchmark", owner=None, by=None)
    change_evaluation(evaluation, {"reviews_wanted": wanted}, user=None)
    a, b = (Candidate.objects.create(evaluation=evaluation, name=name).pk for name in ("alpha", "beta"))
    rng, now, says = random.Random(1), timezone.now(), [{"role": "assistant", "content": ""}]
    for start in range(1, comparisons + 1, ROWS):
        numbers = range(start, min(start + ROWS, comparisons + 1))
        insert(
            Query,
            {
                "created_at": now,
                "evaluation_id": evaluation.pk,
                "messages": [{"role": "user", "content": "What do they say?"}],
                "text": "What do they say?",
                "category": "",
                "metadata": {},
                "flags": "",
                "sha256": "0" * 64,
            },
            (
                {
                    "id": number,
                    "key": f"q{number}",
                    "cluster": f"q{number}",
                    "cluster_number": cluster_number(f"q{number}"),
                }
                for number in numbers
            ),
        )
        insert(
            Response,
            {"created_at": now, "sha256": "0" * 64, "characters": len(WORDS), "metadata": {}, "flags": ""},
            (
                {
                    "id": 2 * number + side,
                    "query_id": number,
                    "candidate_id": (a, b)[side],
                    # Equal texts would make both orders one question, which is asked once.
                    "messages": [{**says[0], "content": f"{WORDS} {number} {'ab'[side]}"}],
                }
                for number in numbers
                for side in (0, 1)
            ),
        )
        insert(
            Comparison,
            {"created_at": now, "evaluation_id": evaluation.pk, "origin": "imported", "swapped": False, "metadata": {}},
            (
                {
                    "id": number,
                    "query_id": number,
                    "response_a_id": 2 * number,
                    "response_b_id": 2 * number + 1,
                    "random_order": rng.getrandbits(62),
                }
                for number in numbers
            ),
        )
    judge_some(evaluation, comparisons)
    return evaluation


def insert(model: type, shared: Mapping[str, object], rows: Iterable[Mapping[str, object]]) -> None:
    whole = [{**shared, **row} for row in rows]
    columns = tuple(whole[0])
    insert_rows(model, columns, [tuple(row[column] for column in columns) for row in whole])


def judge_some(evaluation: Evaluation, comparisons: int) -> None:
    """Both orders of every tenth comparison, six aspects each."""
    judge = Judge.objects.create(
        evaluation=evaluation,
        name="longest",
        kind="rule",
        model="longest",
        rubric_version=evaluation.review_rubric,
        fingerprint="f" * 64,
    )
    rater = Rater.objects.create(evaluation=evaluation, kind="judge", name="longest", judge=judge)
    aspects = list(Aspect.objects.filter(evaluation=evaluation))
    for shown in ("as_stored", "swapped"):
        calls = Call.objects.bulk_create(
            (
                Call(judge=judge, comparison_id=pk, shown=shown, state="answered")
                for pk in range(JUDGED, comparisons + 1, JUDGED)
            ),
            batch_size=ROWS,
        )
        Verdict.objects.bulk_create(
            (
                Verdict(
                    rater=rater,
                    comparison_id=call.comparison_id,
                    aspect=aspect,
                    shown=shown,
                    choice="A",
                    call=call,
                )
                for call in calls
                for aspect in aspects
            ),
            batch_size=ROWS,
        )
    change_evaluation(evaluation, {"shown_judge": judge}, user=None)


def member(evaluation: Evaluation, name: str) -> User:
    user = User.objects.create_user(name)
    set_role(evaluation, user, Role.REVIEWER, by=None)
    return user


def review_first(evaluation: Evaluation, user: User, many: int) -> None:
    """Finished reviews of the first so many in the random order, as an import of old work would leave them."""
    rater, now = get_or_create_rater(user, evaluation), timezone.now()
    first = (
        Comparison.objects.filter(evaluation=evaluation).order_by("random_order").values_list("pk", flat=True)[:many]
    )
    Review.objects.bulk_create(
        (
            Review(
                rater=rater,
                comparison_id=pk,
                rubric_version=evaluation.review_rubric,
                shown="as_stored",
                state="final",
                version=1,
                selection_method="random",
                probability=1.0,
                first_saved_at=now,
                finished_at=now,
            )
            for pk in first
        ),
        batch_size=ROWS,
    )


# ---- measuring -----------------------------------------------------------------------------


def figures(times: Sequence[float]) -> dict[str, float]:
    ordered = sorted(times)
    if not ordered:
        return {}
    last = len(ordered) - 1
    return {
        "median": round(ordered[len(ordered) // 2], 1),
        "p95": round(ordered[min(last, int(len(ordered) * 0.95))], 1),
        "n": len(ordered),
    }


def say(part: str, **more: object) -> None:
    line = {"database": connection.vendor, "part": part, **more}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def services(evaluation: Evaluation, user: User, times: int) -> None:
    """Taking one place after another, as prefetching does: besides what is held already."""
    rater, claimed = get_or_create_rater(user, evaluation), set[int]()
    taken: Times = defaultdict(list)
    for _ in range(times):
        with measured(taken, "take"):
            pk = reserve_next_comparison(evaluation, rater, exclude=claimed)
        with measured(taken, "progress"):
            get_review_progress(evaluation, rater)
        if pk is not None:
            comparison = Comparison.objects.select_related("evaluation__review_rubric__rubric").get(pk=pk)
            with measured(taken, "save"):
                saved = save_first_choices(user, comparison, choices=ALL_A, version=0)
            if saved.state == ReviewState.FIRST:
                save_final_choices(user, comparison, choices=ALL_A, notes={}, version=saved.version)
            claimed = {pk}
    say("service", who=user.username, ms={name: figures(one) for name, one in taken.items()})


Answer = tuple[int, Mapping[str, str]]
Send = Callable[[str, str, Mapping[str, str]], Answer]


def work(send: Send, times: int, rest: Callable[[], None], *, here: bool = False, into: Times | None = None) -> Times:
    """One person at work as the page works: the next is fetched while this one is read, then this one is saved."""
    taken = defaultdict(list) if into is None else into
    review = reverse("review", args=[SLUG])
    current = number_in(send("GET", review, {})[1].get("Location", ""))
    for _ in range(times):
        if current is None:
            break
        rest()
        ahead = f"{reverse('review_ahead', args=[SLUG])}?besides={current}"
        status, headers = clocked(taken, "next", here, send, "GET", ahead)
        following = number_in(headers.get("HX-Push-Url", "")) if status == 200 else None
        rest()
        step = {**FIELDS, "version": "0", "then": "ahead", "active_ms": "1000", "tab": "benchmark"}
        status, _ = clocked(taken, "save", here, send, "POST", reverse("review_save", args=[SLUG, current]), step)
        if status == 200:  # the judge is revealed
            confirm = reverse("review_confirm", args=[SLUG, current])
            status, _ = clocked(taken, "confirm", here, send, "POST", confirm, {**step, "version": "1"})
        if status != 204:
            taken[f"answered {status}"].append(0)
        current = following
    return taken


def number_in(address: str) -> int | None:
    last = address.rstrip("/").rpartition("/")[2]
    return int(last) if last.isdecimal() else None


def clocked(
    taken: Times, name: str, here: bool, send: Send, method: str, path: str, data: Mapping[str, str] | None = None
) -> Answer:
    if here:
        with measured(taken, name):
            return send(method, path, data or {})
    began = time.perf_counter()
    answer = send(method, path, data or {})
    taken[name].append((time.perf_counter() - began) * 1000)
    return answer


@contextmanager
def measured(taken: Times, name: str) -> Iterator[None]:
    """Milliseconds of the clock, which differ on a machine that others use, and of the processor here and there."""
    costs: list[Cost] = []
    with measure_into(costs):
        yield
    taken[name].append(costs[0].clock)
    taken[f"{name}, processor"].append(costs[0].own)
    taken[f"{name}, database"].append(costs[0].database)


def through_client(user: User) -> Send:
    client = Client(headers={"HX-Request": "true"})
    client.force_login(user)

    def send(method: str, path: str, data: Mapping[str, str]) -> Answer:
        if method == "POST":
            answer = client.post(path, dict(data))
        else:
            answer = client.get(path, headers={"HX-Request": "true" if "ahead" in path else ""})
        return answer.status_code, answer.headers

    return send


def over_http(user: User, port: int) -> Send:
    client = Client()
    client.force_login(user)
    token = "t" * 32
    cookies = f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}; "
    cookies += f"{settings.CSRF_COOKIE_NAME}={token}"

    def send(method: str, path: str, data: Mapping[str, str]) -> Answer:
        headers = {"Cookie": cookies, "Host": f"127.0.0.1:{port}"}
        if method == "POST" or "ahead" in path:
            headers["HX-Request"] = "true"
        if method == "POST":
            headers |= {"X-CSRFToken": token, "Content-Type": "application/x-www-form-urlencoded"}
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        line.request(method, path, urlencode(data) if method == "POST" else None, headers)
        answer = line.getresponse()
        answer.read()
        line.close()
        return answer.status, CaseInsensitiveMapping(answer.getheaders())  # servers write them as they like

    return send


@contextmanager
def served() -> Iterator[int]:
    """The web server as `make run` starts it, on a port of its own."""
    with listen("127.0.0.1", 0) as listener:
        port = int(listener.getsockname()[1])
        environment = {**os.environ, "JUDGEWEB_DATA_DIR": str(settings.DATA_DIR), "PYTHONPATH": str(ROOT)}
        server = subprocess.Popen(
            build_web_command(listener.fileno()), cwd=ROOT, env=environment, pass_fds=[listener.fileno()]
        )
        try:
            yield port
        finally:
            server.terminate()
            server.wait()


def many_at_work(people: Sequence[User], port: int, times: int, think: float) -> Times:
    """All at once, each resting on average so many seconds for a review: a half before each request."""
    together: Times = defaultdict(list)
    lock = threading.Lock()

    def shift(send: Send, seed: int) -> None:
        rng = random.Random(seed)
        time.sleep(rng.random() * think)
        taken = work(send, times, lambda: time.sleep(rng.expovariate(2 / think)))
        with lock:
            for name, one in taken.items():
                together[name] += one

    shifts = [
        threading.Thread(target=shift, args=(over_http(person, port), seed)) for seed, person in enumerate(people)
    ]
    for one in shifts:
        one.start()
    for one in shifts:
        one.join()
    return together


def at_once() -> None:
    """No rest."""


def in_words(times: Times) -> dict[str, object]:
    return {name: figures(one) for name, one in times.items()}


def settle_down() -> None:
    """As an import or the autovacuum does: what is inserted here came past both."""
    if connection.vendor == "postgresql":
        connection.cursor().execute("ANALYZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--comparisons", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--think", type=float, default=20.0)
    parser.add_argument("--wanted", type=int, default=1)
    options = parser.parse_args()
    settings.ALLOWED_HOSTS = ["testserver", "127.0.0.1"]
    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    evaluation = make_study(options.comparisons, options.wanted)
    began = time.perf_counter()
    fill_default_queue(evaluation)
    say("filled", comparisons=options.comparisons, wanted=options.wanted, seconds=round(time.perf_counter() - began, 1))
    services(evaluation, member(evaluation, "newcomer, statistics stale"), options.times)
    settle_down()
    veteran = member(evaluation, "far ahead")
    review_first(evaluation, veteran, options.comparisons // 2)
    fill_default_queue(evaluation)
    services(evaluation, veteran, options.times)
    settle_down()
    services(evaluation, member(evaluation, "newcomer, half is done by another"), options.times)
    render_next_comparisons(evaluation)  # as the worker does after an import
    say("client", ms=in_words(work(through_client(member(evaluation, "alone")), options.times, at_once, here=True)))
    with served() as port:
        time.sleep(3)
        say("served", ms=in_words(work(over_http(member(evaluation, "served"), port), options.times, at_once)))
        people = [member(evaluation, f"person {number}") for number in range(options.people)]
        taken = many_at_work(people, port, max(options.times // 20, 5), options.think)
        say("people", people=options.people, think_seconds=options.think, ms=in_words(taken))
    last = member(evaluation, "nothing is left")
    review_first(evaluation, last, options.comparisons)
    fill_default_queue(evaluation)
    settle_down()
    services(evaluation, last, options.times)


if __name__ == "__main__":
    main()
