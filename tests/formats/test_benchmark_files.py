"""The files of PandaLM, LLMBar and SQuALITY, in small and as they are."""

import hashlib
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evaluations.domain.choices import ShownOrder
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import BadRow, ComparisonRow, FileEntry, ReadOptions, ResponseRow, ScoreRow, VerdictRow
from evaluations.domain.roles import RaterKind
from evaluations.formats.file_reader import read_file_rows
from evaluations.formats.seen_index import SeenIndex
from tests.formats.imported_rows import read_contents

PANDALM = {
    "idx": 3,
    "motivation_app": "Wikipedia",
    "cmp_key": "bloom-7b_llama-7b",
    "instruction": "Translate.",
    "input": "Bonjour",
    "response1": True,
    "response2": "",
    "annotator1": 1,
    "annotator2": 2,
    "annotator3": 0,
}
LLMBAR = {"input": "Add.", "output_1": "2", "output_2": "3", "label": 1}
ROUND = {
    "swap = False": {"completion": ["Output (a)", "stop"], "winner": "1"},
    "swap = True": {"completion": ["neither", "stop"], "winner": None},
}


def read(records: list[dict[str, Any]], **reading: Any) -> list[FileEntry | BadRow]:
    with SeenIndex() as seen:
        content = io.BytesIO(json.dumps(records, indent=1).encode())
        return list(read_file_rows(content, "rows.json", ReadOptions(**reading), seen).entries)


def read_file(path: Path, **reading: Any) -> tuple[list[ComparisonRow], list[VerdictRow]]:
    with path.open("rb") as file, SeenIndex() as seen:
        items = list(read_file_rows(file, path.name, ReadOptions(**reading), seen).entries)
    assert not [item for item in items if isinstance(item, BadRow)]
    rows = [row for item in items if isinstance(item, FileEntry) for row in item.rows]
    return (
        [row for row in rows if isinstance(row, ComparisonRow)],
        [row for row in rows if isinstance(row, VerdictRow)],
    )


def reason(record: dict[str, Any], **reading: Any) -> str:
    (bad,) = read([record], **reading)
    assert isinstance(bad, BadRow)
    return bad.reason


def test_a_pandalm_row_is_a_comparison_and_three_human_verdicts() -> None:
    (entry,) = read([PANDALM], id_prefix="p-")
    assert isinstance(entry, FileEntry)
    comparison, *verdicts = entry.rows
    assert isinstance(comparison, ComparisonRow)
    assert comparison.query.key == "p-3"
    assert comparison.query.cluster == "Translate.\nBonjour"
    assert comparison.query.messages == [{"role": "user", "content": "Translate.\n\nBonjour"}]
    assert comparison.query.category == "Wikipedia"
    assert (comparison.candidate_a, comparison.candidate_b) == ("bloom-7b", "llama-7b")
    assert [comparison.response_a[0]["content"], comparison.response_b[0]["content"]] == ["true", ""]
    assert [(row.rater, row.choice) for row in verdicts if isinstance(row, VerdictRow)] == [
        ("annotator1", "A"),
        ("annotator2", "B"),
        ("annotator3", "tie"),
    ]


def test_a_long_pandalm_cluster_is_kept_as_its_sum() -> None:
    (entry,) = read([{**PANDALM, "input": "x" * 300}])
    assert isinstance(entry, FileEntry)
    (comparison, *_) = entry.rows
    assert isinstance(comparison, ComparisonRow)
    assert comparison.query.cluster == hashlib.sha256(b"Translate.\n" + b"x" * 300).hexdigest()


@pytest.mark.parametrize(
    ("given", "choice"), [("1", "A"), (2, "B"), ("Tie", "tie"), (0, "tie"), ("garbage", "unreadable")]
)
def test_a_pandalm_judge_says_first_second_tie_or_garbage(given: object, choice: str) -> None:
    (entry,) = read([{"idx": 3, "gpt_result": given, "gpt_reason": "Because."}])
    assert isinstance(entry, FileEntry)
    assert entry.rows == (
        VerdictRow(
            line=2,
            query_key="3",
            candidate_a=None,
            candidate_b=None,
            rater="gpt",
            rater_kind=RaterKind.JUDGE,
            aspect="overall",
            choice=choice,
            sample=0,
            rationale="Because.",
        ),
    )


@pytest.mark.parametrize(
    ("record", "because"),
    [
        ({**PANDALM, "annotator2": 7}, "annotator2 is “7”; expected 0, 1 or 2"),
        ({**PANDALM, "cmp_key": "alone"}, "cmp_key must name two candidates joined by “_”"),
        ({**PANDALM, "instruction": " ", "input": ""}, "instruction is missing"),
        ({**LLMBAR, "results": []}, "results must be a list with at least one round"),
        (
            {**LLMBAR, "results": [{"swap = False": {}}]},
            "a round of results must hold “swap = False” and “swap = True”",
        ),
        (
            {**LLMBAR, "results": [{**ROUND, "swap = True": {"winner": "3"}}]},
            "winner is “3”; expected 1, 2 or null",
        ),
    ],
)
def test_a_bad_row_of_a_benchmark_says_why(record: dict[str, Any], because: str) -> None:
    assert reason(record, rater="judge") == because


@pytest.mark.parametrize(
    ("good", "bad", "because"),
    [
        (
            {"idx": 1, "gpt_result": "1"},
            {"idx": 1, "gpt_result": "3"},
            "gpt_result is “3”; expected 1, 2, 0, Tie or garbage",
        ),
        (LLMBAR, {**LLMBAR, "label": 3}, "label is “3”; expected 1 or 2"),
    ],
)
def test_an_unknown_label_among_known_ones_is_a_bad_row(
    good: dict[str, Any], bad: dict[str, Any], because: str
) -> None:
    assert list(read_contents([*[good] * 9, bad], rater="judge").entries)[-1] == BadRow(10, because)
    with pytest.raises(InputRefused):  # with such labels alone it is another file
        read_contents([bad], rater="judge")


def test_an_llmbar_row_is_a_comparison_and_a_gold_verdict_numbered_from_0() -> None:
    first, second = read([LLMBAR, {**LLMBAR, "label": 2}], id_prefix="n-")
    assert isinstance(first, FileEntry)
    assert isinstance(second, FileEntry)
    comparison, gold = second.rows
    assert isinstance(comparison, ComparisonRow)
    assert (comparison.query.key, comparison.candidate_a, comparison.candidate_b) == ("n-1", "output_1", "output_2")
    assert isinstance(gold, VerdictRow)
    assert (gold.rater_kind, gold.rater, gold.choice) == (RaterKind.GOLD, "gold", "B")


def test_an_llmbar_judge_answers_in_both_orders_and_its_last_round_counts() -> None:
    first_round = {**ROUND, "swap = False": {"completion": ["?", "stop"], "winner": "2"}}
    (entry,) = read([{**LLMBAR, "results": [first_round, ROUND]}], rater="GPT-4")
    assert isinstance(entry, FileEntry)
    told = [(row.choice, row.shown, row.rationale) for row in entry.rows if isinstance(row, VerdictRow)]
    assert told == [("A", ShownOrder.AS_STORED, "Output (a)"), ("unreadable", ShownOrder.SWAPPED, "neither")]
    assert {row.expected_texts for row in entry.rows if isinstance(row, VerdictRow)} == {("Add.", "2", "3")}


def test_an_llmbar_judge_must_be_named() -> None:
    assert reason({**LLMBAR, "results": [ROUND]}) == ("the file does not name its judge. Set a name for the whole file")


REVIEW = {
    "worker_id": "3",
    **{f"{aspect}-rank": 2 for aspect in ("correctness", "selection", "overall")},
    **{f"{aspect}-rating": 70 for aspect in ("correctness", "selection", "overall")},
}
SYSTEM = {"response": "A summary.", "reviews": [REVIEW, {**REVIEW, "worker_id": "6"}], "overall": {}}
SQUALITY = {"passage-id": "50827", "questions": {"0": {"bart": SYSTEM}, "4": {"bart": SYSTEM, "human": SYSTEM}}}


def test_a_squality_story_brings_responses_with_ranks_and_ratings_of_each_reviewer() -> None:
    (entry,) = read([SQUALITY], id_prefix="s-")
    assert isinstance(entry, FileEntry)
    responses = [row for row in entry.rows if isinstance(row, ResponseRow)]
    assert [(row.query.key, row.query.cluster, row.candidate) for row in responses] == [
        ("s-50827-0", "s-50827", "bart"),
        ("s-50827-4", "s-50827", "bart"),
        ("s-50827-4", "s-50827", "human"),
    ]
    assert responses[0].query.is_stand_in
    scores = [row for row in entry.rows if isinstance(row, ScoreRow)]
    assert len(scores) == 3 * 2 * 6
    assert [(row.rater, row.aspect, row.value, row.lower_is_better) for row in scores[:3]] == [
        ("3", "correctness", 2.0, True),
        ("3", "correctness_rating", 70.0, False),
        ("3", "selection", 2.0, True),
    ]


@pytest.mark.parametrize(
    ("change", "because"),
    [
        ({"passage-id": None}, "passage-id is missing"),
        ({"questions": []}, "questions must be an object of objects"),
        ({"questions": {"0": {}}}, "question 0 must be an object of objects"),
        (
            {"questions": {"0": {"bart": {**SYSTEM, "reviews": "none"}}}},
            "reviews of bart on question 50827-0 must be a list of objects",
        ),
        (
            {"questions": {"0": {"bart": {**SYSTEM, "reviews": [{**REVIEW, "overall-rank": True}]}}}},
            "overall-rank must be a number",
        ),
        (
            {"questions": {"0": {"b" * 201: SYSTEM}}},
            "a system's name has 201 characters; the limit is 200",
        ),
    ],
)
def test_a_bad_squality_story_says_why(change: dict[str, Any], because: str) -> None:
    assert reason({**SQUALITY, **change}) == because


@pytest.mark.data
def test_squality_is_read_as_it_is(acceptance_data: Path) -> None:
    with (acceptance_data / "squality_human_eval" / "all-responses.jsonl").open("rb") as file, SeenIndex() as seen:
        entries = list(read_file_rows(file, "all-responses.jsonl", ReadOptions(), seen).entries)
    rows = [row for entry in entries if isinstance(entry, FileEntry) for row in entry.rows]
    assert len([row for row in rows if isinstance(row, ResponseRow)]) == 300
    assert len({row.query.cluster for row in rows if isinstance(row, ResponseRow)}) == 20
    scores = [row for row in rows if isinstance(row, ScoreRow)]
    assert Counter(row.rater for row in scores) == dict.fromkeys(("2", "3", "6", "8"), 225 * 6)
    ranks = Counter((row.aspect, row.value) for row in scores if row.lower_is_better)
    assert ranks == {(aspect, rank): 300 for aspect in ("correctness", "selection", "overall") for rank in (1, 2, 3)}


@pytest.mark.data
def test_pandalm_is_read_as_it_is(acceptance_data: Path) -> None:
    comparisons, verdicts = read_file(acceptance_data / "pandalm" / "testset-v1.json")
    texts = [side[0]["content"] for row in comparisons for side in (row.response_a, row.response_b)]
    assert len(comparisons) == 999
    assert len({row.query.cluster for row in comparisons}) == 170
    assert texts.count("true") == 6
    assert sum("" in (row.response_a[0]["content"], row.response_b[0]["content"]) for row in comparisons) == 54
    assert Counter(row.rater for row in verdicts) == {"annotator1": 999, "annotator2": 999, "annotator3": 999}
    _, judged = read_file(acceptance_data / "pandalm" / "gpt-3.5-turbo-testset-v1.json")
    assert Counter(row.choice for row in judged) == {"A": 460, "B": 476, "tie": 38, "unreadable": 25}


@pytest.mark.data
def test_llmbar_is_read_as_it_is(acceptance_data: Path) -> None:
    natural = acceptance_data / "llmbar" / "Dataset" / "LLMBar" / "Natural"
    _, gold = read_file(natural / "dataset.json")
    _, judged = read_file(natural / "evaluators" / "GPT-4" / "Swap" / "result.json", rater="GPT-4")
    label = {row.query_key: row.choice for row in gold}
    right = {
        shown: sum(row.choice == label[row.query_key] for row in judged if row.shown == shown)
        for shown in (ShownOrder.AS_STORED, ShownOrder.SWAPPED)
    }
    assert right == {ShownOrder.AS_STORED: 94, ShownOrder.SWAPPED: 95}  # statistics.json beside it
