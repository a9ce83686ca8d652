"""Pairs that a program counts and makes, and what it finds there more than once."""

import json
from typing import Any

import pytest

from evaluations.imports.lifecycle import continue_import
from evaluations.models.comparisons import Comparison, Query
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from tests.factories.evaluations import make_comparison, make_evaluation, make_response
from tests.helpers.api_client import API_ROOT, ApiClient

pytestmark = pytest.mark.django_db


def counted(asking: ApiClient, asked: str = "") -> dict[str, int]:
    told = asking.get(f"/evaluations/study/pairs{asked}").json()
    return {one["pair"]: one["comparisons"] for one in told["items"]}


@pytest.fixture
def three(evaluation: Evaluation) -> Evaluation:
    """Two queries with one comparison each, and a third response to both."""
    for text in ("Why?", "Why not?"):
        row = make_comparison(evaluation, query=text)
        make_response(row.query, "gamma", "Else.")
    return evaluation


def test_each_way_is_counted_before_anything_is_made(asking: ApiClient, three: Evaluation) -> None:
    assert counted(asking) == {"all": 4, "baseline": 2, "random": counted(asking)["random"]}
    assert counted(asking, "?baseline=gamma")["baseline"] == 4
    assert counted(asking, "?pairs_each=3")["random"] == 4
    assert "needs verdicts or scores" in asking.get("/evaluations/study/pairs").json()["unranked_because"]
    assert Comparison.objects.count() == 2


def test_they_are_made_as_an_import_and_never_twice(asking: ApiClient, three: Evaluation) -> None:
    made = asking.post("/evaluations/study/pairs", {"pair": "baseline", "baseline": "gamma"})
    assert (made.status_code, made.json()["state"], made.json()["options"]["pair"]) == (
        *(201, "storing"),
        "baseline:gamma",
    )
    continue_import(Import.objects.get(), seconds=60)
    assert Comparison.objects.count() == 6
    again = asking.post("/evaluations/study/pairs", {"pair": "all"})
    assert (again.status_code, again.json()["detail"]) == (422, "All these pairs exist already.")


@pytest.mark.parametrize(
    "body", [{"pair": "every"}, {"pair": "baseline", "baseline": "nobody"}, {"pair": "random", "pairs_each": 0}]
)
def test_what_is_no_way_of_pairing_is_refused(body: dict[str, Any], asking: ApiClient, three: Evaluation) -> None:
    answer = asking.post("/evaluations/study/pairs", body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert not Import.objects.exists()


def test_queries_that_are_alike_are_listed_and_put_together(asking: ApiClient, evaluation: Evaluation) -> None:
    for text in ("What is it?", "what is it", "Who?", "who", "Alone."):
        make_comparison(evaluation, query=text)
    first = asking.get("/evaluations/study/duplicates?limit=1").json()
    second = asking.get(f"/evaluations/study/duplicates?limit=1&cursor={first['next']}").json()
    groups = [*first["items"], *second["items"]]
    assert {tuple(one["query"] for one in group["queries"]) for group in groups} == {
        ("What is it?", "what is it"),
        ("Who?", "who"),
    }
    assert second["next"] is None
    assert [(group["number"], group["exact"], group["clusters"]) for group in groups] == [(2, False, 2)] * 2
    put = asking.post("/evaluations/study/duplicates/together", {"group": groups[0]["group"]})
    assert put.status_code == 200
    together = Query.objects.filter(cluster=put.json()["cluster"])
    assert {row.text for row in together} == {one["query"] for one in groups[0]["queries"]}
    again = asking.post("/evaluations/study/duplicates/together", {"group": groups[0]["group"]})
    assert "already in one cluster" in again.json()["detail"]


@pytest.mark.parametrize("group", ["x", "-1", str(2**63), "1.0"])
def test_what_is_no_group_is_refused(group: str, asking: ApiClient, evaluation: Evaluation) -> None:
    answer = asking.post("/evaluations/study/duplicates/together", {"group": group})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "body.group")


def test_texts_that_are_there_twice_are_told(asking: ApiClient, evaluation: Evaluation) -> None:
    row = make_comparison(evaluation, query="Why?", response_a="The same.", response_b="The same.")
    other = make_evaluation(row.evaluation.memberships.get().user, slug="other")
    make_comparison(other, query="why")
    told = asking.get("/evaluations/study/repeats").json()
    assert told["same_responses"] == [{"text": "The same.", "query_id": row.query.key, "number": 2}]
    assert told["other_evaluations"] == [{"where": "Study other", "number": 1, "examples": ["why"]}]


def test_a_file_is_held_against_the_queries_and_not_kept(asking: ApiClient, evaluation: Evaluation) -> None:
    make_comparison(evaluation, query="Why is the sky blue?")
    make_comparison(evaluation, query="Who?")
    answer = asking.client.generic(
        "POST",
        f"{API_ROOT}/evaluations/study/repeats/file?file_name=test.jsonl",
        json.dumps({"prompt": "why is the sky blue"}),
        "application/octet-stream",
        headers={"Authorization": f"Bearer {asking.token}"},
    )
    assert answer.json() == {"where": "test.jsonl", "number": 1, "examples": ["why is the sky blue"]}
    assert not Import.objects.exists()
