"""People at work while a fault happens. Each remembers what the site acknowledged, and what it must not answer."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

PAUSE_SECONDS: Final = 0.25
# No answer for so long is a connection that hangs.
MAX_SECONDS: Final = 15.0
HONEST: Final = {200, 201, 302, 409, 422, 503, 507}
ASPECTS: Final = ("helpfulness", "factuality", "clarity", "depth", "engagement", "safety")
CHOICES: Final = ("A", "B", "tie")
PAGES: Final = ("", "comparisons", "judges", "report", "people")


@dataclass(frozen=True)
class Sent:
    """What a reviewer sent: choices as seen, and a note that no other review has."""

    choices: Mapping[str, str]
    note: str


@dataclass
class Visitor(threading.Thread):
    """Somebody who asks the site over and over, until told to stop."""

    client: httpx.Client
    base: str
    may_break: bool = False  # connections may break, because a process that has them is killed
    may_wait: bool = False  # requests may wait for the start of the whole site, which takes long on a busy machine
    stopping: threading.Event = field(default_factory=threading.Event)
    statuses: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    done_at: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                self.take_turn()
            except Exception as error:  # noqa: BLE001 - the test shows it
                self.faults.append(f"{type(error).__name__}: {error}")
            self.stopping.wait(PAUSE_SECONDS)

    def take_turn(self) -> None:
        raise NotImplementedError

    def ask(self, method: str, path: str, body: object = None) -> httpx.Response | None:
        """The answer; None where the connection broke or the site said 503."""
        began = time.monotonic()
        try:
            answer = self.client.request(method, f"{self.base}{path}", json=body)
        except httpx.HTTPError as error:
            self.note_broken(f"{method} {path}: {type(error).__name__} after {time.monotonic() - began:.1f} s", error)
            return None
        self.statuses[str(answer.status_code)] += 1
        if answer.status_code not in HONEST:
            self.faults.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
        if answer.status_code == 503 and "Retry-After" not in answer.headers:
            self.faults.append(f"{method} {path}: 503 without Retry-After")
        return answer if answer.status_code < 500 else None

    def note_broken(self, what: str, error: httpx.HTTPError) -> None:
        self.statuses["broken"] += 1
        if not self.may_break or (isinstance(error, httpx.TimeoutException) and not self.may_wait):
            self.faults.append(what)


@dataclass
class Reader(Visitor):
    """Somebody with a browser who looks at one page after the other."""

    turns: "itertools.cycle[str]" = field(default_factory=lambda: itertools.cycle(PAGES))

    __hash__ = Visitor.__hash__

    def take_turn(self) -> None:
        if (answer := self.ask("GET", next(self.turns))) is not None:
            if answer.status_code != 200:
                self.faults.append(f"{answer.url}: {answer.status_code}")
            self.done_at.append(time.monotonic())


@dataclass
class Reviewer(Visitor):
    """Somebody who reviews. One draft in four is left for the time being."""

    username: str = ""
    number: int = 0
    acknowledged: dict[int, Sent] = field(default_factory=dict)
    confirmed: set[int] = field(default_factory=set)
    in_doubt: dict[int, list[Sent]] = field(default_factory=dict)
    drafts: dict[int, str] = field(default_factory=dict)
    drafts_in_doubt: set[int] = field(default_factory=set)

    __hash__ = Visitor.__hash__

    def take_turn(self) -> None:
        left = next(reversed(self.drafts), None)
        following = self.ask("GET", "review/next" + (f"?besides={left}" if left else ""))
        pk = following.json().get("comparison") if following is not None else None
        if pk is None:
            return
        answer = self.ask("GET", f"review/{pk}")
        if answer is None or answer.status_code != 200:
            return
        review = answer.json()
        if review["stage"] == "choose":
            self.choose(pk, review)
        elif review["stage"] == "confirm":
            self.confirm(pk, review)

    def choose(self, pk: int, review: dict[str, Any]) -> None:
        draft = review["draft"]
        self.check_draft(pk, draft)
        self.number += 1
        note = f"{self.username} #{self.number}"
        body = {"version": review["version"], "fields": {"note": note}, "number": draft["number"] if draft else 0}
        if (kept := self.ask("PUT", f"review/{pk}/draft", body)) is None:
            self.drafts_in_doubt.add(pk)
            return
        if kept.status_code != 200:
            return
        self.drafts[pk] = note
        if self.number % 4 == 0 and not draft:
            return
        sent = Sent({key: CHOICES[(self.number + place) % 3] for place, key in enumerate(ASPECTS)}, note)
        self.drafts.pop(pk)
        self.drafts_in_doubt.add(pk)
        self.in_doubt.setdefault(pk, []).append(sent)
        saved = self.ask(
            "POST", f"review/{pk}/save", {"version": review["version"], "choices": sent.choices, "note": note}
        )
        if saved is None or saved.status_code != 200:
            return
        self.in_doubt.pop(pk)
        self.acknowledged[pk] = sent
        self.done_at.append(time.monotonic())
        if saved.json()["stage"] == "confirm":
            self.confirm(pk, saved.json())
        else:
            self.confirmed.add(pk)

    def confirm(self, pk: int, review: dict[str, Any]) -> None:
        """Keep the first choices in sight of the judge's."""
        kept = {line["aspect"]: line["first"] for line in review["aspects"]}
        body = {"version": review["version"], "choices": kept, "note": review["note"]}
        answer = self.ask("POST", f"review/{pk}/confirm", body)
        if answer is not None and answer.status_code == 200:
            self.confirmed.add(pk)

    def check_draft(self, pk: int, draft: dict[str, Any] | None) -> None:
        if pk in self.drafts and pk not in self.drafts_in_doubt:
            found = draft["fields"].get("note") if draft else None
            if found != self.drafts[pk]:
                self.faults.append(f"the draft of {pk} was {self.drafts[pk]!r} and is {found!r}")
