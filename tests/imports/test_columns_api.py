"""A program says what the columns of a foreign file mean, as a person does on the page."""

from typing import Any

import pytest

from evaluations.domain.files import ImportState
from evaluations.imports.lifecycle import continue_import
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import ColumnMapping, Import
from evaluations.models.verdicts import Verdict
from tests.helpers.api_client import API_ROOT, ApiClient

pytestmark = pytest.mark.django_db

FOREIGN = (
    "prompt,gpt4_answer,llama_answer,winner,annotator\n"
    "Why is the sky blue?,Rayleigh.,The sea.,gpt4,ann\n"
    "What is 2+2?,4,5,gpt4,bob\n"
    "Who am I?,You.,Me.,tie,ann\n"
)
SAID: dict[str, Any] = {
    "format": "comparisons",
    "columns": {
        "query": "prompt",
        "response_a": "gpt4_answer",
        "response_b": "llama_answer",
        "choice": "winner",
        "rater": "annotator",
    },
    "values": {"query_id": "#text", "candidate_a": "gpt4", "candidate_b": "llama", "rater_kind": "human"},
    "choices": {"gpt4": "A", "tie": "tie"},
}


def uploaded(asking: ApiClient, name: str = "arena.csv") -> dict[str, Any]:
    answer = asking.client.generic(
        "POST",
        f"{API_ROOT}/evaluations/study/imports?file_name={name}",
        FOREIGN,
        "application/octet-stream",
        headers={"Authorization": f"Bearer {asking.token}"},
    )
    assert answer.status_code == 201, answer.content
    told: dict[str, Any] = answer.json()
    return told


def test_a_file_whose_columns_are_not_known_waits_to_be_told(asking: ApiClient, evaluation: Evaluation) -> None:
    told = uploaded(asking)
    assert (told["state"], told["rows_stored"]) == ("mapping", 0)
    assert "column" in told["reason"]
    columns = asking.get(f"/evaluations/study/imports/{told['id']}/columns").json()
    assert columns["columns"] == ["prompt", "gpt4_answer", "llama_answer", "winner", "annotator"]
    assert columns["rows"][1]["prompt"] == "What is 2+2?"
    assert columns["words"]["winner"] == ["gpt4", "tie"]
    assert columns["suggested"]["columns"]["query"] == "prompt"
    assert "response_b" in columns["fields"]["comparisons"]
    assert not columns["remembered"]


def test_said_they_are_checked_stored_and_remembered(asking: ApiClient, evaluation: Evaluation) -> None:
    at = f"/evaluations/study/imports/{uploaded(asking)['id']}"
    tried = asking.post(f"{at}/columns/try", SAID).json()
    assert (tried["rows"], tried["bad_rows"], tried["refused"]) == (3, 0, "")
    assert tried["samples"][0]["responses"][0] == {"candidate": "gpt4", "text": "Rayleigh."}
    assert Import.objects.get().state == ImportState.MAPPING
    told = asking("PUT", f"{at}/columns", SAID).json()
    assert (told["state"], told["rows_read"], told["rows_bad"]) == ("previewed", 3, 0)
    assert asking.post(f"{at}/store").status_code == 200
    continue_import(Import.objects.get(), seconds=60)
    assert Comparison.objects.count() == 3
    assert sorted(Verdict.objects.values_list("choice", flat=True)) == ["A", "A", "tie"]
    again = uploaded(asking, "more.csv")
    assert again["state"] == "mapping"  # whose its rows are is asked for each file
    assert "candidate_a" in again["reason"]
    said = asking.get(f"/evaluations/study/imports/{again['id']}/columns").json()
    assert (said["remembered"], said["suggested"]) == (True, SAID)
    told = asking("PUT", f"/evaluations/study/imports/{again['id']}/columns", said["suggested"]).json()
    assert (told["state"], told["rows_unchanged"]) == ("previewed", 3)
    assert asking("DELETE", f"/evaluations/study/imports/{again['id']}/columns").status_code == 204
    assert not ColumnMapping.objects.exists()


def test_what_is_suggested_can_be_sent_back_as_it_is(asking: ApiClient, evaluation: Evaluation) -> None:
    at = f"/evaluations/study/imports/{uploaded(asking)['id']}/columns"
    suggested = asking.get(at).json()["suggested"]
    assert asking.post(f"{at}/try", suggested).status_code == 200


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"columns": {"question": "prompt"}}, "body.columns.question", "no such field"),
        ({"columns": {**SAID["columns"], "query": "promt"}}, "body.columns.query", "no column “promt”"),
        ({"columns": {"query": "prompt"}}, "body.columns.response_a", "Choose a column."),
        ({"values": {**SAID["values"], "query": "x"}}, "body.values.query", "fixed value"),
        ({"values": {**SAID["values"], "rater": "ann"}}, "body.values.rater", "not both"),
        ({"values": {**SAID["values"], "rater_kind": "robot"}}, "body.values.rater_kind", "robot"),
    ],
)
def test_what_cannot_be_is_told_at_its_place(
    change: dict[str, Any], field: str, said: str, asking: ApiClient, evaluation: Evaluation
) -> None:
    at = f"/evaluations/study/imports/{uploaded(asking)['id']}/columns"
    for method, path in (("POST", f"{at}/try"), ("PUT", at)):
        answer = asking(method, path, {**SAID, **change})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
        told = {one["field"]: one["message"] for one in answer.json()["errors"]}
        assert said in told[field]
    assert Import.objects.get().state == ImportState.MAPPING


def test_a_file_that_is_stored_is_told_nothing_more(asking: ApiClient, evaluation: Evaluation) -> None:
    at = f"/evaluations/study/imports/{uploaded(asking)['id']}"
    asking("PUT", f"{at}/columns", SAID)
    asking.post(f"{at}/store")
    continue_import(Import.objects.get(), seconds=60)
    for answer in (asking("PUT", f"{at}/columns", SAID), asking.get(f"{at}/columns")):
        assert (answer.status_code, answer.json()["code"]) == (422, "refused")
        assert "before the import" in answer.json()["detail"]
