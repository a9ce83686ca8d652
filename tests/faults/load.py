"""What goes on while a fault happens: a judge's run of some hundred calls, a second run, reviewers and readers."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from tests.faults.checks import check_calls, check_reviews, check_runs, read_facts
from tests.faults.figures import Figures, longest_pause
from tests.faults.people import MAX_SECONDS, Reader, Reviewer, Visitor
from tests.faults.site import REVIEWERS, Json, Site, wait_until
from tests.helpers.llm_server import LLMServer, Question, ServerAnswer, answer_well, llm_server
from tests.helpers.own_servers import TcpProxy

COMPARISONS: Final = 150
LATENCY_SECONDS: Final = 0.35
IN_FLIGHT: Final = 8
# Answers of the judge, and saved reviews of each person, before the fault begins.
BUSY_ANSWERS: Final = 40
# After the fault is over.
RUN_SECONDS: Final = 120.0  # a frozen worker keeps its locks for 60
# A call of the second run costs 1,000 tokens or so: enough for some of its calls, not for all.
BUDGET_USD: Final = 0.04
RUN_BEHIND: Final = re.compile(r"Question (\d+)\?")

MAKE_EVALUATION: Final = """
import json, logging
from django.core.management import call_command
from evaluations.domain.roles import Role
from evaluations.members.services import set_role
def call(*arguments, **options):
    call_command(*arguments, stdout=open("/dev/null", "w"), **options)
call("create_evaluation", slug, "--name", slug, "--rubric", "six-aspect", "--owner", "owner")
call("import_comparisons", slug, file)
evaluation = Evaluation.objects.get(slug=slug)
Evaluation.objects.filter(pk=evaluation.pk).update(reviews_wanted=len(reviewers))
for name in reviewers:
    set_role(evaluation, User.objects.get(username=name), Role.REVIEWER, by=None)
judge = ("--base-url", base_url, "--mode", "json_schema", "--max-tokens", "500", "--max-in-flight", str(in_flight))
for name in ("steady", "frugal"):
    call("create_judge", slug, "--name", name, "--model", name, *judge)
    call("set_price", "--base-url", base_url, "--model", name, "--in", "1", "--out", "2")
print(json.dumps({judge.name: judge.pk for judge in Judge.objects.filter(evaluation=evaluation)}))
"""


@dataclass
class Load:
    """The work on one evaluation, and what is known of it outside the site."""

    site: Site
    slug: str
    server: LLMServer
    proxy: TcpProxy  # between the site and the LLM server
    judges: dict[str, int] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=dict)
    visitors: list[Visitor] = field(default_factory=list)
    answered: list[tuple[float, str, str]] = field(default_factory=list)  # when, to which judge, about which query
    began: float = 0.0
    ended: float = 0.0
    begun_second: float = 0.0
    known_problems: tuple[str, ...] = ()

    @property
    def reviewers(self) -> list[Reviewer]:
        return [visitor for visitor in self.visitors if isinstance(visitor, Reviewer)]

    @property
    def owner(self) -> httpx.Client:
        return self.client({"Authorization": f"Bearer {self.site.tokens['owner']}"})

    def client(self, headers: dict[str, str]) -> httpx.Client:
        return httpx.Client(base_url=self.site.product.address, headers=headers, timeout=MAX_SECONDS)

    def answer(self, question: Question) -> ServerAnswer:
        found = RUN_BEHIND.search(question.prompt)
        if found and any("Question" in message["content"] for message in question.body["messages"]):
            self.answered.append((time.monotonic(), str(question.body["model"]), f"q{found[1]}"))
        return answer_well(question)

    def prepare(self, folder: Path) -> None:
        file = folder / f"{self.slug}.jsonl"
        file.write_text("".join(f"{json.dumps(row)}\n" for row in build_rows()))
        base_url = f"http://127.0.0.1:{self.proxy.port}/v1"
        self.judges = self.site.run_script(
            *(MAKE_EVALUATION,),
            slug=self.slug,
            file=str(file),
            base_url=base_url,
            in_flight=IN_FLIGHT,
            reviewers=list(REVIEWERS),
        )

    def start_people(self, *, may_break: bool, may_wait: bool) -> None:
        for name in REVIEWERS:
            client = self.client({"Authorization": f"Bearer {self.site.tokens[name]}"})
            base = f"/api/v1/evaluations/{self.slug}/"
            self.visitors.append(Reviewer(client, base, may_break, may_wait, username=name))
        reader = self.client({"Cookie": self.site.cookies})
        self.visitors.append(Reader(reader, f"/e/{self.slug}/", may_break, may_wait))
        for visitor in self.visitors:
            visitor.start()

    def start_run(self, judge: str, **options: object) -> None:
        """Start it by the API, again and again while the site says that it cannot."""
        body = {"judges": [self.judges[judge]], **options}

        def is_started() -> bool:
            try:
                answer = self.owner.post(f"/api/v1/evaluations/{self.slug}/runs", json=body)
            except httpx.HTTPError:
                return False
            if answer.is_success:
                self.runs[judge] = answer.json()["items"][0]["id"]
            return answer.is_success

        wait_until(is_started, f"the start of a run of {judge}")

    def start_second_run(self) -> None:
        if "frugal" not in self.runs:
            self.start_run("frugal", budget_usd=BUDGET_USD)
            self.begun_second = time.monotonic()

    def wait_until_busy(self) -> None:
        try:
            wait_until(lambda: len(self.answered) >= BUSY_ANSWERS, "the run goes on")
        except AssertionError as late:
            states = [self.read_state(run) for run in self.runs.values()]
            raise AssertionError(f"{late}: {len(self.answered)} answers, {states}, {self.site.examine()}") from None
        wait_until(lambda: all(visitor.done_at for visitor in self.visitors), "everybody is at work")

    def wait_until_done(self) -> None:
        """Wait until both runs have ended by themselves."""
        deadline = time.monotonic() + RUN_SECONDS
        while states := [state for state in map(self.read_state, self.runs.values()) if not is_over(state)]:
            assert time.monotonic() < deadline, f"the runs are {states} {RUN_SECONDS:.0f} s after the fault"
            time.sleep(0.3)
        self.ended = time.monotonic()

    def read_state(self, run: int) -> Json:
        try:
            answer = self.owner.get(f"/api/v1/evaluations/{self.slug}/runs/{run}")
        except httpx.HTTPError:
            return {"state": "unknown"}
        return answer.json() if answer.is_success else {"state": "unknown", "status": answer.status_code}

    def let_people_go(self) -> None:
        for visitor in self.visitors:
            visitor.stopping.set()

    def stop_people(self) -> None:
        self.let_people_go()
        for visitor in self.visitors:
            visitor.join(2 * MAX_SECONDS)
            assert not visitor.is_alive(), "somebody still waits for an answer"

    def check(self) -> None:
        """Everything that must be true after any fault."""
        faults = [fault for visitor in self.visitors for fault in visitor.faults]
        facts = read_facts(self.site, self.slug)
        faults += check_reviews(self.reviewers, facts)
        faults += check_calls([(judge, query) for _, judge, query in self.answered], facts)
        faults += check_runs(facts, calls=2 * COMPARISONS)
        if self.server.most_in_flight > IN_FLIGHT:
            faults.append(f"{self.server.most_in_flight} requests were in flight at once, of {IN_FLIGHT} allowed")
        found = [f"doctor: {finding['part']}: {finding['summary']}" for finding in self.site.check_health()]
        faults += [line for line in found if not any(part in line for part in self.known_problems)]
        assert not faults, "\n".join([f"{len(faults)} faults", *faults[:20]])

    def figures(self) -> Figures:
        first_of_second = min((when for when, judge, _ in self.answered if judge == "frugal"), default=self.ended)
        saved = [when for reviewer in self.reviewers for when in reviewer.done_at]
        statuses = [visitor.statuses for visitor in self.visitors]
        return Figures(
            judging=longest_pause([when for when, *_ in self.answered], self.began),
            saving=longest_pause(saved, self.began),
            second_run=first_of_second - self.begun_second,
            ended=self.ended - self.began,
            refused=sum(counts["503"] + counts["507"] for counts in statuses),
            broken=sum(counts["broken"] for counts in statuses),
            saved=len(saved),
        )


def is_over(run: dict[str, Any]) -> bool:
    return run["state"] == "done" or (run["state"] == "stopped" and "budget" in run["stop_reason"].lower())


def build_rows() -> Iterator[dict[str, str]]:
    for n in range(COMPARISONS):
        sides = {"candidate_a": "x", "response_a": f"One {n}.", "candidate_b": "y", "response_b": f"Two {n}."}
        yield {"query_id": f"q{n}", "query": f"Question {n}?", **sides}


@contextmanager
def under_load(
    site: Site, folder: Path, *, may_break: bool = False, may_wait: bool = False, known_problems: tuple[str, ...] = ()
) -> Iterator[Load]:
    """Within the block the site is at work, and the fault happens. After it all must come to its end by itself."""
    site.evaluations += 1
    with ExitStack() as stack:
        server = stack.enter_context(llm_server(latency=LATENCY_SECONDS))
        proxy = TcpProxy(int(server.base_url.split(":")[2].split("/")[0]))
        stack.callback(proxy.close)
        load = Load(site, f"fault-{site.evaluations}", server, proxy, known_problems=known_problems)
        server.script = load.answer
        load.prepare(folder)
        stack.callback(load.let_people_go)
        load.start_run("steady")
        load.start_people(may_break=may_break, may_wait=may_wait)
        load.wait_until_busy()
        load.began = time.monotonic()
        yield load
        load.start_second_run()
        load.wait_until_done()
        load.stop_people()
        load.check()
