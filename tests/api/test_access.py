"""Every operation of the document, walked: who gets in, and what stays hidden from those who do.

The pages are walked by tests/web/test_access.py, with the same rows and the same marked words.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone
from ninja import Schema

from evaluations.api_site import HTTP_METHODS, build_openapi
from evaluations.domain.reviews import Reveal
from evaluations.domain.roles import Role, Scope
from evaluations.domain.security import SecurityEventKind
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.sign_ins import SecurityEvent
from evaluations.models.users import ApiToken, User
from tests.factories.evaluations import make_evaluation, make_member, make_user
from tests.factories.full_evaluation import FullEvaluation, every_row, make_full_evaluation
from tests.factories.verdicts import make_review
from tests.helpers.api_client import token_for

pytestmark = pytest.mark.django_db

NUMBER, OTHER_NUMBER = 770_100, 880_200
DOCUMENT = build_openapi()
# A request counts itself in its token, and the first one from an address is on record.
COUNTED = {"ApiToken"}
FIRST_USE = "token_new_address"
OPEN_TO_ALL = {
    *("list_evaluations", "create_evaluation", "get_me", "change_me", "list_export_formats", "list_mentions"),
    *("list_sessions", "end_own_sessions", "list_own_security_events", "list_own_invitations"),
}


@dataclass(frozen=True)
class Door:
    name: str
    method: str
    path: str
    scope: Scope
    body: Any
    is_upload: bool

    @property
    def leads_into_an_evaluation(self) -> bool:
        return "{slug}" in self.path

    def address(self, slug: str, number: int = NUMBER) -> str:
        path = self.path.replace("{slug}", slug).replace("{name}", "agreement-aspects")
        for name in ("pk", "run", "delivery", "grant"):
            path = path.replace(f"{{{name}}}", str(number))
        return path


def least(schema: Mapping[str, Any]) -> Any:
    """The least that the schema takes."""
    if "$ref" in schema:
        return least(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if "allOf" in schema:
        return least(schema["allOf"][0])
    if "anyOf" in schema:
        return least(schema["anyOf"][0])
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if schema.get("format") == "uuid":
        return str(UUID(int=0))
    if kind == "object":
        needed = schema.get("required", [])
        return {name: least(one) for name, one in schema.get("properties", {}).items() if name in needed}
    if kind == "array":
        return [least(schema["items"])] * schema.get("minItems", 0)
    return {"string": "x" * schema.get("minLength", 0), "integer": 1, "number": 1, "boolean": False}.get(str(kind))


def doors() -> list[Door]:
    found = []
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            if method in HTTP_METHODS:
                content = operation.get("requestBody", {}).get("content", {})
                sent = least(content["application/json"]["schema"]) if "application/json" in content else None
                scope = Scope(operation["x-scope"])
                is_upload = "multipart/form-data" in content
                found.append(Door(operation["operationId"], method, path, scope, sent, is_upload))
    return found


DOORS = doors()
INTO_AN_EVALUATION = [door for door in DOORS if door.leads_into_an_evaluation]
READING = [door for door in INTO_AN_EVALUATION if door.method == "get"]


@pytest.fixture
def marked() -> FullEvaluation:
    return make_full_evaluation(NUMBER)


def ask(door: Door, token: str | None, slug: str, number: int = NUMBER, query: str = "") -> Any:
    """An answer even where an operation fails: the walk goes on and lists the 500 with the rest."""
    client = Client(raise_request_exception=False)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    sent = "" if door.body is None else json.dumps(door.body)
    kind = "application/octet-stream" if door.is_upload else "application/json"
    address = door.address(slug, number) + query
    return client.generic(door.method.upper(), address, "{}" if door.is_upload else sent, kind, headers=headers)


def text_of(answer: Any) -> str:
    return bytes(answer.getvalue()).decode(errors="replace")


def rows() -> list[tuple[str, Any]]:
    tables = ((model.__name__, found) for model, found in every_row() if model.__name__ not in COUNTED)
    return [(name, [row for row in found if row.get("kind") != FIRST_USE]) for name, found in tables]


def test_every_operation_has_an_id_of_its_own() -> None:
    names = [door.name for door in DOORS]
    assert len(set(names)) == len(names) > 90


def test_no_two_shapes_have_the_same_name() -> None:
    """The document would show one of them in the place of both."""
    shapes: dict[str, set[str]] = {}
    waiting = list(Schema.__subclasses__())
    while waiting:
        one = waiting.pop()
        waiting += one.__subclasses__()
        if one.__module__.startswith("evaluations.api"):
            shapes.setdefault(one.__name__, set()).add(one.__module__)
    assert {name: modules for name, modules in shapes.items() if len(modules) > 1} == {}


def test_without_a_token_that_is_known_and_in_force_nothing_opens(marked: FullEvaluation) -> None:
    expired = token_for(marked.owner)
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(hours=1))
    before, wrong = rows(), []
    for door in DOORS:
        for token, code in ((None, "token_missing"), ("jw_wrong", "token_unknown"), (expired, "token_expired")):
            answer = ask(door, token, marked.evaluation.slug)
            if (answer.status_code, answer.json()["code"]) != (401, code):
                wrong.append((door.name, code, answer.status_code))
    assert wrong == []
    recorded = SecurityEvent.objects.filter(kind=SecurityEventKind.SIGN_IN_FAILED, user=marked.owner)
    assert recorded.delete()[0] >= 1, "the expired token"
    assert rows() == before


def test_a_scope_that_is_lacking_opens_nothing(marked: FullEvaluation) -> None:
    tokens = {scope: token_for(marked.owner, [one for one in Scope if one != scope]) for scope in Scope}
    before, wrong = rows(), []
    for door in DOORS:
        answer = ask(door, tokens[door.scope], marked.evaluation.slug)
        if (answer.status_code, answer.json()["code"]) != (403, "scope_missing"):
            wrong.append((door.name, answer.status_code))
    assert wrong == []
    assert rows() == before


def test_a_stranger_cannot_tell_that_an_evaluation_exists(marked: FullEvaluation) -> None:
    token = token_for(make_user("stranger"))
    before, wrong = rows(), []
    for door in INTO_AN_EVALUATION:
        real, unreal = ask(door, token, marked.evaluation.slug), ask(door, token, "none-of-that-name")
        same = text_of(real).replace(marked.evaluation.slug, "none-of-that-name") == text_of(unreal)
        if real.status_code != 404 or not same:
            wrong.append((door.name, real.status_code, unreal.status_code))
    assert wrong == []
    assert rows() == before


def test_what_belongs_to_the_site_is_for_its_administrators(marked: FullEvaluation) -> None:
    token = token_for(make_user("stranger"))
    wrong = []
    for door in DOORS:
        if door.leads_into_an_evaluation:
            continue
        answer = ask(door, token, "")
        found = [word for word in marked.outside if word in text_of(answer)]
        if found or (answer.status_code == 404) is (door.name in OPEN_TO_ALL):
            wrong.append((door.name, answer.status_code, found))
    assert wrong == []


def test_a_token_that_is_tied_to_one_evaluation_opens_no_other_door(marked: FullEvaluation, owner: User) -> None:
    mine = make_evaluation(marked.owner, slug="mine")
    token = token_for(marked.owner, evaluation=mine)
    answers = {door.name: ask(door, token, marked.evaluation.slug) for door in INTO_AN_EVALUATION}
    assert {name: answer.status_code for name, answer in answers.items() if answer.status_code != 404} == {}
    seen = "".join(text_of(ask(door, token, "mine")) for door in DOORS)
    assert [word for word in marked.outside if word in seen] == []


def test_an_owner_finds_something_behind_every_door(marked: FullEvaluation) -> None:
    """Else the tests around this one would be satisfied by operations that open for nobody."""
    User.objects.filter(pk=marked.owner.pk).update(is_superuser=True)
    token = token_for(marked.owner)
    answers = {door.name: ask(door, token, marked.evaluation.slug) for door in DOORS if door.method == "get"}
    closed = {name for name, answer in answers.items() if answer.status_code != 200}
    # The run there is no try, the round no calibration, the import is stored, and a cell is asked for by its place, as
    # are differences by their judge.
    assert closed == {
        *("get_judge_test", "get_calibration_of_queue", "get_columns"),
        *("list_cell", "list_large_differences"),
    }


def test_rows_of_another_evaluation_cannot_be_reached_through_ones_own(marked: FullEvaluation) -> None:
    mine = make_full_evaluation(OTHER_NUMBER)
    token = token_for(mine.owner)
    before, wrong = theirs(), []
    for door in INTO_AN_EVALUATION:
        answer = ask(door, token, mine.evaluation.slug)
        found = [word for word in marked.outside if word in text_of(answer)]
        if found or ("{pk}" in door.path and answer.status_code not in (404, 422)):
            wrong.append((door.name, answer.status_code, found))
    assert wrong == []
    assert theirs() == before


def theirs() -> list[Any]:
    numbers = range(NUMBER, NUMBER + 10)
    return [row for name, found in rows() for row in found if row.get("id") in numbers]


# ---- blind until the first save


@pytest.mark.parametrize("reveal", [Reveal.BLIND, Reveal.NEVER])
def test_a_reviewer_is_blind_through_every_door(marked: FullEvaluation, reveal: Reveal) -> None:
    Evaluation.objects.update(reveal=reveal)
    reviewer = make_member(marked.evaluation, Role.REVIEWER)
    assert words_seen(reviewer, marked, marked.hidden) == []


def test_where_judges_are_never_shown_saving_reveals_none_of_their_words(marked: FullEvaluation) -> None:
    Evaluation.objects.update(reveal=Reveal.NEVER)
    reviewer = make_member(marked.evaluation, Role.REVIEWER)
    rater = Rater.objects.create(evaluation=marked.evaluation, kind="human", name="me", user=reviewer)
    make_review(rater, Comparison.objects.get(pk=NUMBER), {"clarity": "A"})
    words = tuple(word for word in marked.hidden if word.startswith(("rationale", "reply", "error")))
    assert words_seen(reviewer, marked, words) == []


def words_seen(user: User, marked: FullEvaluation, words: tuple[str, ...]) -> list[tuple[str, object]]:
    token, seen = token_for(user), list[tuple[str, object]]()
    for door in READING:
        for query in ("", f"?candidate={NUMBER}&judge={NUMBER}", "?aspect=clarity"):
            answer = ask(door, token, marked.evaluation.slug, query=query)
            seen += [(door.name, word) for word in words if word in text_of(answer)]
            if answer.status_code not in (200, 403, 404, 422):
                seen.append((door.name, answer.status_code))
    return seen
