"""The four built-in rubrics: what each is asked, in which form, and that its own form reads back."""

import json
from dataclasses import replace
from typing import Any

import pytest

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import AttemptStep, CallState
from evaluations.domain.rubrics import FIRST_LAYOUT, AspectSpec, RubricKind, RubricSpec
from evaluations.judge_prompts.builtin_rubrics import (
    BUILTIN_RUBRICS,
    QA_PAIRWISE,
    SUMMARY_RATING,
    build_reference_metric,
    find_matching_builtin,
)
from evaluations.judge_prompts.prompt_builder import MATERIAL_RULE, build_messages
from evaluations.judge_prompts.rubric_checks import refuse_unusable_rubric
from evaluations.replies.reply_format import build_reply_schema, build_score_schema, format_instruction
from evaluations.replies.reply_parser import ParsedReply, RawReply, UnparsedReply, parse_reply
from tests.helpers.rubric_specs import (
    FENCE_KEY,
    make_pair_texts,
    make_pairwise_spec,
    make_pointwise_spec,
    make_response_texts,
)

STORED, SWAPPED = ShownOrder.AS_STORED, ShownOrder.SWAPPED
METRIC = build_reference_metric("faithfulness", reason_key="why")


def prompt(spec: RubricSpec, shown: ShownOrder = STORED) -> str:
    texts = make_pair_texts() if spec.kind == RubricKind.PAIRWISE else make_response_texts()
    return "\n\n".join(message["content"] for message in build_messages(spec, texts, shown, FENCE_KEY))


@pytest.mark.parametrize("spec", [*BUILTIN_RUBRICS.values(), METRIC], ids=[*BUILTIN_RUBRICS, "own metric"])
def test_every_built_in_rubric_can_be_asked_and_shuts_all_texts_in(spec: RubricSpec) -> None:
    refuse_unusable_rubric(spec)
    text = prompt(spec)
    assert MATERIAL_RULE in text
    for title in ("user's query", "context", "reference answer", "response"):
        assert f"\n[[begin {title} " in f"\n{text}"
    assert text.endswith(format_instruction(spec))
    outside = "".join(part.split("[[end ")[-1] for part in text.split("[[begin "))
    assert not any(word in outside for word in ("sky blue", "Light.", "Rayleigh.", "Scattering.", "Reflection."))


@pytest.mark.parametrize(
    ("schema", "keys"),
    [
        (build_reply_schema(BUILTIN_RUBRICS["six-aspect"]), ["rationale", "choices"]),
        (build_reply_schema(QA_PAIRWISE), ["explanation", "pairwise_choice"]),
        (build_reply_schema(METRIC), ["why", "faithfulness"]),
        (build_score_schema(SUMMARY_RATING), ["score"]),
    ],
)
def test_the_reasons_come_before_the_verdict_and_the_schema_is_strict(schema: dict[str, Any], keys: list[str]) -> None:
    assert list(schema["properties"]) == schema["required"] == keys
    assert schema["additionalProperties"] is False


def test_the_schemas_of_verdicts_hold_what_may_be_answered() -> None:
    assert build_reply_schema(QA_PAIRWISE)["properties"]["pairwise_choice"]["enum"] == ["A", "SAME", "B"]
    assert build_score_schema(SUMMARY_RATING)["properties"]["score"] == {
        "type": "string",
        "enum": ["1", "2", "3", "4", "5"],
    }
    assert build_reply_schema(METRIC)["properties"]["faithfulness"] == {
        "type": "number",
        "minimum": 0.0,
        "maximum": 1.0,
    }


def test_question_answering_judges_each_response_on_its_own_by_four_criteria_before_it_compares() -> None:
    text = prompt(QA_PAIRWISE)
    for criterion in ("Instruction following: ", "Groundedness: ", "Completeness: ", "Fluency: "):
        assert criterion in text
    steps = ("analyze response A on its own", "analyze response B on its own", "compare the two", "give the verdict")
    places = [text.index(step) for step in steps]
    assert places == sorted(places)
    assert '"explanation": "<your reasons>",\n  "pairwise_choice": "<A | SAME | B>"' in text


def test_a_summary_is_rated_on_five_values_whose_meanings_stand_lowest_first() -> None:
    text = prompt(SUMMARY_RATING)
    for criterion in ("Instruction following: ", "Groundedness: ", "Conciseness: ", "Fluency: "):
        assert criterion in text
    places = [text.index(f"  - {value}: {word}") for value, word in enumerate(("very bad", "bad", "ok", "good"), 1)]
    assert places == sorted(places)
    assert "  - 5: very good: " in text
    assert "Scale: a number from 1 to 5 in steps of 1." in text


def test_a_metric_carries_its_names_its_five_bands_and_a_number_without_quotes_in_its_form() -> None:
    text = prompt(METRIC)
    places = [text.index(f"  - {band}: ") for band in ("0.0", "0.1 - 0.3", "0.4 - 0.6", "0.7 - 0.9", "1.0")]
    assert places == sorted(places)
    assert '"why": "<your reasons>",\n  "faithfulness": <a number from 0 to 1>' in text
    assert [text.count(f'{{"why": "Key points: {start}') for start in ("within 30 days", "Mercury")] == [1, 1]
    assert [f'"faithfulness": {score}}}' in text for score in (0.6, 1.0)] == [True, True]
    assert "“faithfulness”" in text


def test_question_answering_is_read_in_both_orders() -> None:
    for label, stored, swapped in (
        ("A", Choice.A, Choice.B),
        ("same", Choice.TIE, Choice.TIE),
        ("B", Choice.B, Choice.A),
    ):
        reply = RawReply(json.dumps({"pairwise_choice": label, "explanation": "Because."}))
        assert parse_reply(QA_PAIRWISE, STORED, reply) == ParsedReply({"overall": stored}, "Because.")
        assert parse_reply(QA_PAIRWISE, SWAPPED, reply) == ParsedReply({"overall": swapped}, "Because.")


def test_a_summary_is_read_from_its_second_step() -> None:
    told = parse_reply(SUMMARY_RATING, STORED, RawReply('{"score": "4"}'), step=AttemptStep.SCORE, before=["Brief."])
    assert told == ParsedReply({}, "Brief.", {"overall": 4.0})


@pytest.mark.parametrize("score", ["1.01", "-0.1", "true", '"0.8"', "null", "NaN", "Infinity", "1e400"])
def test_a_metric_off_its_scale_is_unreadable_and_never_clipped(score: str) -> None:
    told = parse_reply(METRIC, STORED, RawReply(f'{{"why": "Because.", "faithfulness": {score}}}'))
    assert isinstance(told, UnparsedReply)
    assert told.state == CallState.UNREADABLE
    assert told.error.endswith("for faithfulness; wanted was a number from 0 to 1.")


@pytest.mark.parametrize("text", ['{"faithfulness": 0.5}', '{"why": "Because."}', '{"why": null, "faithfulness": 0.5}'])
def test_a_metric_with_a_key_missing_is_unreadable(text: str) -> None:
    assert isinstance(parse_reply(METRIC, STORED, RawReply(text)), UnparsedReply)


def test_a_metric_is_read_with_its_keys_in_any_order() -> None:
    told = parse_reply(METRIC, STORED, RawReply('{"Faithfulness": 0.85, "Why": "Close."}'))
    assert told == ParsedReply({}, "Close.", {"faithfulness": 0.85})


def test_a_metric_needs_a_name_that_a_key_can_be_made_of() -> None:
    assert build_reference_metric("Answer relevancy").aspects[0].key == "answer_relevancy"
    for name in (" ", "§", "x" * 61):
        with pytest.raises(InputRefused, match="needs a name"):
            build_reference_metric(name)


@pytest.mark.parametrize("spec", [*BUILTIN_RUBRICS.values(), METRIC], ids=[*BUILTIN_RUBRICS, "own metric"])
def test_a_built_in_rubric_is_known_by_its_aspects_and_its_form_in_other_words(spec: RubricSpec) -> None:
    assert find_matching_builtin(replace(spec, instructions="Other.", layout=FIRST_LAYOUT, few_shot=())) == spec


def test_another_rubric_is_like_no_built_in_one() -> None:
    assert find_matching_builtin(replace(QA_PAIRWISE, answer_format="text")) is None
    assert find_matching_builtin(make_pairwise_spec(AspectSpec("taste", "Taste", ""))) is None
    assert find_matching_builtin(make_pointwise_spec()) is None
