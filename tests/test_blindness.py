"""Before the first save no answer of the server depends on which response is stored as A.

The walk takes its addresses from the URL patterns and from the document of the API, and follows the links that it
finds. An address with a number of a kind that is not listed below fails: say of which rows it is the number.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from django.db import transaction
from django.db.models import Model
from django.http.response import HttpResponseBase
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from evaluations.api_site import HTTP_METHODS, build_openapi
from evaluations.domain.reports import ReportPart
from evaluations.domain.reviews import Reveal
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.judge_prompts.baseline_rules import FIRST_RULE, RANDOM_RULE, TEXT_BLIND_RULES
from evaluations.models.comparisons import Candidate, Comparison, SavedFilter, Tag
from evaluations.models.endpoint_grants import EndpointGrant
from evaluations.models.exports import Export
from evaluations.models.imports import Import
from evaluations.models.judges import Endpoint, Judge, LocalServer, Rater
from evaluations.models.queues import Queue
from evaluations.models.rubrics import Rubric
from evaluations.models.runs import Call, Run
from evaluations.models.users import ApiToken, Invitation, JoinLink, Membership, User
from evaluations.models.verdicts import Adjudication, Comment, Span
from evaluations.models.webhooks import Delivery, Webhook
from evaluations.web.moved_pages import NEW_PATHS
from tests.factories.mirrored_evaluation import SAVED, TEXTS, MirroredEvaluation, make_mirrored_evaluation, show_judge
from tests.helpers.api_client import token_for

pytestmark = [pytest.mark.django_db, pytest.mark.long]

Query = Mapping[str, str]

# The part of an address before a number → whose number it is.
NUMBERED: Final[Mapping[str, type[Model]]] = {
    "accounts": User,
    "adjudications": Adjudication,
    "calls": Call,
    "comments": Comment,
    "candidates": Candidate,
    "comparisons": Comparison,
    "deliveries": Delivery,
    "disagreements": Comparison,
    "endpoints": Endpoint,
    "export": Export,
    "exports": Export,
    "filters": SavedFilter,
    "found": LocalServer,
    "grants": EndpointGrant,
    "imports": Import,
    "invitations": Invitation,
    "join-links": JoinLink,
    "judges": Judge,
    "members": Membership,
    "queues": Queue,
    "resolutions": Adjudication,
    "reviewers": Rater,
    "review": Comparison,
    "rubrics": Rubric,
    "runs": Run,
    "saved-filters": SavedFilter,
    "spans": Span,
    "tags": Tag,
    "tests": Run,
    "tokens": ApiToken,
    "webhooks": Webhook,
}
# Words of the one text, of the other and of both, phrases within and across texts; and what else a filter can say.
WORDS: Final = ("ferns", "mosses", "garden", "garden -ferns", "tail", "alike", "oak", "verdict", "swans", "comets")
PHRASES: Final = ('"damp garden"', '"garden mosses"', '"stone granite"', '"brook willow"', '"the stone"', '"the brook"')
WAYS: Final[Sequence[Query]] = (
    *({"q": words} for words in (*WORDS, *PHRASES)),
    *({"q": "ferns", "candidate": name} for name in ("alpha", "beta")),
    {"candidate": "alpha", "against": "beta"},
    {"candidate_1": "alpha", "candidate_2": "beta"},
    {"flagged": "on"},
    {"judge_failed": "any"},
    {"judge_failed": "unreadable"},
    {"aspect": "clarity", "choice": "A"},
    {"aspect": "clarity", "choice": "B", "rater": "judge:both"},
    {"aspect": "clarity", "judge": "1", "judge_choice": "A", "human_choice": "A"},
    {"aspect": "clarity", "measure": "cohen_kappa", "ties": "half", "category": "facts"},
    {"coding": "position"},
    {"reviews": "saved"},
    {"disagreement": "open"},
    {"tag": "hard"},
    {"saved_filter": "hard ones"},
    {"origin": "imported"},
    {"after": "2"},
    {"before": "5"},
    {"limit": "2"},
    {"besides": "1"},
    {"subject": "1"},
    {"shown": "swapped"},
    {"reviewer": "1"},
    {"diff": "1"},
)
# What the steps of a review take; none of them saves it.
STEPS: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "draft": ({"version": 0, "number": 0, "tab": "other", "fields": {"note": "Mine."}, "note": "Mine."},),
    "skip": ({"version": 0, "reason": "Later."},),
    "save": ({"version": 9, "choices": {"clarity": "A"}, "choice_clarity": "A"},),
    "span": tuple({"side": side, "quote": quote} for side in "ab" for quote in ("under the hammer", "ferns")),
    "spans": tuple({"side": side, "quote": quote} for side in "ab" for quote in ("under the hammer", "Ferns")),
}
JUDGES: Final = ("both", "single", "scorer", "imported", FIRST_RULE, RANDOM_RULE)
OPEN: Final = ("200", "204", "286", "422")
CLOSED: Final = ("403", "404", "405")
MOST_ROWS: Final = 12
PART_OF_A_PAGE: Final = {"HX-Request": "true"}
PICTURES: Final = ("as=png", "as=svg")  # drawn of the specification, which is asked for too
# What differs from one answer to the next whatever it is about.
PASSING_HEADERS: Final = ("Content-Security-Policy", "Set-Cookie", "RateLimit", "Expires", "Date")
PASSING: Final = re.compile(
    r"""(?<=name="csrfmiddlewaretoken"\ value=")[^"]+|(?<="X-CSRFToken":\ ")[^"]+|(?<=nonce=")[^"]+|jw_[\w-]+
    |(?<=/account/sessions/)\d+|(?<=\{"id":\ )\d{10,}
    |\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.]*(?:Z|[+-]\d\d:\d\d)?|\b\d\d:\d\d(?::\d\d)?\b""",
    re.VERBOSE,
)
PLACES: Final = {
    "slug": "the-slug",
    "pk": 990011,
    "delivery": 990022,
    "token": "the-token",
    "part": "p-p",
    "name": "n-n",
    "old_path": "old/path",
}


# ---- what can be asked ---------------------------------------------------------------------


@dataclass(frozen=True)
class Door:
    """An address with the names of what varies in it, and what may be asked of it in its query."""

    path: str
    method: str = "GET"
    parameters: frozenset[str] = frozenset()

    def addresses(self, twin: MirroredEvaluation) -> Iterator[str]:
        """One for each row whose number stands in it."""
        path = self.path.replace("{slug}", twin.evaluation.slug).replace("{token}", "x" * 43)
        found = re.search(r"\{(pk|run|delivery|grant|part|name|old_path)\}", path)
        if found is None:
            yield path
            return
        for value in values_of(found[1], before=path[: found.start()].split("/")[-2]):
            yield from replace(self, path=path.replace(found[0], value, 1)).addresses(twin)


def values_of(name: str, before: str) -> list[str]:
    if name in ("part", "name"):
        return list(ReportPart) if name == "part" else ["agreement-aspects"]
    if name == "old_path":
        return [*NEW_PATHS]
    if before == "sessions":  # of no evaluation, and different for each browser
        return ["1"]
    rows = NUMBERED["deliveries" if name == "delivery" else before]._base_manager
    return [str(pk) for pk in rows.order_by("pk").values_list("pk", flat=True)[:MOST_ROWS]] or ["1"]


def doors_in(resolver: URLResolver) -> Iterator[Door]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from () if pattern.namespace else doors_in(pattern)
        elif isinstance(pattern, URLPattern):
            path = reverse(str(pattern.name), kwargs={name: PLACES[name] for name in pattern.pattern.converters})
            for name, value in PLACES.items():
                path = path.replace(f"/{value}", f"/{{{name}}}")
            yield Door(path)


def doors_of_the_api() -> Iterator[Door]:
    for path, operations in build_openapi()["paths"].items():
        for method, told in operations.items():
            if method in HTTP_METHODS:
                yield Door(path, method.upper(), frozenset(one["name"] for one in told.get("parameters", ())))


# Signing out ends the walk, the metrics count its requests, and background work stands still without a worker.
LEFT_OUT: Final = (reverse("sign_out"), reverse("metrics"), reverse("work"))
PAGES: Final = [door for door in doors_in(get_resolver()) if door.path not in LEFT_OUT]
OPERATIONS: Final = list(doors_of_the_api())


# ---- what is answered ----------------------------------------------------------------------


class Walk:
    """``answers``: by what was asked, all that does not differ from one answer to the next."""

    def __init__(self, twin: MirroredEvaluation) -> None:
        self.twin, self.answers = twin, dict[tuple[str, ...], str]()
        self.browser = Client(raise_request_exception=False)
        self.browser.force_login(twin.reviewer)
        self.token = token_for(twin.reviewer)

    def ask(self, method: str, path: str, query: Query | None = None, *, sent: str = "", part: bool = False) -> str:
        """What the request changes is taken back."""
        is_api = path.startswith("/api/")
        headers = {"Authorization": f"Bearer {self.token}"} if is_api else PART_OF_A_PAGE if part else {}
        kind = "application/json" if is_api else "application/x-www-form-urlencoded"
        address = f"{path}?{urlencode(query)}" if query else path
        with transaction.atomic():
            told = as_text(self.browser.generic(method, address, sent, kind, headers=headers))
            transaction.set_rollback(True)
        self.answers[method, address, sent, "a part" if part else ""] = told
        return told

    def read(self, only: str = "") -> None:
        """Everything that answers to GET and HEAD, in every way where the plain one opens, and what it leads to."""
        seen = set()
        for door in (*PAGES, *OPERATIONS):
            if door.method == "GET" and only in door.path:
                for path in door.addresses(self.twin):
                    seen.add(path)
                    self.read_at(path, door)
        links = {link for told in self.answers.values() for link in links_in(told) if only in link}
        for link in sorted(links):
            if link.partition("?")[0] not in seen and not link.endswith(PICTURES):
                self.ask("GET", link)

    def read_at(self, path: str, door: Door) -> None:
        plain = self.ask("GET", path)
        if not plain.startswith(OPEN):
            return
        offered = {*door.parameters, *re.findall(r'name="(\w+)"', plain)}
        for query in WAYS:
            if (
                "q" in offered
                or offered & query.keys()
                or (re.search(r"/\d+", path) and query.keys() & {"subject", "diff"})
            ):
                self.ask("GET", path, query)
        self.ask("HEAD", path)
        if not path.startswith("/api/"):
            self.ask("GET", path, part=True)

    def open_reviews(self, judge: str) -> None:
        """While this judge is the one that is shown."""
        for pk in self.twin.comparisons.values():
            for path in (f"/e/twin/review/{pk}", f"/api/v1/evaluations/twin/review/{pk}"):
                self.answers[judge, path] = self.ask("GET", path)

    def write(self) -> None:
        """Every step, with nothing sent, and where that does not close it with what it takes."""
        for door in (*PAGES, *OPERATIONS):
            for path in door.addresses(self.twin) if door.method != "GET" or door in PAGES else ():
                steps = STEPS.get(path.rpartition("/")[2], ()) if "/review/" in path else ()
                for sent in ({}, *steps):
                    if self.step(door, path, sent).startswith(CLOSED):
                        break

    def step(self, door: Door, path: str, sent: Mapping[str, Any]) -> str:
        if door in OPERATIONS:
            return self.ask(door.method, path, sent=json.dumps(in_json(sent)))
        told = self.ask("POST", path, sent=urlencode(sent))
        return told if told.startswith(CLOSED) else self.ask("POST", path, sent=urlencode(sent), part=True)


def in_json(sent: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in sent.items() if name not in ("tab", "choice_clarity", "note")}


def as_text(answer: HttpResponseBase) -> str:
    sent = answer.getvalue() if hasattr(answer, "getvalue") else b""
    headers = {name: value for name, value in answer.headers.items() if not name.startswith(PASSING_HEADERS)}
    return PASSING.sub("·", f"{answer.status_code} {headers}\n{sent.decode(errors='replace')}")


def links_in(text: str) -> Iterator[str]:
    for link in re.findall(r'(?:href|hx-get|action|data-address)="(/[^"#]*)"', text):
        yield link.replace("&amp;", "&")


# ---- twice ---------------------------------------------------------------------------------


def answers_of(monkeypatch: pytest.MonkeyPatch, walk: Callable[[Walk], None], *, exchanged: bool) -> dict[Any, str]:
    """Make one of the two evaluations and walk through it; then it is gone, and its numbers with it."""
    with monkeypatch.context() as patch, transaction.atomic():
        made = Walk(make_mirrored_evaluation(patch, exchanged=exchanged))
        walk(made)
        transaction.set_rollback(True)
    return made.answers


def differing(one: Mapping[Any, str], other: Mapping[Any, str]) -> dict[Any, tuple[str, str]]:
    """What was asked → the first lines that differ."""
    found = {}
    for asked in one.keys() | other.keys():
        mine, theirs = (answers.get(asked, "not asked").splitlines() for answers in (one, other))
        if mine != theirs:
            pairs = zip([*mine, "the end"], [*theirs, "the end"], strict=False)
            found[asked] = [pair for pair in pairs if pair[0] != pair[1]][-1]
    return found


def assert_blind(monkeypatch: pytest.MonkeyPatch, walk: Callable[[Walk], None]) -> dict[Any, str]:
    one, other = (answers_of(monkeypatch, walk, exchanged=exchanged) for exchanged in (False, True))

    assert differing(one, other) == {}
    assert [asked for asked, told in one.items() if told.startswith("5")] == []
    return one


def test_nothing_that_a_reviewer_can_read_depends_on_which_response_is_stored_as_a(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = assert_blind(monkeypatch, Walk.read)
    assert sum(told.startswith("200") for told in answers.values()) > 300


@pytest.mark.any_database  # a step answers with one row or none, whose order no database decides
def test_no_step_that_a_reviewer_can_take_is_answered_by_which_response_is_stored_as_a(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = assert_blind(monkeypatch, Walk.write)
    assert sum(told.startswith("200") for told in answers.values()) > 50


def test_a_judge_that_is_shown_from_the_start_does_not_say_which_response_is_stored_as_a(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether it was asked in both orders or in one, scores, came with a file, or reads no text."""

    def walk(made: Walk) -> None:
        for judge in JUDGES:
            show_judge(made.twin.evaluation, judge, Reveal.SHOWN)
            made.open_reviews(judge)

    answers = assert_blind(monkeypatch, walk)
    told = {asked[0] for asked, answer in answers.items() if '<p class="judge"' in answer}
    assert told == set(JUDGES) - TEXT_BLIND_RULES


def test_a_review_by_scores_does_not_say_which_response_is_stored_as_a(monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(made: Walk) -> None:
        scores = Judge.objects.get(name="scorer").rubric_version
        change_evaluation(made.twin.evaluation, {"review_rubric": scores}, user=None)
        show_judge(made.twin.evaluation, "scorer", Reveal.SHOWN)
        made.open_reviews("scorer")

    answers = assert_blind(monkeypatch, walk)
    assert any('name="left_clarity"' in answer for answer in answers.values())


@pytest.mark.any_database  # it only shows that the walk would find a difference
def test_the_two_evaluations_differ_for_whoever_may_see_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests above would compare one evaluation with itself."""

    def walk(made: Walk) -> None:
        made.browser.force_login(made.twin.owner)
        for pk in made.twin.comparisons.values():
            made.ask("GET", f"/e/twin/data/comparisons/{pk}")

    one, other = (answers_of(monkeypatch, walk, exchanged=exchanged) for exchanged in (False, True))
    assert len(differing(one, other)) == len(TEXTS) - 1, f"all but “{SAVED}”"
