"""Unpaired preferences: a response with the score 1 or 0."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.domain.errors import ColumnsUnknown
from evaluations.domain.files import ResponseRow, ScoreRow
from evaluations.domain.preferences import parse_preference_rule
from evaluations.domain.roles import RaterKind
from evaluations.formats.exported_rows import prompt_messages, response_messages
from evaluations.formats.preferences import ExportCounts
from evaluations.formats.trainer_exports import Layout, kto_lines
from tests.formats.exported_rows import exported_label, exported_row
from tests.formats.imported_rows import import_rows, read_contents, refusal_reason, rows_of_kind

TRL: dict[str, Any] = {"prompt": "1 + 1?", "completion": "2", "label": True}
USER = {"role": "user", "content": "1 + 1?"}
ANSWER = {"role": "assistant", "content": "2"}


def parts(record: dict[str, Any], **reading: Any) -> tuple[ResponseRow, ScoreRow]:
    found = import_rows(record, **reading)
    (response,), (score,) = rows_of_kind(ResponseRow, found), rows_of_kind(ScoreRow, found)
    assert (score.query_key, score.candidate) == (response.query.key, response.candidate)
    return response, score


@pytest.mark.parametrize(
    "record",
    [
        TRL,
        {"prompt": [USER], "completion": [ANSWER], "label": True},
        {**TRL, "label": "True"},  # as a table has it
        {"instruction": "1 + 1?", "output": "2", "kto_tag": True},
        {"conversations": [{"from": "human", "value": "1 + 1?"}, {"from": "gpt", "value": "2"}], "kto_tag": True},
        {"messages": [USER, ANSWER], "kto_tag": True},
        {"prompt": json.dumps([USER]), "completion": json.dumps([ANSWER]), "label": "True"},  # in the cells of a table
        {"messages": json.dumps([USER, ANSWER]), "kto_tag": "True"},
    ],
)
def test_every_layout_is_a_response_with_a_score(record: dict[str, Any]) -> None:
    response, score = parts(record, candidate="mine")
    assert (response.query.messages, response.response, response.candidate) == ([USER], [ANSWER], "mine")
    assert (score.aspect, score.value, score.rater, score.rater_kind) == ("desirable", 1, "gold", RaterKind.GOLD)
    assert read_contents([record]).format.needs_pairing


def test_a_bad_response_scores_0_and_who_labelled_it_may_be_named() -> None:
    _, score = parts({**TRL, "label": False}, candidate="mine", rater="ann", rater_kind=RaterKind.HUMAN)
    assert (score.value, score.rater, score.rater_kind) == (0, "ann", RaterKind.HUMAN)


def test_the_input_and_the_history_of_an_instruction_are_part_of_the_query() -> None:
    record = {"instruction": "Add.", "input": "1 and 1", "output": "2", "kto_tag": True, "system": "Be brief."}
    response, _ = parts({**record, "history": [["Hi", "Hello"]]}, candidate="mine")
    assert [turn["content"] for turn in response.query.messages] == ["Be brief.", "Hi", "Hello", "Add.\n1 and 1"]
    assert response.metadata == {}


@pytest.mark.parametrize("labels", [(0, 1), ("0", "1"), ("good", "bad"), (-1, 1)])
def test_labels_that_are_not_true_or_false_are_not_guessed(labels: tuple[Any, Any]) -> None:
    with pytest.raises(ColumnsUnknown):
        read_contents([{**TRL, "label": one} for one in labels])


def test_one_label_that_is_neither_is_a_bad_row() -> None:
    (*_, bad) = read_contents([*[TRL] * 9, {**TRL, "label": "?"}], candidate="mine").entries
    assert bad.reason == "label is “?”; expected true or false"  # type: ignore[union-attr]
    assert refusal_reason({**TRL, "completion": None}, candidate="mine").startswith("completion is missing")


@pytest.mark.parametrize("layout", [Layout.CHAT, Layout.PLAIN])
@given(
    choice=st.sampled_from(["A", "B", "both_bad"]),
    texts=st.tuples(*[st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1)] * 3),
)
def test_what_is_written_for_kto_is_read_back(layout: Layout, choice: str, texts: tuple[str, str, str]) -> None:
    question, a, b = texts
    if not question.strip() or a == b or "Human:" in question or "Assistant:" in question:
        return
    one = exported_row(
        query=question, messages=None, response_a=a, response_b=b, labels={"safety": exported_label(choice)}
    )
    how = parse_preference_rule(aspect="safety", aspects=("safety",))
    written = [json.loads(line) for line in kto_lines([one], ("safety",), how, ExportCounts(), layout)]
    found = [parts(record) for record in written]
    assert [response.query.key for response, _ in found] == [one["query_id"]] * 2
    assert [response.query.messages for response, _ in found] == [prompt_messages(one)] * 2
    answers = {response.candidate: response.response for response, _ in found}
    assert answers == {one["candidate_a"]: response_messages(a), one["candidate_b"]: response_messages(b)}
    assert [score.value for _, score in found] == {"A": [1, 0], "B": [0, 1], "both_bad": [0, 0]}[choice]
    assert all(response.metadata == {} for response, _ in found)
