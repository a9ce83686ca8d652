"""A whole study by programs alone, over HTTP, with the worker that really works: no page is opened."""

import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.helpers.running_product import Product

QUERIES = 6
ASPECTS = ("helpfulness", "factuality", "clarity", "depth", "engagement", "safety")


class Program:
    """One person's program."""

    def __init__(self, product: Product, person: str) -> None:
        made = product.manage("api_token", person, "--name", "study", "--scope", "read", "review", "write", "admin")
        token = made.stdout.split()[-1]
        self.http = httpx.Client(
            base_url=f"{product.address}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=60
        )

    def __call__(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        answer = self.http.request(method, path, **({} if body is None else {"json": body}), **more)
        assert answer.is_success, (method, path, answer.text)
        return answer.json() if answer.headers["Content-Type"].startswith("application/json") else answer

    def until(self, path: str, is_there: Callable[[Any], bool]) -> Any:
        """Asked for until the background has come so far."""
        for _ in range(300):
            if is_there(told := self("GET", path)):
                return told
            time.sleep(0.2)
        raise AssertionError(f"{path} stays at {told}")


def responses() -> bytes:
    """Three candidates' responses to each query."""
    rows = [
        {"query_id": f"q{number}", "query": f"What is {number} + 1?", "candidate": name, "response": text * number}
        for number in range(1, QUERIES + 1)
        for name, text in (("alpha", "More. "), ("beta", "Even more. "), ("gamma", "The most of all. "))
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture(scope="module")
def owner(product: Product) -> Program:
    return Program(product, "owner")


def test_from_the_first_file_to_the_labels(product: Product, owner: Program) -> None:
    at = f"/evaluations/{owner('POST', '/evaluations', {'name': 'By programs'})['slug']}"
    owner("PATCH", f"{at}/settings", {"reviews_wanted": 2})
    people = {name: owner("POST", f"{at}/members", {"username": name}) for name in ("ann", "bob")}
    assert all(one["sign_in_link"].startswith(product.address) for one in people.values())

    came = owner(
        *("POST", f"{at}/imports?file_name=responses.jsonl&pair=baseline&baseline=alpha"),
        content=responses(),
        headers={"Content-Type": "application/octet-stream"},
    )
    assert (came["state"], came["rows_bad"]) == ("previewed", 0)
    owner("POST", f"{at}/imports/{came['id']}/store")
    owner.until(f"{at}/imports/{came['id']}", lambda told: told["state"] == "done")
    assert {one["pair"]: one["comparisons"] for one in owner("GET", f"{at}/pairs")["items"]}["all"] == QUERIES
    owner("POST", f"{at}/pairs", {"pair": "all"})
    comparisons = owner.until(f"{at}/comparisons", lambda told: len(told["items"]) == 3 * QUERIES)["items"]

    rubric = owner("GET", f"{at}/rubrics")["items"][0]
    version = owner("GET", f"{at}/rubrics/{rubric['id']}")["versions"][-1]["id"]
    judge = owner("POST", f"{at}/judges", {"rule": "longest", "version": version})
    (run,) = owner("POST", f"{at}/runs", {"judges": [judge["id"]]})["items"]
    owner.until(f"{at}/runs/{run['id']}", lambda told: told["state"] == "done")

    first = [one["id"] for one in comparisons[:QUERIES]]
    owner("POST", f"{at}/tags/put", {"name": "hard", "comparisons": first[:2]})
    tagged = owner("GET", f"{at}/comparisons?tag=hard")
    assert ([one["id"] for one in tagged["items"]], tagged["is_whole"]) == (first[:2], True)
    owner("POST", f"{at}/saved-filters", {"name": "the hard ones", "filter": {"tag": ["hard"]}})

    reviewed = {name: review_all(Program(product, name), at, tastes) for name, tastes in (("ann", max), ("bob", min))}
    assert reviewed["ann"] == reviewed["bob"] == {one["id"] for one in comparisons}

    found = owner("GET", f"{at}/disagreements?limit=200")
    assert {one["comparison"] for one in found["items"]} == reviewed["ann"]
    settled = owner(
        *("POST", f"{at}/disagreements/{first[0]}/resolve"),
        {"aspect": "clarity", "choice": "tie", "reason": "Both are."},
    )
    assert (settled["choice"], settled["by"]["username"]) == ("tie", "owner")

    report = owner("GET", f"{at}/report", params={"aspect": "clarity"})
    assert report["comparisons"] == 3 * QUERIES
    assert report["judges"]["longest"]["label"] == "rule-based"
    one, other = exported(owner, at, {"format": "jsonl", "saved_filter": "the hard ones"})
    assert (one["labels"]["clarity"]["choice"], one["labels"]["clarity"]["source"]) == ("tie", "adjudicated")
    assert (other["labels"]["clarity"]["choice"], other["labels"]["clarity"]["source"]) == (None, "split")
    for row in (one, other):
        said = {person["rater"]: person["choices"]["clarity"]["first"] for person in row["people"]}
        assert {"ann": said["ann"], "bob": said["bob"]} == {"ann": "B", "bob": "A"}, "alpha's is the shorter"
        assert row["judges"][0]["choices"]["clarity"]["choice"] == "B"


def exported(owner: Program, at: str, wanted: dict[str, str]) -> list[dict[str, Any]]:
    export = owner("POST", f"{at}/exports", wanted)
    export = owner.until(f"{at}/exports/{export['id']}", lambda told: told["state"] == "done")
    file = owner("GET", f"{at}/exports/{export['id']}/file").content
    assert hashlib.sha256(file).hexdigest() == export["sha256"]
    return [json.loads(line) for line in file.splitlines()]


def review_all(reviewer: Program, at: str, tastes: Callable[..., str]) -> set[int]:
    """Whatever comes next, until nothing does: the longer response, or the shorter. Returns what was reviewed."""
    done: set[int] = set()
    while (number := reviewer("GET", f"{at}/review/next")["comparison"]) is not None:
        told = reviewer("GET", f"{at}/review/{number}")
        assert told["stage"] == "choose"
        assert all(line["judge"] is None for line in told["aspects"]), "blind before the first choice"
        length = {"A": len(told["a"][0]["content"]), "B": len(told["b"][0]["content"])}
        choice = tastes(length, key=length.__getitem__)
        said = {"choices": dict.fromkeys(ASPECTS, choice), "version": told["version"]}
        saved = reviewer("POST", f"{at}/review/{number}/save", said)
        if saved["stage"] == "confirm":
            kept = {line["aspect"]: line["first"] for line in saved["aspects"]}
            saved = reviewer("POST", f"{at}/review/{number}/confirm", {"choices": kept, "version": saved["version"]})
        assert saved["stage"] == "done"
        done.add(number)
    return done
