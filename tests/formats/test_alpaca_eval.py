"""AlpacaEval: outputs and annotations."""

from typing import Any

import pytest

from evaluations.domain.files import ComparisonRow, ResponseRow, VerdictRow
from evaluations.domain.roles import RaterKind
from tests.formats.imported_rows import import_rows, read_contents, refusal_reason, rows_of_kind

OUTPUT: dict[str, Any] = {"instruction": "Add 1 and 1.", "output": "2", "generator": "gpt4", "dataset": "koala"}
ANNOTATION: dict[str, Any] = {
    "instruction": "Add 1 and 1.",
    "output_1": "3",
    "generator_1": "text_davinci_003",
    "output_2": "2",
    "generator_2": "gpt4",
    "dataset": "koala",
    "annotator": "alpaca_eval_gpt4",
    "preference": 2.0,
    "raw_completion": "Output (b)",
    "price_per_example": 0.01,
}


def test_outputs_are_responses_of_which_pairs_are_made_and_meet_their_annotations() -> None:
    assert read_contents([OUTPUT]).format.needs_pairing
    (response,) = rows_of_kind(ResponseRow, import_rows(OUTPUT))
    assert (response.candidate, response.response[0]["content"], response.query.category) == ("gpt4", "2", "koala")
    (comparison,) = rows_of_kind(ComparisonRow, import_rows(ANNOTATION))
    assert comparison.query == response.query
    assert (comparison.candidate_b, comparison.response_b) == ("gpt4", response.response)


@pytest.mark.parametrize(
    ("preference", "choice", "note"),
    [
        (1.0, "A", ""),
        (2, "B", ""),
        (1.5, "tie", ""),
        (0, "tie", ""),
        (1.0312, "A", "preference 1.0312"),
        (1.97, "B", "preference 1.97"),
        (None, "unreadable", ""),
    ],
)
def test_a_preference_is_a_choice_and_none_is_a_failure(preference: object, choice: str, note: str) -> None:
    (verdict,) = rows_of_kind(
        VerdictRow, import_rows({**ANNOTATION, "generator_1": "davinci", "preference": preference})
    )
    assert (verdict.choice, verdict.note) == (choice, note)
    assert (verdict.rater, verdict.rater_kind) == ("alpaca_eval_gpt4", RaterKind.JUDGE)
    assert verdict.rationale == "Output (b)"


@pytest.mark.parametrize(("preference", "note"), [(2.0, "output_1: zeta"), (1.9, "preference 1.9; output_1: zeta")])
def test_the_first_output_is_noted_where_names_alone_would_put_it_second(preference: float, note: str) -> None:
    (verdict,) = rows_of_kind(VerdictRow, import_rows({**ANNOTATION, "generator_1": "zeta", "preference": preference}))
    assert verdict.note == note


def test_people_are_counted_where_the_file_does_not_name_them() -> None:
    unnamed = {name: value for name, value in ANNOTATION.items() if "generator" not in name and name != "annotator"}
    found = import_rows({**unnamed, "annotator_index": 7})
    (verdict,) = rows_of_kind(VerdictRow, found)
    assert (verdict.rater, verdict.rater_kind) == ("annotator 7", RaterKind.HUMAN)
    (comparison,) = rows_of_kind(ComparisonRow, found)
    assert {comparison.candidate_a, comparison.candidate_b} == {"response 1", "response 2"}


@pytest.mark.parametrize(
    ("change", "because"),
    [
        ({"preference": 3}, "preference is 3 where a number from 1 to 2 is expected"),
        ({"generator_2": "text_davinci_003"}, "both generators are “text_davinci_003”"),
        ({"annotator": None}, "annotator is missing. Set one rater for the whole file"),
        ({"instruction": " "}, "the query is empty"),
        (
            {"annotator": None, "annotator_index": 1, "preference": None},
            "preference is empty, and reviewers have no failures",
        ),
    ],
)
def test_a_bad_annotation_says_why(change: dict[str, Any], because: str) -> None:
    assert refusal_reason({**ANNOTATION, **change}).startswith(because)
