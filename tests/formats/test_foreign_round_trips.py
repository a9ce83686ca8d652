"""Whatever was said of two responses is read back as it was, out of every format that others write."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.domain.choices import Choice
from evaluations.domain.files import ComparisonRow, FileRow, VerdictRow
from evaluations.domain.texts import messages_to_text
from tests.formats.imported_rows import import_rows, rows_of_kind

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
FILLED = WORDS.filter(lambda text: bool(text.strip()))
NAMES = st.lists(st.sampled_from(("alpha", "Beta", "gamma-2", "z.9")), min_size=2, max_size=2, unique=True).map(sorted)
FEW = settings(max_examples=25, deadline=None)


@dataclass(frozen=True)
class Told:
    """A question, two responses by candidates whose names are in order, and what somebody chose."""

    question: str
    names: list[str]
    answers: tuple[str, str]
    choice: Choice


TOLD = st.builds(Told, FILLED, NAMES, st.tuples(WORDS, WORDS), st.sampled_from((Choice.A, Choice.B, Choice.TIE)))


def turns(*texts: str) -> list[dict[str, str]]:
    return [{"role": "assistant" if place % 2 else "user", "content": text} for place, text in enumerate(texts)]


def read_back(found: list[FileRow]) -> tuple[str, list[str], tuple[str, str], str]:
    """The question, and names, answers and choice in the order of the names."""
    (comparison,), (verdict,) = rows_of_kind(ComparisonRow, found), rows_of_kind(VerdictRow, found)
    sides = sorted(
        [(comparison.candidate_a, comparison.response_a), (comparison.candidate_b, comparison.response_b)],
        key=lambda side: side[0],
    )
    assert {verdict.candidate_a, verdict.candidate_b} == {sides[0][0], sides[1][0]}
    answers = messages_to_text(sides[0][1]), messages_to_text(sides[1][1])
    return (
        messages_to_text(comparison.query.messages),
        [name for name, _ in sides],
        answers,
        verdict.with_sides_by_name().choice,
    )


# ---- as others write it ---------------------------------------------------------------------------

SELECTED = {Choice.A: "left", Choice.B: "right", Choice.TIE: "tie", Choice.BOTH_BAD: "both_bad"}
RANKS = {Choice.A: (1, 2), Choice.B: (2, 1), Choice.TIE: (1, 1)}


def battle(told: Told) -> dict[str, Any]:
    winners = {Choice.A: "model_a", Choice.B: "model_b", Choice.TIE: "tie", Choice.BOTH_BAD: "tie (bothbad)"}
    return {
        "model_a": told.names[0],
        "model_b": told.names[1],
        "winner": winners[told.choice],
        "conversation_a": turns(told.question, told.answers[0]),
        "conversation_b": turns(told.question, told.answers[1]),
    }


def battle_of_a_table(told: Told) -> dict[str, Any]:
    cells = {"prompt": told.question, "response_a": told.answers[0], "response_b": told.answers[1]}
    won = {"winner_model_a": Choice.A, "winner_model_b": Choice.B, "winner_tie": Choice.TIE}
    return {
        "model_a": told.names[0],
        "model_b": told.names[1],
        **{column: json.dumps([text]) for column, text in cells.items()},
        **{column: int(told.choice == choice) for column, choice in won.items()},
    }


def annotation(told: Told) -> dict[str, Any]:
    return {
        "instruction": told.question,
        "output_1": told.answers[0],
        "generator_1": told.names[0],
        "output_2": told.answers[1],
        "generator_2": told.names[1],
        "annotator": "judge",
        "preference": {Choice.A: 1.0, Choice.B: 2.0, Choice.TIE: 1.5}[told.choice],
    }


def head_to_head(told: Told) -> dict[str, Any]:
    return {
        "prompt": told.question,
        "model_a": told.names[0],
        "model_b": told.names[1],
        "response_a": told.answers[0],
        "response_b": told.answers[1],
        "history": [{"judge_name": "gpt", "winner": {Choice.A: "A", Choice.B: "B", Choice.TIE: "-"}[told.choice]}],
    }


def judged_pair(told: Told) -> dict[str, Any]:
    return {
        "input": told.question,
        "output_A": told.answers[0],
        "output_B": told.answers[1],
        "generator_A": told.names[0],
        "generator_B": told.names[1],
        "eval_config": {"mode": "pairwise", "gpt": "gpt"},
        "parsed_result": {"preference": "same" if told.choice == Choice.TIE else told.choice, "reason": ""},
    }


def fields(told: Told) -> dict[str, Any]:
    names = {"model_a": told.names[0], "model_b": told.names[1]}
    return {"prompt": told.question, "response_a": told.answers[0], "response_b": told.answers[1], **names}


def task(told: Told) -> dict[str, Any]:
    result = {"from_name": "pw", "type": "pairwise", "value": {"selected": SELECTED[told.choice]}}
    return {"id": 1, "data": fields(told), "annotations": [{"completed_by": 1, "result": [result]}]}


def task_in_short(told: Told) -> dict[str, Any]:
    beside = {"id": 1, "annotation_id": 2, "annotator": 3, "lead_time": 1.5}
    return {**fields(told), **beside, "pw": [{"selected": SELECTED[told.choice]}]}


def argilla_record(told: Told) -> dict[str, Any]:
    ranks = zip(("response_a", "response_b"), RANKS[told.choice], strict=True)
    answer = [{"value": name, "rank": rank} for name, rank in ranks]
    return {"id": "1", "fields": fields(told), "responses": {"preference": [{"user_id": "u", "value": answer}]}}


@pytest.mark.parametrize(
    "written",
    [battle, battle_of_a_table, annotation, head_to_head, judged_pair, task, task_in_short, argilla_record],
)
def test_what_others_write_is_read_as_it_was_meant(written: Callable[[Told], dict[str, Any]]) -> None:
    @FEW
    @given(TOLD)
    def check(told: Told) -> None:
        assert read_back(import_rows(written(told))) == (told.question, told.names, told.answers, told.choice)

    check()
