"""Imports through the API: the models they name, second responses, and undoing."""

from typing import Any

import pytest

from evaluations.domain.roles import Role
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from tests.factories.evaluations import make_member
from tests.factories.imports import comparison_row, encode_jsonl, import_rows, verdict_row
from tests.helpers.api_client import API_ROOT, ApiClient, token_for
from tests.helpers.job_work import work_once

pytestmark = pytest.mark.django_db

ANSWER = {"query_id": "q1", "query": "Why?", "response": "x"}


def sent(asking: ApiClient, rows: list[dict[str, Any]], query: str) -> dict[str, Any]:
    answer = asking.client.generic(
        "POST",
        f"{API_ROOT}/evaluations/study/imports?{query}",
        encode_jsonl(rows),
        "application/octet-stream",
        headers={"Authorization": f"Bearer {asking.token}"},
    )
    assert answer.status_code == 201, answer.content
    told: dict[str, Any] = answer.json()
    return told


def test_the_summary_names_the_models_and_what_named_them(asking: ApiClient, evaluation: Evaluation) -> None:
    told = sent(asking, [ANSWER], "file_name=falcon-7b.jsonl")["summary"]
    assert (told["models"], told["named_by"]) == ([{"name": "falcon-7b", "responses": 1}], "file")
    told = sent(asking, [{**ANSWER, "candidate": "alpha"}], "file_name=x.jsonl&candidate=omega")["summary"]
    assert (told["models"][0]["name"], told["named_by"]) == ("omega", "form")
    assert "not used: “alpha” (1 row)" in told["warnings"][0]


def test_a_body_without_a_file_name_names_no_model(asking: ApiClient, evaluation: Evaluation) -> None:
    told = sent(asking, [ANSWER], "")
    assert (told["rows_stored"], told["rows_bad"]) == (0, 1)
    assert "the file name does not name the model" in told["bad_rows"][0]["reason"]


def test_a_second_response_is_decided_by_a_field(asking: ApiClient, evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    rows = [comparison_row(response_a="Other.")]
    assert sent(asking, rows, "")["rows_bad"] == 1
    told = sent(asking, rows, "new_response=skip")
    assert (told["rows_bad"], told["rows_skipped"], told["options"]["new_response"]) == (0, 1, "skip")


def test_an_import_is_undone_and_says_so(asking: ApiClient, evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, comparison_row())
    at = f"/evaluations/study/imports/{importing.pk}"
    assert asking.post(f"{at}/undo").json()["state"] == "undoing"
    assert not Comparison.objects.exists()
    work_once("undo_import", importing.pk)
    assert asking.get(at).json()["state"] == "undone"
    again = asking.post(f"{at}/undo")
    assert (again.status_code, "already undone" in again.content.decode()) == (422, True)


def test_what_is_built_on_keeps_an_import(asking: ApiClient, evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, comparison_row())
    import_rows(evaluation, verdict_row())
    answer = asking.post(f"/evaluations/study/imports/{importing.pk}/undo")
    assert "builds on it. Undo that one first." in answer.content.decode()
    assert Import.objects.get(pk=importing.pk).state == "done"


def test_whoever_may_not_import_may_not_undo(evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, comparison_row())
    viewer = ApiClient(token_for(make_member(evaluation, Role.VIEWER)))
    assert viewer.post(f"/evaluations/study/imports/{importing.pk}/undo").status_code == 403
