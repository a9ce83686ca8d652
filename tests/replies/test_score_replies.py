"""Numbers on a scale: what is offered, what is taken, and what is never moved onto it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.domain.choices import ShownOrder
from evaluations.domain.rubrics import AspectSpec, RubricSpec
from evaluations.replies.reply_format import (
    build_reply_schema,
    format_instruction,
    reply_labels,
    scale_meanings,
    scale_values,
)
from evaluations.replies.reply_parser import ParsedReply, RawReply, UnparsedReply, parse_reply
from tests.helpers.rubric_specs import make_pointwise_spec, make_scale_aspect

HALVES = make_scale_aspect("depth", 0, 2, 0.5)
REAL = make_scale_aspect("fit", 0, 10, None)
PERCENT = make_scale_aspect("share", 0, 1000, 1)


def scores(spec: RubricSpec, text: str) -> dict[str, float] | str:
    told = parse_reply(spec, ShownOrder.AS_STORED, RawReply(text))
    return told.error if isinstance(told, UnparsedReply) else dict(told.scores)


def said(value: object, key: str = "overall") -> str:
    return json.dumps({"rationale": "Because.", key: value})


def test_a_scale_in_steps_is_a_list_of_words_and_any_other_a_number_between_its_ends() -> None:
    assert reply_labels(HALVES) == ["0", "0.5", "1", "1.5", "2"]
    properties = build_reply_schema(make_pointwise_spec(HALVES, REAL, PERCENT))["properties"]
    assert properties["depth"] == {"type": "string", "enum": ["0", "0.5", "1", "1.5", "2"]}
    assert properties["fit"] == {"type": "number", "minimum": 0, "maximum": 10}
    assert properties["share"] == {"type": "number", "minimum": 0, "maximum": 1000}
    assert scale_values(PERCENT) == ()


@pytest.mark.parametrize("value", ["4", " 4 ", 4, 4.0])
def test_a_value_of_the_list_counts_as_a_word_and_as_a_number(value: object) -> None:
    assert scores(make_pointwise_spec(), said(value)) == {"overall": 4.0}


@pytest.mark.parametrize("value", [0, 6, 4.5, "4.0", "four", "5 (very good)", True, None, [4], 10**400, -1])
def test_what_was_not_offered_is_unreadable(value: object) -> None:
    error = scores(make_pointwise_spec(), said(value))
    assert isinstance(error, str)
    assert error.endswith("for overall; offered were 1, 2, 3, 4, 5.")


def test_a_number_of_many_digits_is_a_broken_object_and_no_crash() -> None:
    assert scores(make_pointwise_spec(), '{"rationale": "", "overall": ' + "9" * 5000 + "}") == (
        "The reply holds a JSON object that is broken."
    )


def test_steps_that_no_float_holds_exactly_are_met_all_the_same() -> None:
    tenths = make_scale_aspect("fit", 0, 1, 0.1)
    assert scores(make_pointwise_spec(tenths), said(0.1 + 0.2, "fit")) == {"fit": 0.3}
    assert isinstance(scores(make_pointwise_spec(tenths), said(0.35, "fit")), str)


def test_a_score_in_one_of_two_words_more_must_stand_for_every_aspect() -> None:
    spec = make_pointwise_spec(HALVES, REAL, choices_key="scores")
    whole = json.dumps({"rationale": "", "scores": {"fit": 7.5, "depth": "1.5"}})
    assert scores(spec, whole) == {"depth": 1.5, "fit": 7.5}
    assert scores(spec, json.dumps({"rationale": "", "scores": {"fit": 7.5}})) == "The reply says nothing on depth."


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("It is brief.\n4", 4.0),
        ("It is brief.\n**4.**", 4.0),
        ("4.0", 4.0),
        ("It is brief.\nScore: 4", 4.0),
        ("4 of 5", None),
        ("4\nThat is all.", 4.0),
        ("4\nOr 5.", None),
        ("It is brief.\n6", None),
        ("-4", None),
        ("", None),
    ],
)
def test_in_plain_text_a_score_stands_alone_on_the_last_line(text: str, wanted: float | None) -> None:
    told = scores(make_pointwise_spec(answer_format="text"), text)
    assert told == {"overall": wanted} if wanted else isinstance(told, str)


def test_a_point_before_a_number_is_not_dropped() -> None:
    assert scores(make_pointwise_spec(REAL, answer_format="text"), "Fine.\n.5") == {"fit": 0.5}


def test_a_declared_form_of_a_score_counts_and_two_different_ones_do_not() -> None:
    spec = make_pointwise_spec(answer_format=r"text:^Rating: (\S+)$")
    assert scores(spec, "Rating: 4\nThat is all.") == {"overall": 4.0}
    assert scores(spec, "Rating: 4\nRating: 4.0") == {"overall": 4.0}
    assert scores(spec, "Rating: 4\nRating: 5") == "The reply gives more than one verdict: 4, 5."
    assert scores(spec, "Rating: 9\n4") == "The reply gives 9.0 for overall; offered were 1, 2, 3, 4, 5."


def test_meanings_stand_lowest_first_whatever_order_a_database_gives_them_in() -> None:
    bands = {"1.0": "e", "0.4 - 0.6": "c", "0.0": "a", "0.1-0.3": "b", "0.7 - 0.9": "d"}
    assert [meaning for _, meaning in scale_meanings(make_scale_aspect(scale_labels=bands))] == [
        "a",
        "b",
        "c",
        "d",
        "e",
    ]


SCALES = st.builds(
    lambda low, steps, step: make_scale_aspect("fit", float(low), low + steps * step, step),
    st.integers(-100, 100),
    st.integers(1, 100),
    st.sampled_from([0.1, 0.25, 0.5, 1.0, 2.0]),
)


@given(SCALES, st.data())
def test_every_value_that_a_form_offers_reads_back_as_itself(aspect: AspectSpec, data: st.DataObject) -> None:
    spec = make_pointwise_spec(aspect)
    label = data.draw(st.sampled_from(reply_labels(aspect)))
    assert label in format_instruction(spec)
    for value in (label, float(label)):
        assert scores(spec, said(value, "fit")) == {"fit": float(label)}
    assert scores(make_pointwise_spec(aspect, answer_format="text"), f"Because.\n{label}") == {"fit": float(label)}


@given(SCALES, st.floats() | st.integers())
def test_no_number_is_ever_moved_onto_the_scale(aspect: AspectSpec, number: float) -> None:
    told = parse_reply(make_pointwise_spec(aspect), ShownOrder.AS_STORED, RawReply(said(number, "fit")))
    if isinstance(told, ParsedReply):
        assert abs(told.scores["fit"] - number) < 1e-6
        assert told.scores["fit"] in scale_values(aspect)
