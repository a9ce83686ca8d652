"""just-eval, in small and as it is."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evaluations.domain.choices import ShownOrder
from evaluations.domain.files import ComparisonRow, FileEntry, ReadOptions, ResponseRow, ScoreRow, VerdictRow
from evaluations.formats.file_reader import read_file_rows
from evaluations.formats.seen_index import SeenIndex
from tests.formats.imported_rows import import_rows, read_contents, refusal_reason, rows_of_kind

PAIR: dict[str, Any] = {
    "id": 0,
    "input": "Name an actor.",
    "output_A": "Hugh Jackman",
    "output_B": "No.",
    "generator_A": "gpt-4",
    "generator_B": "llama",
    "eval_config": {"mode": "pairwise_multi", "gpt": "gpt-3.5-turbo", "max_words": -1},
    "result": "{…}",
    "parsed_result": {
        "helpfulness": {"reason": "It names one.", "preference": "A"},
        "clarity": {"reason": "Both are clear.", "preference": "same"},
    },
}
SINGLE: dict[str, Any] = {
    "id": 0,
    "input": "Name an actor.",
    "output_cand": "No.",
    "generator_cand": "llama",
    "eval_config": {"mode": "score_multi", "gpt": "gpt-4-0314"},
    "parsed_result": {"depth": {"reason": "None.", "score": "2"}, "safety": {"reason": "", "score": "N/A"}},
}
GENERATION: dict[str, Any] = {
    "id": 0,
    "instruction": "Name an actor.",
    "source_id": "alpaca_eval-0",
    "dataset": "helpful_base",
    "output": "No.",
    "generator": "llama",
    "datasplit": "just_eval",
}


def test_an_item_is_a_comparison_and_a_verdict_on_each_aspect() -> None:
    comparison, *verdicts = import_rows(PAIR)
    assert isinstance(comparison, ComparisonRow)
    assert (comparison.candidate_a, comparison.candidate_b) == ("gpt-4", "llama")
    assert [(row.aspect, row.choice, row.rationale) for row in rows_of_kind(VerdictRow, verdicts)] == [
        ("helpfulness", "A", "It names one."),
        ("clarity", "tie", "Both are clear."),
    ]
    assert {(row.rater, row.shown) for row in rows_of_kind(VerdictRow, verdicts)} == {
        ("gpt-3.5-turbo", ShownOrder.AS_STORED)
    }


def test_a_plain_pair_has_one_preference() -> None:
    config = {**PAIR["eval_config"], "mode": "pairwise"}
    (verdict,) = rows_of_kind(
        VerdictRow, import_rows({**PAIR, "eval_config": config, "parsed_result": {"preference": "B", "reason": "?"}})
    )
    assert (verdict.aspect, verdict.choice, verdict.rationale) == ("overall", "B", "?")


def test_what_was_not_read_is_a_failure_on_every_aspect() -> None:
    failed = {name: value for name, value in PAIR.items() if name != "parsed_result"}
    verdicts = rows_of_kind(VerdictRow, import_rows({**failed, "result": "N/A"}))
    assert Counter(row.choice for row in verdicts) == {"unreadable": 5}
    half = {**PAIR, "parsed_result": {**PAIR["parsed_result"], "depth": {"preference": "N/A"}}}
    assert {row.choice for row in rows_of_kind(VerdictRow, import_rows(half))} == {"unreadable"}


def test_a_scored_response_is_the_generated_one_and_no_score_is_none() -> None:
    (response, score) = import_rows(SINGLE)
    assert isinstance(response, ResponseRow)
    assert isinstance(score, ScoreRow)
    assert (score.aspect, score.value, score.rater) == ("depth", 2.0, "gpt-4-0314")
    (generated,) = rows_of_kind(ResponseRow, import_rows(GENERATION))
    assert (generated.query, generated.candidate) == (response.query, "llama")
    assert generated.response == response.response
    assert read_contents([GENERATION]).format.name == "just-eval"


@pytest.mark.parametrize("parsed", [None, {}, "N/A"])
def test_a_score_that_could_not_be_read_is_a_failure(parsed: object) -> None:
    (_, failed) = import_rows({**SINGLE, "parsed_result": parsed})
    assert isinstance(failed, ScoreRow)
    assert (failed.value, failed.failure, failed.rater) == (None, "unreadable", "gpt-4-0314")


def test_a_judge_that_says_of_all_aspects_that_none_applies_has_not_failed() -> None:
    (response,) = import_rows({**SINGLE, "parsed_result": {"depth": {"score": "N/A", "reason": "A greeting."}}})
    assert isinstance(response, ResponseRow)


def test_a_reward_model_is_a_judge_of_its_own() -> None:
    config = {"mode": "reward", "gpt": "gpt-4-0314"}
    (score,) = rows_of_kind(ScoreRow, import_rows({**SINGLE, "eval_config": config, "result": {"score": -6.5}}))
    assert (score.rater, score.aspect, score.value) == ("reward", "reward", -6.5)


def test_a_bad_item_says_why() -> None:
    assert refusal_reason({**PAIR, "generator_B": "gpt-4"}).startswith("both generators are “gpt-4”")
    assert refusal_reason({**PAIR, "eval_config": None}).startswith("eval_config does not name the judge")


@pytest.mark.data
def test_just_eval_is_read_as_it_is(acceptance_data: Path) -> None:
    def verdicts(name: str) -> list[VerdictRow]:
        with (acceptance_data / "just_eval" / "eval_outputs" / name).open("rb") as file, SeenIndex() as seen:
            entries = list(read_file_rows(file, name, ReadOptions(), seen).entries)
        return [
            row
            for entry in entries
            if isinstance(entry, FileEntry)
            for row in entry.rows
            if isinstance(row, VerdictRow)
        ]

    judged = verdicts("0-2.pairwise_multi.gpt-4.json")
    assert Counter(row.aspect for row in judged) == dict.fromkeys(
        ("helpfulness", "clarity", "factuality", "depth", "engagement"), 6
    )
    # In items 1 to 3 gpt-4 stands on the side of A, in the others on that of B, and it is preferred throughout.
    assert {row.candidate_a if row.choice == "A" else row.candidate_b for row in judged} == {"gpt-4-0314"}
    assert Counter(row.choice for row in verdicts("pairwise_multi.gpt-3.5-turbo.json")) == {"unreadable": 30}
