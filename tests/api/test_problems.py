"""What goes wrong is a problem in the same shape everywhere, with a code that stays."""

import json
from typing import Any

import pytest
from django.test import Client

from evaluations.models.evaluations import Evaluation
from tests.helpers.api_client import API_ROOT, ApiClient

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def problem(answer: Any) -> tuple[int, str]:
    assert answer["Content-Type"] == "application/problem+json"
    told = answer.json()
    assert set(told) == {"type", "title", "status", "detail", "instance", "code", "errors"}
    assert told["status"] == answer.status_code
    assert told["detail"]
    return told["status"], told["code"]


def test_addresses_and_methods_that_there_are_not(asking: ApiClient) -> None:
    assert problem(Client().get("/api/v1/nowhere")) == (404, "not_found")
    assert problem(Client().get("/api")) == (404, "not_found")
    assert problem(asking.get("/evaluations/other")) == (404, "not_found")
    answer = asking("DELETE", "/evaluations/study")
    assert problem(answer) == (405, "method_not_allowed")
    assert answer["Allow"] == "GET"


def test_a_body_that_is_not_json_is_refused_and_named(asking: ApiClient) -> None:
    for sent in ('{"name": NaN}', '{"name": Infinity}', "{", "[" * 100_000, "\xff"):
        answer = asking.client.post(
            f"{API_ROOT}/evaluations", sent, "application/json", headers={"Authorization": f"Bearer {asking.token}"}
        )
        assert problem(answer) == (400, "malformed")
    assert problem(asking.post("/evaluations", {"name": "a\x00b"})) == (400, "malformed")
    assert problem(asking.post("/evaluations", {"name": "\ud800"})) == (400, "malformed")
    assert problem(asking.get("/evaluations?cursor=%00")) == (400, "malformed")
    assert Evaluation.objects.count() == 1


def test_another_kind_of_body_is_refused(asking: ApiClient) -> None:
    headers = {"Authorization": f"Bearer {asking.token}"}
    answer = asking.client.post(
        f"{API_ROOT}/evaluations", "name=x", "application/x-www-form-urlencoded", headers=headers
    )
    assert problem(answer) == (415, "unsupported_media_type")


def test_a_body_that_is_too_large_is_refused(asking: ApiClient) -> None:
    assert problem(asking.post("/evaluations", {"name": "x" * 6_000_000})) == (413, "too_large")


def test_every_fault_is_named_with_its_place(asking: ApiClient) -> None:
    answer = asking.post("/evaluations", {"nome": "x", "slug": 3})
    assert problem(answer) == (422, "invalid")
    assert {one["field"] for one in answer.json()["errors"]} == {"body.name", "body.slug", "body.nome"}
    answer = asking.get("/evaluations?limit=5000")
    assert [one["field"] for one in answer.json()["errors"]] == ["query.limit"]
    answer = asking.get("/evaluations?cursor=zzz")
    assert [one["field"] for one in answer.json()["errors"]] == ["query.cursor"]


def test_what_a_service_refuses_is_said_in_its_sentence(asking: ApiClient) -> None:
    answer = asking.post("/evaluations", {"name": "Study", "slug": "study"})
    assert problem(answer) == (422, "refused")
    assert answer.json()["detail"] == "The URL name “study” is taken. Choose another one."


def test_a_fault_of_ours_is_a_problem_too(asking: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr("evaluations.overview.api.count_evaluation_progress", broken)
    asking.client.raise_request_exception = False
    answer = asking.get("/evaluations/study")
    assert problem(answer) == (500, "server_error")
    assert "secret" not in json.dumps(answer.json())
