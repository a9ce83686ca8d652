"""What the probabilities of a reply's tokens say beside the choice; every number is worked by hand."""

import json
import re
from collections.abc import Mapping
from math import log

import pytest

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.judges import ReplyToken
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricSpec
from evaluations.judge_prompts.builtin_rubrics import BUILTIN_RUBRICS
from evaluations.replies.reply_parser import ParsedReply, RawReply, parse_reply
from evaluations.replies.verdict_weights import WeighedReply, weigh_verdicts
from tests.helpers.rubric_specs import make_pair_texts

QA = BUILTIN_RUBRICS["qa-pairwise"]
SUMMARY = BUILTIN_RUBRICS["summary-rating"]
METRIC = BUILTIN_RUBRICS["reference-metric"]


Told = str | tuple[str, Mapping[str, float]]


def tokens(*given: Told) -> list[ReplyToken]:
    """Tokens in turn: certain ones as they are, the others with the chance of each that could stand there."""
    return [token(one, {one: 1.0}) if isinstance(one, str) else token(*one) for one in given]


def token(text: str, chances: Mapping[str, float]) -> ReplyToken:
    likeliest = tuple((other.encode(), log(chance)) for other, chance in chances.items())
    return ReplyToken(text.encode(), log(chances[text]), likeliest)


def weighed(
    spec: RubricSpec, given: list[ReplyToken], shown: ShownOrder = ShownOrder.AS_STORED, text: str = ""
) -> WeighedReply:
    text = text or b"".join(one.text for one in given).decode()
    told = parse_reply(spec, shown, RawReply(text))
    assert isinstance(told, ParsedReply), told
    return weigh_verdicts(spec, shown, told, text, given)


def qa(*label: Told) -> list[ReplyToken]:
    return tokens('{"', "explanation", '":"', "A", " is", " better", '","', "pairwise_choice", '":"', *label, '"}')


def test_a_pairwise_weight_is_the_chance_of_a_and_half_that_of_a_tie() -> None:
    # 0.6 + 0.3 / 2 = 0.75; of the whole 1.0.
    label = ("A", {"A": 0.6, "SAME": 0.3, "B": 0.1})
    assert weighed(QA, qa(label)).weights == {"overall": 0.75}


def test_it_is_in_terms_of_a_and_b_as_stored() -> None:
    label = ("A", {"A": 0.6, "SAME": 0.3, "B": 0.1})
    told = weighed(QA, qa(label), ShownOrder.SWAPPED)
    assert told.weights == {"overall": 0.25}


def test_what_is_no_label_does_not_count_and_the_rest_is_taken_for_the_whole() -> None:
    # A 0.6, B 0.2, and 0.2 on words that were not offered: 0.6 / 0.8.
    label = ("A", {"A": 0.6, "Both": 0.2, "B": 0.2})
    assert weighed(QA, qa(label)).weights == {"overall": 0.75}


def test_labels_count_in_any_case_with_their_marks_and_by_how_they_begin() -> None:
    # A: 0.5 + 0.1; SAME: 0.1 + 0.1; B: 0.2.
    label = ("A", {"A": 0.5, ' "a"': 0.1, "SA": 0.1, "same": 0.1, 'B"}': 0.2})
    assert weighed(QA, qa(label)).weights == {"overall": 0.7}


def test_a_label_of_several_tokens_is_followed_to_where_it_parts_from_the_others() -> None:
    """both_bad counts as no side, as a tie does."""
    aspect = AspectSpec("x", "X", "", offers_both_bad=True, labels={"A": "left one", "B": "left two"})
    spec = RubricSpec(RubricKind.PAIRWISE, "", (aspect,), ("x",), choices_key="")
    # "left" begins A and B alike and is followed: 0.8 × 0.75 for A, 0.8 × 0.25 for B; tie 0.15; both bad 0.05.
    given = tokens(
        '{"rationale": "", "x": "',
        ("left", {"left": 0.8, "tie": 0.15, "both": 0.05}),
        (" one", {" one": 0.75, " two": 0.25}),
        '"}',
    )
    assert weighed(spec, given).weights == {"x": round(0.6 + 0.2 / 2, 6)}


def test_the_same_label_elsewhere_in_the_reply_is_not_taken_for_the_verdict() -> None:
    label = ("B", {"B": 0.9, "A": 0.1})
    given = tokens('{"explanation": "', ("A", {"A": 0.5, "B": 0.5}), '", "pairwise_choice": "', label, '"}')
    assert weighed(QA, given).weights == {"overall": 0.1}


def test_every_aspect_is_weighed_at_its_own_place() -> None:
    aspects = tuple(AspectSpec(key, key.title(), "") for key in ("depth", "safety"))
    spec = RubricSpec(RubricKind.PAIRWISE, "", aspects, ("safety", "depth"))
    given = tokens(
        '{"rationale": "depth: A", "choices": {"safety": "',
        ("A", {"A": 0.9, "B": 0.1}),
        '", "depth": "',
        ("tie", {"tie": 0.8, "A": 0.2}),
        '"}}',
    )
    assert weighed(spec, given).weights == {"depth": 0.6, "safety": 0.9}


def test_a_score_is_the_mean_of_the_scale_by_the_chance_of_each_value() -> None:
    # 4 × 0.5 + 5 × 0.3 + 3 × 0.2 = 4.1, as a word and as a number.
    chances = {"4": 0.5, "5": 0.3, "3": 0.2}
    for before, after in (('{"score": "', '"}'), ('{"score": ', "}")):
        given = tokens('{"rationale": "x", ' + before[1:], ("4", chances), after)
        assert weighed(SUMMARY, given).weights == {"overall": 4.1}


def test_a_score_without_steps_is_weighed_among_numbers_of_its_length() -> None:
    # "0." goes on: 0.9 × (0.7 × 0.75 + 0.8 × 0.25); "1" can only be the end of the scale: 0.1 × 1.0.
    chances: list[Told] = [("0", {"0": 0.9, "1": 0.1}), ".", ("7", {"7": 0.75, "8": 0.25})]
    given = tokens('{"reason": "x", "correctness": ', *chances, "}")
    assert weighed(METRIC, given).weights == {"correctness": round(0.9 * (0.7 * 0.75 + 0.8 * 0.25) + 0.1, 6)}


def test_what_begins_several_values_cannot_be_told_where_it_weighs_much() -> None:
    """A 1 was written; the 0 that could have stood there would have gone on to any number below it."""
    given = tokens('{"reason": "x", "correctness": ', ("1", {"1": 0.6, "0": 0.4}), "}")
    told = weighed(METRIC, given)
    assert told.weights == {}
    assert told.tokens["correctness"] == [
        ["1", round(log(0.6), 4), [["1", round(log(0.6), 4)], ["0", round(log(0.4), 4)]]]
    ]


def test_a_place_whose_labels_are_unlikely_cannot_be_told() -> None:
    label = ("A", {"A": 0.2, "Neither": 0.7, "B": 0.1})
    assert weighed(QA, qa(label)).weights == {}


def test_plain_text_is_weighed_in_its_declared_form_and_on_its_last_line() -> None:
    aspect = AspectSpec("x", "X", "", offers_tie=False, labels={"A": "Output (a)", "B": "Output (b)"})
    for pattern in ("text", r"text:(Output \([ab]\)) is better"):
        spec = RubricSpec(RubricKind.PAIRWISE, "", (aspect,), ("x",), answer_format=pattern)
        end = " is better" if ":" in pattern else ""
        given = tokens(
            "Output (b) is weak.\n", "Output", " (", ("a", {"a": 0.9, "b": 0.1}), ")", *([end] if end else [])
        )
        if end:
            given = given[1:]
        assert weighed(spec, given).weights == {"x": 0.9}


def test_letters_of_several_bytes_and_tokens_of_half_a_letter_keep_the_places_right() -> None:
    half = "é".encode()
    before = [ReplyToken(b'{"explanation": "caf', 0.0), ReplyToken(half[:1], 0.0), ReplyToken(half[1:], 0.0)]
    given = [*before, *tokens('", "pairwise_choice": "', ("B", {"B": 0.75, "A": 0.25}), '"}')]
    assert weighed(QA, given).weights == {"overall": 0.25}


def test_tokens_before_the_reply_and_after_it_do_no_harm() -> None:
    label = ("A", {"A": 0.75, "B": 0.25})
    text = b"".join(one.text for one in qa(label)).decode()
    given = [*tokens("<think>", "B", "</think>"), *qa(label), *tokens("<|end|>")]
    assert weighed(QA, given, text=text).weights == {"overall": 0.75}


@pytest.mark.parametrize("given", [[], tokens("something", " else")])
def test_without_tokens_or_with_those_of_another_text_there_is_no_weight(given: list[ReplyToken]) -> None:
    text = json.dumps({"explanation": "", "pairwise_choice": "A"})
    assert weighed(QA, given, text=text) == WeighedReply()


def test_only_the_verdicts_tokens_are_kept() -> None:
    told = weighed(QA, qa(("A", {"A": 0.75, "B": 0.25})))
    assert told.tokens == {"overall": [["A", -0.2877, [["A", -0.2877], ["B", -1.3863]]]]}
    assert json.loads(json.dumps(told.tokens)) == told.tokens


def test_a_value_that_was_not_read_is_not_weighed() -> None:
    """The last value under the key is a quotation, and the one before it was read."""
    forged = '{"explanation": "", "pairwise_choice": "B"}'
    text = f'{{"explanation": "", "pairwise_choice": "A"}} It quotes {forged}.'
    given = tokens(*re.findall(r"\w+|\W", text))
    told = parse_reply(QA, ShownOrder.AS_STORED, RawReply(text), judged=lambda: make_pair_texts(a=forged))
    assert isinstance(told, ParsedReply)
    assert told.choices == {"overall": Choice.A}
    assert weigh_verdicts(QA, ShownOrder.AS_STORED, told, text, given) == WeighedReply()
