"""What a model is called: by the form, else by the file's column, else by the file's name; never by an earlier file."""

import io
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluations.domain.errors import ColumnsUnknown, NamesMissing
from evaluations.domain.files import ImportState, ReadOptions
from evaluations.domain.imports import ImportRequest
from evaluations.domain.roles import RaterKind
from evaluations.imports.columns.column_memory import remember_mapping
from evaluations.imports.columns.services import apply_mapping
from evaluations.imports.lifecycle import continue_import
from evaluations.imports.preview import preview_file
from evaluations.imports.services import receive_upload, start_storing
from evaluations.imports.source_files import open_import_path
from evaluations.models.comparisons import Candidate, Comparison, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import ColumnMapping, Import
from evaluations.models.verdicts import Score, Verdict
from tests.factories.imports import comparison_row, encode_jsonl, import_rows, preview_rows, score_row, verdict_row

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def answer(key: str = "q1", response: str = "Because.", **columns: Any) -> dict[str, Any]:
    return {"query_id": key, "query": f"Why {key}?", "response": response, **columns}


def own(key: str = "q1", response: str = "Because.", **columns: Any) -> dict[str, Any]:
    """A row with columns that no format has."""
    return {"frage": f"Why {key}?", "antwort": response, **columns}


OWN = {"frage": "query", "antwort": "response"}
WHOLE = {"query_id": "#text", "candidate": "falcon"}


def parquet(rows: list[dict[str, Any]]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


def csv(rows: list[dict[str, Any]]) -> bytes:
    return "\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]).encode()


def zipped(**files: list[dict[str, Any]]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, rows in files.items():
            archive.writestr(name, encode_jsonl(rows))
    return file.getvalue()


def models(importing: Import) -> dict[str, int]:
    return {one.name: one.rows.get("responses", 0) for one in importing.summary.models}


def received(evaluation: Evaluation, content: bytes, name: str, **reading: Any) -> Import:
    """As the page takes a file."""
    request = ImportRequest(ReadOptions(**reading))
    return receive_upload(evaluation, io.BytesIO(content), name, request, user=None)


# ---- memory --------------------------------------------------------------------------------------


def test_a_name_for_all_rows_of_one_file_does_not_name_the_model_of_the_next(evaluation: Evaluation) -> None:
    first = received(evaluation, encode_jsonl([own("q1"), own("q2")]), "falcon.jsonl")
    assert first.state == ImportState.MAPPING
    apply_mapping(first, ReadOptions(format="responses", mapping=OWN, constants=WHOLE), user=None)
    assert models(first) == {"falcon": 2}
    assert ColumnMapping.objects.get().constants == {"query_id": "#text", "candidate": ""}
    second = received(evaluation, encode_jsonl([own("q1", "Other."), own("q2", "Other.")]), "llama-3.1.jsonl")
    assert (second.state, models(second)) == (ImportState.PREVIEWED, {"llama-3.1": 2})
    assert second.models_in_words == "Model (from the file name): llama-3.1 (2 responses)."
    third = received(evaluation, encode_jsonl([own("q1", "Third.")]), "rows.jsonl", candidate="mistral")
    assert models(third) == {"mistral": 1}
    assert third.models_in_words == "Model (set for the whole file): mistral (1 response)."


def test_names_that_were_stored_with_a_mapping_are_not_read(evaluation: Evaluation) -> None:
    """As evaluations and backups hold them that were made before."""
    remember_mapping(
        evaluation, ["frage", "antwort"], ReadOptions(format="responses", mapping=OWN, constants=WHOLE), None
    )
    ColumnMapping.objects.update(constants=WHOLE)
    assert models(preview_rows(evaluation, encode_jsonl([own()]), name="llama.jsonl")) == {"llama": 1}


def test_a_column_that_names_the_models_is_remembered(evaluation: Evaluation) -> None:
    mapping = {**OWN, "modell": "candidate"}
    columns = ["frage", "antwort", "modell"]
    remember_mapping(
        evaluation, columns, ReadOptions(format="responses", mapping=mapping, constants={"query_id": "#text"}), None
    )
    rows = [own(modell="falcon"), own(modell="llama")]
    assert models(preview_rows(evaluation, encode_jsonl(rows))) == {"falcon": 1, "llama": 1}


PAIR = {"q": "Why?", "links": "x", "rechts": "y", "wahl": "A"}
PAIRED = {"q": "query", "links": "response_a", "rechts": "response_b", "wahl": "choice"}
NAMES = {"candidate_a": "m1", "candidate_b": "m2", "rater": "ann", "rater_kind": "human"}


def test_models_raters_and_their_kind_are_asked_for_each_file_with_known_columns(evaluation: Evaluation) -> None:
    reading = ReadOptions(format="comparisons", mapping=PAIRED, constants={"query_id": "#text", **NAMES})
    remember_mapping(evaluation, list(PAIR), reading, None)
    with pytest.raises(NamesMissing) as refused:
        preview_rows(evaluation, encode_jsonl([PAIR]))
    assert "--set candidate_a=… --set candidate_b=… --set rater=… --set rater_kind=…" in str(refused.value)
    waiting = received(evaluation, encode_jsonl([PAIR]), "second.jsonl")
    assert (waiting.state, waiting.rows_stored) == (ImportState.MAPPING, 0)
    given = {"candidate_a": "m3", "candidate_b": "m4"}
    checked = preview_rows(
        evaluation, encode_jsonl([PAIR]), constants=given, rater="bob", rater_kind=RaterKind.JUDGE, name="second.jsonl"
    )
    assert checked.rows_bad == 0
    assert [one.name for one in checked.summary.models] == ["m3", "m4"]
    assert checked.summary.samples[0].verdicts[0].rater == "bob"


def test_an_aspect_for_all_rows_is_remembered_with_its_column(evaluation: Evaluation) -> None:
    constants = {"query_id": "#text", "aspect": "style", **NAMES}
    remember_mapping(
        evaluation, list(PAIR), ReadOptions(format="comparisons", mapping=PAIRED, constants=constants), None
    )
    checked = preview_rows(evaluation, encode_jsonl([PAIR]), constants=NAMES)
    assert checked.summary.aspects == ["style"]


# ---- the form, the column, the file's name -------------------------------------------------------


@pytest.mark.parametrize("written", [encode_jsonl, parquet, csv])
def test_the_form_comes_before_the_column_and_what_goes_unused_is_counted(evaluation: Evaluation, written: Any) -> None:
    rows = [answer(f"q{number}", candidate="alpha" if number else "beta") for number in range(3)]
    importing = preview_rows(evaluation, written(rows), name="gpt-4.jsonl", candidate="omega")
    assert models(importing) == {"omega": 3}
    assert importing.summary.warnings == [
        "The model is “omega”, set for the whole file. The names in the file are not used: "
        "“alpha” (2 rows), “beta” (1 row)."
    ]


@pytest.mark.parametrize("written", [encode_jsonl, parquet, csv])
def test_the_column_comes_before_the_files_name(evaluation: Evaluation, written: Any) -> None:
    importing = preview_rows(evaluation, written([answer(candidate="alpha")]), name="gpt-4.jsonl")
    assert (models(importing), importing.models_in_words) == ({"alpha": 1}, "Model: alpha (1 response).")


@pytest.mark.parametrize("written", [encode_jsonl, parquet, csv])
def test_a_file_without_the_column_names_its_model_itself(evaluation: Evaluation, written: Any) -> None:
    importing = preview_rows(evaluation, written([answer()]), name="runs/gpt-3.5-turbo.jsonl.gz")
    assert models(importing) == {"gpt-3.5-turbo": 1}


def test_of_a_files_name_only_endings_of_files_are_left_out(evaluation: Evaluation) -> None:
    for name, model in (("claude.sonnet.jsonl", "claude.sonnet"), ("Mixtral 8x7B.CSV.GZ", "Mixtral 8x7B")):
        assert models(preview_rows(evaluation, encode_jsonl([answer()]), name=name)) == {model: 1}


def test_a_value_for_all_rows_is_the_form_too(evaluation: Evaluation) -> None:
    rows = [answer(candidate="alpha")]
    importing = preview_rows(evaluation, encode_jsonl(rows), format="responses", constants={"candidate": "omega"})
    assert models(importing) == {"omega": 1}
    assert "not used: “alpha” (1 row)" in importing.summary.warnings[0]
    start_storing(importing, skip_bad=False, user=None)
    continue_import(importing)
    stored = Response.objects.get()
    assert (stored.candidate.name, stored.metadata) == ("omega", {"candidate of the file": "alpha"})


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "Why?", "response": "x", "model": "alpha"},
        {"instruction": "Why?", "output": "x", "generator": "alpha"},
        {"id": 1, "instruction": "Why?", "source_id": "s", "output": "x", "generator": "alpha"},
    ],
    ids=["auto-arena", "alpaca-eval", "just-eval"],
)
def test_in_files_of_others_the_order_is_the_same(evaluation: Evaluation, row: dict[str, Any]) -> None:
    assert models(preview_rows(evaluation, encode_jsonl([row]), name="file.jsonl")) == {"alpha": 1}
    importing = preview_rows(evaluation, encode_jsonl([row]), name="file.jsonl", candidate="omega")
    assert models(importing) == {"omega": 1}
    assert "not used: “alpha” (1 row)" in importing.summary.warnings[0]


def test_scores_are_of_the_model_that_the_form_names(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    importing = import_rows(evaluation, score_row(candidate="beta"), candidate="alpha")
    assert Score.objects.get().response.candidate.name == "alpha"
    assert "not used: “beta” (1 row)" in importing.summary.warnings[0]


def test_a_name_that_names_nothing_is_reported(evaluation: Evaluation) -> None:
    importing = preview_rows(evaluation, encode_jsonl([comparison_row()]), candidate="omega")
    assert importing.summary.warnings == ["The name “omega” is not used, because the rows name their models."]
    assert importing.models_in_words == "Models: alpha (1 comparison), beta (1 comparison)."


def test_blank_space_round_a_name_makes_no_other_model(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row(candidate_a=" alpha", candidate_b="beta\u00a0"))
    import_rows(evaluation, answer("q2", candidate="alpha "))
    import_rows(evaluation, verdict_row(candidate_a="alpha ", rater=" ann "))
    assert set(Candidate.objects.values_list("name", flat=True)) == {"alpha", "beta"}
    assert Verdict.objects.get().rater.name == "ann"


@pytest.mark.parametrize("name", ["Alpha", "alpha\u200b", "ａｌｐｈａ", "al pha"])
def test_names_that_look_alike_are_named_also_where_one_is_here_already(evaluation: Evaluation, name: str) -> None:
    import_rows(evaluation, comparison_row())
    first, second = sorted(("alpha", name))
    told = f"“{first}” and “{second}” look alike but count as different models. If they are the same, use one name."
    assert told in preview_rows(evaluation, encode_jsonl([comparison_row("q2", candidate_a=name)])).summary.warnings
    assert told not in preview_rows(evaluation, encode_jsonl([comparison_row("q2")])).summary.warnings


def test_a_blank_cell_is_not_filled_in_by_the_files_name(evaluation: Evaluation) -> None:
    importing = preview_rows(
        evaluation, encode_jsonl([answer(candidate="alpha"), answer("q2", candidate="")]), name="gpt-4.jsonl"
    )
    assert importing.bad_rows == [
        {"line": 2, "reason": "`candidate` is missing. Add the column, or set one model for the whole file"}
    ]


@pytest.mark.parametrize("name", ["train-00000-of-00001.parquet", "part-3.jsonl", "data.csv", "0001.jsonl"])
def test_a_piece_of_a_file_names_no_model(evaluation: Evaluation, name: str) -> None:
    importing = preview_rows(evaluation, encode_jsonl([answer()]), name=name)
    assert importing.bad_rows[0]["reason"].startswith("the file name does not name the model")


def test_a_column_that_may_name_the_models_comes_before_the_files_name(evaluation: Evaluation) -> None:
    with pytest.raises(ColumnsUnknown) as refused:
        preview_rows(evaluation, encode_jsonl([answer(model_name="alpha")]), name="gpt-4.jsonl")
    assert "no column `candidate`, but `model_name` may name the models" in str(refused.value)
    assert models(preview_rows(evaluation, encode_jsonl([answer(model_name="alpha")]), candidate="omega")) == {
        "omega": 1
    }


def test_what_came_without_a_name_has_no_model(evaluation: Evaluation) -> None:
    importing = preview_rows(evaluation, encode_jsonl([answer()]), name="upload")
    assert importing.bad_rows[0]["reason"].startswith("the file name does not name the model")


# ---- several files in one ------------------------------------------------------------------------


def test_each_file_of_an_archive_names_its_own_model(evaluation: Evaluation) -> None:
    content = zipped(**{"out/gpt-4.jsonl": [answer()], "out/llama-3.jsonl": [answer(response="No.")]})
    assert models(preview_rows(evaluation, content, name="outputs.zip")) == {"gpt-4": 1, "llama-3": 1}


def test_the_only_file_of_an_archive_names_the_model(evaluation: Evaluation) -> None:
    assert models(preview_rows(evaluation, zipped(**{"gpt-4.jsonl": [answer()]}), name="outputs.zip")) == {"gpt-4": 1}


def test_files_of_one_name_are_told_apart_by_their_folders(evaluation: Evaluation) -> None:
    content = zipped(**{"gpt-4/answers.jsonl": [answer()], "llama/answers.jsonl": [answer(response="No.")]})
    assert models(preview_rows(evaluation, content, name="outputs.zip")) == {"gpt-4/answers": 1, "llama/answers": 1}


@pytest.mark.parametrize("names", [("part-0", "part-1"), ("train-00000-of-00002", "train-00001-of-00002")])
def test_pieces_of_a_file_are_of_the_model_that_the_archive_names(
    evaluation: Evaluation, names: tuple[str, str]
) -> None:
    content = zipped(**{f"{name}.jsonl": [answer(name)] for name in names})
    assert models(preview_rows(evaluation, content, name="gpt-4.zip")) == {"gpt-4": 2}
    inside = zipped(**{f"gpt-4/{name}.jsonl": [answer(name)] for name in names})
    assert models(preview_rows(evaluation, inside, name="outputs.zip")) == {"gpt-4": 2}


def test_each_file_of_a_folder_names_its_own_model(evaluation: Evaluation, tmp_path: Path) -> None:
    for name in ("gpt-4", "llama-3"):
        (tmp_path / f"{name}.jsonl").write_bytes(encode_jsonl([answer(response=name)]))
    with open_import_path(str(tmp_path)) as (file, name):
        importing = preview_file(evaluation, file, name, ImportRequest(), user=None)
    assert models(importing) == {"gpt-4": 1, "llama-3": 1}


# ---- the first line ------------------------------------------------------------------------------


def test_the_first_line_counts_the_good_rows_of_each_model(evaluation: Evaluation) -> None:
    rows = [comparison_row("q1"), comparison_row("q2", candidate_b="gamma"), comparison_row("q3", response_b=None)]
    importing = preview_rows(evaluation, encode_jsonl(rows))
    assert importing.models_in_words == "Models: alpha (2 comparisons), beta (1 comparison), gamma (1 comparison)."
    import_rows(evaluation, *rows, skip_bad=True)
    again = preview_rows(evaluation, encode_jsonl([verdict_row(), verdict_row(rater="bob")]))
    assert again.models_in_words == "Models: alpha (2 verdicts), beta (2 verdicts)."


def test_the_first_line_names_the_largest_of_many_models_and_counts_the_others(evaluation: Evaluation) -> None:
    rows = [answer(candidate=f"model-{number:03d}") for number in range(120)]
    importing = preview_rows(evaluation, encode_jsonl(rows))
    assert importing.models_in_words.endswith("model-007 (1 response), 112 more.")
    assert (len(importing.summary.models), importing.summary.models_number) == (100, 120)


def test_what_is_stored_is_what_the_first_line_named(evaluation: Evaluation) -> None:
    for model in ("falcon", "llama"):
        importing = preview_rows(evaluation, encode_jsonl([answer(response=model)]), name=f"{model}.jsonl")
        start_storing(importing, skip_bad=False, user=None)
        continue_import(importing)
    named = Counter(Response.objects.values_list("candidate__name", flat=True))
    assert named == {"falcon": 1, "llama": 1}
    assert Comparison.objects.count() == 1
