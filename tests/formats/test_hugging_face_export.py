"""A folder with a card that the datasets library reads, offline."""

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasets import load_dataset

from evaluations.domain.preferences import parse_preference_rule
from evaluations.formats.dataset_card import (
    CardAgreement,
    CardConfig,
    CardFacts,
    CardRubric,
    dataset_card,
    size_category,
)
from evaluations.formats.export_format import ExportOptions
from evaluations.formats.exported_rows import ExportedRow
from evaluations.formats.hugging_face_export import dataset_folder_zip
from evaluations.formats.preferences import ExportCounts
from tests.formats.exported_rows import SEVERAL, TURNS, exported_row, labelled_row

ASPECTS = ("safety", "clarity")
SAFETY = parse_preference_rule(aspect="safety", aspects=ASPECTS)
FACTS = CardFacts(
    name='Study "one": #1',
    description="What ```this``` is.",
    rubrics=[CardRubric("own 1", "Judge | them.\n", [("safety", "No | harm")])],
    people=2,
    judges=[("gpt", "llm", "gpt-x", "own 1")],
    policy="People, then judges.",
    agreement=[CardAgreement("safety", "people", "Krippendorff's alpha", "0.61", "0.40 to 0.77", 120)],
)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def written(rows: list[ExportedRow], account: ExportCounts | None = None) -> bytes:
    told = account or ExportCounts()
    options = ExportOptions(facts=lambda: FACTS, manifest=lambda: {"rows": told.rows})
    return b"".join(dataset_folder_zip(rows, ASPECTS, SAFETY, told, options))


def unpacked(archive: bytes, into: Path) -> str:
    with zipfile.ZipFile(io.BytesIO(archive)) as folder:
        assert folder.testzip() is None
        folder.extractall(into)
    return str(into)


def loaded(folder: str, into: Path, *config: str) -> Any:
    return load_dataset(folder, *config, cache_dir=str(into / "cache"))


ROWS = [
    labelled_row("A", query_id="1", context="An atlas."),
    labelled_row("B", query_id="2", query=None, messages=TURNS, response_a=SEVERAL),
    labelled_row("tie", query_id="3", metadata={"b": 1, "a": [None]}),
    exported_row(query_id="4"),
]


def test_load_dataset_reads_preferences_and_comparisons(tmp_path: Path) -> None:
    account = ExportCounts()
    folder = unpacked(written(ROWS, account), tmp_path / "study")
    preferences = loaded(folder, tmp_path)
    assert list(preferences) == ["train"]
    first, second = preferences["train"]
    assert first["prompt"] == [{"role": "user", "content": "Why?"}]
    assert (first["chosen"][0]["content"], first["rejected"][0]["content"]) == ("Because.", "No idea.")
    assert (first["context"], first["votes"], first["agreement"]) == ("An atlas.", 2, 1.0)
    assert (second["prompt"], second["rejected"]) == (TURNS, SEVERAL)
    comparisons = loaded(folder, tmp_path, "comparisons")["train"]
    assert comparisons["choice"] == ["A", "B", "tie", None]
    assert comparisons[2]["metadata"] == '{"a":[null],"b":1}'
    assert comparisons[0]["labels"] == [{"aspect": "safety", "choice": "A", "source": "majority", "n": 2, "by": None}]
    assert (account.rows, dict(account.excluded)) == (2, {"tie": 1, "no_label": 1})


def test_the_parts_of_an_export_are_splits(tmp_path: Path) -> None:
    parts = [{**one, "split": part} for one, part in zip(ROWS, ("train", "dev", "test", "test"), strict=True)]
    folder = unpacked(written(parts), tmp_path / "study")  # type: ignore[arg-type]
    assert {name: len(part) for name, part in loaded(folder, tmp_path).items()} == {"train": 1, "validation": 1}
    assert {name: len(part) for name, part in loaded(folder, tmp_path, "comparisons").items()} == {
        "train": 1,
        "validation": 1,
        "test": 2,
    }


def test_a_table_without_rows_is_no_part_of_the_folder(tmp_path: Path) -> None:
    """The library fails on an empty Parquet file."""
    folder = unpacked(written([exported_row()]), tmp_path / "study")
    assert len(loaded(folder, tmp_path)["train"]) == 1
    assert sorted(path.name for path in Path(folder).iterdir()) == ["README.md", "comparisons", "manifest.json"]
    nothing = unpacked(written([]), tmp_path / "nothing")
    assert "0 people" not in (Path(nothing) / "README.md").read_text()


def test_the_same_comparisons_give_the_same_bytes() -> None:
    assert written(ROWS) == written(ROWS)


def test_the_card_says_what_is_in_it_and_what_is_not(tmp_path: Path) -> None:
    folder = unpacked(written(ROWS), tmp_path / "study")
    readme = (Path(folder) / "README.md").read_text()
    head, _, body = readme.removeprefix("---\n").partition("\n---\n")
    told = yaml.safe_load(head)
    assert told["pretty_name"] == 'Study "one": #1'
    assert (told["license"], told["size_categories"]) == ("unknown", ["n<1K"])
    assert told["configs"][0]["data_files"] == [{"split": "train", "path": "preferences/train.parquet"}]
    assert told["dataset_info"][0]["features"][0]["name"] == "prompt"
    assert '# Study "one": \\#1' in body
    assert "````\nWhat ```this``` is.\n````" in body
    assert "| safety | No \\| harm |" in body
    assert "| safety | people | Krippendorff's alpha | 0.61 | 0.40 to 0.77 | 120 |" in body
    assert "| without a label | 1 |" in body
    assert "**`safety`**" in body
    assert "Annotated by 2 reviewers and 1 judge" in body


def test_a_derived_choice_is_called_so() -> None:
    how = parse_preference_rule(combine="majority_of_aspects", aspects=ASPECTS)
    configs = [CardConfig("preferences", "", {"train": ("train.parquet", 1)}, [])]
    told = dataset_card(CardFacts("Study"), how, configs, ExportCounts())
    assert "`derived:majority_of_aspects`" in told
    assert "Raters were not asked this question directly" in told


def test_a_size_is_said_in_the_words_of_the_hub() -> None:
    sizes = [size_category(rows) for rows in (0, 999, 1_000, 99_999, 100_000, 5_000_000)]
    assert sizes == ["n<1K", "n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M"]
