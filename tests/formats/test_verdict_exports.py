"""Verdicts as MT-bench, AlpacaEval and LLM Comparator have them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluations.domain.preferences import parse_preference_rule
from evaluations.formats.alpaca_eval_export import alpaca_eval_lines
from evaluations.formats.exported_rows import ExportedRow
from evaluations.formats.llm_comparator_export import llm_comparator_lines
from evaluations.formats.mt_bench_export import mt_bench_judgment_lines, mt_bench_vote_lines, question_and_turn
from evaluations.formats.preferences import ExportCounts
from tests.formats.exported_rows import (
    SEVERAL,
    TURNS,
    exported_judge,
    exported_label,
    exported_person,
    exported_row,
    labelled_row,
)

ASPECTS = ("safety", "clarity")
SAFETY = parse_preference_rule(aspect="safety", aspects=ASPECTS)


def read(lines: Iterator[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


def asked(**orders: list[Any]) -> dict[str, Any]:
    return {"safety": {"choice": None, "inconsistent": False, "orders": orders}}


def said_in_one_order(choice: str) -> dict[str, Any]:
    return {"safety": {"choice": choice, "inconsistent": False, "orders": {"as_stored": [choice]}}}


def test_a_judgment_of_mt_bench_names_the_winner_of_each_order() -> None:
    told = {"as_stored": ["A is right."], "swapped": ["Both are."]}
    one = exported_judge(None, choices=asked(as_stored=["A"], swapped=["tie"]), rationales=told)
    account = ExportCounts()
    assert read(mt_bench_judgment_lines([exported_row(query_id="81", judges=[one])], "safety", account)) == [
        {
            "query_id": "81",
            "question_id": 81,
            "model_1": "alpha",
            "model_2": "beta",
            "g1_winner": "model_1",
            "g2_winner": "tie",
            "judge": ["gpt", "own 1"],
            "g1_user_prompt": "",
            "g1_judgment": "A is right.",
            "g2_user_prompt": "",
            "g2_judgment": "Both are.",
            "turn": 1,
            "tstamp": 0,
        }
    ]
    assert (account.rows, dict(account.excluded)) == (1, {})


def test_a_failure_is_an_error_there_and_one_order_alone_is_left_out() -> None:
    """A judge that failed in one order, one that was asked in one order only, one that failed in both, one silent."""
    judges = [
        exported_judge(None, choices=asked(as_stored=["B"]), failures={"refused": 1}),
        exported_judge(None, judge="once", choices=asked(as_stored=["B"])),
        # Of two samples in the one order one failed: the other order was never asked, so there is no error in it.
        exported_judge("B", judge="one order", failures={"refused": 1}, choices=said_in_one_order("B")),
        exported_judge(None, judge="twice failed", failures={"unreadable": 2}),
        exported_judge(None, judge="elsewhere"),
    ]
    account = ExportCounts()
    (record,) = read(mt_bench_judgment_lines([exported_row(judges=judges)], "safety", account))
    assert (record["g1_winner"], record["g2_winner"]) == ("model_2", "error")
    assert account.excluded == {"asked_in_one_order": 2, "failed_in_both_orders": 1, "judge_said_nothing": 1}


def test_each_sample_is_a_judgment_and_both_bad_a_tie() -> None:
    account = ExportCounts()
    choices = asked(as_stored=["A", "both_bad"], swapped=["A", "B"])
    records = read(
        mt_bench_judgment_lines([exported_row(judges=[exported_judge(None, choices=choices)])], "safety", account)
    )
    assert [(one["g1_winner"], one["g2_winner"]) for one in records] == [("model_1", "model_1"), ("tie", "model_2")]
    assert account.noted["both_bad_as_tie"] == 1


def test_a_sample_that_failed_in_one_order_is_the_error_of_that_sample() -> None:
    """The first sample failed in one order, the third in both; each rationale is its own sample's."""
    choices = asked(as_stored=[None, "B"], swapped=["A", "B"])
    wrote = {"as_stored": ["", "B is right."]}
    one, account = exported_judge(None, choices=choices, rationales=wrote, failures={"unreadable": 3}), ExportCounts()
    records = read(mt_bench_judgment_lines([exported_row(judges=[one])], "safety", account))
    told = [(record["g1_winner"], record["g2_winner"], record["g1_judgment"]) for record in records]
    assert told == [("error", "model_1", ""), ("model_2", "model_2", "B is right.")]
    assert account.excluded == {"failed_in_both_orders": 1}


def test_a_sample_that_a_file_has_in_one_order_only_is_left_out_and_no_error() -> None:
    account = ExportCounts()
    one = exported_judge(None, choices=asked(as_stored=["A", "B"], swapped=[None, "B"]))
    (record,) = read(mt_bench_judgment_lines([exported_row(judges=[one])], "safety", account))
    assert (record["g1_winner"], record["g2_winner"]) == ("model_2", "model_2")
    assert account.excluded == {"asked_in_one_order": 1}


def test_a_vote_of_mt_bench_stands_as_it_was_shown() -> None:
    """Swapped, B stood on the left: it is model_a there, and a vote for A is one for model_b."""
    account = ExportCounts()
    people = [
        exported_person("A", shown="swapped"),
        exported_person("both_bad", rater="ben"),
        exported_person("B", rater="cyd", calibration=True),
        exported_person(None, rater="dee"),
        exported_person("A", rater="eve", choices={}),
    ]
    swapped, bad = read(mt_bench_vote_lines([exported_row(people=people)], "safety", account))
    assert (swapped["model_a"], swapped["model_b"], swapped["winner"]) == ("beta", "alpha", "model_b")
    assert swapped["conversation_a"][-1] == {"role": "assistant", "content": "No idea."}
    assert (bad["model_a"], bad["winner"], bad["judge"]) == ("alpha", "tie (bothbad)", "ben")
    assert account.excluded == {"calibration": 1, "not_confirmed": 1, "person_said_nothing": 1}


def test_turns_are_counted_by_the_users() -> None:
    two = exported_row(people=[exported_person("A")], response_a=SEVERAL, response_b=SEVERAL)
    (record,) = read(mt_bench_vote_lines([two], "safety", ExportCounts()))
    assert record["turn"] == 2
    assert [turn["role"] for turn in record["conversation_a"]] == ["user", "assistant", "user", "assistant"]


def test_a_question_keeps_its_number_only_where_it_is_one() -> None:
    keys = ["81", "81-2", "81-1", "081", "q81", "8²", "9" * 30]
    told = [(81, 1), (81, 2), ("81-1", 1), ("081", 1), ("q81", 1), ("8²", 1), ("9" * 30, 1)]
    assert [question_and_turn(exported_row(query_id=key)) for key in keys] == told
    several = [exported_row(query_id=key, response_a=SEVERAL) for key in ("writing-2", "writing-3", "81-2", "81")]
    assert list(map(question_and_turn, several)) == [("writing", 2), ("writing-3", 2), (81, 2), (81, 2)]


def test_annotations_of_alpaca_eval_are_one_array() -> None:
    """1 for the first output, 2 for the second, 1.5 for a tie, null for a failure."""
    said = {"choice": "tie", "inconsistent": True, "orders": {"as_stored": ["A"], "swapped": ["B"]}}
    judges = [
        exported_judge(None, choices={"safety": said}, rationales={"swapped": ["B."], "as_stored": ["A."]}),
        exported_judge(None, judge="failed", failures={"truncated": 1}),
        exported_judge(None, judge="silent"),
    ]
    one = exported_row(
        judges=judges, people=[exported_person("B")], gold=[{"rater": "expert", "choices": {"safety": "A"}}]
    )
    account = ExportCounts()
    records = json.loads(b"".join(alpaca_eval_lines([one, exported_row(query_id="q2")], "safety", "", account)))
    assert [(record["annotator"], record["preference"]) for record in records] == [
        ("gpt", 1.5),
        ("failed", None),
        ("ann", 2.0),
        ("expert", 1.0),
    ]
    assert records[0] == {
        "dataset": "talk",
        "query_id": "q1",
        "instruction": "Why?",
        "output_1": "Because.",
        "generator_1": "alpha",
        "output_2": "No idea.",
        "generator_2": "beta",
        "annotator": "gpt",
        "preference": 1.5,
        "raw_completion": "A.\n\nB.",
    }
    assert account.excluded == {"judge_said_nothing": 1}
    assert account.noted["failed"] == 1


def test_an_array_of_no_annotations_is_one_all_the_same() -> None:
    assert json.loads(b"".join(alpaca_eval_lines([], "safety", "", ExportCounts()))) == []


def compared(rows: list[ExportedRow], account: ExportCounts | None = None) -> dict[str, Any]:
    document = b"".join(llm_comparator_lines(rows, ASPECTS, SAFETY, account or ExportCounts()))
    found: dict[str, Any] = json.loads(document)
    return found


def test_llm_comparator_gets_every_comparison_with_its_score_and_each_rating() -> None:
    account = ExportCounts()
    one = exported_row(
        labels={"safety": exported_label("B", A=1, B=2)},
        judges=[
            exported_judge(None, choices=asked(as_stored=["A"], swapped=["tie"]), rationales={"as_stored": ["Longer."]})
        ],
        people=[exported_person("B", shown="swapped"), exported_person("A", calibration=True)],
        gold=[{"rater": "expert", "choices": {"safety": "both_bad"}}],
    )
    document = compared([one, labelled_row("tie"), exported_row(category="")], account)
    assert document["models"] == [{"name": "alpha"}, {"name": "beta"}]
    first, tie, without = document["examples"]
    assert [first["score"], tie["score"], without["score"]] == [-1.0, 0.0, None]
    told = [
        (one["custom_fields"]["rater"], one["score"], one["is_flipped"]) for one in first["individual_rater_scores"]
    ]
    assert told == [("gpt", 1.0, False), ("gpt", 0.0, True), ("ann", -1.0, True), ("expert", 0.0, None)]
    assert [one["rationale"] for one in first["individual_rater_scores"]] == ["Longer.", "", "", ""]
    assert (first["tags"], without["tags"]) == (["talk"], [])
    assert account.noted["without_score:no_label"] == 1


def test_of_several_pairs_the_models_are_named_by_their_place() -> None:
    document = compared([labelled_row("A"), labelled_row("A", candidate_b="gamma")])
    assert [one["name"] for one in document["models"]] == ["A: the first by name", "B: the second by name"]
    assert document["examples"][1]["custom_fields"]["candidate"] == ["alpha", "gamma"]


def shape(value: Any) -> Any:
    """Which keys there are, and of what kind their values."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    return type(value).__name__


def test_the_document_has_everything_that_the_tool_reads() -> None:
    """By the types it declares: every field of metadata in every comparison, every rating field in every rating."""
    one = exported_row(
        labels={"safety": exported_label("A")},
        judges=[exported_judge("A")],
        query=None,
        messages=TURNS,
        response_a=SEVERAL,
    )
    document = compared([one, exported_row()])
    fields = document["metadata"]["custom_fields_schema"]
    declared = {"number", "string", "category", "text", "per_model_category", "per_model_number", "per_rating_string"}
    assert {field["type"] for field in fields} <= declared
    of_rating = {field["name"] for field in fields if field["type"].startswith("per_rating")}
    of_model = {field["name"] for field in fields if field["type"].startswith("per_model")}
    for example in document["examples"]:
        assert set(example["custom_fields"]) == {field["name"] for field in fields} - of_rating
        assert all(len(example["custom_fields"][name]) == 2 for name in of_model)
        assert all(isinstance(example[name], str) for name in ("input_text", "output_text_a", "output_text_b"))
        assert example["score"] is None or -1.5 <= example["score"] <= 1.5
        for rating in example["individual_rater_scores"]:
            assert set(rating["custom_fields"]) == of_rating
            assert -1.5 <= rating["score"] <= 1.5


@pytest.mark.skipif(not os.environ.get("JUDGEWEB_ACCEPTANCE_DATA"), reason="JUDGEWEB_ACCEPTANCE_DATA is not set")
def test_the_document_has_the_shape_of_the_tools_own_example() -> None:
    path = Path(os.environ["JUDGEWEB_ACCEPTANCE_DATA"]) / "llm_comparator" / "example_tiny.json"
    theirs = json.loads(path.read_text())
    ours = compared([labelled_row("A", judges=[exported_judge("A")])])
    assert set(theirs) == set(ours)
    assert set(theirs["metadata"]) == set(ours["metadata"])
    assert [shape(model) for model in theirs["models"]] == [shape(model) for model in ours["models"]]
    (example, rating) = (ours["examples"][0], ours["examples"][0]["individual_rater_scores"][0])
    for other in theirs["examples"]:
        assert {**shape(other), "custom_fields": None} == {**shape(example), "custom_fields": None}
        for one in other["individual_rater_scores"]:
            assert shape(one).items() <= shape(rating).items()
