"""Values that no column holds, through every page and operation: each is refused in words, none is a fault (500).

The databases differ: SQLite raises OverflowError, PostgreSQL DataError.
"""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, ClassVar, Final

import pytest
from django.conf import LazySettings
from django.db import transaction
from django.http import QueryDict
from django.http.response import HttpResponseBase
from django.test import Client

from evaluations.judges.new_run.views import parse_positive_number
from evaluations.models.users import User
from tests.api import test_access as api
from tests.factories.full_evaluation import FullEvaluation, make_full_evaluation
from tests.helpers.api_client import token_for
from tests.web import test_access as web

pytestmark = [pytest.mark.django_db, pytest.mark.long]

BEYOND_64_BITS: Final = str(2**63)
TEXTS: Final = ("9" * 5_000, "1e999", "a\0b", "99999-12-31T00:00", "x" * 70_000)
BODIES: Final = ("[" * 100_000, '{"a":' * 50_000, "9" * 5_000, '"\\ud800"', '{"a": 1e999}', "null")
JSON_VALUES: Final = (BEYOND_64_BITS, '"a\\u0000b"', "1e999")
# Odd values of one parameter in an address, as a browser sends them. {} is its name.
QUERIES: Final = (
    "{}=",
    f"{{}}={'9' * 20}",
    "{}=-1",
    "{}=1e999",
    "{}=a%00%ED%A0%80%FF",  # NUL, a lone surrogate, and a byte that UTF-8 does not have
    f"{{}}={'x' * 70_000}",
    "{}=a&{}=%C2%B2",  # a list; the last value is a digit to Python and no number
)
HEADERS: Final[tuple[dict[str, str], ...]] = ({}, {"HX-Request": "true"})
# Some of the parameters that pages read, and how: in a form, as its initial values, for a fragment, for another one.
READ: Final = {
    *(("comparisons", "q"), ("comparisons", "human_choice"), ("report_part", "since"), ("judge_new", "model")),
    *(("queue_new", "size"), ("run_new", "samples"), ("sign_in", "next"), ("review_ahead", "besides")),
}


class RecordedDict(dict[str, Any]):
    """Initial values of a form, which note the fields that look for one."""

    def get(self, name: str, default: Any = None) -> Any:
        RecordedQuery.note(name)
        return super().get(name, default)


class RecordedQuery(QueryDict):
    """The parameters of an address, which note what a page looks for."""

    # Each name with what the address had when it was first looked for.
    found: ClassVar[dict[str, str]] = {}
    asked: ClassVar[str] = ""

    @classmethod
    def note(cls, name: object) -> None:
        cls.found.setdefault(str(name), cls.asked)

    def __contains__(self, name: object) -> bool:
        self.note(name)
        return super().__contains__(name)

    def __getitem__(self, name: str) -> Any:
        self.note(name)
        return super().__getitem__(name)

    def getlist(self, name: str, *default: Any) -> list[Any]:
        self.note(name)
        return super().getlist(name, *default)

    def dict(self) -> RecordedDict:
        return RecordedDict(super().dict())


@pytest.fixture
def marked(settings: LazySettings) -> FullEvaluation:
    settings.API_REQUESTS_PER_MINUTE = 10**9
    full = make_full_evaluation(web.NUMBER)
    User.objects.filter(pk=full.owner.pk).update(is_superuser=True)
    full.owner.refresh_from_db()
    return full


def status_of(answer: HttpResponseBase) -> int:
    if answer.streaming:
        answer.getvalue()
    return answer.status_code


def ask_page(
    client: Client, method: str, address: str, values: Mapping[str, str], headers: Mapping[str, str] | None = None
) -> int:
    """The status; what was changed is undone, a session that was ended or renewed too."""
    cookies = deepcopy(client.cookies)
    with transaction.atomic():
        options: dict[str, Any] = {"headers": headers}
        options |= {"query_params" if method == "get" else "data": values} if values else {}
        status = status_of(web.ask(client, method, address, **options))
        transaction.set_rollback(True)
    client.cookies = cookies
    return status


@pytest.mark.parametrize(
    ("name", "method", "values", "expected"),
    [
        ("run_new", "post", {"judge": BEYOND_64_BITS}, 422),
        ("queue_assign", "post", {"people": BEYOND_64_BITS}, 302),
        ("accounts", "get", {"q": "x" * 70_000}, 200),
        ("judge_new", "get", {"endpoint": str(web.NUMBER), "model": "a\0b"}, 200),
    ],
)
def test_values_that_the_database_does_not_take_are_no_fault_of_pages(
    marked: FullEvaluation, name: str, method: str, values: dict[str, str], expected: int
) -> None:
    client = Client()
    client.force_login(marked.owner)
    door = next(door for door in web.DOORS if door.name == name)
    assert ask_page(client, method, door.address(marked.evaluation.slug), values) == expected


@pytest.mark.parametrize("number", [2**63, 10**400], ids=["beyond 64 bits", "of 401 digits"])
def test_no_number_in_an_address_is_a_fault(marked: FullEvaluation, number: int) -> None:
    client, token = Client(), token_for(marked.owner)
    client.force_login(marked.owner)
    pages = [door for door in web.DOORS if {"pk", "delivery"} & set(door.parameters)]
    found = {
        (door.name, method): ask_page(client, method, door.address(marked.evaluation.slug, number), {})
        for door in pages
        for method in web.METHODS
    }
    found |= {
        (door.name, door.method): api.ask(door, token, marked.evaluation.slug, number).status_code
        for door in api.DOORS
        if "{pk}" in door.path or "{run}" in door.path or "{delivery}" in door.path
    }
    assert {key: status for key, status in found.items() if status not in (404, 405, 415, 422)} == {}


def walk_parameters(client: Client, address: str, headers: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Each parameter that the page looks for with each odd value, and the status.

    One that is looked for only where another one is there is asked for together with that one.
    """
    RecordedQuery.found, RecordedQuery.asked = {}, ""
    names: list[str] = []
    status = ask_page(client, "get", f"{address}?unread=1", {}, headers)
    while status != 405 and (new := [name for name in RecordedQuery.found if name not in (*names, "unread")]):
        names += new
        for name in new:
            for query in QUERIES:
                opened_by = RecordedQuery.found[name]
                RecordedQuery.asked = f"{name}=A&"
                asked = opened_by + query.format(name, name)
                yield asked[:80], ask_page(client, "get", f"{address}?{asked}", {}, headers)


def test_no_parameter_that_a_page_reads_is_a_fault(marked: FullEvaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("django.core.handlers.wsgi", "evaluations.reports.served_reports"):
        monkeypatch.setattr(f"{module}.QueryDict", RecordedQuery)
    walked: set[tuple[str, str]] = set()
    wrong, client = [], Client()
    client.force_login(marked.owner)
    for door in web.DOORS:
        if door.name == "report":
            continue  # with any parameter it leads to a part
        address = door.address(marked.evaluation.slug)
        for headers in HEADERS if has_fragment(client, address) else HEADERS[:1]:
            for query, status in walk_parameters(client, address, headers):
                if status >= 500:
                    wrong.append((door.name, query, status))
            walked |= {(door.name, name) for name in RecordedQuery.found}
    assert wrong == []
    assert walked >= READ


def has_fragment(client: Client, address: str) -> bool:
    """Whether htmx gets something else than a browser."""
    with transaction.atomic():
        whole, part = (len(web.body(web.ask(client, "get", address, headers=headers))) for headers in HEADERS)
        transaction.set_rollback(True)
    return abs(whole - part) > 1_000


def resolve(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" in schema:
        return resolve(api.DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    return resolve(schema["allOf"][0]) if "allOf" in schema else schema


def odd_bodies(door: api.Door, schema: Mapping[str, Any]) -> Iterator[str]:
    """Bodies with an odd value in one field, or in a field or list within it; the other fields are the least."""
    for name, field in resolve(schema).get("properties", {}).items():
        least = dict(door.body) if isinstance(door.body, dict) else {}
        kinds = [resolve(kind) for kind in resolve(field).get("anyOf", [field])]
        shapes: list[Any] = ["@"]
        shapes += [["@"] for kind in kinds if kind.get("type") == "array"]
        objects = [kind for kind in kinds if kind.get("type") == "object"]
        shapes += [{inner: "@"} for kind in objects for inner in kind.get("properties", {"a": 0})]
        for shape in shapes:
            for value in JSON_VALUES:
                yield json.dumps({**least, name: shape}).replace('"@"', value)


def test_no_value_of_a_body_or_query_is_a_fault_of_an_operation(marked: FullEvaluation) -> None:
    client = Client(raise_request_exception=False, headers={"Authorization": f"Bearer {token_for(marked.owner)}"})
    operations = {op["operationId"]: op for ops in api.DOCUMENT["paths"].values() for op in ops.values()}
    wrong, statuses = [], set()
    asked: list[tuple[str, dict[str, str]]]
    for door in api.DOORS:
        operation = operations[door.name]
        address = door.address(marked.evaluation.slug)
        content = operation.get("requestBody", {}).get("content", {}).get("application/json")
        asked = [(body, {}) for body in [*BODIES, *odd_bodies(door, content["schema"])]] if content else []
        least = "" if door.body is None else json.dumps(door.body)
        parameters = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
        asked += [(least, {name: BEYOND_64_BITS}) for name in parameters]
        asked += [(least, dict.fromkeys(parameters, text)) for text in TEXTS[:3] if parameters]
        for body, query in asked:
            with transaction.atomic():
                answer = client.generic(door.method.upper(), address, body, "application/json", query_params=query)
                status = status_of(answer)
                transaction.set_rollback(True)
            statuses.add(status)
            if status >= 500:
                wrong.append((door.name, body[:80], query, status))
    assert wrong == []
    assert {200, 400, 422} <= statuses


@pytest.mark.parametrize("text", ["0" * 11 + "1" + "9" * 5_000, "9" * 5_000, "²", "-1", "", None, "1e3"])
def test_an_odd_number_in_an_estimate_counts_as_none(text: str | None) -> None:
    assert parse_positive_number(text, 10**9) is None
