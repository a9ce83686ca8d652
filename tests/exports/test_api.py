"""The file of an export over the API: an interrupted download goes on, and never with another file's bytes."""

from typing import Any

import pytest

from evaluations.models.evaluations import Evaluation
from tests.factories.evaluations import make_comparison
from tests.helpers.api_client import ApiClient

pytestmark = pytest.mark.django_db


@pytest.fixture
def export(asking: ApiClient, evaluation: Evaluation) -> dict[str, Any]:
    make_comparison(evaluation)
    made: dict[str, Any] = asking.post("/evaluations/study/exports", {"format": "jsonl"}).json()
    return made


def fetched(asking: ApiClient, export: dict[str, Any], **headers: str) -> tuple[int, bytes]:
    answer = asking.get(f"/evaluations/study/exports/{export['id']}/file", **headers)
    return answer.status_code, b"".join(answer.streaming_content)


def test_what_is_missing_of_a_download_is_sent_alone(asking: ApiClient, export: dict[str, Any]) -> None:
    _, whole = fetched(asking, export)
    assert len(whole) == export["bytes"]
    assert fetched(asking, export, Range="bytes=10-") == (206, whole[10:])
    assert fetched(asking, export, Range="bytes=10-", If_Range=f'"{export["sha256"]}"') == (206, whole[10:])


def test_whoever_has_the_beginning_of_another_file_is_sent_all_of_this_one(
    asking: ApiClient, export: dict[str, Any]
) -> None:
    _, whole = fetched(asking, export)
    assert fetched(asking, export, Range="bytes=10-", If_Range='"another"') == (200, whole)


def test_the_end_alone_is_sent_too(asking: ApiClient, export: dict[str, Any]) -> None:
    _, whole = fetched(asking, export)
    assert fetched(asking, export, Range="bytes=-7") == (206, whole[-7:])


def test_beyond_the_end_there_is_nothing(asking: ApiClient, export: dict[str, Any]) -> None:
    answer = asking.get(f"/evaluations/study/exports/{export['id']}/file", Range=f"bytes={export['bytes']}-")
    assert (answer.status_code, answer.json()["code"]) == (416, "range_not_satisfiable")
    assert answer["Content-Range"] == f"bytes */{export['bytes']}"
