"""``import_comparisons``, ``import_verdicts``, ``import_scores``: one clear line, and never a traceback."""

import gzip
import hashlib
import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings, settings
from django.core.management import CommandError, call_command

from evaluations.domain.files import ImportState
from evaluations.models.comparisons import Candidate, Comparison, Query, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.jobs import Job
from evaluations.models.judges import Rater
from evaluations.models.rubrics import RubricAspect
from evaluations.models.verdicts import Score, Verdict
from tests.factories.imports import COMPARISON, comparison_row, encode_jsonl, score_row, verdict_row
from tests.helpers.broken_files import WHOLE
from tests.helpers.packed_files import as_arrow_stream

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(content: bytes, name: str = "rows.jsonl") -> str:
        path = tmp_path / name
        path.write_bytes(content)
        return str(path)

    return write


def said(command: str, *arguments: str) -> str:
    out = io.StringIO()
    call_command(command, "study", *arguments, stdout=out)
    return out.getvalue()


def refused(command: str, *arguments: str) -> str:
    with pytest.raises(CommandError) as error:
        said(command, *arguments)
    return str(error.value)


def test_a_file_is_stored_and_summed_up_after_its_models(evaluation: Evaluation, written: Any) -> None:
    path = written(encode_jsonl([comparison_row(), comparison_row("q2")]))
    assert said("import_comparisons", path) == (
        "Models: alpha (2 comparisons), beta (2 comparisons).\n"
        "rows.jsonl: 2 rows read, 2 imported (2 prompts, 4 responses, 2 comparisons), 0 duplicates, 0 invalid.\n"
    )
    again = said("import_comparisons", path)
    assert again.endswith("rows.jsonl: 2 rows read, 0 imported, 2 duplicates, 0 invalid.\n")


def test_what_follows_an_import_waits_for_a_worker_after_a_command_too(evaluation: Evaluation, written: Any) -> None:
    said("import_comparisons", written(encode_jsonl([comparison_row()])))
    assert {"fill_queue", "index_import", "render_ahead"} <= set(Job.objects.due().values_list("kind", flat=True))


def test_a_bad_row_is_named_by_line_and_nothing_is_stored(evaluation: Evaluation, written: Any) -> None:
    lines = [json.dumps(comparison_row(f"q{number}")) for number in range(1, 21)]
    lines[16] = "{"
    path = written("\n".join(lines).encode())
    out = io.StringIO()
    with pytest.raises(CommandError) as error:
        call_command("import_comparisons", "study", path, stdout=out)
    assert str(error.value) == "rows.jsonl has 1 invalid row. Fix the file, or import the valid rows only."
    assert out.getvalue().splitlines()[1].startswith("line 17: not valid JSON")
    assert not Comparison.all_rows.exists()
    importing = Import.objects.get()
    assert (importing.state, bool(importing.file)) == (ImportState.CANCELLED, False)
    assert "20 rows read, 19 imported" in said("import_comparisons", path, "--skip-bad")
    assert Comparison.objects.count() == 19


def test_what_would_be_stored_is_said_and_nothing_stored(evaluation: Evaluation, written: Any) -> None:
    rows = [{"query_id": "q1", "query": "Why?", "candidate": name, "response": name} for name in ("a", "b", "c")]
    path = written(encode_jsonl([*rows, {"query_id": "q1"}]))
    told = said("import_comparisons", path, "--dry-run", "--format", "responses")
    assert told == (
        "Models: a (1 response), b (1 response), c (1 response).\n"
        "line 4: query is missing\n"
        "rows.jsonl: 4 rows read, 3 would be imported (1 prompt, 3 responses, 3 comparisons), "
        "0 duplicates, 1 invalid.\n"
    )
    assert not Query.all_rows.exists()
    importing = Import.objects.get()
    assert (importing.state, bool(importing.file)) == (ImportState.CANCELLED, False)
    assert "1 prompt, 3 responses, 3 comparisons" in said("import_comparisons", path, "--skip-bad")


def test_an_unknown_candidate_in_a_verdict_row_is_named_by_line(evaluation: Evaluation, written: Any) -> None:
    said("import_comparisons", written(encode_jsonl([comparison_row()])))
    path = written(encode_jsonl([verdict_row(), verdict_row(candidate_b="omega")]), "verdicts.jsonl")
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("import_verdicts", "study", path, stdout=out)
    assert out.getvalue().splitlines()[1:] == ["line 2: model “omega” is not in this evaluation"]
    assert not Verdict.all_rows.exists()
    assert not Rater.objects.exists()


def test_verdicts_that_name_nobody_are_given_a_rater(evaluation: Evaluation, written: Any) -> None:
    said("import_comparisons", written(encode_jsonl([comparison_row("7")])))
    path = written(json.dumps([{"idx": 7, "gpt_result": "1"}]).encode(), "results.json")
    told = said("import_verdicts", path, "--rater", "gpt-3.5-turbo", "--format", "pandalm")
    assert told == (
        "No rubric of this evaluation has the aspect overall. The import adds a rubric named “imported” for it.\n"
        "results.json: 1 row read, 1 imported (1 verdict), 0 duplicates, 0 invalid.\n"
    )
    assert Verdict.objects.get().rater.name == "gpt-3.5-turbo"


def test_scores_are_stored_and_their_meaning_is_told(evaluation: Evaluation, written: Any) -> None:
    said("import_comparisons", written(encode_jsonl([comparison_row()])))
    rows = [score_row(value=1), score_row(candidate="beta", value=2)]
    path = written(encode_jsonl([{**row, "rater": None, "rater_kind": None} for row in rows]), "ranks.jsonl")
    options = ("--rater", "ann", "--rater-kind", "human", "--lower-is-better", "--derive-pairs", "0")
    assert said("import_scores", path, *options) == (
        "Models: alpha (1 score), beta (1 score).\n"
        "The import adds a rubric named “imported scores” for overall, with the scale of the file.\n"
        "Lower scores are better: overall.\n"
        "Responses with scores are paired. Scores within 0 of each other are a tie.\n"
        "ranks.jsonl: 2 rows read, 2 imported (2 scores), 0 duplicates, 0 invalid.\n"
    )
    assert list(Score.objects.order_by("pk").values_list("rater__name", "value")) == [("ann", 1.0), ("ann", 2.0)]
    assert RubricAspect.objects.get(version__rubric__name="imported scores").lower_is_better


def test_a_bad_score_is_named_by_line_and_nothing_is_stored(evaluation: Evaluation, written: Any) -> None:
    said("import_comparisons", written(encode_jsonl([comparison_row()])))
    path = written(
        b"query_id,candidate,rater,rater_kind,value\nq1,alpha,ann,human,4\nq1,beta,ann,human,high\n", "s.csv"
    )
    out = io.StringIO()
    with pytest.raises(CommandError) as error:
        call_command("import_scores", "study", path, stdout=out)
    assert str(error.value) == "s.csv has 1 invalid row. Fix the file, or import the valid rows only."
    assert out.getvalue().splitlines()[1:] == ["line 3: value “high” is not a number such as 4 or 3.5"]
    assert not Score.all_rows.exists()
    assert said("import_scores", path, "--skip-bad").endswith(
        "2 rows read, 1 imported (1 score), 0 duplicates, 1 invalid.\n"
    )


def test_what_scores_cannot_mean_is_said_in_one_line(evaluation: Evaluation, written: Any) -> None:
    said("import_comparisons", written(encode_jsonl([comparison_row()])))
    path = written(encode_jsonl([score_row(value=1), score_row(candidate="beta", value=2)]))
    assert refused("import_scores", path, "--derive-pairs", "-1") == "The tie margin must be 0 or more."
    assert refused("import_scores", path, "--derive-pairs", "1") == (
        "A tie margin of 1 makes every pair of overall scores a tie: they range from 1 to 2."
    )
    assert not Import.objects.filter(state=ImportState.PREVIEWED).exists()


def test_columns_can_be_mapped_and_ids_prefixed(evaluation: Evaluation, written: Any) -> None:
    row = {**COMPARISON, "prompt": "Why?", "id": "1"}
    del row["query"], row["query_id"]
    said(
        "import_comparisons", written(encode_jsonl([row])), "--map", "prompt=query", "id=query_id", "--id-prefix", "x-"
    )
    assert Comparison.objects.get().query.key == "x-1"


def test_responses_are_paired_as_asked(evaluation: Evaluation, written: Any) -> None:
    rows = [
        {"query_id": "q", "query": "Why?", "candidate": name, "response": f"Because {name}."}
        for name in ("alpha", "beta", "gamma", "delta")
    ]
    path = written(encode_jsonl(rows))
    assert "3 comparisons)" in said("import_comparisons", path, "--pair", "baseline:beta")
    assert "3 comparisons)" in said("import_comparisons", path, "--pair", "all")
    assert "4 rows read, 0 imported, 4 duplicates" in said("import_comparisons", path, "--pair", "all")
    assert Comparison.objects.count() == 6


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--pair", "some"], "Unknown pairing “some”. Use all, baseline:NAME, random:N or adjacent."),
        (["--map", "prompt"], "--map takes COLUMN=FIELD, not “prompt”."),
        (
            ["--map", "prompt=query"],
            "rows.jsonl has no column “prompt” to map. "
            "It has: query_id, query, candidate_a, response_a, candidate_b, response_b.",
        ),
        (
            ["--format", "responses"],
            "rows.jsonl has no column “candidate” and no column “response”, required by the format responses.",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    evaluation: Evaluation, written: Any, arguments: list[str], sentence: str
) -> None:
    assert refused("import_comparisons", written(encode_jsonl([comparison_row()])), *arguments) == sentence


def test_a_baseline_that_is_nowhere_is_refused(evaluation: Evaluation, written: Any) -> None:
    path = written(encode_jsonl([{"query_id": "q", "query": "Why?", "candidate": "alpha", "response": "x"}]))
    assert refused("import_comparisons", path, "--pair", "baseline:omega") == (
        "The baseline model “omega” does not exist. Choose one of: alpha."
    )


def test_the_other_commands_material_is_refused(evaluation: Evaluation, written: Any) -> None:
    assert refused("import_verdicts", written(encode_jsonl([comparison_row()]))) == (
        "rows.jsonl has comparisons, not verdicts. Import it as comparisons."
    )
    assert refused("import_scores", written(encode_jsonl([verdict_row()]))) == (
        "rows.jsonl has verdicts, not scores. Import it as verdicts."
    )
    assert refused("import_comparisons", written(encode_jsonl([score_row()]))) == (
        "rows.jsonl has scores, not comparisons. Import it as scores."
    )


def test_an_evaluation_or_file_that_is_not_there_is_said(evaluation: Evaluation, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.jsonl")
    assert refused("import_comparisons", missing) == f"Cannot read {missing}: No such file or directory."
    assert refused("import_comparisons", str(tmp_path)) == (
        f"{tmp_path.name} contains no data file (JSONL, JSON, CSV, TSV, Parquet, Arrow): it is empty."
    )
    with pytest.raises(CommandError, match="There is no evaluation at “nowhere”"):
        call_command("import_comparisons", "nowhere", missing)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("empty.jsonl", b"", "empty.jsonl is empty (0 bytes)."),
        ("binary.jsonl", bytes(range(256)) * 256, "binary.jsonl is a binary file, not text"),
        ("missing.csv", b"query_id,query,candidate_a,response_a,candidate_b\n1,2,3,4,5\n", "no column “response_b”"),
        ("garbage.txt", b"neither end nor line " * 10_000_000, "longer than 16 MB. This is not a file of rows."),
    ],
    ids=["empty", "binary", "missing column", "200 MB of garbage"],
)
def test_a_bad_file_is_one_clear_message_and_nothing_is_stored(
    evaluation: Evaluation, written: Any, name: str, content: bytes, sentence: str
) -> None:
    assert sentence in refused("import_comparisons", written(content, name))
    assert not Import.objects.exists()
    assert not Comparison.all_rows.exists()


def test_a_folder_is_imported_and_kept_as_one_zip(evaluation: Evaluation, tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    (folder / "train").mkdir(parents=True)
    (folder / "dataset_dict.json").write_text("{}")
    (folder / "train" / "data-00000-of-00001.arrow").write_bytes(
        as_arrow_stream([comparison_row(), comparison_row("q2")])
    )
    assert "saved.zip: 2 rows read, 2 imported" in said("import_comparisons", str(folder))
    importing = Import.objects.get()
    assert hashlib.sha256(importing.file.read()).hexdigest() == importing.sha256
    assert Comparison.objects.get(query__key="q2").metadata == {"split": "train"}
    assert "0 imported, 2 duplicates" in said("import_comparisons", importing.file.path)
    assert not list(Path(settings.SCRATCH_DIR).glob("*.upload*"))


def test_a_file_has_only_so_many_rows(evaluation: Evaluation, written: Any, settings: LazySettings) -> None:
    settings.MAX_ROWS = 2
    assert refused(
        "import_comparisons", written(encode_jsonl([comparison_row(f"q{number}") for number in range(3)]))
    ) == (
        "rows.jsonl has more than 2 rows, the limit of this site (JUDGEWEB_MAX_ROWS). "
        "Split it, or ask for a higher limit."
    )
    assert not Import.objects.exists()


def test_a_packed_file_holds_only_so_much(evaluation: Evaluation, written: Any, settings: LazySettings) -> None:
    settings.MAX_UNPACKED_BYTES = 1024 * 1024
    packed = gzip.compress(encode_jsonl([comparison_row(f"q{number}") for number in range(9_000)]))
    assert refused("import_comparisons", written(packed)) == (
        "rows.jsonl is larger than 1 MB when unpacked, the limit of this site (JUDGEWEB_MAX_UNPACKED_MB). "
        "Split it, or ask for a higher limit."
    )
    assert not Import.objects.exists()


def test_columns_are_mapped_set_and_translated_and_that_is_remembered(evaluation: Evaluation, written: Any) -> None:
    path = written(b"prompt,left,right,winner\nWhy?,Because.,No idea.,first\n", "arena.csv")
    told = said(
        *("import_comparisons", path, "--map", "prompt=query", "left=response_a", "right=response_b", "winner=choice"),
        *("--set", "query_id=#text", "candidate_a=m1", "candidate_b=m2", "rater=ann", "rater_kind=human"),
        *("--choice", "First=A", "--remember"),
    )
    assert "1 imported (1 prompt, 2 responses, 1 comparison, 1 verdict)" in told
    path = written(b"prompt,left,right,winner\nWho?,Me.,You.,first\n", "arena.csv")
    assert "match none" in refused("import_comparisons", path, "--as-it-is")
    assert "first=left: a choice is one of A, B, tie" in refused("import_comparisons", path, "--choice", "first=left")
    names = ("candidate_a=m3", "candidate_b=m4", "rater=bob", "rater_kind=judge")
    told = refused("import_comparisons", path)
    assert "--set candidate_a=… --set candidate_b=… --set rater=… --set rater_kind=…" in told
    told = said("import_comparisons", path, "--set", *names)
    assert "Using the column mapping that is remembered for files with these columns." in told
    assert "1 verdict)" in told
    verdict = Verdict.objects.select_related("comparison__response_a__candidate", "rater").latest("pk")
    assert (verdict.comparison.response_a.candidate.name, verdict.rater.name, verdict.rater.kind) == (
        *("m3", "bob", "judge"),
    )


@pytest.mark.parametrize(("name", "content", "sentence"), WHOLE.values(), ids=list(WHOLE))
def test_a_hostile_file_is_refused_by_the_command_in_one_line(
    evaluation: Evaluation, written: Any, kept: Callable[[], list[str]], name: str, content: bytes, sentence: str
) -> None:
    told = refused("import_comparisons", written(content, name))
    assert sentence in told
    assert "\n" not in told
    assert not Import.objects.exists()
    assert not Query.all_rows.exists()
    assert kept() == []


def test_a_table_of_ones_own_is_told_the_options_with_which_it_comes_in(evaluation: Evaluation, written: Any) -> None:
    path = written(b"question,gpt4_answer,claude answer,preferred,annotator\nWhy?,x,y,Claude,ann\n", "own.csv")
    _, _, options = refused("import_comparisons", path).partition(" Try: ")
    said("import_comparisons", path, *shlex.split(options))
    verdict = Verdict.objects.get()
    assert (verdict.choice, verdict.rater.name, verdict.comparison.response_a.candidate.name) == ("A", "ann", "claude")


def test_the_model_is_named_by_the_option_the_column_or_the_file(evaluation: Evaluation, written: Any) -> None:
    row = {"query_id": "q1", "query": "Why?", "response": "x"}
    by_file = said("import_comparisons", written(encode_jsonl([row]), "falcon-7b.jsonl"), "--dry-run")
    assert by_file.splitlines()[0] == "Model (from the file name): falcon-7b (1 response)."
    path = written(encode_jsonl([{**row, "candidate": "alpha"}]), "falcon-7b.jsonl")
    assert said("import_comparisons", path, "--dry-run").splitlines()[0] == "Model: alpha (1 response)."
    told = said("import_comparisons", path, "--candidate", "omega").splitlines()
    assert told[0] == "Model (set for the whole file): omega (1 response)."
    assert "not used: “alpha” (1 row)" in told[1]
    assert Candidate.objects.get().name == "omega"


@pytest.mark.parametrize(
    ("decided", "told", "texts"),
    [
        ("keep", "1 imported", ["New.", "Old."]),
        ("replace", "1 imported", ["New."]),
        ("skip", "0 imported, 0 duplicates, 1 skipped, 0 invalid", ["Old."]),
    ],
)
def test_what_happens_to_a_second_response_is_an_option(
    evaluation: Evaluation, written: Any, decided: str, told: str, texts: list[str]
) -> None:
    row = {"query_id": "q1", "query": "Why?", "candidate": "alpha"}
    said("import_comparisons", written(encode_jsonl([{**row, "response": "Old."}])))
    path = written(encode_jsonl([{**row, "response": "New."}]))
    assert "1 invalid row" in refused("import_comparisons", path)
    assert told in said("import_comparisons", path, "--new-response", decided)
    assert sorted(one.text for one in Response.objects.all()) == texts


def test_an_import_is_undone_by_its_number(evaluation: Evaluation, written: Any) -> None:
    said("import_comparisons", written(encode_jsonl([comparison_row()])))
    number = str(Import.objects.get().pk)
    assert said("undo_import", number) == ("Undone: rows.jsonl (removed 1 prompt, 2 responses, 1 comparison).\n")
    assert not Query.all_rows.exists()
    assert refused("undo_import", number) == "rows.jsonl was already undone."
    assert refused("undo_import", "999999") == "There is no import 999999 in “study”."


NUMBERED = [{"q": f"{number}?", "r1": "a", "r2": "b", "p": number} for number in (-2, -1, 0)]
MAPPED = ("--format", "comparisons", "--map", "q=query", "r1=response_a", "r2=response_b", "p=choice", "--set")
WHOLE_FILE = ("query_id=#text", "candidate_a=x", "candidate_b=y", "rater=ann", "rater_kind=human")


def test_labels_below_0_are_given_their_meaning_as_they_are_written(evaluation: Evaluation, written: Any) -> None:
    path = written(encode_jsonl(NUMBERED))
    said("import_comparisons", path, *MAPPED, *WHOLE_FILE, "--choice", "-2=A", "-1=B", "0=tie")
    assert [one.choice for one in Verdict.objects.order_by("comparison__query__text")] == ["B", "A", "tie"]


@pytest.mark.parametrize(
    "arguments",
    [("--choice=-2=A", "--choice=-1=B", "--choice=0=tie"), ("--choice", "0=tie", "-1=B", "--choice", "-2=A")],
)
def test_labels_below_0_may_come_in_any_order_and_form(
    evaluation: Evaluation, written: Any, arguments: tuple[str, ...]
) -> None:
    said("import_comparisons", written(encode_jsonl(NUMBERED)), *MAPPED, *WHOLE_FILE, *arguments)
    assert sorted(one.choice for one in Verdict.objects.all()) == ["A", "B", "tie"]


def test_labels_columns_and_values_may_hold_minus_and_equals_signs(evaluation: Evaluation, written: Any) -> None:
    rows = [{"-q": "Why?", "r1": "a", "r2": "b", "p=q": label} for label in ("-", "A=>B", "-.5")]
    rows = [{**row, "-q": f"{number}"} for number, row in enumerate(rows)]
    mapping = ("--map", "-q=query", "r1=response_a", "r2=response_b", "p=q=choice")
    choices = ("--choice", "-=tie", "A=>B=B", "-.5=A")
    path = written(encode_jsonl(rows))
    said("import_comparisons", path, "--format", "comparisons", *mapping, "--set", *WHOLE_FILE, *choices)
    assert sorted(one.choice for one in Verdict.objects.all()) == ["A", "B", "tie"]


@pytest.mark.parametrize("labels", [(0, 1, 2), (-1, 0, 1), (1, 2, 3), (0, 1)])
def test_labels_that_are_numbers_are_asked_for(evaluation: Evaluation, written: Any, labels: tuple[int, ...]) -> None:
    rows = [{"prompt": f"{one}?", "response 1": "a", "response 2": "b", "label": one} for one in labels]
    told = refused("import_comparisons", written(encode_jsonl(rows)))
    words = " ".join(f"{one}=CHOICE" for one in sorted(map(str, labels)))
    assert told.endswith(f"--choice {words} with A, B, tie, both_bad for each CHOICE.")
    assert not Comparison.all_rows.exists()


def test_an_option_that_is_misspelled_is_refused(evaluation: Evaluation, written: Any) -> None:
    with pytest.raises(CommandError, match="unrecognized arguments: --choise=-2=A"):
        said("import_comparisons", written(encode_jsonl(NUMBERED)), "--choise=-2=A")
