import hashlib
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from evaluations.domain.files import ExportState
from evaluations.exports import writer
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from tests.factories.evaluations import make_comparison

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def one_comparison(evaluation: Evaluation) -> None:
    make_comparison(evaluation)


@pytest.mark.parametrize("written_as", ["jsonl", "csv"])
def test_it_writes_the_file_and_says_how_many_rows_and_which_checksum(
    evaluation: Evaluation, tmp_path: Path, written_as: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "labels"
    out.write_text("what stood here before")
    call_command("export", "study", "--format", written_as, "--out", str(out))
    export = Export.objects.get()
    assert (export.state, export.rows, export.user) == (ExportState.DONE, 1, None)
    assert export.sha256 == hashlib.sha256(out.read_bytes()).hexdigest()
    assert capsys.readouterr().out == f"Wrote {out}: rows 1, SHA-256 {export.sha256}\n"
    beside = tmp_path / "labels.manifest.json"
    assert sorted(tmp_path.iterdir()) == [out, beside]
    told = json.loads(beside.read_text())
    assert told["file"] == {"name": export.file_name, "sha256": export.sha256, "bytes": export.size_bytes, "rows": 1}


def test_what_was_left_out_is_said_in_words(
    evaluation: Evaluation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "pairs.jsonl")
    call_command("export", "study", "--format", "dpo", "--aspect", "clarity", "--out", out)
    assert capsys.readouterr().out.splitlines()[1:] == ["excluded: 1 without a label"]


def refused(*arguments: str) -> str:
    with pytest.raises(CommandError) as error:
        call_command("export", *arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_an_unknown_evaluation_is_one_clear_line(tmp_path: Path) -> None:
    assert "nowhere" in refused("nowhere", "--format", "csv", "--out", str(tmp_path / "x.csv"))


@pytest.mark.parametrize("written_as", ["xlsx", "toml"])
def test_a_format_that_is_not_there_is_refused_with_those_that_are(
    evaluation: Evaluation, tmp_path: Path, written_as: str
) -> None:
    assert "Choose one of jsonl, csv" in refused("study", "--format", written_as, "--out", str(tmp_path / "x"))
    assert not Export.objects.exists()
    assert not list(tmp_path.iterdir())


def test_a_path_that_cannot_be_written_is_refused_before_anything_is_recorded(
    evaluation: Evaluation, tmp_path: Path
) -> None:
    for path in (tmp_path, tmp_path / "missing" / "x.csv"):
        assert f"{path} cannot be written" in refused("study", "--format", "csv", "--out", str(path))
    assert not Export.objects.exists()


def test_an_export_that_breaks_off_leaves_the_old_file_as_it_was(
    evaluation: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*args: object) -> None:
        raise OSError(28, "No space left on device")

    out = tmp_path / "labels.csv"
    out.write_text("what stood here before")
    monkeypatch.setattr(writer, "finish_export", full_disk)
    assert "disk is almost full. Nothing was saved" in refused("study", "--format", "csv", "--out", str(out))
    assert out.read_text() == "what stood here before"
    assert list(tmp_path.iterdir()) == [out]
    assert Export.objects.get().state == ExportState.FAILED
