"""Every file of the real data sets, known by its columns alone."""

from collections import Counter
from pathlib import Path

import pytest

from evaluations.domain.choices import Choice
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import BadRow, ComparisonRow, QueryRow, ReadOptions, ResponseRow, ScoreRow, VerdictRow
from evaluations.formats.file_reader import read_file_rows
from evaluations.formats.seen_index import SeenIndex

pytestmark = pytest.mark.data

# How a file begins that holds statistics and no rows.
NO_ROWS = ("statistics.json", ".eval_res.json")

KINDS = {
    QueryRow: "queries",
    ResponseRow: "responses",
    ComparisonRow: "comparisons",
    VerdictRow: "verdicts",
    ScoreRow: "scores",
}


def told(path: Path) -> str:
    """The format, and how many rows of each kind it holds; failures of judges stand apart from verdicts."""
    reading = ReadOptions(rater="the judge") if path.name == "result.json" else ReadOptions()
    counts: Counter[str] = Counter()
    with path.open("rb") as file, SeenIndex() as seen:
        found = read_file_rows(file, path.name, reading, seen)
        for entry in found.entries:
            assert not isinstance(entry, BadRow), entry
            for row in entry.rows:
                failed = isinstance(row, VerdictRow) and row.choice not in tuple(Choice)
                counts["failures" if failed else KINDS[type(row)]] += 1
    return " ".join((found.format.name, *(f"{what} {number}" for what, number in sorted(counts.items()))))


def of_just_eval(name: str) -> str:
    single, five = "responses 6 scores 6", "responses 6 scores 30"
    kinds = {
        "pairwise_multi.gpt-3.5-turbo.json": "comparisons 6 failures 30",
        "score_multi.gpt4.json": five,
        "safety.score_safety.chatgpt.json": "responses 4 scores 4",
        "1.safety.score_safety.chatgpt.json": "responses 4 scores 4",
        "0.score_safety.chatgpt.json": single,
        "example_generation_safety.json": "responses 4",
    }
    patterns = {
        "pairwise_multi.": "comparisons 6 verdicts 30",
        "pairwise.": "comparisons 6 verdicts 6",
        "score_multi.": five,
        "reward.": single,
        "example_generation": "responses 6",
    }
    return kinds.get(name) or next(counts for part, counts in patterns.items() if part in name)


LLMBAR = {"Natural": 100, "GPTInst": 92, "Neighbor": 134}


def of_llmbar(path: Path) -> str:
    rows = next(number for part, number in LLMBAR.items() if part in path.parts)
    if path.name == "dataset.json":
        return f"comparisons {rows} verdicts {rows}"
    # Four replies of ChatGPT name no winner.
    silent = {("GPTInst", "CoT"), ("GPTInst", "Swap"), ("Neighbor", "CoT"), ("Natural", "CoT")}
    failed = path.parts[-3] == "ChatGPT" and (path.parts[-5], path.parts[-2]) in silent
    return f"failures 1 verdicts {rows * 2 - 1}" if failed else f"verdicts {rows * 2}"


def expected(path: Path, folder: str) -> str:
    if folder == "just_eval":
        return f"just-eval {of_just_eval(path.name)}"
    if folder == "llmbar":
        return f"llmbar {of_llmbar(path)}"
    return {
        "example_tiny.json": "llm-comparator comparisons 5 verdicts 8",
        "testset-v1.json": "pandalm comparisons 999 verdicts 2997",
        "gpt-3.5-turbo-testset-v1.json": "pandalm failures 25 verdicts 974",
        "pandalm-7b-testset-v1.json": "pandalm verdicts 999",
        "all-responses.jsonl": "squality responses 300 scores 5400",
        "questions_v1-3_txt_test.jsonl": "squality queries 260",
    }[path.name]


def test_every_file_of_the_data_sets_is_known_by_itself(acceptance_data: Path) -> None:
    paths = [path for path in sorted(acceptance_data.rglob("*.json*")) if not path.name.endswith(NO_ROWS)]
    assert len(paths) == 48
    found = {str(path.relative_to(acceptance_data)): told(path) for path in paths}
    wanted = {
        str(path.relative_to(acceptance_data)): expected(path, path.relative_to(acceptance_data).parts[0])
        for path in paths
    }
    assert found == wanted


def test_files_of_mere_statistics_hold_no_rows(acceptance_data: Path) -> None:
    paths = [path for path in sorted(acceptance_data.rglob("*.json")) if path.name.endswith(NO_ROWS)]
    assert len(paths) == 23
    for path in paths:
        with path.open("rb") as file, SeenIndex() as seen, pytest.raises(InputRefused, match="so it has no rows"):
            read_file_rows(file, path.name, ReadOptions(), seen)
